"""Intervals of releases, series and local reports hold the truth as often as stated."""

import math

import pytest

from benchmarks.asking.cases import panel
from tests.campaigns import local_intervals, release_intervals, series_intervals


def slack(runs: int) -> float:
    """Five standard errors of a share of 95 % of so many runs."""
    return 5 * math.sqrt(0.95 * 0.05 / runs)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_intervals_of_every_comparison_hold(delta: float | None) -> None:
    found = release_intervals.covers(panel(), epsilon=1, delta=delta, runs=200)
    assert min(each.least for each in found) >= 0.94 - slack(200)


def test_intervals_of_a_series_hold_at_a_period_and_at_all_of_them() -> None:
    for each in series_intervals.coverage(400):
        assert min(each.alone, each.joint) >= 0.95 - slack(400), each


@pytest.mark.slow
@pytest.mark.parametrize("people", [30, 300])
def test_intervals_of_every_oracle_hold_for_the_worst_number_of_people(people: int) -> None:
    for name, oracle in local_intervals.oracles((2, 20), (0.5, 2.0, 8.0)):
        assert local_intervals.case(oracle, people).ours >= local_intervals.LEAST, name
