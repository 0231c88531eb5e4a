"""One cell of a crosstab as people read it: rounded to what its interval is worth, whose ends go outwards."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sourdine.core import files as disk
from sourdine.core.display import Viewable
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import endless
from sourdine.core.lazy import install_line
from sourdine.core.text import csv_text, inert, tame
from sourdine.frames.keys import Cell, KeyColumn, Keys
from sourdine.tables.answers import ALL, NO_INTERVAL, Answer, empty
from sourdine.tables.compare import total
from sourdine.tables.intervals import Floats, GroupEstimate
from sourdine.tables.query import Query
from sourdine.tables.statistics import Contingency, Scale, style_of

if TYPE_CHECKING:
    import pandas as pd
    from openpyxl.cell import Cell as SheetCell

_GAP = "\N{NO-BREAK SPACE}"
_NOTHING, _UNKNOWN = "–", "nothing can be said"
_EXACT = Context(prec=400)
_FEW = 3  # a width that begins with 1 or 2 is worth one digit more


@dataclass(frozen=True)
class CellText:
    """A value, and its interval where it has one."""

    value: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.value} ({self.interval})" if self.interval else self.value


def cell_text(
    value: float,
    lower: float,
    upper: float,
    *,
    percent: bool = False,
    whole: bool = False,
    blind: bool = False,
) -> CellText:
    r"""A value and its interval. Counts keep all their digits, so that they add up as they are shown.

    >>> print(str(cell_text(0.54361, 0.54012, 0.54693, percent=True)).replace("\N{NO-BREAK SPACE}", " "))
    54.4 % (54.0 to 54.7)
    >>> print(cell_text(36813, 36681, 36945), cell_text(18279, 18276, 18282, whole=True))
    36,810 (36,680 to 36,950) 18,279 (18,276 to 18,282)
    >>> print(cell_text(5, 0, 10, blind=True), cell_text(3, -math.inf, 9.5))
    – (nothing can be said) 3.0 (-∞ to 9.5)
    """
    if math.isnan(value):
        return CellText(_NOTHING)
    if blind:
        return CellText(_NOTHING, _UNKNOWN)
    first, low, high = (_exact(x) * (100 if percent else 1) for x in (value, lower, upper))
    ends = [each for each in (first, low, high) if each.is_finite()]
    place = max((digits_of(each) for each in ends), default=0)
    if not whole and low.is_finite() and high.is_finite() and high > low:
        worth = _worth(high - low)
        # in tens of per cent, 1 to 99 would be told as 0 to 100: all that there is
        place = min(place, max(worth, 0) if percent else worth)
    shown = _written(first, place, ROUND_HALF_EVEN)
    if percent:
        shown = f"{shown}{_GAP}%"
    if low.is_nan():
        return CellText(shown)
    return CellText(shown, f"{_written(low, place, ROUND_FLOOR)} to {_written(high, place, ROUND_CEILING)}")


def worth_showing(value: float, lower: float, upper: float) -> tuple[Decimal, Decimal, Decimal]:
    """A value and the ends of its interval, each with the digits that the interval is worth.

    One digit more than in a cell of a crosstab, since what is listed is also compared and drawn.

    >>> [f"{each:,f}" for each in worth_showing(185863.4, 182012.7, 189614.1)]
    ['185,900', '182,000', '189,700']
    """
    first, low, high = (_exact(x) for x in (value, lower, upper))
    if not all(each.is_finite() for each in (first, low, high)) or high <= low:
        return first, low, high
    place = min(max(map(digits_of, (first, low, high))), _worth(high - low) + 1)
    return (
        _rounded(first, place, ROUND_HALF_EVEN),
        _rounded(low, place, ROUND_FLOOR),
        _rounded(high, place, ROUND_CEILING),
    )


def _exact(number: float) -> Decimal:
    return Decimal(math.copysign(math.inf, number) if endless(number) else repr(number))


def digits_of(number: Decimal) -> int:
    """How many digits stand behind the point."""
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _worth(width: Decimal) -> int:
    """The last place worth showing, from the point on: negative ones are tens and hundreds."""
    first = width.as_tuple().digits[0]
    return -width.adjusted() + (1 if first < _FEW else 0)


def _written(number: Decimal, place: int, rounding: str) -> str:
    if not number.is_finite():
        return "∞" if number > 0 else "-∞"
    return f"{_rounded(number, place, rounding):,.{max(place, 0)}f}"


def _rounded(number: Decimal, place: int, rounding: str) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-place), rounding=rounding, context=_EXACT) + 0


# Values in rows and columns, each with its interval, and their sums: what a crosstab holds.


ENDS = ("value", "lower", "upper")
_LISTED = 8


class CrosstabSums(Enum):
    """Where the sums of rows and columns come from."""

    NONE = "There are no sums: only counts of records are added up, where none is left out."
    CELLS = "Sums are those of the noisy cells, so they add up; their intervals allow for all noises in them."
    MEASURED = "Sums were measured too. All numbers were made whole and add up."


@dataclass(frozen=True, kw_only=True)
class CrossCells:
    """Values with intervals, by the keys of one column in rows and of another in columns.

    A key 'all' in the last row or column is for sums, of which `sums` tells where they come from. `estimate`
    has an array with a row for each row key; where there is no group its numbers are NaN. `fixed` are the
    keys of other columns that it is about.
    """

    query: str
    statistic: str
    kind: str
    measure: str
    rows: str
    columns: str
    row_keys: tuple[Cell, ...]
    column_keys: tuple[Cell, ...]
    estimate: GroupEstimate = field(repr=False)
    sums: CrosstabSums = CrosstabSums.NONE
    fixed: tuple[tuple[str, Cell], ...] = ()
    span: tuple[float, float] | None = None
    chosen: tuple[str, ...] = ()
    whole: bool = False
    bounded: bool = True
    selection_note: str = ""
    confidence: float = 0.95

    def __repr__(self) -> str:
        ends = f"{100 * self.confidence:g} % confidence intervals" if self.bounded else NO_INTERVAL
        sides = f"{self.rows} ({len(self.row_keys)}) by {self.columns} ({len(self.column_keys)})"
        return f"<Crosstab of {self.query!r}, {self.statistic!r}: {sides}; {ends}>"

    @property
    def title(self) -> str:
        """What its values are."""
        counted = style_of(self.kind).scale is Scale.COUNT
        what = self.measure.capitalize() if counted else f"{self.statistic[:1].upper()}{self.statistic[1:]}"
        fixed = "".join(f", {name} {key}" for name, key in self.fixed if key != ALL)
        return f"{what} by {self.rows} and {self.columns}{fixed}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, in sentences."""
        level = f"{100 * self.confidence:g}\N{NO-BREAK SPACE}%"
        ends = "Every number is noisy, and no interval is known."
        if self.bounded:
            ends = f"Every number is noisy and stands with its {level} confidence interval, of noise alone."
        chosen = f"Which keys of {' and '.join(self.chosen)} stand here was chosen privately."
        selected = (self.selection_note,) if self.selection_note and self.bounded else ()
        return (ends, self.sums.value, *((chosen,) if self.chosen else ()), *selected)

    @property
    def percent(self) -> bool:
        """Whether its values are shown in per cent."""
        return style_of(self.kind).scale is Scale.SHARE

    def at(self, row: Cell, column: Cell) -> tuple[float, float, float]:
        """The value and the ends of its interval in one cell; 'all' is for sums."""
        for key, keys in ((row, self.row_keys), (column, self.column_keys)):
            if key not in keys:
                listed = ", ".join(map(repr, keys[:_LISTED])) + (", …" if len(keys) > _LISTED else "")
                raise InvalidParameter(f"The crosstab has no key {key!r} there. It has {listed}.")
        value, lower, upper = self.numbers(self.row_keys.index(row), self.column_keys.index(column))
        return value, lower, upper

    def numbers(self, row: int, column: int) -> tuple[float, float, float]:
        """The value and the ends of a cell, by its place."""
        estimate = self.estimate
        return (
            float(estimate.value[row, column]),
            float(estimate.lower[row, column]),
            float(estimate.upper[row, column]),
        )

    def text(self, row: int, column: int) -> CellText:
        """A cell as people read it, by its place."""
        numbers = self.numbers(row, column)
        least, most = (-math.inf, math.inf) if self.span is None else self.span
        blind = numbers[1] <= least and numbers[2] >= most
        whole = self.whole or style_of(self.kind).scale is Scale.COUNT
        return cell_text(*numbers, percent=self.percent, whole=whole, blind=blind)


