import math

import numpy as np
import pytest

from sourdine.audit.attacks import AttackResult, local
from sourdine.testing import SeededBits


@pytest.fixture(scope="module")
def found() -> AttackResult:
    return local.run(SeededBits(1))


def test_fresh_noise_wears_off_and_a_memo_does_not(found: AttackResult) -> None:
    assert found.unprotected.success > 0.99
    assert found.protected.success < 0.3
    assert found.succeeds
    assert found.stopped
    assert found.limit == pytest.approx(math.e / (math.e + 9))
    (chart,) = found.charts
    fresh, memo = (
        [each.value for each in chart.points if each.series == series]
        for series in ("without protection", "with protection")
    )
    margin = 5 * math.sqrt(0.25 / local.PEOPLE)
    assert abs(fresh[0] - found.limit) < margin
    assert abs(memo[-1] - found.limit) < margin
    assert len(set(memo)) == 1
    assert fresh[-1] > fresh[3] > fresh[0]


def test_the_most_frequent_report_is_taken_and_ties_are_drawn() -> None:
    reports = np.array([[3, 3, 5], [1, 2, 4]])
    assert local.count_right(reports[:1], np.array([3]), SeededBits(1)) == 1
    hits = sum(local.count_right(reports[1:], np.array([2]), SeededBits(seed)) for seed in range(300))
    assert 60 < hits < 140
