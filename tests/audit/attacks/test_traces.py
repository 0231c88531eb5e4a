import math

import numpy as np
import pytest

from sourdine.audit.attacks import AttackResult, traces
from sourdine.testing import SeededBits


@pytest.fixture(scope="module")
def found() -> AttackResult:
    return traces.run(SeededBits(1))


@pytest.mark.slow
def test_a_few_points_follow_a_person_and_private_counts_do_not(found: AttackResult) -> None:
    assert found.unprotected.success > 0.85
    assert found.protected.success < 0.04
    assert found.succeeds
    assert found.stopped
    assert found.limit == pytest.approx(math.e * found.chance)
    assert found.chance < 0.05


@pytest.mark.slow
def test_more_points_single_out_more_and_coarser_traces_fewer(found: AttackResult) -> None:
    fine, coarse = (
        [each.value for each in found.charts[0].points if each.series == series]
        for series in (traces._FINE, traces._COARSE)
    )
    assert fine == sorted(fine)
    assert coarse == sorted(coarse)
    assert all(rough <= exact for rough, exact in zip(coarse, fine, strict=True))
    assert fine[traces.POINTS.index(4)] > 0.8


def test_uniqueness_by_hand() -> None:
    held = np.array([[1, 2, 3], [1, 2, 4], [5, 5, 5]])
    everyone = np.arange(3)
    assert traces.single(held, everyone, 3, SeededBits(1)) == 3
    assert traces._fitting(held, 0, [0, 1]).tolist() == [0, 1]
    assert traces._fitting(held, 0, [2]).tolist() == [0]


def test_moments_differ() -> None:
    week = np.zeros((1, 6), np.int64)
    assert all(sorted(traces._moments(week, 6, SeededBits(seed))) == list(range(6)) for seed in range(20))


def test_the_busiest_new_place() -> None:
    counts = np.zeros((traces.HOURS, traces.PLACES))
    counts[3, 7], counts[3, 9] = 10, 5
    assert traces.busiest(counts, [3, 27], np.array([7])).tolist() == [9, 9]
    assert traces.busiest(counts, [3], np.array([1])).tolist() == [7]
    assert counts[3, 7] == 10


def test_exact_counts_add_up() -> None:
    held = traces.draw_traces(SeededBits(4))[:50]
    counts = traces.busy(held)
    assert counts.sum() == held.size
    assert counts[2].sum() == 50 * traces.DAYS
    assert counts[2, held[0, 2]] >= 1
