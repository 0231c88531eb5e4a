"""What a release says: values with intervals under named keys, in one tidy table."""

import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core import files as disk
from sourdine.core.display import Figure, Viewable, figure_of
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import endless
from sourdine.core.lazy import install_line
from sourdine.core.text import csv_cells, csv_text, inert
from sourdine.frames.files import write_columns
from sourdine.frames.keys import Cell, KeyColumn, Keys
from sourdine.tables.intervals import GroupEstimate

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


# A tidy table in columns, as frames and files of every kind have it.

_BLOCK = 1 << 16  # rows of text at a time


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers, NaN where there is none; `whole` says which of them are whole."""

    values: NDArray[np.float64]
    whole: NDArray[np.bool_]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where there is none."""
        return np.isnan(self.values)

    @property
    def typed(self) -> NDArray[Any]:
        """The numbers as whole ones if all are; what is missing is 0 then."""
        if not self.whole.all():
            return self.values
        return np.where(self.missing, 0.0, self.values).astype(np.int64)

    def texts(self, first: int, last: int) -> list[str]:
        """Some of the numbers as they are written."""
        values, whole = self.values[first:last], self.whole[first:last]
        if whole.all() and not np.isnan(values).any():
            return list(map(str, values.astype(np.int64).tolist()))
        pairs = zip(values.tolist(), whole.tolist(), strict=True)
        return ["" if math.isnan(x) else str(round(x)) if as_whole else repr(x) for x, as_whole in pairs]


