"""Faults planted in expressions, dates, joins and SQL."""

from dataclasses import replace
from typing import Any

from sourdine.frames import source
from sourdine.frames import times as moments
from sourdine.frames.cells import TableCells
from sourdine.frames.engines.dialect import Dialect, DuckDB
from sourdine.frames.expressions import All, AnyOf, Not, NullIf
from sourdine.frames.expressions import conditions as choice
from sourdine.frames.expressions import functions as arithmetic
from sourdine.frames.expressions.times import DAY
from sourdine.frames.expressions.tree import days_of
from sourdine.frames.joins import Joined
from sourdine.frames.times import Date
from sourdine.tables.measurement import GroupSums
from sourdine.tables.sql.aggregates import Aggregates
from sourdine.tables.sql.record import SqlRecords
from sourdine.tables.sql.select import Sources
from sourdine.tables.statistics import Count
from tests.faults.cases import COMPUTED, DATED, JOINED, SQL
from tests.faults.fault import Fault, with_answer

_TIME = '"sourdine time of seen"'


def _name(change: Any) -> tuple[object, str, Any]:
    """The table with what is brought to it, in SQL that is changed."""
    return Joined, "name", lambda original: property(lambda joined: change(original.func(joined)))


def _first_only(original: Any) -> Any:
    """The bounds of several branches are those of the first."""
    return lambda trees, *rest: original(trees[:1], *rest)


def _by_remainder(original: Any) -> Any:
    """A quotient whose remainder is looked at too, which raises where nothing guards it."""
    return lambda dialect, top, bottom: f"({original(dialect, top, bottom)} + 0 * (1 % ({bottom})))"


def _unguarded(original: Any) -> Any:
    return lambda tree, *rest: tree.of.sql(*rest)


def _at_the_ends(original: Any) -> Any:
    """Days before the first count as the first, and later ones as the last."""

    def time_in(cell: str, column: Any, kind: str, dialect: Any) -> str:
        sql = original(cell, column, kind, dialect)
        first, last = moments._moments(column)
        ends = f"greatest({first // DAY}, least({last // DAY}, 0))"
        return f"coalesce({sql}, CASE WHEN {cell} IS NOT NULL THEN {ends} END)"

    return time_in


def _far_days(original: Any) -> Any:
    """Every day that can be read is kept, wherever it lies."""

    def time_in(cell: str, column: Any, kind: str, dialect: Any) -> str:
        ends = {"first": column.first.replace(year=1900), "last": column.last.replace(year=2100)}
        wide = column.model_copy(update=ends)
        return str(original(cell, wide, kind, dialect))

    return time_in


def _from_the_earliest(original: Any) -> Any:
    """Days are counted from the earliest that some record holds."""

    def view_for(table: source.Source, *texts: str) -> str:
        column = table.schema.columns["seen"]
        assert isinstance(column, Date)
        sql, first = original(table, *texts, _TIME), days_of(column.first)
        shifted = f"{_TIME} - min({_TIME}) OVER () + ({first})"
        return f"(SELECT * REPLACE ({shifted} AS {_TIME}) FROM {sql})"

    return view_for


def _true_or_missing(sql: str, tree: All, *_: Any) -> str:
    return f"coalesce({sql}, TRUE)" if isinstance(tree, AnyOf) else sql


def _strict(sql: str, dialect: Any, text: str) -> str:
    """A date that is read, or else an error."""
    return f"{sql} + 0 * epoch_us(CAST({text} AS TIMESTAMP))"


def _always_and(original: Any) -> Any:
    def joined(records: SqlRecords, node: Any) -> All:
        sql = original(records, node)
        return All(sql.of)

    return joined


def _paid_once(answer: Any, measured: Any, schema: Any, unit: Any, *_: Any) -> Any:
    """A unit in several groups is paid for as if it were in one."""
    return replace(answer, amount=answer.amount / unit.max_groups)


