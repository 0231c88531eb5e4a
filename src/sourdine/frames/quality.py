"""What of a record does not fit what is declared of its columns, and how many records that is.

Every record is in one cell of every column: it fits, or is missing, unreadable, of an unknown key, below the
lower bound or above the upper one. A cell is told by the same expressions that decide what the record counts
as in an answer, by the record alone, and for every value there is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.frames import aggregate as lookup
from sourdine.frames.aggregate import secret_order
from sourdine.frames.cells import Grouping, fit, grouping, literal, place_of, quoted, sides, steps
from sourdine.frames.contributions import raw_text
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.duckdb import spilling_connection
from sourdine.frames.engines.types import BLANK, Family, family
from sourdine.frames.expressions.conditions import matched_name
from sourdine.frames.schema import (
    Category,
    Column,
    DerivedCategory,
    DerivedFlag,
    Flag,
    Integer,
    PrivacyUnit,
    Real,
    Schema,
    Text,
)
from sourdine.frames.source import Source, open_source
from sourdine.frames.times import Date, Datetime

_NO_NUMBER = rf"{BLANK}([nN][aA][nN]{BLANK})?"


class CellState(StrEnum):
    """What became of a record in a column."""

    FITS = "fits"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown key"
    BELOW = "below the lower bound"
    ABOVE = "above the upper bound"
    OUTSIDE = "unreadable, or before the first or after the last"


def cells_of(column: Column) -> tuple[CellState, ...]:
    """The cells that a record of a column may be in; what fits comes first."""
    if isinstance(column, Integer | Real):
        return CellState.FITS, CellState.MISSING, CellState.UNREADABLE, CellState.BELOW, CellState.ABOVE
    if isinstance(column, Date | Datetime):
        return CellState.FITS, CellState.MISSING, CellState.OUTSIDE
    if isinstance(column, Category):
        return CellState.FITS, CellState.MISSING, CellState.UNKNOWN
    assert isinstance(column, Flag | Text)  # derived columns are told by those that they are computed of
    return CellState.FITS, CellState.MISSING, CellState.UNREADABLE


def all_cells(schema: Schema, columns: Sequence[str]) -> tuple[tuple[str, CellState], ...]:
    """Every cell of some columns, in the order in which they are counted."""
    return tuple((name, cell) for name in columns for cell in cells_of(schema.columns[name]))


def place_among_cells(source: Source, name: str) -> str:
    """Which cell of a column a record is in, in SQL: its place in `cells_of`.

    Missing is NULL, a text that is empty or blank, and where numbers are declared NaN, also written out as a
    text. What is infinite is unreadable, since no answer takes it for a number.
    """
    column, kind, dialect = source.schema.columns[name], source.types[name], source.dialect
    cell = dialect.quoted(name)
    missing = f"{cell} IS NULL"
    if family(kind) is Family.TEXT:
        blank = _NO_NUMBER if isinstance(column, Integer | Real) else BLANK
        missing += f" OR {dialect.matches(raw_text(source, name), blank)}"
    if isinstance(column, Integer | Real):
        number, read_as = source.number(name)
        within, below, above = sides(number, column, read_as, dialect)
        rest = f"WHEN {below} THEN 3 WHEN {above} THEN 4 WHEN {missing} THEN 1 ELSE 2"
    else:
        rest = f"WHEN {missing} THEN 1 ELSE 2"
        if isinstance(column, Date | Datetime):
            within = f"{source.cells.time(name)} IS NOT NULL"
        elif isinstance(column, Text):
            within = fit(raw_text(source, name), dialect)
        else:
            known = replace(source.grouping(name), missing=None)
            within = f"{known.known(known.raw)} IS NOT NULL"
    return f"CASE WHEN {within} THEN 0 {rest} END"


def quality_counts(
    source: Source, columns: Sequence[str], *, unit: PrivacyUnit, bits: Bits
) -> tuple[int, ...]:
    """How many records are in every cell of these columns; without columns, how many there are.

    Where several records are one unit, those without a unit are left out, and a unit with more than
    `max_rows` records counts with so many, divided among the cells of each column in proportion: what does
    not come out even is rounded by a hash of a secret and the unit, so that no cell counts too little on the
    whole. So a unit adds at most `max_rows` to all cells of a column together, and nothing to any cell that
    it has no record in.
    """
    sizes = [len(cells_of(source.schema.columns[name])) for name in columns]
    # what fits is the rest, so that all cells of a column add up to the same
    names = [[f"cell_{i}_{j}" for j in range(1, size)] for i, size in enumerate(sizes)]
    counts = [
        f"count(*) FILTER (WHERE cell_{i} = {j}) AS {name}"
        for i, each in enumerate(names)
        for j, name in enumerate(each, 1)
    ]
    cells = [f"{place_among_cells(source, name)} AS cell_{i}" for i, name in enumerate(columns)]
    if unit.column is None:
        records = f"SELECT {', '.join(cells or ['0 AS cell'])} FROM {source.view_for(*cells)}"
        question = f"SELECT {', '.join(['count(*) AS records', *counts])} FROM ({records})"
    else:
        listed = ", ".join([f"{source.unit(unit.column)} AS unit", *cells])
        records = f"SELECT {listed} FROM {source.view_for(listed)}"
        turn = secret_order([], bits, source.dialect)
        question = _of_units(records, counts, names, rows=unit.max_rows, turn=turn, dialect=source.dialect)
    (numbers,) = source.ask(question)
    total, *rest = (int(number or 0) for number in numbers)
    if not columns:
        return (total,)
    vector: list[int] = []
    for size in sizes:
        others, rest = rest[: size - 1], rest[size - 1 :]
        vector += [total - sum(others), *others]
    return tuple(vector)


def records_without(source: Source, unit: str) -> int:
    """How many records have no unit. Nobody may see it but the holder of the data."""
    records = f"SELECT {source.unit(unit)} AS unit FROM {source.name}"
    ((count,),) = source.ask(f"SELECT count(*) FILTER (WHERE unit IS NULL) FROM ({records})")
    return int(count)


def _of_units(
    records: str,
    counts: Sequence[str],
    names: Sequence[Sequence[str]],
    *,
    rows: int,
    turn: str,
    dialect: Dialect,
) -> str:
    """The sums over units, each scaled down to `max_rows` records.

    Of c records, s in the first cells of a column become (s m + u) // c, with u a whole number from 0 to
    c - 1: from cell to cell this rises from 0 to m, so all cells together are m, and none is negative.
    """
    columns = [name for each in names for name in each]
    per_unit = (
        f"SELECT {', '.join(['unit', 'count(*) AS held', *counts])} FROM ({records}) "
        "WHERE unit IS NOT NULL GROUP BY unit"
    )
    start = f"CAST((({turn}) % held + held) % held AS BIGINT) AS start"
    turned = f"SELECT {', '.join(['held', *columns, start])} FROM ({per_unit})"
    sums = [f"sum(least(held, {rows})) AS records"]
    for each in names:
        below = "0"
        for name, until in zip(each, accumulate(each, lambda a, b: f"{a} + {b}"), strict=True):
            upto = dialect.quotient(f"(({until}) * {rows} + start)", "held")
            part = upto if below == "0" else f"({upto}) - ({below})"
            sums.append(f"sum(CASE WHEN held > {rows} THEN {part} ELSE {name} END) AS {name}")
            below = upto
    return f"SELECT {', '.join(sums)} FROM ({turned})"


# The cells that every record lies in, column by column: exact, for counting, and seen by nobody.


_NARROW = 1 << 8


def record_codes(
    source: Source, by: Sequence[Grouping], *, unit: PrivacyUnit, bits: Bits
) -> list[NDArray[Any]]:
    """The place of each record's key among the known ones of each grouping, one past them for all else.

    Where several records are one unit, one of those that differ is taken: the one with the least hash of a
    secret, the unit and what it holds, so that it depends on nobody else. Records without a unit are left
    out. The order of records means nothing.
    """
    dialect = source.dialect
    raws = [f"{each.raw} AS raw_{i}" for i, each in enumerate(by)]
    whose = [] if unit.column is None else [f"{source.unit(unit.column)} AS unit"]
    records = f"SELECT {', '.join([*whose, *raws])} FROM {source.view}"
    names = [f"key_{i}" for i in range(len(by))]
    marks = [f"{sql} AS {name}" for sql, name in zip(lookup.marks(by, dialect), names, strict=True)]
    rows = f"SELECT {', '.join([*['unit'] * len(whose), *marks])} FROM {lookup.join(by, records, dialect)}"
    if unit.column is not None:
        of_units = f"SELECT * FROM ({rows}) WHERE unit IS NOT NULL"
        rows = dialect.first(of_units, secret_order(names, bits, dialect), names, 1)
    places = [f"{_place(each, name)} AS {name}" for each, name in zip(by, names, strict=True)]
    answer = source.columns(f"SELECT {', '.join(places)} FROM ({rows})", lookup.side_tables(by))
    return [_narrow(answer.pop(name), each) for name, each in zip(names, by, strict=True)]


def _place(by: Grouping, mark: str) -> str:
    """The place of a key, or the key where it is a number: an engine without enumerations compares texts."""
    if by.many or not isinstance(by.keys[0], str) or by.dialect.enumerates:
        return lookup.coded(by, mark)
    cases = (f"WHEN {by.dialect.literal(key)} THEN {place}" for place, key in enumerate(by.keys))
    return f"CASE {mark} {' '.join(cases)} ELSE -1 END"


def _narrow(column: NDArray[Any], by: Grouping) -> NDArray[Any]:
    """Places in few bytes; what has none is one past the last."""
    is_place = by.many or isinstance(by.keys[0], str)
    places = np.ma.filled(column, -1).astype(np.int32) if is_place else lookup.index_of(column, by)
    size = len(by.keys)
    known = np.where(places < 0, size, places)
    return known.astype(np.uint8 if size < _NARROW else np.uint16 if size < 1 << 16 else np.int32)


# Record by record, for those who need more than sums: cells as places, distinct records as codes.


ABSENT = -1
"""The place of a cell that is missing and for which nothing stands."""
Codes = NDArray[np.int64]
_REPEATED = 4  # times that a record occurs on average for the engine to count before it numbers values


def cell_place(source: Source, name: str) -> str:
    """The place of a cell on its grid or among its keys, as SQL; `ABSENT` where it is missing and dropped."""
    column = source.schema.columns[name]
    if isinstance(column, Date | Datetime | DerivedCategory | DerivedFlag):
        raise InvalidParameter(
            f"The column '{name}' holds dates or computed keys, which are for releases of tables alone. "
            "Write what is meant into a column of the table, or leave it out."
        )
    if isinstance(column, Integer | Real):
        return place_of(name)
    assert isinstance(column, Category | Flag)
    dropped = column.missing == "drop"
    return key_place(source, name, ABSENT if dropped else list(_keys(column)).index(column.missing))


def key_place(source: Source, name: str, absent: int = ABSENT) -> str:
    """The place of a key among those declared; an enumeration finds it by its hash, however many they are."""
    column = source.schema.columns[name]
    assert isinstance(column, Category | Flag)
    raw = grouping(name, column, source.types[name]).raw
    if isinstance(column, Flag):
        return f"CASE WHEN {raw} THEN 1 WHEN NOT {raw} THEN 0 ELSE {absent} END"
    keys = ", ".join(literal(str(key)) for key in column.keys)
    code = f"enum_code(TRY_CAST(CAST({raw} AS VARCHAR) AS ENUM({keys})))"
    return f"coalesce(CAST({code} AS INTEGER), {absent})"


def number_in(name: str) -> str:
    """A cell as a number wherever it is one, whatever is declared of it, as SQL."""
    return f"TRY_CAST({quoted(name)} AS DOUBLE)"


def _keys(column: Category | Flag) -> Sequence[str | int | bool]:
    return (False, True) if isinstance(column, Flag) else column.keys


def read_cells(source: Source, expressions: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Some expressions of every record by their names, in one question so that records stay together."""
    marks = {f"c{place}": name for place, name in enumerate(expressions)}
    listed = ", ".join(f"{expressions[name]} AS {mark}" for mark, name in marks.items())
    cells = source.columns(f"SELECT {listed} FROM {source.view_for(listed)}")
    return {name: cells[mark] for mark, name in marks.items()}


