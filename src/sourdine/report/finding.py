"""What noisy answers say, in one sentence, and no more than their intervals support.

Every interval holds with the confidence of the release, one at a time. To say which of k groups is ahead, all
of them must hold at once: each is widened by the factor 1 + log k / log(1/a), where 1 - a is the confidence.
A sum of Laplace or Gaussian noises is log-concave, so it leaves a widened interval with probability a/k at
most: the logarithm of its survival function falls at least in proportion to the distance. For ratios and
quantiles, whose intervals are not even, the same factor holds nearly.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from sourdine.core.format import endless
from sourdine.frames.keys import Combination
from sourdine.tables import Answer, Answers
from sourdine.tables.answers import ALL, NO_INTERVAL, readable
from sourdine.tables.crosstab import CellText, cell_text
from sourdine.tables.statistics import Chart, Scale, style_of

MOST_CELLS = 1 << 12  # values that a page looks at one by one
_MOST_NAMED = 3


@dataclass(frozen=True)
class Cell:
    """One value of an answer, with its interval and the words for its group."""

    label: str
    key: Combination
    value: float
    lower: float
    upper: float

    @property
    def half(self) -> float:
        """The reach of the interval on its longer side: the other may be cut off where nothing can be."""
        return max(abs(self.value - self.lower), abs(self.upper - self.value))

    @property
    def level(self) -> float:
        """The share of values below, of a quantile."""
        last = self.key[-1]
        assert isinstance(last, float)
        return last

    def widened(self, factor: float) -> tuple[float, float]:
        """The interval for a stricter confidence."""
        return self.value - factor * self.half, self.value + factor * self.half


def cells_of(answer: Answer, most: int = MOST_CELLS) -> list[Cell]:
    """The values of an answer without the sums over whole columns: of many, the largest, in their order.

    Of quantiles of many groups they are those of the first.
    """
    places = _places(answer)
    if places.size > most:
        levels = 1
        if style_of(answer.kind).chart is Chart.CURVE:
            levels = np.unique(answer.keys.columns[-1].places).size
            places = places[: max(1, most // levels) * levels]
        else:
            places = np.sort(places[np.argsort(-answer.estimate.value[places], kind="stable")[:most]])
    return _cells(answer, places)


def count_cells(answer: Answer) -> int:
    """How many values there are without the sums over whole columns."""
    return _places(answer).size


def _places(answer: Answer) -> NDArray[np.int64]:
    inner = np.ones(len(answer.keys), bool)
    if style_of(answer.kind).chart in (Chart.HEAT, Chart.NESTED):
        for column in answer.keys.columns:
            inner &= ~column.holds(ALL)
    return np.flatnonzero(inner)


def _cells(answer: Answer, places: NDArray[np.int64]) -> list[Cell]:
    ends = (getattr(answer.estimate, end)[places].tolist() for end in ("value", "lower", "upper"))
    return [
        Cell(name_group(answer.columns, key), key, value, low, high)
        for key, value, low, high in zip(answer.keys.take(places), *ends, strict=True)
    ]


def named_rows(answers: Answers) -> Iterator[tuple[str, ...]]:
    """Query, statistic, group, value, lower end, upper end and measure of every answer, for people."""
    for answer in answers.each:
        unit = "" if _in_percent(answer) else answer.measure
        for key, *numbers in answer.rows():
            shown = [show(number, answer) for number in numbers]
            if not answer.bounded:
                shown[1:] = NO_INTERVAL, ""
            yield answer.query, answer.statistic, name_group(answer.columns, key), *shown, unit


def name_group(columns: Sequence[str], key: Sequence[object]) -> str:
    """A group as people say it.

    >>> name_group(("region", "works", "floor"), ("north", True, 3))
    'north · works: yes · floor 3'
    """
    return " · ".join(name_key(*pair) for pair in zip(columns, key, strict=True))


def name_key(column: str, key: object) -> str:
    """One key as people say it."""
    if isinstance(key, bool):
        return f"{column}: {'yes' if key else 'no'}"
    if isinstance(key, float):
        return f"{column} {key:g}"
    return f"{column} {key}" if isinstance(key, int) else str(key)


def show(number: float, answer: Answer) -> str:
    """A number of an answer with the digits of the file of answers, or fewer where it has no interval."""
    if math.isnan(number):
        return NO_INTERVAL
    if endless(number):
        return "∞" if number > 0 else "-∞"
    text = f"{written(number, answer):,f}"
    return f"{text}\N{NO-BREAK SPACE}%" if _in_percent(answer) else text


def written(number: float, answer: Answer) -> Decimal:
    """A number of an answer as it is written; a share in per cent.

    A share of 0.1235 is 12.35, and a mean of 33730.0 is 33730.
    """
    exact = Decimal(repr(readable(number, answer))) * (100 if _in_percent(answer) else 1)
    if endless(number):
        return Decimal(math.copysign(math.inf, number))
    short = exact.normalize()
    return short.quantize(Decimal(1)) if short == short.to_integral_value() else short


def show_cell(cell: Cell, answer: Answer) -> str:
    """A value with its interval, to the digits that the interval is worth; counts keep all of theirs."""
    if not answer.bounded:
        return f"about {show(cell.value, answer)} ({NO_INTERVAL})"
    return str(_text(cell, answer))


def show_value(cell: Cell, answer: Answer) -> str:
    """A value alone, to the digits that its interval is worth."""
    return _text(cell, answer).value if answer.bounded else show(cell.value, answer)


def show_interval(cell: Cell, answer: Answer) -> str:
    """An interval alone."""
    gap = "\N{NO-BREAK SPACE}%" if _in_percent(answer) else ""
    return f"{_text(cell, answer).interval}{gap}"


def _text(cell: Cell, answer: Answer) -> CellText:
    whole = answer.whole or style_of(answer.kind).scale is Scale.COUNT
    return cell_text(cell.value, cell.lower, cell.upper, percent=_in_percent(answer), whole=whole)


def finding(answer: Answer, confidence: float) -> str:
    """The title of an answer's chart."""
    if (many := _of_many(answer, confidence)) is not None:
        return many
    cells = cells_of(answer)
    if not cells:
        return f"{_subject(answer)}: no key reached the threshold, so no group is shown"
    chart = style_of(answer.kind).chart
    if chart is Chart.LIST:
        return _listed(answer, cells)
    if not any(_known(answer, cell) for cell in cells):
        return f"{_subject(answer)}: nothing can be said, since the noise hides all"
    if chart is Chart.CURVE:
        return _of_quantiles(answer, cells, confidence)
    if len(cells) == 1:
        return f"{_subject(answer)}: {show_cell(cells[0], answer)}"
    return _lead(answer, cells, confidence, _subject(answer))