@dataclass(frozen=True, eq=False)
class Tidy:
    """The columns of a tidy table by their names."""

    columns: Mapping[str, KeyColumn | NumberColumn]

    @property
    def size(self) -> int:
        """How many rows there are."""
        first = next(iter(self.columns.values()))
        assert isinstance(first, KeyColumn)
        return first.places.size

    def to_pandas(self) -> "pd.DataFrame":
        """The table as a pandas frame."""
        import pandas as pd

        columns = {}
        for name, column in self.columns.items():
            if isinstance(column, KeyColumn):
                columns[name] = pd.Series(column.values.astype(object)[column.places]).infer_objects()
            elif column.missing.all():
                columns[name] = pd.Series(np.full(column.values.size, None), dtype=object)
            else:
                columns[name] = pd.Series(column.values if column.missing.any() else column.typed)
        return pd.DataFrame(columns)

    def to_polars(self) -> "pl.DataFrame":
        """The table as a Polars frame; a column of keys of several types becomes text."""
        import polars as pl

        columns = {}
        for name, column in self.columns.items():
            if isinstance(column, KeyColumn):
                columns[name] = pl.Series(name, _cells(column)).gather(column.places)
            elif column.missing.all():
                columns[name] = pl.Series(name, [None] * column.values.size)
            else:
                series = pl.Series(name, column.typed)
                gone = pl.Series(column.missing)
                columns[name] = pl.select(pl.when(~gone).then(series)).to_series().rename(name)
        return pl.DataFrame(columns)

    def to_arrow(self) -> "pa.Table":
        """The table as an Arrow table; a column of keys of several types becomes text."""
        import pyarrow as pa

        columns: dict[str, Any] = {}
        for name, column in self.columns.items():
            if isinstance(column, KeyColumn):
                columns[name] = pa.array(_cells(column)).take(pa.array(column.places))
            elif column.missing.all():
                columns[name] = pa.nulls(column.values.size)
            else:
                columns[name] = pa.array(column.typed, mask=column.missing)
        return pa.table(columns)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of numbers and of texts, masked where a cell is empty."""
        columns: dict[str, NDArray[Any]] = {}
        for name, column in self.columns.items():
            if isinstance(column, NumberColumn):
                columns[name] = np.ma.MaskedArray(np.nan_to_num(column.values, nan=0.0), mask=column.missing)
                continue
            cells = column.values.tolist()
            texts = np.array(["" if cell is None else str(cell) for cell in cells], dtype=object)
            empty = np.array([cell is None for cell in cells], dtype=bool)
            columns[name] = np.ma.MaskedArray(texts[column.places], mask=empty[column.places])
        return columns

    def lines(self) -> Iterator[str]:
        """The table as CSV, many lines at a time; no cell is taken for a formula."""
        yield csv_text([map(inert, self.columns)])
        texts = {
            name: np.array(csv_cells(column.values.tolist()), dtype=object)
            for name, column in self.columns.items()
            if isinstance(column, KeyColumn)
        }
        for first, last in pairwise([*range(0, self.size, _BLOCK), self.size]):
            cells = [
                texts[name][column.places[first:last]].tolist()
                if isinstance(column, KeyColumn)
                else column.texts(first, last)
                for name, column in self.columns.items()
            ]
            yield "\n".join(map(",".join, zip(*cells, strict=True))) + "\n"


def _cells(column: KeyColumn) -> NDArray[Any] | list[Cell]:
    """The different cells of a column, of one type; of no rows nothing is told."""
    if not column.places.size:
        return []
    return column.values if column.values.dtype.kind in "bif" else of_one_type(column.values.tolist())


def of_one_type(cells: list[Cell]) -> list[Cell]:
    """Cells of one type, as engines want them: texts, where there are several."""
    kinds = set(map(type, cells)) - {type(None)}
    if kinds == {int, float}:
        return [None if cell is None else float(cell) for cell in cells]
    return cells if len(kinds) < 2 else [None if cell is None else str(cell) for cell in cells]


ALL = "all"
NO_INTERVAL = "no interval"
_LISTED = 8
_SHOWN = 4  # values in a line
_FINE = 5  # digits of what there may be, where no interval tells how many are worth showing
_ENDLESS = sys.float_info.max  # what stands for no end of an interval, which tables and files leave empty
_ENDS = ("lower", "upper")
_BEFORE, _AFTER, _NOTE = ("query", "statistic"), ("value", *_ENDS, "measure"), "note"


@dataclass(frozen=True, kw_only=True)
class Answer(Viewable):
    """One aggregate of one query: a value and an interval for each combination of keys.

    `measure` names what the values are counted in; `whole` says that they are whole numbers; `span` is the
    least and the most that any table could give. The numbers are rounded already, to what their interval is
    worth, so that files, pages and terminals show the same ones. Where no interval is known its ends are NaN.
    `chosen` are the columns whose keys nobody declared: which of them stand here was chosen privately.
    `hidden` says that HAVING or LIMIT may have left rows out, and `selection` what the intervals then are.
    """

    query: str
    statistic: str
    kind: str
    columns: tuple[str, ...]
    keys: Keys
    estimate: GroupEstimate = field(repr=False)
    measure: str
    whole: bool = False
    span: tuple[float, float] | None = None
    chosen: tuple[str, ...] = ()
    hidden: bool = False
    selection: str = ""
    confidence: float = 0.95

    def __repr__(self) -> str:
        shown = (self._show(*row) for row in zip(self.keys[:_SHOWN], *self._ends, strict=True))
        more = f", … {len(self.keys):,} groups" if len(self.keys) > _SHOWN else ""
        ends = f"{100 * self.confidence:g} % confidence intervals" if self.bounded else NO_INTERVAL
        return f"<Answer {self.query!r}, {self.statistic!r}: {', '.join(shown)}{more}; {ends}>"

    def _show(self, key: tuple[Cell, ...], value: float, low: float, high: float) -> str:
        group = f"{', '.join(map(repr, key))}: " if key else ""
        return f"{group}{readable(value, self):,.12g}" + (
            f" ({low:,.12g} to {high:,.12g})" if self.bounded else ""
        )

    def rows(self) -> Iterator[tuple[tuple[Cell, ...], float, float, float]]:
        """Key, value, lower and upper end, group by group; ends that are not known are NaN."""
        result = self.estimate
        ends = (result.value.tolist(), result.lower.tolist(), result.upper.tolist())
        return zip(self.keys, *ends, strict=True)

    @property
    def _ends(self) -> tuple[list[float], ...]:
        """The first values with the ends of their intervals."""
        result = self.estimate
        return tuple(each[:_SHOWN].tolist() for each in (result.value, result.lower, result.upper))

    @property
    def bounded(self) -> bool:
        """Whether its values have intervals: not all methods for quantiles give them."""
        return not np.isnan(self.estimate.lower).any()

    @property
    def note(self) -> str:
        """What a reader of its values must know."""
        keys = f"keys of {' and '.join(self.chosen)} chosen privately" if self.chosen else ""
        selection = self.selection if self.bounded else NO_INTERVAL
        return "; ".join(part for part in (selection, keys) if part)

    @property
    def selection_note(self) -> str:
        """A sentence on intervals that are not the usual ones because noise chose the rows; else empty."""
        return f"Noise chose which rows are shown: {self.selection}." if self.selection else ""

    def blind(self, low: float, high: float) -> bool:
        """Whether an interval is all that is possible, so that its value says nothing."""
        return self.span is not None and low <= self.span[0] and high >= self.span[1]

    def to_pandas(self) -> "pd.DataFrame":
        """Its values as a tidy pandas frame."""
        return self._alone.to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """Its values as a tidy Polars frame."""
        return self._alone.to_polars()

    def to_arrow(self) -> "pa.Table":
        """Its values as a tidy Arrow table."""
        return self._alone.to_arrow()

    def chart(self) -> Figure:
        """Its values with their intervals."""
        return figure_of(self)

    @property
    def _alone(self) -> "Answers":
        return Answers((self,), self.confidence)

    def at(self, *key: Cell | Sequence[Cell]) -> tuple[float, float, float]:
        """The value and the ends of its interval for one combination of keys."""
        if len(key) == 1 and isinstance(key[0], tuple | list):
            key = tuple(key[0])
        if (place := self.keys.find(key)) is not None:
            result = self.estimate
            return float(result.value[place]), float(result.lower[place]), float(result.upper[place])
        listed = [f"at({', '.join(map(repr, result))})" for result in self.keys[: _LISTED + 1]]
        shown = ", ".join(listed[:_LISTED]) + (", …" if len(listed) > _LISTED else "")
        raise InvalidParameter(
            f"The answer '{self.statistic}' of '{self.query}' has no group {key!r}. "
            f"Its keys are for {', '.join(self.columns) or 'the whole table'}: ask {shown}."
        )


@dataclass(frozen=True)
class Answers(Viewable):
    """All answers of a release, in the order of the queries."""

    each: tuple[Answer, ...]
    confidence: float

    def __post_init__(self) -> None:
        """What holds for all holds for each, also when it is looked at by itself."""
        shown = (
            a if a.confidence == self.confidence else replace(a, confidence=self.confidence)
            for a in self.each
        )
        object.__setattr__(self, "each", tuple(shown))

    def __repr__(self) -> str:
        return f"<Answers {self.summary}>"

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    @property
    def summary(self) -> str:
        """The answers in a line: with their values where they are few."""
        if len(self.each) == 1:
            return repr(self.each[0]).removeprefix("<Answer ").removesuffix(">")
        return f"{self._listed} with {100 * self.confidence:g} % confidence intervals"

    @property
    def _listed(self) -> str:
        """The names by which answers are asked for."""
        names = (f"[{each.query!r}, {each.statistic!r}]" for each in self.each[:_LISTED])
        return ", ".join(names) + (", …" if len(self.each) > _LISTED else "")

    def __getitem__(self, name: tuple[str, str] | str) -> Answer:
        """The answer with a query's name, and with a statistic's where the query asks for several."""
        query, statistic = name if isinstance(name, tuple) and len(name) == 2 else (name, None)
        result = [a for a in self.each if a.query == query and statistic in (None, a.statistic)]
        if len(result) == 1:
            return result[0]
        wrong = (
            f"{query!r} asks for several statistics: name one" if result else f"There is no answer {name!r}"
        )
        raise InvalidParameter(f"{wrong}. The answers are {self._listed}.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the tidy table's columns; a key with one of its own names is called so."""
        keys = (f"{name} key" if name in (*_BEFORE, *_AFTER, _NOTE) else name for name in self._keys)
        return (*_BEFORE, *keys, *_AFTER, *self._notes)

    @property
    def _notes(self) -> tuple[str, ...]:
        """A last column where there is something to note."""
        return (_NOTE,) if any(answer.note for answer in self.each) else ()

    @property
    def _keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for answer in self.each for name in answer.columns))

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """The tidy table: a row for each value, a column for each key, empty where it does not apply.

        An end that an interval does not have is empty too.
        """
        names, noted = self._keys, self._notes
        for answer in self.each:
            notes = [answer.note or None for _ in noted]
            for key, *numbers in answer.rows():
                cells_by_name = dict(zip(answer.columns, key, strict=True))
                shown = (None if empty(x) else round(x) if answer.whole else x for x in numbers)
                yield (
                    answer.query,
                    answer.statistic,
                    *(cells_by_name.get(name) for name in names),
                    *shown,
                    answer.measure,
                    *notes,
                )

    @property
    def table(self) -> Tidy:
        """The tidy table in columns, as `rows` has it row by row."""
        result: dict[str, KeyColumn | NumberColumn] = {}
        sizes = [len(answer.keys) for answer in self.each]

        def same(cells: Iterable[Cell]) -> KeyColumn:
            return KeyColumn.joined(
                [KeyColumn.one(cell, size) for cell, size in zip(cells, sizes, strict=True)]
            )

        for name in _BEFORE:
            result[name] = same(getattr(answer, name) for answer in self.each)
        for key, name in zip(self._keys, self.columns[len(_BEFORE) :], strict=False):
            result[name] = KeyColumn.joined(
                [
                    answer.keys.columns[answer.columns.index(key)]
                    if key in answer.columns
                    else KeyColumn.one(None, size)
                    for answer, size in zip(self.each, sizes, strict=True)
                ]
            )
        whole = np.repeat([answer.whole for answer in self.each], sizes)
        for end in ("value", *_ENDS):
            numbers = np.concatenate([getattr(answer.estimate, end) for answer in self.each])
            result[end] = NumberColumn(np.where(np.abs(numbers) < _ENDLESS, numbers, np.nan), whole)
        result["measure"] = same(answer.measure for answer in self.each)
        for name in self._notes:
            result[name] = same(answer.note or None for answer in self.each)
        return Tidy(result)

    def to_pandas(self) -> "pd.DataFrame":
        """The tidy table as a pandas frame."""
        with _installed("pandas"):
            return self.table.to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """The tidy table as a Polars frame; a column of keys of several types becomes text."""
        with _installed("polars"):
            return self.table.to_polars()

    def to_arrow(self) -> "pa.Table":
        """The tidy table as an Arrow table; a column of keys of several types becomes text."""
        with _installed("pyarrow"):
            return self.table.to_arrow()

    def csv(self) -> str:
        """The tidy table as CSV.

        Names and keys may be made to look like formulas. A spreadsheet takes them for text where an
        apostrophe stands before them, which `core.text.escaping.as_written` takes off again.
        """
        return "".join(self.table.lines())

    def json(self) -> str:
        """The tidy table as JSON: one object a row."""
        rows = [
            {
                name: cell
                for name, cell in zip(self.columns, row, strict=True)
                if cell is not None or name in _ENDS
            }
            for row in self.rows()
        ]
        return json.dumps({"confidence": self.confidence, "rows": rows}, indent=1, ensure_ascii=False)

    def chart(self, query: str | None = None, statistic: str | None = None) -> Figure:
        """A query's answers with their intervals: all its statistics, or one."""
        return figure_of(self, query, statistic)