def distinct_records(
    source: Source, names: Sequence[str], slow: bool
) -> tuple[list[list[str]], list[Codes], Codes]:
    """The values of each column as texts in order, the place of each record's among them, and how many.

    One past the last value stands for what is missing. The places come by joins with the numbered values of
    each column. Records that occur often are counted first, so that the joins meet each of them once; others
    may come several times. A source that is slow to read is read once.
    """
    texts = [_text(source, name) for name in names]
    wanted = ", ".join(f"{text} AS v{place}" for place, text in enumerate(texts))
    every = ", ".join(f"v{place}" for place in range(len(names)))
    table = f"(SELECT {wanted} FROM {source.name})"
    if slow:
        rows_kept = source.keep(f"FROM {table}")
        table = rows_kept.name
    rows, distinct = source.ask(f"SELECT count(*), approx_count_distinct(hash({every})) FROM {table}")[0]
    if rows >= _REPEATED * distinct:
        records_kept = source.keep(f"SELECT {every}, count(*) AS n FROM {table} GROUP BY ALL")
        table = records_kept.name
    else:
        table = f"(SELECT {every}, 1 AS n FROM {table})"
    every_column = " UNION ALL ".join(
        f"SELECT DISTINCT {place} AS p, v{place} AS v FROM {table} WHERE v{place} IS NOT NULL"
        for place in range(len(names))
    )
    values_kept = source.keep(
        f"SELECT p, v, row_number() OVER (PARTITION BY p ORDER BY v) - 1 AS c FROM ({every_column})"
    )
    known = values_kept.name
    listed = source.columns(f"SELECT p, v FROM {known} ORDER BY p, c")
    values = [[str(v) for v in listed["v"][listed["p"] == place]] for place in range(len(names))]
    codes = ", ".join(
        f"CAST(coalesce(d{place}.c, {len(each)}) AS UINTEGER) AS c{place}"
        for place, each in enumerate(values)
    )
    joins = " ".join(
        f"LEFT JOIN (SELECT v, c FROM {known} WHERE p = {place}) d{place} ON g.v{place} = d{place}.v"
        for place in range(len(names))
    )
    answer = source.columns(f"SELECT {codes}, n FROM {table} g {joins}")
    raw = [answer[f"c{place}"].astype(np.int64) for place in range(len(names))]
    return values, raw, answer["n"].astype(np.int64)