def _listed(answer: Answer, cells: list[Cell]) -> str:
    """The first keys in their order, of the whole table."""
    if len(answer.columns) > 1:
        return f"The {answer.statistic}: their order for each group is below"
    names = [str(cell.key[-1]) for cell in cells[:_MOST_NAMED]]
    more = f" and {len(cells) - _MOST_NAMED:,} more" if len(cells) > _MOST_NAMED else ""
    return f"The {answer.statistic}, in order: {', '.join(names)}{more}"


def _of_quantiles(answer: Answer, cells: list[Cell], confidence: float) -> str:
    levels = sorted({cell.level for cell in cells})
    level = min(levels, key=lambda each: abs(each - 0.5))
    column = answer.measure
    at = [cell for cell in cells if cell.level == level]
    if len(at) > 1:
        named = "median" if level == 0.5 else f"{100 * level:g}\N{NO-BREAK SPACE}% quantile"
        if not answer.bounded:
            return f"The {named} of {column}: {NO_INTERVAL} is known, so groups are not compared"
        groups = [
            Cell(name_group(answer.columns[:-1], c.key[:-1]), c.key[:-1], c.value, c.lower, c.upper)
            for c in at
        ]
        return _lead(answer, groups, confidence, f"The {named} of {column}")
    if not _known(answer, at[0]):
        return f"About the middle of {column} nothing can be said, since the noise hides it"
    share = "Half" if level == 0.5 else f"{100 * level:g}\N{NO-BREAK SPACE}%"
    sentence = f"{share} of the values of {column} lie below {show_cell(at[0], answer)}"
    ends = [cell for cell in cells if cell.level in (levels[0], levels[-1])]
    if len(levels) > 2 and len(ends) == 2:
        middle = f"{100 * (levels[-1] - levels[0]):.4g}\N{NO-BREAK SPACE}%"
        low, high = (show_value(cell, answer) for cell in ends)
        sentence += f"; the middle {middle} go from about {low} to {high}"
    return sentence


def _lead(answer: Answer, cells: list[Cell], confidence: float, subject: str) -> str:
    """Which group is ahead, if the intervals tell, and of how many nothing can be said."""
    known = [cell for cell in cells if _known(answer, cell)]
    # every interval counts, also of a group that is left out because of its noise
    factor = 1 + math.log(len(cells)) / -math.log1p(-confidence)
    hidden = len(cells) - len(known)
    rest = f"; of {hidden} more {'group' if hidden == 1 else 'groups'} nothing can be said" if hidden else ""
    if not known:
        return f"{subject}: nothing can be said, since the noise hides all"
    if len(known) == 1:
        return f"{subject}: for {known[0].label} {show_cell(known[0], answer)}{rest}"
    return f"{_ahead(answer, known, factor, subject)}{rest}"


