import math

import pytest
from scipy.stats import norm

from sourdine.audit.attacks import AttackResult, averaging
from sourdine.testing import SeededBits


@pytest.fixture(scope="module")
def found() -> AttackResult:
    return averaging.run(SeededBits(1))


def test_the_mean_tells_and_the_ledger_stops_it(found: AttackResult) -> None:
    assert found.unprotected.success > 0.98
    assert found.protected.success < 0.57
    assert found.protected.target == "ledger of epsilon 0.5: 5 answers"
    assert found.succeeds
    assert found.stopped
    assert found.limit == pytest.approx(math.exp(0.5) / (1 + math.exp(0.5)))


def test_the_mean_of_many_answers_is_normal(found: AttackResult) -> None:
    (chart,) = found.charts
    free = {each.place: each.value for each in chart.points if each.series == "without protection"}
    q = math.exp(-float(averaging.EACH))
    deviation = math.sqrt(2 * q) / (1 - q)
    for count in (100, 300, 1000, 3000, 10_000):
        expected = norm.cdf(0.5 * math.sqrt(count) / deviation)
        assert abs(free[count] - expected) < 5 * math.sqrt(0.25 / averaging.TRIALS)


def test_with_the_ledger_it_gets_no_better_after_the_last_answer(found: AttackResult) -> None:
    (chart,) = found.charts
    kept = {each.place: each.value for each in chart.points if each.series == "with protection"}
    assert len({kept[count] for count in averaging.COUNTED if count >= 5}) == 1
