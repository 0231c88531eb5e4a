"""Neighbours of every shape, on every way in: nothing moves farther than is paid for.

Random plans of every kind over random declarations are replayed with made-up neighbours: units of several
records, NaN, infinities, NUL and CR in texts, units and keys that look alike, hours that come twice, NULL
where tables are joined, and keys chosen privately. Series and synthetic tables have neighbours of their own.
"""

import pytest

from sourdine.audit.plans import PlanAudit, audit_plan
from sourdine.audit.plans.engines import ENGINES
from tests.random_plans import KINDS, public_tables, random_plan

PAIRS = 2_000  # of neighbours on DuckDB and on Polars, in all kinds of plans together
OF_OTHERS = 500  # and on each other way in
ON_SPARK = 200


def check(engine: str, pairs: int, *, seed: int, alone: int = 10) -> int:
    """Replay plans of every kind until there were so many pairs of neighbours; return how many there were."""
    seen, wrong, turn = 0, list[str](), 0
    each = max(2, -(-pairs // len(KINDS)))
    while seen < pairs:
        kind = KINDS[turn % len(KINDS)]
        plan = random_plan(kind, seed + turn)
        joins = public_tables(plan.schema)
        many = each * (100 if engine == "spark" else 1)  # there it is asked for a hundredth
        found = audit_plan(plan, joins=joins, pairs=many, engines=[engine], seed=seed + turn, alone=alone)
        seen += max((line.pairs for line in found.lines), default=0)
        wrong += told(kind, found)
        turn += 1
        assert turn < 20 * len(KINDS)
    assert wrong == []
    return seen


def told(kind: str, found: PlanAudit) -> list[str]:
    return [f"{kind}: {each.words}" for each in found.violations[:2]]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_no_neighbour_moves_farther_than_is_paid_for(engine: str) -> None:
    assert check(engine, PAIRS, seed=100) >= PAIRS


@pytest.mark.slow
@pytest.mark.parametrize("engine", [each for each in ENGINES if each not in ("duckdb", "polars", "spark")])
def test_nor_on_any_other_way_in(engine: str) -> None:
    if ENGINES[engine].lacks:
        pytest.skip(ENGINES[engine].lacks)
    assert check(engine, OF_OTHERS, seed=200) >= OF_OTHERS


@pytest.mark.slow
def test_nor_on_spark() -> None:
    if ENGINES["spark"].lacks:
        pytest.skip(ENGINES["spark"].lacks)
    assert check("spark", ON_SPARK, seed=300) >= ON_SPARK
