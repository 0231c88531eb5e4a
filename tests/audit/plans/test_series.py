"""A unit that comes in several periods never moves a series farther than is paid for; faults are seen."""

from typing import Any

import pytest

from sourdine.audit.plans import audit_series
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.tables.series import TableSeries
from sourdine.testing import SeededBits
from tests.tables.series.case import make_plan

TWO = PrivacyUnit("person", column="id", max_rows=2, max_groups=2)
PLANS: dict[str, dict[str, Any]] = {
    "once": {},
    "twice, three apart": {"times": 2, "separation": 3, "publish": ["total"]},
    "often": {"times": 4},
    "a total": {"total": 5},
    "sums": {"ask": ["count", {"sum": "pay"}], "times": 2},
    "pure": {"delta": None, "times": 2, "publish": ["total"]},
    "replaced": {"neighbours": Neighbours.REPLACE, "times": 2},
    "several groups": {"unit": TWO, "times": 2},
}


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.slow) if i else each for i, each in enumerate(PLANS)]
)
def test_no_unit_moves_a_series_farther_than_is_paid(name: str) -> None:
    plan = make_plan(periods=5, **PLANS[name])
    found = audit_series(plan, pairs=2 if name == "once" else 8, bits=SeededBits(4))
    assert found.passed, found
    assert found.worst > 0.2


def _always(self: TableSeries, digests: list[bytes], records: Any, number: int) -> Any:
    import numpy as np

    return np.ones(len(digests), bool)


def _nearer(self: TableSeries, digests: list[bytes], records: Any, number: int) -> Any:
    import numpy as np

    before = self._state.participations(digests)
    times = [before.get(each, (0, 0, 0))[0] for each in digests]
    return np.array([each < self.plan.block.times for each in times], bool)


@pytest.mark.parametrize("fault", [_always, pytest.param(_nearer, marks=pytest.mark.slow)])
def test_faults_of_participation_are_seen(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units that are never refused, and a separation that nobody looks at."""
    monkeypatch.setattr(TableSeries, "_admit", fault)
    plan = make_plan(periods=5, times=2, separation=3, publish=["total"])
    assert not audit_series(plan, pairs=6, bits=SeededBits(1)).passed


def test_units_must_be_told_apart() -> None:
    with pytest.raises(InvalidParameter, match="nothing to watch"):
        audit_series(make_plan(unit=PrivacyUnit("visit")))
