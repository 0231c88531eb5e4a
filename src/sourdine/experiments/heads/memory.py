"""Memory of training: measured case by case, beside the source's formulas."""

import tempfile
from pathlib import Path

from sourdine.experiments.registry import ClaimVerdict, ExperimentPart, Settings, Standing
from sourdine.report.pages.page import Section

HIDDEN = 512
BATCHES = (4, 8, 15, 16, 17, 31, 32, 33)
_REDUCE = 4
PUBLISHED = 55.552  # MB that privacy adds for each example, at 512 hidden units


def reproduce(settings: Settings) -> ExperimentPart:
    """Lines through the measured bytes; a quick run has none."""
    if settings.quick:
        said = (
            "Memory is measured in a process of its own for each case, which a quick run leaves out. Leave "
            "--quick out, or see sourdine train memory."
        )
        return ExperimentPart((), Section(title="Memory", paragraphs=(said,)))
    from sourdine.learning.memory.lines import PEAK, fits, jumps
    from sourdine.learning.memory.table import MeasurementFile, grid, measure_all
    from sourdine.report.pages.memory import memory_page

    cases = grid([HIDDEN], BATCHES, [_REDUCE])
    with tempfile.TemporaryDirectory() as folder:
        rows = MeasurementFile(Path(folder) / "memory.csv")
        measure_all(cases, rows, bar=lambda some: settings.watch("memory", some))
        found = rows.of(cases)
    fitted = fits(found)
    page = memory_page(found, fitted, jumps(fitted))
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
    return ExperimentPart((_verdict(slopes),), whole)


def _verdict(slopes: dict[bool, float]) -> ClaimVerdict:
    added = slopes[True] - slopes[False]
    return ClaimVerdict(
        claim=f"memory: what privacy adds for each example of a batch, {HIDDEN} hidden units",
        published=f"{PUBLISHED:.1f} MB",
        found=f"{added:.2f} MB",
        standing=Standing.OVERSTATED if added < PUBLISHED / 2 else Standing.REPRODUCED,
        why="The source kept the gradient of each example. Its norm is enough, and follows from what the "
        "backward pass holds anyway.",
    )