ASKING_FAULTS = (
    Fault(
        name="bounds of a sum are those of its first part",
        wraps=((arithmetic, "_ends", lambda _: lambda left, right: ((left.low, 0), (left.high, 0))),),
        case=COMPUTED,
        asks=("gaps",),
    ),
    Fault(
        name="a quotient by 0 raises an error",
        wraps=((DuckDB, "quotient", _by_remainder), (NullIf, "sql", _unguarded)),
        case=COMPUTED,
        asks=("rates",),
    ),
    Fault(
        name="a product that is too long raises an error",
        wraps=((arithmetic, "long", lambda _: lambda sql, *rest: f"CAST({sql} AS TINYINT)"),),
        case=COMPUTED,
        asks=("cubes",),
    ),
    Fault(
        name="a number that is missing is computed with as 0",
        wraps=((TableCells, "steps", with_answer(lambda sql, *_: f"coalesce({sql}, 0)")),),
        case=COMPUTED,
        asks=("beats",),
    ),
    Fault(
        name="NOT of what is missing holds",
        wraps=((Not, "sql", with_answer(lambda sql, *_: f"coalesce({sql}, TRUE)")),),
        case=COMPUTED,
        asks=("not",),
    ),
    Fault(
        name="OR of what is missing holds",
        wraps=((All, "sql", with_answer(_true_or_missing)),),
        case=COMPUTED,
        asks=("either",),
    ),
    Fault(
        name="bounds of CASE are those of its first branch",
        wraps=((choice, "shared_kind", _first_only),),
        case=COMPUTED,
        asks=("parts",),
    ),
    Fault(
        name="days outside of first and last are kept",
        wraps=((source, "time_in", _at_the_ends),),
        case=DATED,
        asks=("days",),
        engine="csv",  # where days are text
    ),
    Fault(
        name="differences of days have no bounds",
        wraps=((source, "time_in", _far_days),),
        case=DATED,
        asks=("lags",),
        engine="csv",  # where days are text
    ),
    Fault(
        name="periods are counted from the earliest record",
        wraps=((source.Source, "view_for", _from_the_earliest),),
        case=DATED,
        asks=("days",),
        engine="csv",  # where days are text
    ),
    Fault(
        name="what is no date raises an error",
        wraps=((DuckDB, "moment", with_answer(_strict)),),
        case=DATED,
        asks=("days",),
        engine="csv",
    ),
    Fault(
        name="a join matches every public row",
        wraps=(_name(lambda sql: sql.replace(" ON ", " ON TRUE OR ")),),
        case=JOINED,
        asks=("regions",),
    ),
    Fault(
        name="public keys are compared in any case",
        wraps=(_name(lambda sql: sql.replace("COLLATE C", "COLLATE NOCASE")),),
        case=JOINED,
        asks=("regions",),
    ),
    Fault(
        name="what is brought depends on other records",
        wraps=(_name(lambda sql: f"(SELECT * REPLACE (max(region) OVER () AS region) FROM {sql})"),),
        case=JOINED,
        asks=("regions",),
    ),
    Fault(
        name="a WHERE of SQL is not read",
        wraps=((Sources, "scope", with_answer(lambda scope, *_: replace(scope, where=()))),),
        case=SQL,
        asks=("grown",),
    ),
    Fault(
        name="COUNT DISTINCT counts records",
        wraps=((Aggregates, "_distinct", lambda _: lambda reader, node: reader._ask(Count())),),
        case=SQL,
        asks=("people",),
    ),
    Fault(
        name="units in several groups are paid once",
        wraps=((GroupSums, "distance", with_answer(_paid_once)),),
        case=SQL,
        asks=("people",),
    ),
    Fault(
        name="the text of SQL reaches the engine",
        wraps=((Dialect, "literal", lambda _: lambda dialect, value: f"'{value}'"),),
        case=SQL,
        asks=("shops",),
    ),
    Fault(
        name="OR of SQL is read as AND",
        wraps=((SqlRecords, "_joined", _always_and),),
        case=SQL,
        asks=("either",),
    ),
)
