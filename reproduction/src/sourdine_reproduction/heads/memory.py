"""Memory of training: measured case by case, beside the source's formulas."""

import tempfile
from pathlib import Path

from sourdine.report.view import Section
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

HIDDEN = 512
BATCHES = (4, 8, 15, 16, 17, 31, 32, 33)
_REDUCE = 4
_IMAGE = 588 * 1024  # bytes of an image of 224 × 224 × 3 floats


def reproduce(settings: Settings) -> ExperimentPart:
    """Lines through the measured bytes; a quick run has none."""
    if settings.quick:
        words = (
            "Memory is measured in a process of its own for each case, which a quick run leaves out. Leave "
            "--quick out, or see sourdine train memory."
        )
        return ExperimentPart(_verdicts(None), Section(title="Memory", paragraphs=(words,)))
    from sourdine.learning.memory.lines import PEAK, fits, jumps
    from sourdine.learning.memory.table import MeasurementFile, grid, measure_all
    from sourdine.report.pages.training import memory_page

    cases = grid([HIDDEN], BATCHES, [_REDUCE])
    with tempfile.TemporaryDirectory() as folder:
        rows = MeasurementFile(Path(folder) / "memory.csv")
        measure_all(cases, rows, bar=lambda some: settings.watch("memory", some))
        measurements = rows.of(cases)
    fitted = fits(measurements)
    page = memory_page(measurements, fitted, jumps(fitted))
    slopes = {fit.like.private: fit.line.each / 1e6 for fit in fitted if fit.quantity == PEAK}
    whole = Section(
        title="Memory",
        paragraphs=(
            f"{page.title}.",
            page.lead,
            *(each for part in page.sections for each in part.paragraphs),
        ),
        points=tuple(each for part in page.sections for each in part.points),
        tables=tuple(each for part in page.sections for each in part.tables),
        figures=tuple(each for part in page.sections for each in part.figures),
    )
    return ExperimentPart(_verdicts(slopes[True] - slopes[False]), whole)


def _verdicts(added: float | None) -> tuple[ClaimVerdict, ...]:
    """Nothing here runs PyTorch-DP; the formula for images contradicts the sentence before it."""
    ours = "" if added is None else f"our training adds {added:.2f} MB an example at {HIDDEN} hidden units"
    return (
        judge(
            "thesis.memory.added",
            finding=ours or "nothing",
            standing=Standing.UNTESTED,
            why="This was measured on PyTorch-DP of 2020, which kept the gradient of each example and is not "
            "run here. It need not be kept: its norm follows from what the backward pass holds anyway.",
        ),
        judge(
            "thesis.memory.images",
            finding=f"∝ BS/F²; 64 images with F = 2 take {64 * _IMAGE // 4:,} bytes, where the thesis's own "
            f"sheet has 9,634,304 and its formula gives {64**2 * _IMAGE // 2:,}",
            standing=Standing.WRONG,
            why="The sentence before has it right, and so have the values that follow: 20 and 30 are no "
            "BS²/F with F of 1, 2 or 4. A slip of the page, or of the text at hand.",
        ),
    )
