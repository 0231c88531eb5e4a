"""The page of measured memory: lines over the batch, the source's formulas beside ours, and jumps."""

from collections.abc import Callable, Iterable, Sequence

from sourdine.core.figure import Figure
from sourdine.core.format import byte_count
from sourdine.learning.memory.lines import (
    BACKWARD,
    RESIDENT,
    Fit,
    Jump,
    added,
    our_formula,
    source_formula,
    source_total,
)
from sourdine.learning.memory.model import FIRST, Stage
from sourdine.learning.memory.table import MeasuredMemory, MemoryCase
from sourdine.report.charts.base import Row
from sourdine.report.charts.training import draw_memory, draw_residuals
from sourdine.report.pages.page import Page, Section
from sourdine.report.table import TextTable

_MB = 1e6
_SMALL = 0.02  # jumps, as shares of the bytes: the resident set is not the same twice
_Of = Callable[[MeasuredMemory], tuple[int, int, int]]  # what is drawn of a case, its lowest and its highest
_WITH, _WITHOUT = "with privacy", "without"
_SOURCE = "Gervais 2020"
_SOURCE_WITH, _SOURCE_WITHOUT = f"{_SOURCE}, with privacy", f"{_SOURCE}, without"
_STAGES = {
    Stage.MODEL: "the model",
    Stage.BATCH: "the batch",
    Stage.GRADIENT: "loss and gradient",
    Stage.STEP: "the step",
}


def memory_page(rows: Sequence[MeasuredMemory], fitted: Sequence[Fit], jumps: Sequence[Jump]) -> Page:
    """Everything that was measured; charts are of the most hidden units and the largest images."""
    chosen = _largest(rows)
    alike = [row for row in rows if _same(row.case, chosen)]
    lines = [fit for fit in fitted if _same(fit.like, chosen)]
    sections = [_stages(rows, chosen, alike)]
    if lines:
        sections = [_batches(chosen, alike, lines), *sections, _powers(lines, jumps)]
    return Page(
        title=f"Memory of training: {_finding(lines)}",
        lead=(
            f"A perceptron behind frozen convolutions (VGG{chosen.depth}) for {chosen.classes} classes, one "
            f"step of {chosen.optimizer} on random images, {len(rows)} cases, each in a process of its own. "
            "Bytes of tensors are those that torch's allocator handed out; 1 MB is a million bytes."
        ),
        sections=tuple(sections),
    )


def _finding(lines: Sequence[Fit]) -> str:
    slopes = {fit.like.private: fit.line.each for fit in lines if fit.quantity == BACKWARD}
    if len(slopes) < 2:
        return "four stages of a step"
    copy = 4 * _trained(lines[0].like)
    return (
        f"an example more takes {byte_count(slopes[True])} with privacy and {byte_count(slopes[False])} "
        f"without; a gradient of its own would take {byte_count(copy)}"
    )


def _trained(case: MemoryCase) -> int:
    """The parameters that are trained: those of the perceptron on 7 x 7 patches of 512 numbers."""
    return (25_088 + 1) * case.hidden + (case.hidden + 1) * case.classes


def _batches(chosen: MemoryCase, alike: Sequence[MeasuredMemory], lines: Sequence[Fit]) -> Section:
    most = _figure(
        f"Tensors grow in a straight line with the batch ({_where(chosen)})",
        alike,
        [fit for fit in lines if fit.quantity == BACKWARD],
        lambda row: (row.most[Stage.GRADIENT],) * 3,
        "tensors at most until the gradient, MB",
    )
    figures = [most]
    if any(row.resident for row in alike):
        figures.append(
            _figure(
                "The process takes more than its tensors: Python, torch and what the system keeps",
                [row for row in alike if row.resident],
                [fit for fit in lines if fit.quantity == RESIDENT],
                lambda row: (row.middle or 0, min(row.resident), max(row.resident)),
                "resident set at most, MB",
            )
        )
    table = TextTable(
        name="lines",
        title="Lines through the measured bytes",
        columns=("bytes of", "privacy", "constant, MB", "an example, MB", "off by at most, %"),
        rows=tuple(
            (
                fit.quantity,
                _WITH if fit.like.private else _WITHOUT,
                fit.line.fixed / _MB,
                fit.line.each / _MB,
                round(100 * fit.worst, 4) if len(fit.points) > 2 else None,
            )
            for fit in lines
        ),
        note=f"Least squares, {_where(chosen)}.",
    )
    return Section(title="Against the batch", tables=(table,), figures=tuple(figures))


def _figure(title: str, rows: Sequence[MeasuredMemory], lines: Sequence[Fit], of: _Of, up: str) -> Figure:
    points: list[Row] = []
    for row in rows:
        much, low, high = (each / _MB for each in of(row))
        points.append(
            {"batch": row.case.batch, "MB": much, "low": low, "high": high, "series": _name(row.case)}
        )
    ends: list[Row] = [
        {
            "batch": batch,
            "MB": (fit.line.fixed + fit.line.each * batch) / _MB,
            "series": _name(fit.like),
        }
        for fit in lines
        for batch in (fit.points[0][0], fit.points[-1][0])
    ]
    return Figure(title=title, chart=draw_memory(points, ends, series=(_WITH, _WITHOUT), up=up))


