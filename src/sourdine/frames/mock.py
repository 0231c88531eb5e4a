"""Made-up records: a table of declared columns, spread evenly, that holds nothing of the real one."""

from collections.abc import Sequence

from sourdine.core.errors import InvalidParameter
from sourdine.frames.columns import Category, Column, Flag, Integer, Text
from sourdine.frames.engines.closed import spilling_connection
from sourdine.frames.expression import literal, quoted
from sourdine.frames.expressions.joined import matched_name
from sourdine.frames.opening import open_source
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.schema import Schema
from sourdine.frames.source import Source
from sourdine.frames.times.dates import Date, Datetime

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