# A crosstab: the values of an answer in rows and columns, each with its interval, and their sums.
#
# It is made of released numbers alone, so it costs nothing. Files for programs have the numbers of the
# release; where people read them, they are rounded to what their noise supports.


Sort = Literal["declared", "value"]
_ROOTS = 0.95  # the confidence from which roots of squares hold for two Laplace noises and more
_ADDITIVE = "count"  # of records, of which each is in one cell; a unit may be in several


@dataclass(frozen=True, kw_only=True, repr=False)
class Crosstab(CrossCells, Viewable):
    """A crosstab of an answer: shown in notebooks and terminals, and kept as CSV, Markdown or a workbook.

    Its values are by the keys of one column in rows and of another in columns. Where a key 'all' stands last,
    it is for sums, and `sums` tells where they come from. Keys of other columns are `fixed`.
    """

    def to_pandas(self, *, intervals: bool = True) -> "pd.DataFrame":
        """A pandas frame with a row for each row key; with intervals, three columns for each column key."""
        try:
            import pandas as pd
        except ImportError:
            raise InvalidParameter("pandas is not installed. Use to_csv(), or: pip install pandas") from None
        ends = ENDS if intervals and self.bounded else ENDS[:1]
        columns_of_ends: list[Floats] = [getattr(self.estimate, end) for end in ends]
        cells = np.stack(columns_of_ends, axis=2).reshape(len(self.row_keys), -1)
        index = pd.Index(list(self.row_keys), name=self.rows)
        if len(ends) == 1:
            return pd.DataFrame(cells, index=index, columns=pd.Index(self.column_keys, name=self.columns))
        pairs = [(key, end) for key in self.column_keys for end in ends]
        return pd.DataFrame(
            cells, index=index, columns=pd.MultiIndex.from_tuples(pairs, names=[self.columns, None])
        )

    def to_csv(self, path: str | Path | None = None) -> str:
        """CSV with three columns for each column key; kept in a file if a path is given."""
        return keep(csv_of(self), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """A table in Markdown, as people read it; kept in a file if a path is given."""
        return keep(markdown_of(self), path)

    def to_xlsx(self, path: str | Path) -> None:
        """A workbook of Excel, with numbers as numbers. It needs openpyxl: the extra `excel`."""
        write_workbook(self, Path(path))


def crosstab_of(
    answer: Answer,
    rows: str,
    columns: str,
    *,
    fixed: Mapping[str, Cell] = MappingProxyType({}),
    sort: Sort = "declared",
    consistent: bool = False,
) -> Crosstab:
    """The crosstab of an answer that has both columns among its keys; `fixed` are the keys of all others."""
    if sort not in ("declared", "value"):
        raise InvalidParameter(f"A crosstab is sorted as 'declared' or by 'value'. Got {sort!r}.")
    layer = dict(fixed)
    for name in answer.columns:
        if name not in (rows, columns):
            layer.setdefault(name, ALL)
    for name in (rows, columns):
        if name in layer or name not in answer.columns:
            raise InvalidParameter(
                f"The crosstab of '{answer.statistic}' has rows by '{rows}' and columns by '{columns}'. Each "
                f"must be a key of the answer ({', '.join(answer.columns)}), and not be fixed."
            )
    keys, estimate = _layer(answer, layer)
    down, across = (_side(keys.columns[answer.columns.index(name)]) for name in (rows, columns))
    grid = _grid(estimate, down, across)
    sums = CrosstabSums.NONE
    if answer.kind == "contingency" and (ALL in down.keys or ALL in across.keys):
        sums = CrosstabSums.MEASURED if consistent else CrosstabSums.CELLS
    elif _adds_up(answer, down, across, grid):
        sums, grid = CrosstabSums.CELLS, _with_sums(grid, independent=answer.confidence >= _ROOTS)
        down, across = (_Side((*side.keys, ALL), side.places) for side in (down, across))
    if sort == "value":
        order = _order(down, across, grid)
        grid = GroupEstimate(*(getattr(grid, end)[order] for end in ENDS))
        down = _Side(tuple(down.keys[place] for place in order), down.places)
    return Crosstab(
        query=answer.query,
        statistic=answer.statistic,
        kind=answer.kind,
        measure=answer.measure,
        rows=rows,
        columns=columns,
        row_keys=down.keys,
        column_keys=across.keys,
        estimate=grid,
        sums=sums,
        fixed=tuple(layer.items()),
        span=answer.span,
        chosen=answer.chosen,
        whole=answer.whole,
        bounded=answer.bounded,
        selection_note=answer.selection_note,
        confidence=answer.confidence,
    )


@dataclass(frozen=True)
class _Side:
    """The keys of one side in their declared order, sums last, and the place of each group's among them."""

    keys: tuple[Cell, ...]
    places: NDArray[np.int64]


def _layer(answer: Answer, fixed: Mapping[str, Cell]) -> tuple[Keys, GroupEstimate]:
    """The groups of an answer that have some keys."""
    here = np.ones(len(answer.keys), bool)
    for name, key in fixed.items():
        if name not in answer.columns:
            raise InvalidParameter(
                f"The answer '{answer.statistic}' of '{answer.query}' has no column '{name}'. "
                f"Its keys are for {', '.join(answer.columns)}."
            )
        here &= answer.keys.columns[answer.columns.index(name)].holds(key)
    if len(here) and not here.any():
        wanted = ", ".join(f"'{name}'" for name in fixed)
        raise InvalidParameter(
            f"The answer '{answer.statistic}' of '{answer.query}' has keys for {wanted} too. Say which of "
            f'them are shown, as in fixed={{"{next(iter(fixed))}": KEY}}, by one of its keys.'
        )
    estimate = answer.estimate
    return answer.keys.take(here), GroupEstimate(
        estimate.value[here], estimate.lower[here], estimate.upper[here]
    )


def _side(column: KeyColumn) -> _Side:
    used = np.unique(column.places)
    known: dict[Cell, int] = {}
    for key in column.values[used].tolist():
        known.setdefault(key, len(known))
    if ALL in known:  # sums come last
        known = {key: place for place, key in enumerate([*(key for key in known if key != ALL), ALL])}
    numbers = np.zeros(int(used.max(initial=0)) + 1, np.int64)
    numbers[used] = [known[key] for key in column.values[used].tolist()]
    return _Side(tuple(known), numbers[column.places])


def _grid(estimate: GroupEstimate, down: _Side, across: _Side) -> GroupEstimate:
    ends = []
    for end in ENDS:
        cells = np.full((len(down.keys), len(across.keys)), np.nan)
        cells[down.places, across.places] = getattr(estimate, end)
        ends.append(cells)
    return GroupEstimate(*ends)


def _adds_up(answer: Answer, down: _Side, across: _Side, grid: GroupEstimate) -> bool:
    """Whether sums of the cells say something: of counts of records, none left out or hidden."""
    if answer.hidden:
        return False
    complete = grid.value.size > 0 and not np.isnan(grid.value).any()
    named = ALL in (*down.keys, *across.keys)
    return answer.kind == _ADDITIVE and complete and answer.bounded and not answer.chosen and not named


def _with_sums(grid: GroupEstimate, *, independent: bool) -> GroupEstimate:
    """The cells with sums of rows and columns, whose noises are independent.

    Intervals of sums are roots of sums of squares at a high confidence; at a lower one the tails of Laplace
    noise are too thin for that, and half-widths are added up.
    """
    for axis in (1, 0):
        many = grid.value.shape[1 - axis]
        lines = [
            total(
                GroupEstimate(*(np.take(getattr(grid, end), place, 1 - axis) for end in ENDS)),
                independent=independent,
            )
            for place in range(many)
        ]
        if axis == 0:  # the last is the sum of sums, in which every cell is once
            cells = GroupEstimate(*(getattr(grid, end)[:, :-1].ravel() for end in ENDS))
            lines[-1] = total(cells, independent=independent)
        ends = []
        for end in ENDS:
            line = np.concatenate([getattr(each, end) for each in lines])
            ends.append(np.concatenate([getattr(grid, end), np.expand_dims(line, axis)], axis=axis))
        grid = GroupEstimate(*ends)
    if np.all(grid.value == np.rint(grid.value)):  # ends of counts are whole, and go outwards
        return GroupEstimate(grid.value, np.floor(grid.lower), np.ceil(grid.upper))
    return grid


def _order(down: _Side, across: _Side, grid: GroupEstimate) -> list[int]:
    """Rows from the largest, by their sums or else by their means; the row of sums stays the last."""
    values: Any = grid.value
    if ALL in across.keys:
        weight = values[:, -1]
    else:
        there = ~np.isnan(values)
        weight = np.where(there, values, 0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    places = sorted(range(len(down.keys)), key=lambda place: (down.keys[place] == ALL, -weight[place]))
    return list(places)


# Crosstabs as text: CSV for programs, Markdown for people.


_SIGNS = re.compile(r"([\\`*_\[\]<>|~&])")


def keep(text: str, path: str | Path | None) -> str:
    """The text, also in a file if there is a path for it; it appears whole or not at all."""
    if path is not None:
        disk.write_whole(Path(path), text)
    return text


def key_text(key: Cell) -> str:
    """A key as people read it."""
    if isinstance(key, bool):
        return "yes" if key else "no"
    return f"{key:g}" if isinstance(key, float) else tame(str(key))


def csv_of(table: CrossCells) -> str:
    """Full numbers under the keys of columns; no cell is a formula to a spreadsheet."""
    names: list[Cell] = [table.rows]
    for key in table.column_keys:
        names += [str(key), *([f"{key} lower", f"{key} upper"] if table.bounded else [])]
    return csv_text(map(inert, row) for row in (names, *_rows(table)))


def _rows(table: CrossCells) -> Iterator[list[Cell]]:
    ends = 3 if table.bounded else 1
    for place, key in enumerate(table.row_keys):
        row: list[Cell] = [key]
        for other in range(len(table.column_keys)):
            row += [_number(each, table.whole) for each in table.numbers(place, other)[:ends]]
        yield row


def _number(number: float, whole: bool) -> float | int | None:
    if empty(number):
        return None
    return int(number) if whole and number == math.trunc(number) else number


def markdown_of(table: CrossCells) -> str:
    """A table with its title and notes, as people read it; no key is taken for a sign of Markdown."""
    head = [table.rows, *map(key_text, table.column_keys)]
    lines = [f"**{escaped(table.title)}**", "", _line(map(escaped, head))]
    lines.append(_line(["---", *("---:" for _ in table.column_keys)]))
    for place, key in enumerate(table.row_keys):
        cells = (str(table.text(place, other)) for other in range(len(table.column_keys)))
        lines.append(_line([escaped(key_text(key)), *cells]))
    return "\n".join([*lines, "", *map(escaped, table.notes), ""])


def _line(cells: Iterator[str] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    r"""A text that Markdown shows as it is.

    >>> print(escaped("a|b <script> *c*"))
    a\|b \<script\> \*c\*
    """
    return _SIGNS.sub(r"\\\1", tame(text))


# Which answer of a release a crosstab shows.


def select(
    answers: Sequence[Answer], rows: str, columns: str, query: str | None = None, statistic: str | None = None
) -> Answer:
    """The one answer that has both columns among its keys."""
    if rows == columns:
        raise InvalidParameter(f"Rows and columns are both of '{rows}'. Name two columns.")
    fit = [each for each in answers if {rows, columns} <= set(each.columns)]
    matching = [each for each in fit if query in (None, each.query) and statistic in (None, each.statistic)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise InvalidParameter(
            f"Several answers have keys of '{rows}' and '{columns}': {_names(matching)}. "
            "Name one by query= and statistic=."
        )
    if fit:
        raise InvalidParameter(
            f"No answer of that name has keys of '{rows}' and '{columns}'. These have them: {_names(fit)}."
        )
    crossed = [each for each in answers if len(each.columns) > 1]
    have = f" These have two columns or more: {_names(crossed)}." if crossed else ""
    raise InvalidParameter(
        f"No answer has keys of both '{rows}' and '{columns}'.{have} Ask by both, or for their Contingency."
    )


def adds_up(queries: Sequence[Query], answer: Answer) -> bool:
    """Whether the sums of an answer were measured too, by the query that asked for it."""
    statistics = (each for query in queries if query.name == answer.query for each in query.ask)
    return any(
        isinstance(each, Contingency) and each.consistent and each.label == answer.statistic
        for each in statistics
    )


def _names(answers: Sequence[Answer]) -> str:
    listed = [f"{each.statistic!r} of {each.query!r} by {', '.join(each.columns)}" for each in answers]
    return "; ".join(listed[:_LISTED]) + ("; …" if len(listed) > _LISTED else "")


# Crosstabs as workbooks of Excel: numbers are numbers, texts are texts and never formulas.


_ROWS, _COLUMNS = 1_048_576, 16_384  # of a sheet
_ABOVE, _WIDTH = 4, 16  # rows of titles, characters of a column of keys
_DIGITS = 12


def write_workbook(table: CrossCells, path: Path) -> None:
    """Keep a crosstab in a workbook. It appears whole or not at all, and is for its owner."""
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Alignment, Font
    except ImportError:
        raise InvalidParameter(
            f"Workbooks need openpyxl, which is not installed. Use to_csv(), or: {install_line('excel')}"
        ) from None
    if path.suffix != ".xlsx":
        raise InvalidParameter(f"A workbook is not written as '{path.suffix}'. Let its path end in .xlsx.")
    ends = ENDS if table.bounded else ENDS[:1]
    if len(table.row_keys) + _ABOVE + len(table.notes) > _ROWS or len(table.column_keys) * 3 + 1 > _COLUMNS:
        raise InvalidParameter("The crosstab is too large for a sheet. Use to_csv().")
    book = Workbook()
    sheet: Any = book.active
    sheet.title = "crosstab"
    bold, right = Font(bold=True), Alignment(horizontal="right")
    _write(sheet.cell(1, 1), table.title).font = Font(bold=True, size=13)
    _write(sheet.cell(3, 1), table.rows).font = bold
    sheet.column_dimensions["A"].width = _WIDTH
    for place, key in enumerate(table.column_keys):
        first = 2 + place * len(ends)
        cell = _write(sheet.cell(3, first), key_text(key))
        cell.font, cell.alignment = bold, Alignment(horizontal="center")
        if len(ends) > 1:
            sheet.merge_cells(start_row=3, end_row=3, start_column=first, end_column=first + len(ends) - 1)
        for offset, end in enumerate(ends):
            cell = _write(sheet.cell(4, first + offset), end)
            cell.alignment = right
    for place, key in enumerate(table.row_keys):
        _write(sheet.cell(5 + place, 1), key_text(key)).font = bold
        for other in range(len(table.column_keys)):
            for offset, number in enumerate(table.numbers(place, other)[: len(ends)]):
                _workbook_number(sheet.cell(5 + place, 2 + other * len(ends) + offset), number, table)
    for place, note in enumerate(table.notes):
        _write(sheet.cell(6 + len(table.row_keys) + place, 1), note)
    sheet.freeze_panes = "B5"
    with disk.whole_file(path) as whole:
        book.save(whole)


def _write(cell: "SheetCell", text: str) -> "SheetCell":
    """A text, and never a formula: also if it is copied into another file."""
    cell.value = inert(text)
    cell.data_type = "s"
    return cell


def _workbook_number(cell: "SheetCell", number: float, table: CrossCells) -> None:
    """A number with the digits that it is worth; what has no end or no group is left empty."""
    if math.isnan(number) or endless(number):
        return
    cell.value = int(number) if number == math.trunc(number) else number
    digits = min(digits_of(Decimal(repr(number)) * (100 if table.percent else 1)), _DIGITS)
    form = "0" if table.percent else "#,##0"
    cell.number_format = f"{form}{'.' + '0' * digits if digits else ''}{'%' if table.percent else ''}"
