"""Faults planted in the planner and the engine's questions: an audit that misses one is worth nothing.

Each fault wraps a function or two on the way from declarations to exact numbers, while it is planted.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from sourdine.core.distance import Distance, Neighbours
from sourdine.frames import (
    PrivacyUnit,
    quality,
    source,
)
from sourdine.frames import (
    aggregate as pairs,
)
from sourdine.frames import (
    aggregate as sums,
)
from sourdine.frames import (
    aggregate as totals,
)
from sourdine.frames import (
    contributions as partitions,
)
from sourdine.frames import joins as join
from sourdine.frames.engines.dialect import DUCKDB, Dialect
from sourdine.mechanisms import TopK
from sourdine.tables.consistent import Margins
from sourdine.tables.measurement import GroupSums, Measurement, expect
from sourdine.tables.quality import Quality
from sourdine.tables.statistics import keys as chosen_keys
from sourdine.tables.statistics import quantiles as order
from sourdine.tables.statistics.quantiles import TreeCounts
from tests.faults.cases import (
    FITTING,
    FITTING_SQUARED,
    FITTING_UNITS,
    JOINED,
    OPEN,
    QUERIES,
    RECORDS,
    REPLACED,
    SQUARED,
    UNITS,
)
from tests.faults.fault import Fault, Wrap, with_answer

ranks = import_module("sourdine.frames.rank_counts")  # not the function
_MANY = 100


def _distances(
    change: Callable[[Distance, Measurement], Fraction | int], *owners: object
) -> tuple[tuple[object, str, Wrap], ...]:
    """Distances divided by something, in the classes that say how far a unit moves what."""

    def shorter(answer: Distance, measured: Measurement, *_: object) -> Distance:
        return replace(answer, amount=answer.amount / change(answer, measured))

    return tuple((owner, "distance", with_answer(shorter)) for owner in owners)


def _view(change: Callable[[str, str], str]) -> tuple[object, str, Wrap]:
    """The view of a source, made from what it was and from the name of a column of places."""

    def wrap(original: Any) -> Any:
        return lambda table, *texts: change(
            original(table, *texts, table.place_of("age")), table.place_of("age")
        )

    return source.Source, "view_for", wrap


def _uncapped(original: Any) -> Any:
    return lambda unit, *values: original(replace(unit, max_rows=_MANY), *values)


def _in_all_groups(original: Any) -> Any:
    return lambda *values, **named: original(*values, **{**named, "groups": None})


def _unscaled(original: Any) -> Any:
    """All records of a unit count in its cells."""
    return lambda *values, **named: original(*values, **{**named, "rows": _MANY})


def _strictly(sql: str, _: object, name: str) -> str:
    """The cell of an age, which must be a number."""
    return f"{sql} + 0 * coalesce(CAST({DUCKDB.quoted(name)} AS DOUBLE), 0)" if name == "age" else sql


def _one_column(answer: Distance, measured: Measurement) -> int:
    """Only one of the columns whose fit is counted is paid for."""
    return len(expect(Quality, measured).columns)


def _weight(answer: Distance, measured: Measurement) -> Fraction:
    """The weight of the query."""
    weights = {each["name"]: Fraction(each.get("weight", 1)) for each in QUERIES}
    return weights[measured.scope.query]


def _bounded(**limits: int) -> Wrap:
    def wrap(original: Any) -> Any:
        return lambda rows, marks, unit, *rest: original(rows, marks, replace(unit, **limits), *rest)

    return wrap


def _all_keys(original: Any) -> Any:
    def counts(*values: Any, unit: PrivacyUnit, **named: Any) -> Any:
        return original(*values, unit=replace(unit, max_groups=_MANY), **named)

    return counts


def _twice(table: Any, *_: object) -> Any:
    """Every row of a public table a second time."""
    keys = tuple(np.concatenate([each, each]) for each in table.keys)
    return replace(
        table, keys=keys, columns={name: np.concatenate([c, c]) for name, c in table.columns.items()}
    )


def _of_rows(original: Any) -> Any:
    """A class method of public tables, whose rows are then doubled."""
    return classmethod(lambda cls, *values: _twice(original.__func__(cls, *values)))


def _filtered_late(original: Any) -> Any:
    """Records that the condition leaves out are bounded with the others, and only then weigh nothing."""

    def records(
        relation: Any, by: Any, statistics: Sequence[Any], where: str, unit: str | None = None
    ) -> str:
        late = [
            each if each.value == "0" else replace(each, value=f"CASE WHEN {where} THEN {each.value} END")
            for each in statistics
        ]
        return str(original(relation, by, late, "TRUE", unit))

    return records


def _filtered_by_group(original: Any) -> Any:
    """A group counts as a whole if one of its records meets the condition."""

    def records(
        relation: Any, by: Sequence[Any], statistics: Any, where: str, unit: str | None = None
    ) -> str:
        group = ", ".join(each.raw for each in by) or "1"
        sql = original(relation, by, statistics, "TRUE", unit)
        return f"{sql} QUALIFY bool_or({where}) OVER (PARTITION BY {group})"

    return records


def _unclamped(original: Any) -> Any:
    """Numbers above the upper bound stay as they are."""

    def place(name: str, column: Any, *rest: Any) -> str:
        far = column.upper + 100 * (column.upper - column.lower)
        return str(original(name, column.model_copy(update={"upper": far}), *rest))

    return place


def _once(original: Any) -> Any:
    """A unit replaced is taken for one added."""

    def distance(measurement: Any, schema: Any, unit: Any, neighbours: Neighbours, squared: bool) -> Distance:
        answer: Distance = original(measurement, schema, unit, Neighbours.ADD_REMOVE, squared)
        return replace(answer, neighbours=neighbours)

    return distance


def _one_way(original: Any) -> Any:
    """Ranked counts are always taken to move in one direction."""
    return classmethod(lambda cls, **named: original.__func__(cls, **{**named, "monotone": True}))


def _as_replaced(original: Any) -> Any:
    """A value that leaves a group and one that enters another are taken for one replaced."""
    return lambda *values, **named: original(*values, **{**named, "neighbours": Neighbours.REPLACE})


_ORDERED = with_answer(lambda turn, *_: f"hash({turn}, count(*) OVER ())")
PLANNING_FAULTS = (
    Fault(
        name="records of a unit are not bounded",
        wraps=tuple(
            (each, "capped", _uncapped) for each in (sums.BernsteinSums, sums.PlainSum, pairs.PairSums)
        ),
    ),
    Fault(
        name="values of a unit are not bounded",
        wraps=((ranks, "_bounded", _bounded(rows=_MANY)),),
        asks=("ranks",),
    ),
    Fault(name="groups of a unit are not bounded", wraps=((totals, "_by_unit", _in_all_groups),)),
    Fault(
        name="groups of values are not bounded",
        wraps=((ranks, "_bounded", _bounded(groups=_MANY)),),
        asks=("order",),
    ),
    Fault(name="keys of a unit are not bounded", wraps=((chosen_keys, "key_counts", _all_keys),), case=OPEN),
    Fault(name="a join multiplies records", wraps=((join._Public, "of", _of_rows),), case=JOINED),
    Fault(
        name="a column is computed from other records",
        wraps=(_view(lambda view, age: f"(SELECT * REPLACE (max({age}) OVER () AS {age}) FROM {view})"),),
        case=RECORDS,
    ),
    Fault(
        name="only the first records are read",
        wraps=(_view(lambda view, _: f"(SELECT * FROM {view} LIMIT 6)"),),
        case=UNITS,
    ),
    Fault(
        name="the condition comes after bounding",
        wraps=((totals, "_records", _filtered_late),),
        asks=("some",),
    ),
    Fault(
        name="the condition is on groups", wraps=((totals, "_records", _filtered_by_group),), asks=("some",)
    ),
    Fault(
        name="bounds are taken from the data",
        wraps=(
            _view(
                lambda view, age: (
                    f"(SELECT * REPLACE (CASE WHEN {age} >= 0 THEN {age} - min({age}) FILTER ({age} >= 0) "
                    f"OVER () ELSE {age} END AS {age}) FROM {view})"
                )
            ),
        ),
        case=RECORDS,
    ),
    Fault(name="numbers are not clamped", wraps=((source, "place", _unclamped),), case=RECORDS),
    Fault(
        name="missing values are counted",
        wraps=(
            (sums, "valid", with_answer(lambda *_: "count(*)")),
            (totals, "valid", with_answer(lambda *_: "count(*)")),
        ),
        case=RECORDS,
    ),
    Fault(name="a replaced unit is paid once", wraps=((GroupSums, "distance", _once),), case=REPLACED),
    Fault(
        name="a replaced sum is paid as a count",
        wraps=_distances(lambda _, measured: 2 if measured.signed else 1, GroupSums),
        case=SQUARED,
    ),
    Fault(name="distances are divided by weight", wraps=_distances(_weight, GroupSums)),
    Fault(
        name="one level of a tree is paid",
        wraps=_distances(lambda *_: 2, TreeCounts),
        asks=("ranks",),
    ),
    Fault(
        name="sums of a table are not paid",
        wraps=_distances(lambda *_: 2, Margins),
        asks=("table",),
    ),
    Fault(
        name="the turn of a unit depends on others",
        wraps=((totals, "secret_order", _ORDERED), (ranks, "secret_order", _ORDERED)),
    ),
    Fault(
        name="the turn of a key depends on others", wraps=((partitions, "secret_order", _ORDERED),), case=OPEN
    ),
    Fault(
        name="records without a unit are counted",
        wraps=(
            (source.Source, "unit", with_answer(lambda sql, *_: f"coalesce(CAST({sql} AS VARCHAR), 'none')")),
        ),
    ),
    Fault(
        name="keys are compared in any case",
        wraps=((Dialect, "text", with_answer(lambda sql, *_: sql.replace("COLLATE C", "COLLATE NOCASE"))),),
        case=RECORDS,
    ),
    Fault(
        name="what is no number raises an error",
        wraps=((Dialect, "double", with_answer(lambda sql, *_: sql.replace("TRY_CAST", "CAST"))),),
        case=RECORDS,
        engine="csv",
    ),
    Fault(name="ranks are paid one way", wraps=((TopK, "within", _one_way),), case=REPLACED, asks=("best",)),
    Fault(
        name="values that move are taken as replaced",
        wraps=((order, "chosen", _as_replaced),),
        case=REPLACED,
        asks=("order",),
    ),
    Fault(
        name="cells of a unit are not bounded",
        wraps=((quality, "_of_units", _unscaled),),
        case=FITTING_UNITS,
    ),
    Fault(name="one column of cells is paid", wraps=_distances(_one_column, Quality), case=FITTING_SQUARED),
    Fault(
        name="cells of a replaced unit are paid once",
        wraps=_distances(lambda *_: 2, Quality),
        case=FITTING_SQUARED,
    ),
    Fault(
        name="the rounding of cells depends on others",
        wraps=((quality, "secret_order", with_answer(lambda turn, *_: f"hash({turn}, sum(held) OVER ())")),),
        case=FITTING_UNITS,
    ),
    Fault(
        name="a cell is told by other records",
        wraps=((quality, "place_among_cells", with_answer(lambda sql, *_: f"max({sql}) OVER ()")),),
        case=FITTING,
    ),
    Fault(
        name="a cell that cannot be read raises an error",
        wraps=((quality, "place_among_cells", with_answer(_strictly)),),
        case=FITTING,
        engine="csv",
    ),
)
