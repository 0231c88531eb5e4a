"""One answer as people read it: a table of its values, and how to read its chart."""

from itertools import islice
from typing import assert_never

from sourdine.core.figure import Spec
from sourdine.report.charts.answers import count_missing
from sourdine.report.crosstab import IN_FILE, more_rows
from sourdine.report.finding import cells_of, written
from sourdine.report.pages.methods import percent
from sourdine.report.table import Cell as Shown
from sourdine.report.table import TextTable
from sourdine.tables import Answer
from sourdine.tables.crosstabs import Crosstab, crosstab_of
from sourdine.tables.statistics import Chart, Scale, style_of

MOST_ROWS = 200
_FEW_ACROSS, _MOST_ACROSS = 4, 12  # columns of a crosstab


def answer_table(answer: Answer, where: str = "", most: int = MOST_ROWS, rest: str = IN_FILE) -> TextTable:
    """Every value with its interval, but for those beyond so many rows; shares in per cent."""
    rows: list[tuple[Shown, ...]] = []
    style = style_of(answer.kind)
    ends = 3 if answer.bounded else 1
    for key, *numbers in islice(answer.rows(), most):
        rows.append((*map(_key, key), *(written(each, answer) for each in numbers[:ends])))
    unit = ", in %" if style.scale is Scale.SHARE else ""
    if style.chart in (Chart.UPRIGHT, Chart.HEAT, Chart.NESTED):
        unit = f", in {answer.measure}"
    hidden = len(answer.keys) - most
    more = more_rows(hidden, rest)
    return TextTable(
        name=f"{answer.query} {answer.statistic}",
        title=f"{answer.query}: {answer.statistic}{unit}",
        columns=(*answer.columns, "value", *(("lower", "upper") if answer.bounded else ())),
        rows=tuple(rows),
        note=" ".join(part for part in (_note(answer), where, more) if part),
    )


def fitting_crosstab(answer: Answer, *, consistent: bool = False) -> Crosstab | None:
    """An answer as a crosstab with few keys across, if it has two columns of keys and few enough."""
    if len(answer.columns) != 2 or style_of(answer.kind).chart in (Chart.LIST, Chart.NESTED):
        return None
    first, second = answer.columns
    crosstab = crosstab_of(answer, first, second, consistent=consistent)
    if len(crosstab.column_keys) > max(len(crosstab.row_keys), _FEW_ACROSS):
        crosstab = crosstab_of(answer, second, first, consistent=consistent)
    return crosstab if 0 < len(crosstab.column_keys) <= _MOST_ACROSS else None


def reading_note(answer: Answer, chart: Spec, confidence: float) -> str:
    """How to read a chart, and what it leaves out."""
    sentences, chart_of = [], style_of(answer.kind).chart
    counted = style_of(answer.kind).scale is Scale.COUNT
    lines = f"intervals of {percent(confidence)}; some may be too short to be seen."
    match chart_of:
        case Chart.UPRIGHT:
            sentences.append("A bar's height is a count, however wide its bin.")
        case Chart.NESTED:
            sentences.append("Larger levels are in the table, with intervals of their own.")
        case Chart.HEAT:
            sentences.append("The sums over rows and columns are in the table, with intervals of their own.")
        case Chart.LIST:
            sentences.append("Only the order was published, no counts.")
        case Chart.BARS | Chart.CURVE:
            pass
        case _:
            assert_never(chart_of)
    if chart_of not in (Chart.HEAT, Chart.LIST):
        bare = "There is no interval: the method by which these values were found gives none."
        kind = "Upright" if chart_of is Chart.CURVE else "Thin"
        sentences.append(f"{kind} lines: {lines}" if answer.bounded else bare)
        if answer.selection and answer.bounded:
            sentences.append(answer.selection_note)
    cells = cells_of(answer)
    if any(answer.blind(cell.lower, cell.upper) for cell in cells):
        sentences.append("Where nothing is drawn, nothing can be said: the noise hides all.")
    if counted and any(cell.value < 0 for cell in cells) and chart_of is not Chart.HEAT:
        sentences.append("Counts below 0 are noise, and are drawn as 0.")
    if missing := count_missing(answer, chart):
        which = "The largest are drawn" if counted else "Those with the shortest intervals are drawn"
        which = which if chart_of is not Chart.CURVE else "The first groups are drawn"
        sentences.append(f"{which}; the file of answers has {missing:,} more values.")
    return " ".join(sentences)


def _note(answer: Answer) -> str:
    """What is to be known of the values of an answer."""
    sentences = [] if answer.bounded else ["No interval is known."]
    if answer.chosen:
        sentences.append(f"Which keys of {' and '.join(answer.chosen)} stand here was chosen privately.")
    if answer.selection:
        sentences.append(answer.selection_note)
    if not answer.keys:
        sentences.append("No key reached the threshold.")
    return " ".join(sentences)


def _key(part: object) -> Shown:
    if isinstance(part, bool):
        return "yes" if part else "no"
    return part if isinstance(part, int | float) else str(part)