def _text(source: Source, name: str) -> str:
    """The value of a column as text, NULL where it is missing."""
    kind, column = source.types[name], source.schema.columns.get(name)
    if isinstance(column, Category | Flag):
        keys = grouping(name, column, kind)
        return f"CAST({keys.known(keys.raw)} AS VARCHAR)"
    if isinstance(column, Integer | Real):
        return f"CAST({steps(name, column, kind)} AS VARCHAR)"
    identity = source.unit(name)
    return f"CAST({identity} AS VARCHAR) COLLATE C"  # by a collation of the table's own, unlike texts are one


# Made-up records: a table of declared columns, spread evenly, that holds nothing of the real one.


MOST_ROWS = 200_000
_ROWS = 10_000  # where no size is declared
_MADE_UP = 12  # keys where nobody declared any


def mock_source(schema: Schema, unit: PrivacyUnit, size: int | None, joins: Sequence[str] = ()) -> Source:
    """A made-up table: values spread evenly between their bounds, keys equally frequent, or made up.

    It holds nothing of the real table, which is not opened. Of the public tables of `joins` all records have
    a row.

    >>> schema = Schema.read({"age": {"type": "integer", "lower": 0, "upper": 120}})
    >>> made = mock_source(schema, PrivacyUnit("person"), 3)
    >>> made.ask(f"SELECT count(age), min(age) >= 0, max(age) <= 120 FROM {made.name}")
    [(3, True, True)]
    """
    rows = min(size or _ROWS, MOST_ROWS)
    names = dict(schema.base.columns)
    columns = [f"{_value(name, column)} AS {quoted(name)}" for name, column in names.items()]
    if unit.column is not None and unit.column not in names:
        columns.append(f"row_number // {unit.max_rows} AS {quoted(unit.column)}")
    columns += [f"TRUE AS {quoted(matched_name(join))}" for join in joins]
    if not columns:
        raise InvalidParameter("There is no declared column to make up a table from. Declare one.")
    connection = spilling_connection()
    relation = connection.sql(
        f"SELECT {', '.join(columns)} FROM (SELECT range AS row_number FROM range({rows}))"
    )
    others = [*([] if unit.column is None else [unit.column]), *map(matched_name, joins)]
    return open_source(relation, schema, others)


