"""Which units have records that count, and a table without those of some units."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.frames.aggregate import secret_order
from sourdine.frames.cells import Grouping, fit
from sourdine.frames.engines.duckdb import AnswerTable, SideTables
from sourdine.frames.engines.types import Family, family
from sourdine.frames.keys import TEXT, Keys
from sourdine.frames.schema import PrivacyUnit
from sourdine.frames.source import Beside, Source

_REFUSED, _NAME, _MIDNIGHT = "sourdine_refused", "name of a unit", " 00:00:00"
_LAST_WHOLE = {"FLOAT": 1 << 24, "DOUBLE": 1 << 53}  # from here on not every whole number has a float


def participants(source: Source, column: str, where: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The units with records that a condition holds for, as texts, and how many such records each has.

    Nobody may see them. A unit that no text tells is left out, and `without` leaves its records out too.
    """
    name = _unit_text(source, column)
    answer = source.columns(
        f"SELECT {name} AS unit, count(*) AS records FROM {source.view_for(name, where)} "
        f"WHERE ({where}) AND {name} IS NOT NULL GROUP BY {name}"
    )
    units = np.ma.getdata(answer["unit"])
    return units, np.ma.getdata(answer["records"]).astype(np.int64)


def steady_names(source: Source, column: str, units: Sequence[str]) -> list[str]:
    """The names of units, the same from table to table: 7.0 and 7.00 are 7, midnight is its day.

    One missing number turns a column of whole numbers into fractions where pandas reads it, and all others
    would be new units by that; pandas also reads days as times. Texts stay as they are.
    """
    match family(source.types[column]):
        case Family.FLOAT | Family.DECIMAL:
            return [_number_name(unit) for unit in units]
        case Family.TIMESTAMP:
            return [unit.removesuffix(_MIDNIGHT) for unit in units]
        case _:
            return list(units)


def _number_name(unit: str) -> str:
    try:
        number = Decimal(unit)
        return str(int(number)) if number == number.to_integral_value() else str(number.normalize())
    except ArithmeticError:  # not a number, or endless
        return unit


def without(source: Source, column: str, refused: Sequence[str]) -> tuple[Source, str]:
    """The source with a table of units beside it, and the condition that leaves these out."""
    if source.beside is not None:
        raise InvalidParameter("Keys that are chosen privately cannot be those of a series. Declare them.")
    name = _unit_text(source, column)
    if not len(refused):
        return source, f"{name} IS NOT NULL"
    beside = Beside(
        name=_REFUSED,
        columns={_NAME: np.array(refused, dtype=object)},
        on=((name, _NAME),),
        adds=source.dialect.quoted(_NAME),
    )
    return replace(source, beside=beside), f"{name} IS NOT NULL AND {source.dialect.quoted(_REFUSED)} IS NULL"


def _unit_text(source: Source, column: str) -> str:
    """A unit as text: two that were told by the same one would count as one.

    A float that is too large for its last digit stands for several whole numbers, and is nobody's name: in
    another table, as the number that it was, the same unit would count once more.
    """
    name, kind = source.dialect.quoted(column), source.types[column]
    text = source.dialect.text(name, kind)
    if family(kind) is not Family.FLOAT:
        return text
    return f"CASE WHEN abs({name}) < {_LAST_WHOLE[kind]} THEN {text} END"


# Keys that nobody declared: how many units have each, and records by those that were chosen.
#
# The keys that there are stay in the engine, however many they are: only how many of them so many units
# have comes back. A key is known by that number and by its rank among the keys with the same one, and so
# the engine is told which were chosen; those alone come back, and go to it again as a table that records
# are joined with.


