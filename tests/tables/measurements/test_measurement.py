"""How far one unit moves the numbers of a release, before noise: never farther than is paid for."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sourdine.accounting.ledger import ConcentratedBudget, PureBudget
from sourdine.core.distance import Neighbours, Norm
from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit, Schema, Source, open_source
from sourdine.tables import Privacy, Query, ReleasePlan
from sourdine.tables.privacy import NoiseChoice
from tests.tables.exact import exact_numbers

COLUMNS = {
    "age": {"type": "integer", "lower": -3, "upper": 20},
    "pay": {"type": "real", "lower": -0.7, "upper": 2.0, "granularity": 0.3},
    "score": {"type": "real", "lower": 0.0, "upper": 1.0, "granularity": 0.01, "missing": 0.5},
    "site": {"type": "category", "keys": ["n", "s"]},
    "well": {"type": "flag", "missing": True},
}
SCHEMA = Schema.read(COLUMNS)
NUMBER = st.sampled_from(
    [-1e300, -3.0, -0.75, -0.7, 0.0, 0.15, 0.45, 1.0, 2.0, 19.6, 1e9, math.nan, math.inf, None]
)
ROW = st.tuples(
    st.sampled_from([0, 0, 0, 1, 2, None]),
    NUMBER,
    NUMBER,
    NUMBER,
    st.sampled_from(["n", "s", "elsewhere", None]),
    st.sampled_from([True, False, None]),
)
Row = tuple[Any, ...]
BY: tuple[list[str], ...] = ([], ["site"], ["well"], ["site", "well"])
WHERE: tuple[dict[str, object], ...] = ({}, {"where": {"age": {"at_least": 0}}}, {"where": {"site": ["n"]}})
ASKS: list[list[Any]] = [
    ["count", "units", {"sum": "age"}, {"mean": "pay"}, {"proportion": "age", "at_least": 1}],
    [{"deviation": "pay"}, {"mean": "score"}, "count"],
    [{"sum": "pay"}, {"proportion": "site", "of": ["n"]}],
    [{"histogram": "age", "edges": [-10, 0, 1, 20]}, {"histogram": "score", "edges": [0, 0.5, 1.0]}],
    [
        {"quantiles": "age", "levels": [0.5], "method": "tree"},
        {"quantiles": "score", "levels": [0.25], "method": "tree", "bins": 3},
    ],
]


@st.composite
def cases(draw: st.DrawFn) -> tuple[ReleasePlan, list[Row], list[Row], int]:
    """A plan, the other records, two choices for the records of one unit, and a secret."""
    by = draw(st.sampled_from(BY))
    whole = draw(st.booleans())
    unit = (
        PrivacyUnit(column="who", max_rows=draw(st.integers(1, 3)), max_groups=draw(st.integers(1, 3)))
        if whole
        else PrivacyUnit()
    )
    where = draw(st.sampled_from(WHERE))
    queries = [
        Query.read({"name": f"q{i}", "ask": ask, "by": by, **where})
        for i, ask in enumerate(draw(st.lists(st.sampled_from(ASKS), min_size=1, max_size=3, unique_by=id)))
    ]
    if draw(st.booleans()):
        queries.append(Query.read({"name": "cells", "ask": [{"contingency": ["site", "well"]}], **where}))
    plan = ReleasePlan(
        schema=SCHEMA,
        queries=tuple(queries),
        privacy=Privacy(epsilon=Fraction(1)),
        unit=unit,
        neighbours=draw(st.sampled_from([Neighbours.ADD_REMOVE, Neighbours.REPLACE])),
    )
    rows = draw(st.lists(ROW, max_size=12))
    mine = draw(st.lists(ROW, min_size=1, max_size=8 if whole else 1))
    instead = draw(st.lists(ROW, min_size=1, max_size=8 if whole else 1))
    if plan.neighbours is Neighbours.ADD_REMOVE:
        instead = []
    if whole:
        rows = [row for row in rows if row[0] != 0]
        other = draw(st.sampled_from([0, 7]))  # who comes instead may be hashed alike or not
        mine, instead = [(0, *row[1:]) for row in mine], [(other, *row[1:]) for row in instead]
    return plan, [*rows, *mine], [*rows, *instead], draw(st.integers(0, 1 << 20))


def source_of(rows: list[Row]) -> Source:
    kinds = [pa.int64(), pa.float64(), pa.float64(), pa.float64(), pa.string(), pa.bool_()]
    names = ("who", "age", "pay", "score", "site", "well")
    columns = {
        name: pa.array([row[i] for row in rows], kind)
        for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }
    return open_source(pa.table(columns), SCHEMA, ["who"])


def moves(case: tuple[ReleasePlan, list[Row], list[Row], int]) -> Iterator[tuple[Any, list[int]]]:
    """How much each number of each line moves between the two tables of a case."""
    plan, one, other, seed = case
    found = exact_numbers(plan, source_of(one), seed), exact_numbers(plan, source_of(other), seed)
    for line, before, after in zip(plan.lines, *found, strict=True):
        yield line, [a - b for a, b in zip(before, after, strict=True)]


def check_distances(case: tuple[ReleasePlan, list[Row], list[Row], int]) -> None:
    plan = case[0]
    for line, moved in moves(case):
        for squared in (False, True):
            distance = line.measurement.distance(SCHEMA, plan.unit, plan.neighbours, squared)
            length = sum(each**2 for each in moved) if squared else sum(map(abs, moved))
            assert distance.norm is (Norm.L2 if squared else Norm.L1)
            assert distance.neighbours is plan.neighbours
            assert length <= distance.amount, (line.measurement.label, plan.unit)
            assert distance.coordinates is not None
            assert sum(each != 0 for each in moved) <= distance.coordinates, line.measurement.label


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(cases())
def test_a_unit_moves_no_number_farther_than_is_paid_for(
    case: tuple[ReleasePlan, list[Row], list[Row], int],
) -> None:
    check_distances(case)


@pytest.mark.slow
@settings(max_examples=600, suppress_health_check=list(HealthCheck))
@given(cases())
def test_a_unit_moves_no_number_farther_than_is_paid_for_in_many_tables(
    case: tuple[ReleasePlan, list[Row], list[Row], int],
) -> None:
    check_distances(case)


TIGHT: dict[str, tuple[Any, list[str]]] = {
    "count": ("count", ["site"]),
    "units": ("units", ["site"]),
    "total": ({"sum": "age"}, ["site"]),
    "mean": ({"mean": "age"}, ["site"]),
    "moments": ({"variance": "age"}, ["site"]),
    "holds": ({"proportion": "age", "at_least": 1}, ["site"]),
    "bins": ({"histogram": "age", "edges": [-3, 0, 20]}, []),
    "cells": ({"contingency": ["site", "well"]}, []),
    "tree": ({"quantiles": "age", "levels": [0.5], "method": "tree"}, ["site"]),
    "flat": ({"quantiles": "age", "levels": [0.5], "method": "tree", "bins": 4}, ["site"]),
    "auto": ({"quantiles": "age", "levels": [0.25, 0.5, 0.75]}, ["site"]),  # 24 places, counted one by one
}


@pytest.mark.parametrize("kind", TIGHT)
@pytest.mark.parametrize("column", [None, "who"])
def test_the_distance_is_reached(kind: str, column: str | None) -> None:
    """A unit with the largest value in as many groups as count moves the numbers by all of the distance."""
    ask, by = TIGHT[kind]
    unit = PrivacyUnit() if column is None else PrivacyUnit(column=column, max_rows=3, max_groups=2)
    plan = ReleasePlan(
        schema=SCHEMA,
        queries=(Query.read({"name": "q", "ask": [ask], "by": by}),),
        privacy=Privacy(epsilon=Fraction(1)),
        unit=unit,
        quality=False,
    )
    sites = ["n"] if column is None else ["n", "s"]
    ages = [20.0] if kind != "bins" or column is None else [-3.0, 20.0]
    mine = [(0, age, 0.0, 0.0, site, True) for site in sites for age in ages] * unit.max_rows
    (line,), (moved,) = plan.lines, exact_numbers(plan, source_of(mine))
    assert sum(map(abs, moved)) == line.distance.amount
    squared = line.measurement.distance(SCHEMA, unit, plan.neighbours, True)
    assert sum(each**2 for each in moved) == squared.amount


@settings(max_examples=40)
@given(
    st.integers(1, 10**9).map(lambda n: Fraction(n, 10**6)),
    st.sampled_from([None, 1e-12, 1e-6, 0.1]),
    st.integers(1, 500),
    st.integers(1, 500),
    st.sampled_from([Neighbours.ADD_REMOVE, Neighbours.REPLACE]),
    st.lists(st.sampled_from([0.1, 1, 3, 7.5]), min_size=5, max_size=5),
    st.sampled_from([4, 10**5, 2**31]),
)
@example(  # where roots were rounded apart from each other
    Fraction(1, 10**6), 1e-12, 5, 4, Neighbours.ADD_REMOVE, [0.1, 1, 0.1, 0.1, 0.1], 4
)
def test_what_is_spent_adds_up_to_no_more_than_the_guarantee(
    epsilon: Fraction,
    delta: float | None,
    rows: int,
    groups: int,
    neighbours: Neighbours,
    weights: list[float],
    wide: int,
) -> None:
    schema = Schema.read({**COLUMNS, "age": {"type": "integer", "lower": -1, "upper": wide - 1}})
    asks = [*ASKS[:3], [{"contingency": ["site", "well"]}], ASKS[4]]
    plan = ReleasePlan(
        schema=schema,
        queries=tuple(
            Query.read({"name": str(i), "ask": ask, "weight": weight, "by": [] if i == 3 else ["site"]})
            for i, (ask, weight) in enumerate(zip(asks, weights, strict=True))
        ),
        privacy=Privacy(epsilon=epsilon, delta=delta),
        unit=PrivacyUnit(column="who", max_rows=rows, max_groups=groups),
        neighbours=neighbours,
        noise=None if delta is None else NoiseChoice.GAUSSIAN,
    )
    try:
        assert sum(line.share for line in plan.lines) == 1
    except InvalidParameter:  # the noise would drown everything
        assert epsilon < 1
        return
    losses = [spend.mechanism.loss(spend.distance) for spend in plan.spends]
    assert all(loss.neighbours is neighbours for loss in losses)
    if delta is None:
        budget = PureBudget(limit=epsilon)
        paid = sum(map(budget.price, losses), Fraction())
        assert paid <= epsilon
        assert paid > epsilon / 2 or epsilon < 1  # a coarse grid rounds what is paid down
        return
    held = ConcentratedBudget.within(epsilon, delta)
    paid = sum(map(held.price, losses), Fraction())
    assert paid <= held.limit
    assert held.epsilon(paid, delta) <= epsilon
    assert paid > held.limit / 2 or epsilon > 100  # noise is never below a tenth of a step
