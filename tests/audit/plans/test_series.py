"""A unit that comes in several periods never moves a series farther than is paid for; faults are seen."""

from typing import Any

import pytest

from sourdine.audit.plans import audit_series
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit
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
    "chosen keys": {"region": {"type": "text"}},
    "chosen keys, often": {"region": {"type": "text", "other": "rest"}, "unit": TWO, "times": 3},
    "chosen keys, apart": {"region": {"type": "text"}, "times": 2, "separation": 3},
    "chosen keys, a total": {"region": {"type": "text"}, "total": 4},
    "chosen keys, replaced": {
        "region": {"type": "text"},
        "unit": TWO,
        "times": 2,
        "neighbours": Neighbours.REPLACE,
    },
    "chosen keys, pure": {"region": {"type": "text"}, "times": 2, "selection_delta": 1e-6},
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


def _each_count_twice(block: Any) -> tuple[int, ...]:
    return (1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["admitted", "counted together", "for one period"])
def test_faults_of_chosen_keys_are_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units that are never refused; several periods counted together; a price for units that come once."""
    from sourdine.tables.series import keys

    many = keys.most_counts
    if fault == "admitted":
        monkeypatch.setattr(TableSeries, "_admit", _always)
    elif fault == "counted together":
        monkeypatch.setattr(keys, "most_counts", lambda block, unit: 2 * many(block, unit))
        monkeypatch.setattr(keys, "count_widths", _each_count_twice)
    else:
        monkeypatch.setattr(keys, "most_counts", lambda block, unit: unit.max_groups)
    plan = make_plan(periods=5, times=2, region={"type": "text"}, publish=["total"])
    found = audit_series(plan, pairs=12, bits=SeededBits(1))
    assert not found.passed
    assert found.line == "keys of region" or fault == "admitted"


def test_units_must_be_told_apart() -> None:
    with pytest.raises(InvalidParameter, match="nothing to watch"):
        audit_series(make_plan(unit=PrivacyUnit("visit")))