@contextmanager
def _installed(package: str) -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise InvalidParameter(
            f"{package} is not installed. Use rows() with columns, or: pip install {package}"
        ) from None


def empty(number: float) -> bool:
    """Whether a file has nothing for a number: there is none, or it stands for no end of an interval.

    >>> empty(math.nan), empty(-sys.float_info.max), empty(1e300)
    (True, True, False)
    """
    return math.isnan(number) or endless(number)


def readable(number: float, answer: Answer) -> float:
    """A number as people read it: without an interval, to a hundred-thousandth of what there may be.

    Files have all digits. They are those of the grid that it was found on, and say nothing of its error.
    """
    width = 0.0 if answer.bounded or answer.span is None else answer.span[1] - answer.span[0]
    if not 0 < width < math.inf or not math.isfinite(number):
        return number
    return round(number, _FINE - math.floor(math.log10(width))) + 0.0  # not -0.0


def write_answers(answers: Answers, path: Path) -> None:
    """Keep the tidy table in a file: CSV, JSON, Parquet or a workbook of Excel (.xlsx), by its ending.

    It appears whole or not at all, and is for its owner (`sourdine.core.files`).
    """
    if path.suffix not in ENDINGS:
        raise InvalidParameter(f"Answers are not written as '{path.suffix}'. Use {' or '.join(ENDINGS)}.")
    with disk.whole_file(path) as place:
        if path.suffix == ".parquet":
            write_columns(answers.table.arrays(), place, path.suffix)
        elif path.suffix == ".xlsx":
            write_answer_book(answers.columns, answers.rows(), place)
        elif path.suffix == ".csv":
            disk.write_parts(place, answers.table.lines())
        else:
            disk.write_new(place, answers.json())


