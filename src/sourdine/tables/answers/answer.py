"""What a release says: values with intervals under named keys, in one tidy table."""

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sourdine.core import files as disk
from sourdine.core.display import Figure, Viewable, figure_of
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import endless
from sourdine.frames.files import write_columns
from sourdine.frames.keys import Cell, KeyColumn, Keys
from sourdine.tables.answers.estimate import GroupEstimate
from sourdine.tables.answers.tidy import NumberColumn, Tidy

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

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
            from sourdine.tables.answers.workbook import write_answer_book

            write_answer_book(answers.columns, answers.rows(), place)
        elif path.suffix == ".csv":
            disk.write_parts(place, answers.table.lines())
        else:
            disk.write_new(place, answers.json())


ENDINGS = (".csv", ".json", ".parquet", ".xlsx")
