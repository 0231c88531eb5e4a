"""Tables as codes: distinct records, how often each occurs, and what the codes mean.

The engine counts equal records and numbers the values of every column. Neither the order of rows nor an index
survives that, so no measure can depend on them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.csv.reader import kind_of
from sourdine.frames.files import TEXT
from sourdine.frames.quality import distinct_records
from sourdine.frames.schema import Integer, Real, Schema, Text
from sourdine.frames.source import AS_IT_IS, Source, open_source

Label = str | None
Codes = NDArray[np.int64]


class Missing(StrEnum):
    """What a missing value of a column without a declaration is."""

    VALUE = "value"
    """A value like any other: who has none is like those who have none either."""
    DROP = "drop"
    """Left out: without a quasi-identifier the whole record, without a sensitive value that value."""


@dataclass(frozen=True, eq=False)
class Coded:
    """A column: the code of each distinct record, and what each code stands for.

    Labels are in order, numbers by size and texts by letters; None stands last, for a value that is missing.
    A code of -1 is a value left out.
    """

    name: str
    labels: tuple[Label, ...]
    codes: Codes = field(repr=False)

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        """The labels as numbers, NaN for what is missing; None if any is no number."""
        return _numbers(self.labels)


@dataclass(frozen=True, eq=False)
class Records:
    """The distinct records of a table and how often each occurs; `dropped` are those that lacked something.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 54, 31], "sex": ["f", "m", "f"], "ill": ["flu", "flu", "none"]})
    >>> records = Records.read(people, quasi=["age", "sex"], sensitive=["ill"])
    >>> records.size, records.quasi[0].labels
    (3, ('31', '54'))
    """

    quasi: tuple[Coded, ...]
    sensitive: tuple[Coded, ...]
    others: tuple[Coded, ...]
    counts: Codes = field(repr=False)
    dropped: int = 0

    @classmethod
    def read(
        cls,
        table: object,
        *,
        quasi: Sequence[str],
        sensitive: Sequence[str] = (),
        others: Sequence[str] = (),
        columns: Mapping[str, object] | Schema | None = None,
        missing: Missing = Missing.VALUE,
        text: TextFormat | Mapping[str, object] = AS_IT_IS,
    ) -> "Records":
        """The records of a file, or of a frame of pandas, Polars, Arrow or DuckDB.

        Columns that `columns` declares follow it: numbers are clamped to their bounds and put on their grid,
        unknown keys are missing, and missing values follow the declared rule. `missing` is the rule for the
        others.
        """
        names = _checked(quasi, sensitive, others)
        check.member("Records", "missing", missing, Missing)
        schema = columns if isinstance(columns, Schema) else Schema.read(columns or {})
        known = {name: column for name, column in schema.columns.items() if name in names}
        declared = Schema(columns={n: c for n, c in known.items() if not isinstance(c, Text)})
        source = open_source(table, declared, names, text=text, spark=False)
        drop = {n: missing is Missing.DROP or n in declared.columns for n in names}
        slow = isinstance(table, str | Path) and kind_of(Path(table)) in TEXT
        codes, counts = _encode(source, names, drop, slow)
        places = iter(codes)
        groups = [tuple(next(places) for _ in group) for group in (quasi, sensitive, others)]
        whole = np.ones(len(counts), np.bool_)
        for column in groups[0]:
            whole &= column.codes >= 0
        if not counts[whole].sum():
            raise InvalidParameter(
                "The table has no record with all quasi-identifiers. Name a table with rows, or another "
                "rule for missing values."
            )
        records = cls(groups[0], groups[1], groups[2], counts, int(counts[~whole].sum()))
        return records if whole.all() else records.only(whole)

    @cached_property
    def size(self) -> int:
        """How many records there are."""
        return int(self.counts.sum())

    def column(self, name: str) -> Coded:
        """A column by its name."""
        for each in (*self.quasi, *self.sensitive, *self.others):
            if each.name == name:
                return each
        listed = ", ".join(f"'{each.name}'" for each in (*self.quasi, *self.sensitive, *self.others))
        raise InvalidParameter(f"The records have no column '{name}'. Their columns are {listed}.")

    def only(self, mask: NDArray[np.bool_]) -> "Records":
        """Some of the distinct records."""
        return Records(
            rows_of(self.quasi, mask),
            rows_of(self.sensitive, mask),
            rows_of(self.others, mask),
            self.counts[mask],
            self.dropped,
        )


def rows_of(columns: Sequence[Coded], rows: NDArray[np.bool_] | Codes) -> tuple[Coded, ...]:
    """Columns of some of the rows."""
    return tuple(Coded(each.name, each.labels, each.codes[rows]) for each in columns)


def _checked(*groups: Sequence[str]) -> list[str]:
    """The names of all columns, each once."""
    for group, what in zip(groups, ("quasi", "sensitive", "others"), strict=True):
        if isinstance(group, str):
            raise check.fail("Records", what, "be a list of names", group, "Put the name in brackets.")
    if not groups[0]:
        raise InvalidParameter("At least one quasi-identifier is needed. Name what an outsider may know.")
    names = [name for group in groups for name in group]
    for name in names:
        if names.count(name) > 1:
            raise InvalidParameter(
                f"The column '{name}' is named twice. A column is a quasi-identifier, sensitive, or neither."
            )
    return names


def _encode(
    source: Source, names: Sequence[str], drop: Mapping[str, bool], slow: bool
) -> tuple[list[Coded], Codes]:
    """The codes of every column, and how often each distinct record occurs."""
    values, raw, counts = distinct_records(source, names, slow)
    keys, counts = _merged(raw, [len(each) + 1 for each in values], counts)
    columns = [
        _coded(name, each, codes, source, drop[name])
        for name, each, codes in zip(names, values, keys, strict=True)
    ]
    return columns, counts


def _merged(raw: Sequence[Codes], sizes: Sequence[int], counts: Codes) -> tuple[list[Codes], Codes]:
    """Distinct records in one canonical order, with how often each occurs."""
    ids, many = number_tuples(raw, sizes)
    first = np.empty(many, np.int64)
    first[ids] = np.arange(len(ids))
    return [codes[first] for codes in raw], np.bincount(ids, counts, many).astype(np.int64)


def number_tuples(columns: Sequence[Codes], sizes: Sequence[int]) -> tuple[Codes, int]:
    """A number for each row, equal where all codes are; in the order of the codes, without gaps.

    Codes are digits of one number. Where it would pass 62 bits, what there is so far is numbered anew.
    """
    key, span = np.zeros(len(columns[0]), np.int64), 1
    for codes, size in zip(columns, sizes, strict=True):
        if size == 1:
            continue
        if span * size >= 1 << 62:
            key, span = _without_gaps(key, span)
        key, span = key * size + codes, span * size
    return _without_gaps(key, span)


def _without_gaps(key: Codes, span: int) -> tuple[Codes, int]:
    if span <= max(4 * len(key), 1 << 16):
        places = np.cumsum(np.bincount(key, minlength=span) > 0)
        return places[key] - 1, int(places[-1])
    order = np.argsort(key)
    ranked = key[order]
    new = np.concatenate([[0], np.cumsum(ranked[1:] != ranked[:-1])])
    ids = np.empty_like(new)
    ids[order] = new
    return ids, int(new[-1]) + 1


def _coded(name: str, values: list[str], codes: Codes, source: Source, drop: bool) -> Coded:
    """A column with its labels in order; the engine has numbered them as texts."""
    column = source.schema.columns.get(name)
    if isinstance(column, Integer | Real):
        values = [_decimal(int(value) * column.step) for value in values]
    numbers = _numbers(values)
    order = np.arange(len(values)) if numbers is None else np.argsort(numbers, kind="stable")
    labels: tuple[Label, ...] = tuple(values[place] for place in order)
    rank = np.empty(len(values) + 1, np.int64)
    rank[order] = np.arange(len(values))
    rank[-1] = -1 if drop else len(values)
    codes = rank[codes]
    if not drop and np.any(codes == len(values)):
        labels += (None,)
    return Coded(name, labels, codes)


def _decimal(exact: Fraction) -> str:
    return str(exact) if exact.denominator == 1 else repr(float(exact))


def _numbers(labels: Sequence[Label]) -> NDArray[np.float64] | None:
    values: list[float] = []
    try:
        values += [math.nan if label is None else float(label) for label in labels]
    except ValueError:
        return None
    array: NDArray[Any] = np.array(values, np.float64)
    known = np.array([label is not None for label in labels], np.bool_)
    return array if known.any() and np.isfinite(array[known]).all() else None