def _of_many(answer: Answer, confidence: float) -> str | None:
    """The same of more values than are looked at one by one; None of fewer."""
    chart, places = style_of(answer.kind).chart, _places(answer)
    if places.size <= MOST_CELLS or chart is Chart.LIST:
        return None
    subject = _subject(answer)
    if chart is Chart.CURVE:
        column = answer.keys.columns[-1]
        near = np.abs(column.values - 0.5)
        level = float(column.values[near.argmin()])
        places = places[column.holds(level)]
        named = "median" if level == 0.5 else f"{100 * level:g}\N{NO-BREAK SPACE}% quantile"
        subject = f"The {named} of {answer.measure}"
        if not answer.bounded:
            return f"{subject}: {NO_INTERVAL} is known, so groups are not compared"
    value, low, high = (getattr(answer.estimate, end)[places] for end in ("value", "lower", "upper"))
    known = np.ones(places.size, bool)
    if answer.span is not None:
        known = (low > answer.span[0]) | (high < answer.span[1])
    hidden = int(places.size - known.sum())
    if hidden == places.size:
        return f"{subject}: nothing can be said, since the noise hides all"
    half = np.maximum(np.abs(value - low), np.abs(high - value))
    factor = 1 + math.log(places.size) / -math.log1p(-confidence)
    floor = (value[known] - factor * half[known]).max()  # the highest of all is at least this
    ahead = known & (value + factor * half >= floor)
    few = np.flatnonzero(ahead)[np.argsort(-value[ahead], kind="stable")[:_MOST_NAMED]]
    best = _cells(answer, places[few])
    if chart is Chart.CURVE:
        best = [replace(c, label=name_group(answer.columns[:-1], c.key[:-1])) for c in best]
    count, of = int(ahead.sum()), int(known.sum())
    rest = f"; of {hidden:,} more groups nothing can be said" if hidden else ""
    if count == 1:
        return f"{subject}: highest for {best[0].label}, {show_cell(best[0], answer)}{rest}"
    if count == of:
        return f"{subject}: the noise does not tell the {of:,} groups apart{rest}"
    if count <= _MOST_NAMED:
        *others, last = (cell.label for cell in best)
        named = f"{', '.join(others)} and {last}"
        return f"{subject}: {named} are highest, and the noise does not tell them apart{rest}"
    return f"{subject}: {count:,} of {of:,} groups may be the highest; the noise hides which{rest}"


def _ahead(answer: Answer, known: list[Cell], factor: float, subject: str) -> str:
    ranked = sorted(known, key=lambda cell: -cell.value)
    floor = max(cell.widened(factor)[0] for cell in ranked)  # the highest of all is at least this
    ahead = [cell for cell in ranked if cell.widened(factor)[1] >= floor]
    first = ahead[0]
    if len(ahead) == 1 and len(ranked) == 2:
        low, high = (f"{cell.label} ({show_value(cell, answer)})" for cell in ranked[::-1])
        return f"{subject}: higher for {high} than for {low}"
    if len(ahead) == 1:
        return f"{subject}: highest for {first.label}, {show_cell(first, answer)}"
    if len(ahead) == len(ranked):
        number = "two" if len(ranked) == 2 else f"{len(ranked):,}"
        return f"{subject}: the noise does not tell the {number} groups apart"
    if len(ahead) <= _MOST_NAMED:
        *others, last = (cell.label for cell in ahead)
        named = f"{', '.join(others)} and {last}"
        return f"{subject}: {named} are highest, and the noise does not tell them apart"
    return f"{subject}: {len(ahead)} of {len(ranked)} groups may be the highest; the noise hides which"


def _known(answer: Answer, cell: Cell) -> bool:
    return not answer.blind(cell.lower, cell.upper)


def _subject(answer: Answer) -> str:
    style = style_of(answer.kind)
    match style.scale:
        case Scale.COUNT:
            bins = f" by {answer.columns[-1]}" if style.chart is Chart.UPRIGHT else ""
            return f"{answer.measure.capitalize()}{bins}"
        case Scale.SHARE:
            subject = answer.statistic.replace("proportion with", "Share with", 1)
            return f"{subject[:1].upper()}{subject[1:]}"
        case Scale.NUMBER | Scale.SQUARE:
            return f"The {answer.statistic}"
        case _:
            assert_never(style.scale)


def _in_percent(answer: Answer) -> bool:
    return style_of(answer.kind).scale is Scale.SHARE
