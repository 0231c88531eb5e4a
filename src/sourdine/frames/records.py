"""Record by record, for those who need more than sums: cells as places, distinct records as codes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.frames.cells.places import place_of, steps
from sourdine.frames.columns import Category, Flag, Integer, Real
from sourdine.frames.derived import DerivedCategory, DerivedFlag
from sourdine.frames.expression import grouping, literal, quoted
from sourdine.frames.source import Source
from sourdine.frames.times.dates import Date, Datetime

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
