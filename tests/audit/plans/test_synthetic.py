from typing import Any

import pytest

from sourdine.audit.plans import synthetic
from sourdine.audit.plans.synthetic import audit_synthetic_plan
from sourdine.core.distance import Neighbours
from sourdine.frames import PrivacyUnit, Schema
from sourdine.frames import quality as codes
from sourdine.tables import Privacy
from sourdine.tables.synthetic import SyntheticBlock, SyntheticPlan
from sourdine.tables.synthetic.measure import score
from sourdine.testing import SeededBits
from tests.tables.synthetic.case import COLUMNS

DAY = {"type": "date", "first": "2024-01-01", "last": "2024-03-31", "period": "month"}


def plan(neighbours: Neighbours, target: str | None, unit: PrivacyUnit) -> SyntheticPlan:
    return SyntheticPlan(
        schema=Schema.read({**COLUMNS, "day": DAY}),
        privacy=Privacy(epsilon=1, delta=1e-6),
        unit=unit,
        neighbours=neighbours,
        block=SyntheticBlock.read({"target": target}),
    )


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
@pytest.mark.parametrize("target", [None, "town"])
@pytest.mark.parametrize("unit", [PrivacyUnit("person"), PrivacyUnit("person", column="id", max_rows=9)])
def test_no_unit_moves_more_than_is_paid_for(
    neighbours: Neighbours, target: str | None, unit: PrivacyUnit
) -> None:
    audit = audit_synthetic_plan(plan(neighbours, target, unit), pairs=6, bits=SeededBits(1))
    assert audit.passed
    assert audit.counts == 1  # and the bound is reached
    assert 0.2 < audit.scores <= 1


def test_a_unit_that_counts_with_all_its_records_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: the records of a unit are not reduced to one."""
    of_records = codes.record_codes

    def all_of_them(source: Any, by: Any, *, unit: PrivacyUnit, bits: Any) -> Any:
        return of_records(source, by, unit=PrivacyUnit(unit.name), bits=bits)

    from sourdine.tables.synthetic import synthesis

    monkeypatch.setattr(synthesis, "record_codes", all_of_them)
    unit = PrivacyUnit("person", column="id", max_rows=9)
    assert not audit_synthetic_plan(
        plan(Neighbours.ADD_REMOVE, None, unit), pairs=10, bits=SeededBits(1)
    ).passed


def test_a_score_that_is_too_sharp_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "score", lambda table, expected: 2 * score(table, expected))
    audit = audit_synthetic_plan(
        plan(Neighbours.ADD_REMOVE, None, PrivacyUnit("person")), pairs=6, bits=SeededBits(1)
    )
    assert not audit.passed
