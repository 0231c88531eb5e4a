"""What of a record does not fit what is declared of its columns, and how many records that is.

Every record is in one cell of every column: it fits, or is missing, unreadable, of an unknown key, below the
lower bound or above the upper one. A cell is told by the same expressions that decide what the record counts
as in an answer, by the record alone, and for every value there is.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import accumulate

from sourdine.core.random.bits import Bits
from sourdine.frames.cells.places import sides
from sourdine.frames.columns import Category, Column, Flag, Integer, Real, Text
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.types import BLANK, Family, family
from sourdine.frames.expression import fit
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.schema import Schema
from sourdine.frames.source import Source
from sourdine.frames.statistics.partitions import raw_text
from sourdine.frames.statistics.totals import secret_order
from sourdine.frames.times.dates import Date, Datetime

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
