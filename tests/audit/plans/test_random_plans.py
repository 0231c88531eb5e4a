"""Random plans, of every kind of query, are replayed on neighbouring tables and never refuted."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sourdine.audit.plans import audit_plan
from sourdine.audit.plans.engines import ENGINES
from tests.random_plans import KINDS, plans, public_tables

SEEDS = st.integers(0, (1 << 32) - 1)
SLOW_TO_DRAW = list(HealthCheck)  # a plan takes many choices, and those that are refused are drawn again
OTHERS = [name for name in ENGINES if name != "duckdb" and not ENGINES[name].lacks]


def refuted(data: st.DataObject, kind: str, engine: str, pairs: int) -> list[str]:
    plan = data.draw(plans(kind))
    joins = public_tables(plan.schema)
    found = audit_plan(plan, joins=joins, pairs=pairs, engines=[engine], seed=data.draw(SEEDS), alone=250)
    return [each.words for each in found.violations]


@settings(max_examples=1, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_a_random_plan_is_not_refuted(data: st.DataObject, kind: str) -> None:
    assert refuted(data, kind, "duckdb", 10) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_ten_thousand_pairs_of_each_kind_refute_nothing(kind: str, data: st.DataObject) -> None:
    assert refuted(data, kind, "duckdb", 500) == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3, suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_pairs_of_other_engines_refute_nothing(kind: str, engine: str, data: st.DataObject) -> None:
    assert refuted(data, kind, engine, 10 if engine != "spark" else 2) == []