ENDINGS = (".csv", ".json", ".parquet", ".xlsx")


# Answers as a workbook of Excel: numbers are numbers in every country, and texts are never formulas.

_ROWS = 1_048_576  # of a sheet, with its names


def check_workbooks() -> None:
    """Refuse workbooks where nothing is installed that writes them."""
    if find_spec("openpyxl") is None:
        raise InvalidParameter(
            f"Workbooks need openpyxl, which is not installed. Write CSV, or: {install_line('excel')}"
        )


def write_answer_book(
    columns: Sequence[str], rows: Iterator[Sequence[Cell]], place: Path, most: int = _ROWS
) -> None:
    """Keep the tidy table in a workbook: numbers are numbers. What does not fit a sheet is on the next."""
    check_workbooks()
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    for number in itertools.count(1):
        part = list(itertools.islice(rows, most - 1))
        if not part and number > 1:
            break
        sheet: Any = book.create_sheet("answers" if number == 1 else f"answers {number}")
        for row in (columns, *part):
            sheet.append(list(_workbook_cells(sheet, row)))
    with place.open("wb") as file:
        book.save(file)


def _workbook_cells(sheet: Any, row: Sequence[Cell]) -> Iterator[object]:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.escape import escape

    for each in row:
        if isinstance(each, str):
            cell = WriteOnlyCell(sheet, escape(inert(each)))  # control characters as Excel writes them
            cell.data_type = "s"  # also if it is copied into another file
            yield cell
        else:
            yield each