def _value(name: str, column: Column) -> str:
    """A number that looks random, from a hash of the row and the column's name."""
    part = f"(hash(concat(row_number, chr(0), {literal(name)})) % 1000003) / 1000003.0"
    if isinstance(column, Flag):
        return f"({part} < 0.5)"
    if isinstance(column, Category):
        listed = ", ".join(map(literal, column.keys))
        return f"list_extract([{listed}], 1 + CAST(floor({part} * {len(column.keys)}) AS INTEGER))"
    if isinstance(column, Text):
        number = f"1 + CAST(floor({part} * {part} * {_MADE_UP}) AS INTEGER)"  # the first come most often
        return f"concat({literal(f'made up {name} ')}, {number})"
    if isinstance(column, Date | Datetime):
        first, last = (f"TIMESTAMP '{each.isoformat()}'" for each in (column.first, column.last))
        moment = f"{first} + to_seconds(CAST(floor({part} * (epoch({last}) - epoch({first}) + 1)) AS BIGINT))"
        kind = "DATE" if isinstance(column, Date) else "TIMESTAMP"
        moment_sql = f"CAST({moment} AS {kind})"
        return _text_of(moment_sql, column) if column.format else moment_sql
    spread = f"({column.lower!r} + {part} * ({column.upper!r} - ({column.lower!r})))"
    return f"CAST(round({spread}) AS BIGINT)" if isinstance(column, Integer) else f"CAST({spread} AS DOUBLE)"


def _text_of(moment_sql: str, column: Date | Datetime) -> str:
    """A date or time as text; an offset from UTC is that of UTC."""
    written = (column.format or "").replace("%z", "Z")
    return f"strftime({moment_sql}, {literal(written)})"