def _stages(rows: Sequence[MeasuredMemory], chosen: MemoryCase, alike: Sequence[MeasuredMemory]) -> Section:
    """What each stage adds: measured in one case, by our formula, and by the source's."""
    lines: list[tuple[str | int | float | None, ...]] = []
    for private in (False, True):
        some = [row for row in alike if row.case.private is private]
        if not some:
            continue
        largest = max(some, key=lambda row: row.case.batch)
        for stage in FIRST:
            formula, ours = source_formula(stage, private), our_formula(rows, stage, private)
            lines.append(
                (
                    _STAGES[stage],
                    _WITH if private else _WITHOUT,
                    added(largest, stage) / _MB,
                    ours.words,
                    formula.bytes(largest.case) / _MB,
                    formula.words,
                )
            )
    largest_batch = max(row.case.batch for row in alike)
    table = TextTable(
        name="stages",
        title="What each stage adds to what is alive",
        columns=("stage", "privacy", "measured, MB", "ours", f"{_SOURCE}, MB", f"formula ({_SOURCE})"),
        rows=tuple(lines),
        note=(
            f"{_where(chosen)}, a batch of {largest_batch}. HU: hidden units, BS: batch, F: reduction. "
            "Ours are fitted to all cases with the fewest terms that leave 1 % at most. The thesis's are "
            "upper bounds for a graphics card and images of 224 pixels, without their corrections for "
            "single sizes; a slope of 108,500 HU an example is one copy of all trained parameters. Gervais "
            "(2020) is a master's thesis, whose chapters 3 and 4 are on private learning."
        ),
    )
    points: list[Row] = []
    source_points: list[Row] = []
    for row in alike:
        much = row.live[Stage.STEP] / _MB
        case = row.case
        points.append({"batch": case.batch, "MB": much, "low": much, "high": much, "series": _name(case)})
        name = _SOURCE_WITH if case.private else _SOURCE_WITHOUT
        source_points.append({"batch": case.batch, "MB": source_total(case) / _MB, "series": name})
    figure = Figure(
        title="After the step: Gervais (2020) kept a gradient for each example, here none is left",
        chart=draw_memory(
            points,
            source_points,
            series=(_WITH, _WITHOUT, _SOURCE_WITH, _SOURCE_WITHOUT),
            up="tensors after the step, MB",
        ),
    )
    return Section(title="Stage by stage, beside Gervais (2020)", tables=(table,), figures=(figure,))


def _powers(lines: Sequence[Fit], jumps: Sequence[Jump]) -> Section:
    """Whether memory jumps at powers of two, as the source saw."""
    figures = []
    for quantity, unit, scale in ((BACKWARD, "kB", 1e3), (RESIDENT, "MB", 1e6)):
        some = [fit for fit in lines if fit.quantity == quantity and len(fit.points) > 2]
        rows: list[Row] = [
            {"batch": batch, "off": off / scale, "who": _name(fit.like)}
            for fit in some
            for batch, off in fit.residuals
        ]
        if rows:
            title = f"{quantity.capitalize()}: {_largest_jump(jumps, quantity)}"
            figures.append(Figure(title=title, chart=draw_residuals(rows, up=f"above the line, {unit}")))
    return Section(
        title="Powers of two",
        paragraphs=(
            "Gervais (2020) saw memory rise at powers of two, up to twice what a stage added, and fall again "
            "after. Here a step to a power of two, and from it to the next batch, is compared with the slope "
            "of the other batches.",
        ),
        tables=_jump_table(jumps, lines),
        figures=tuple(figures),
    )


def _jump_table(jumps: Sequence[Jump], lines: Sequence[Fit]) -> tuple[TextTable, ...]:
    like = {fit.like for fit in lines}
    rows = tuple(
        (
            jump.quantity,
            _name(jump.like),
            f"{jump.before} to {jump.after}",
            jump.extra / _MB,
            100 * jump.share,
        )
        for jump in jumps
        if jump.like in like
    )
    columns = ("bytes of", "privacy", "batches", "beyond the slope, MB", "of the bytes before, %")
    return (
        (TextTable(name="jumps", title="Steps at powers of two", columns=columns, rows=rows),) if rows else ()
    )


def _largest_jump(jumps: Iterable[Jump], quantity: str) -> str:
    shares = [abs(jump.share) for jump in jumps if jump.quantity == quantity]
    if not shares:
        return "distance from the line"
    much = f"{100 * max(shares):.2g} %"
    if max(shares) == 0:
        return "no jump at powers of two"
    return f"no jump at powers of two above {much}" if max(shares) < _SMALL else f"jumps of up to {much}"


def _largest(rows: Iterable[MeasuredMemory]) -> MemoryCase:
    """The case that is charted, and those that differ in batch and privacy from it."""
    return max((row.case for row in rows), key=lambda case: (case.hidden, -case.reduce, case.batch))


def _same(case: MemoryCase, other: MemoryCase) -> bool:
    return (case.hidden, case.reduce) == (other.hidden, other.reduce)


def _name(case: MemoryCase) -> str:
    return _WITH if case.private else _WITHOUT


def _where(case: MemoryCase) -> str:
    return f"{case.hidden:,} hidden units, images of {case.side // case.reduce} pixels"