Ints = NDArray[np.int64]
_CHOSEN = "sourdine_chosen"


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """How many keys, of one or several columns, there are that so many units have each.

    `units` are those numbers, rising, and `many` is how many keys have each. The keys stand in the engine, in
    its `table`.
    """

    units: Ints
    many: Ints
    width: int
    source: Source = field(repr=False)
    table: AnswerTable = field(repr=False)

    @property
    def size(self) -> int:
        """How many keys there are."""
        return int(self.many.sum())

    def of(self, first: int, last: int) -> Ints:
        """How many units have each of some keys: by their places if all stand in the order of these numbers.

        Keys that the same number of units have are in the order of their texts.
        """
        ends = np.cumsum(self.many)
        inside = np.minimum(ends, last) - np.maximum(ends - self.many, first)
        return np.repeat(self.units, np.maximum(inside, 0))

    def chosen(self, places: Ints) -> Keys:
        """The keys at such places, which rise; they come in the order of their texts."""
        ends = np.cumsum(self.many)
        which = np.searchsorted(ends, places, side="right")
        whole = np.bincount(which, minlength=self.units.size) == self.many
        first = self.units.size - int(np.argmin(whole[::-1])) if not whole.all() else 0
        part = which < first
        ranks = (places - (ends - self.many)[which])[part] + 1
        # those of many units are all chosen, as a rule, and need no rank
        rows = f"SELECT {self._marks} FROM {self.table.name} WHERE units >= {self._least(first)}"
        side_tables: SideTables = {}
        if ranks.size:
            side_tables = {_CHOSEN: {"units": self.units[which[part]], "rank": ranks.astype(np.int64)}}
            rows += f" UNION ALL {self._ranked}"
        if self.source.dialect.near:
            rows = f"SELECT * FROM ({rows}) ORDER BY {self._marks}"
            return Keys.of_columns(*self._texts(self.source.columns(rows, side_tables)))
        # on a cluster an order costs two jobs and a shuffle
        texts = self._texts(self.source.columns(rows, side_tables))
        order = np.lexsort(texts[::-1])
        return Keys.of_columns(*(column[order] for column in texts))

    def by_key(self) -> dict[tuple[object, ...], int]:
        """How many units have each key: for small tables, as all of them come here."""
        question = f"SELECT {self._marks}, units FROM {self.table.name} ORDER BY {self._marks}"
        answer = self.source.columns(question)
        keys = Keys.of_columns(*self._texts(answer))
        return dict(zip(keys, np.ma.getdata(answer["units"]).tolist(), strict=True))

    @property
    def _marks(self) -> str:
        return ", ".join(f"key_{i}" for i in range(self.width))

    def _least(self, first: int) -> int:
        return int(self.units[first]) if first < self.units.size else 1 << 62

    @property
    def _ranked(self) -> str:
        quoted = self.source.dialect.quoted
        units, rank = (f"chosen.{quoted(name)}" for name in ("units", "rank"))
        rows = f"SELECT * FROM {self.table.name} WHERE units IN (SELECT {quoted('units')} FROM {_CHOSEN})"
        place = f"row_number() OVER (PARTITION BY units ORDER BY {self._marks})"
        return (
            f"SELECT {self._marks} FROM (SELECT *, {place} AS place FROM ({rows})) AS held "
            f"JOIN {_CHOSEN} AS chosen ON held.units = {units} AND held.place = {rank}"
        )

    def _texts(self, answer: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        return [np.ma.getdata(answer[f"key_{i}"]).astype(TEXT) for i in range(self.width)]


def raw_text(source: Source, name: str) -> str:
    """A column as text, compared letter by letter."""
    return source.dialect.text(source.dialect.quoted(name), source.types[name])


def key_counts(
    source: Source, columns: Sequence[str], *, unit: PrivacyUnit, bits: Bits, where: str = "TRUE"
) -> KeyCounts:
    """How many units have each key, or each combination of keys of several columns.

    A unit counts once for each of at most `max_groups` keys: those with the least hash of a secret, the unit
    and the key, so they depend on nobody else's records. Records without a unit or without a key are left
    out. A key called as the others are is never chosen, since it would be taken for them.
    """
    dialect = source.dialect
    marks = [f"key_{i}" for i in range(len(columns))]
    raws = [f"{raw_text(source, name)} AS {mark}" for name, mark in zip(columns, marks, strict=True)]
    whose = [] if unit.column is None else [f"{source.unit(unit.column)} AS unit"]
    listed = ", ".join([*whose, *raws])
    records = f"SELECT {listed} FROM {source.view_for(listed, where)} WHERE {where}"
    named = ", ".join(marks)
    grouped = f"unit, {named}" if whose else named
    # texts are looked at once for each that there is, not once a record
    counts = f"SELECT {grouped}, count(*) AS units FROM ({records}) GROUP BY {grouped}"
    fits = [_eligible(source, name, mark) for name, mark in zip(columns, marks, strict=True)]
    if whose:
        fits.append("unit IS NOT NULL")
    rows = f"SELECT * FROM ({counts}) WHERE {' AND '.join(fits)}"
    if whose:
        few = dialect.first(rows, secret_order(marks, bits, dialect), marks, unit.max_groups)
        rows = f"SELECT {named}, count(*) AS units FROM ({few}) GROUP BY {named}"
    table = source.keep(f"SELECT {named}, units FROM ({rows})")
    answer = source.columns(f"SELECT units, count(*) AS many FROM {table.name} GROUP BY units")
    units, many = (np.ma.getdata(answer[name]).astype(np.int64) for name in ("units", "many"))
    order = np.argsort(units)
    return KeyCounts(units[order], many[order], len(marks), source, table)


def _eligible(source: Source, name: str, raw: str) -> str:
    other, fits = source.schema.text(name).other, fit(raw, source.dialect)
    return fits if other is None else f"({fits} AND {raw} <> {source.dialect.literal(other)})"


def with_keys(source: Source, columns: Sequence[str], keys: Keys, *, others: bool) -> tuple[Source, Grouping]:
    """The table with chosen keys, and how its records are grouped by their places among them.

    With `others`, records whose key was not chosen are at one more place, after all keys; those whose key is
    missing are there too or nowhere, as is declared.
    """
    quoted = source.dialect.quoted
    name, code, *marks = _unused(source, len(columns) + 2)
    raws = [raw_text(source, each) for each in columns]
    lost = [
        f"{fit(raw, source.dialect)} IS NOT TRUE"
        for each, raw in zip(columns, raws, strict=True)
        if source.schema.text(each).missing == "drop"
    ]
    rest = f"CASE WHEN NOT ({' OR '.join(lost)}) THEN {len(keys)} END" if lost else str(len(keys))
    texts = [column.cells().astype(object) for column in keys.columns]
    beside = Beside(
        name=name,
        columns={**dict(zip(marks, texts, strict=True)), code: np.arange(len(keys), dtype=np.int64)},
        on=tuple(zip(raws, marks, strict=True)),
        adds=f"coalesce({quoted(code)}, {rest})" if others else quoted(code),
    )
    places = range(len(keys) + others)
    by = Grouping(name=name, raw=quoted(name), keys=places, dialect=source.dialect)
    return replace(source, beside=beside), by


def by_chosen_keys(
    source: Source, name: str, keys: Sequence[str], *, other: str | None, lost: bool
) -> Grouping:
    """The grouping by some chosen keys of one column, and by the `other` ones if that has a name.

    What is missing is nowhere where it is `lost`, else among the others. Without any key and name every
    record has the one place there is.
    """
    dialect, raw = source.dialect, raw_text(source, name)
    known = (*keys, *(() if other is None else (other,)))
    if not known:
        return Grouping(name=name, raw=dialect.literal("-"), keys=("-",), dialect=dialect)
    among = f"{raw} IN ({', '.join(map(dialect.literal, keys))})" if keys else "FALSE"
    rest = "NULL" if other is None else dialect.literal(other)
    missing = "NULL" if lost else rest
    fits = fit(raw, dialect)
    cases = f"CASE WHEN {fits} IS NOT TRUE THEN {missing} WHEN {among} THEN {raw} ELSE {rest} END"
    return Grouping(name=name, raw=cases, keys=known, dialect=dialect)


def _unused(source: Source, count: int) -> list[str]:
    """Names that no column of the table has."""
    taken = {name.casefold() for name in source.types}
    free = (name for number in itertools.count() if (name := f"sourdine key {number}") not in taken)
    return list(itertools.islice(free, count))
