"""Made-up tables: neighbours as declared, and the same again for the same seed."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from sourdine.audit.plans.cells import tokens
from sourdine.audit.plans.walk import Row, Walk, WalkStep
from sourdine.core.distance import Neighbours
from sourdine.frames import PrivacyUnit, Schema
from sourdine.frames.files import relation_of_cells
from sourdine.tables import Privacy, Query, ReleasePlan
from tests.faults.cases import COLUMNS, QUERIES
from tests.random_plans import KINDS, random_plan

WHO = PrivacyUnit(column="who", max_rows=2, max_groups=1)


def plan(unit: PrivacyUnit = WHO, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> ReleasePlan:
    return ReleasePlan(
        schema=Schema.read(COLUMNS),
        queries=tuple(map(Query.read, QUERIES)),
        privacy=Privacy(epsilon=Fraction(1)),
        unit=unit,
        neighbours=neighbours,
    )


def changed(before: WalkStep, after: WalkStep) -> tuple[list[Any], list[Any]]:
    """Records that went and came, as texts that tell NaN from nothing."""
    one, other = (Counter(map(repr, step.rows)) for step in (before, after))
    return list((one - other).elements()), list((other - one).elements())


def unit_of(row: Row) -> str:
    cell = row[-1]
    return repr(0.0 if cell == 0 and isinstance(cell, float) else cell)


def test_the_same_seed_gives_the_same_tables_however_many() -> None:
    long, short = (Walk(plan(), 5).steps(many) for many in (40, 15))
    assert repr(long[:16]) == repr(short)
    assert repr(Walk(plan(), 6).steps(15)) != repr(short)


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_one_unit_changes_at_a_time(neighbours: Neighbours) -> None:
    steps = Walk(plan(neighbours=neighbours), 1).steps(300)
    came = left = 0
    for before, after in pairwise(steps):
        units = [{unit_of(row) for row in step.rows if row[-1] is not None} for step in (before, after)]
        if not after.neighbour:
            continue
        came, left = came + len(units[1] - units[0]), left + len(units[0] - units[1])
        if neighbours is Neighbours.ADD_REMOVE:
            assert len(units[0] ^ units[1]) == 1
            kept = units[0] & units[1]
            of = [Counter(repr(r) for r in step.rows if unit_of(r) in kept) for step in (before, after)]
            assert of[0] == of[1]
        else:
            assert len(units[0] - units[1]) <= 1
            assert len(units[1] - units[0]) <= 1
    assert came > 20
    assert left > 20


def test_where_each_record_is_a_unit_one_record_changes() -> None:
    steps = Walk(plan(PrivacyUnit()), 2).steps(200)
    for before, after in pairwise(steps):
        gone, come = changed(before, after)
        if after.neighbour:
            assert len(gone) + len(come) == 1
    moved = Walk(plan(PrivacyUnit(), Neighbours.REPLACE), 2).steps(200)
    assert all(len(x) <= 1 for a, b in pairwise(moved) if b.neighbour for x in changed(a, b))


def test_tables_hold_what_could_go_wrong() -> None:
    cells = {
        repr(cell)
        for seed in range(8)
        for step in Walk(plan(), seed).steps(100)
        for row in step.rows
        for cell in row
    }
    assert {"nan", "inf", "-inf", "None", "1e+300", "-0.0", str(2**63 - 1), "'N'", "''", "'nobody'"} <= cells
    texts = {row[0] for step in Walk(plan(), 1, text=True).steps(700) for row in step.rows}
    assert {"1e309", "0x1F", "", "-3", "20", None} <= texts
    assert all(text is None or isinstance(text, str) for text in texts)


def test_units_have_more_records_and_groups_than_may_count() -> None:
    most: Counter[str] = Counter()
    for step in Walk(plan(), 3).steps(100):
        for unit, rows in Counter(map(unit_of, step.rows)).items():
            most[unit] = max(most[unit], rows)
    assert max(most.values()) > WHO.max_rows * (WHO.max_groups + 1)


def many_sorts(plans: list[ReleasePlan]) -> bool:
    relations = {each.neighbours for each in plans} == {Neighbours.ADD_REMOVE, Neighbours.REPLACE}
    units = {each.unit.column is None for each in plans} == {True, False}
    return relations and units and any(query.where for each in plans for query in each.queries)


@pytest.mark.parametrize("least", [1, pytest.param(24, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_random_plans_are_of_every_kind_and_many_sorts(kind: str, least: int) -> None:
    """Those of the first 24 seeds, or as many as it takes to have seen each sort."""
    plans: list[ReleasePlan] = []
    while len(plans) < 24 and not (len(plans) >= least and many_sorts(plans)):
        plans.append(random_plan(kind, len(plans)))
    assert many_sorts(plans)
    assert all(kind in [query.name for query in each.queries] for each in plans)
    assert not any(math.isnan(float(line.share)) for each in plans for line in each.lines)


def test_plain_tables_hold_what_is_declared_or_nothing() -> None:
    steps = Walk(plan(), 1, plain=True).steps(60)
    sites = {row[2] for step in steps for row in step.rows}
    assert sites == {"n", "s", "e", None}
    assert not any(step.still for step in steps)


def test_an_empty_text_is_no_way_out_of_a_query_where_it_reads_as_missing() -> None:
    """Between commas it is missing, and may count as a key that a condition names: that accused the plan."""
    schema = Schema.read({"sex": {"type": "category", "keys": ["f", "m", ""], "missing": "m"}})
    query = Query.read({"name": "men", "ask": ["count"], "where": {"sex": ["m"]}})
    men = ReleasePlan(schema=schema, queries=(query,), privacy=Privacy(epsilon=Fraction(1)))
    for text in (False, True):
        came = [
            row
            for before, after in pairwise(Walk(men, 3, text=text).steps(400))
            if after.still
            for row in set(after.rows) - set(before.rows)
        ]
        assert came
        assert (("",) in came) is not text


@pytest.mark.parametrize("kind", ["DOUBLE", "BIGINT", "HUGEINT", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP"])
def test_units_are_what_a_column_of_their_type_holds(kind: str) -> None:
    """Seen to fail: a column of times that tells units apart was given letters."""
    rows = [(each,) for token in tokens(kind) for each in token]
    assert len(relation_of_cells({"who": kind}, rows).fetchall()) == len(rows)
