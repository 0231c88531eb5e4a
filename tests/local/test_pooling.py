"""Several periods together: intervals that hold though devices repeat themselves, and the same values."""

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import GRR, OUE, Counts, Duchi, Question
from sourdine.local.pooling import pooled_estimate
from sourdine.testing import SeededBits

WORK = Question(name="work", oracle=GRR(epsilon=1, categories=4))


def counts(question: Question, values: np.ndarray, seed: int) -> Counts:
    return question.tally(question.oracle.pack(question.oracle.sample(values, SeededBits(seed))))


@pytest.mark.parametrize(
    "question", [WORK, Question(name="bits", oracle=OUE(epsilon=2, categories=4))], ids=["k-ary", "unary"]
)
def test_values_are_those_of_all_reports_and_the_interval_is_the_mean_of_the_periods(
    question: Question,
) -> None:
    parts = [counts(question, np.arange(size) % 4, size) for size in (100, 700, 1200)]
    pooled, plain = pooled_estimate(question, parts, 0.9), question.estimate(sum(parts[1:], parts[0]), 0.9)
    assert pooled.value == pytest.approx(plain.value)
    assert (pooled.reports, pooled.confidence) == (2000, 0.9)
    level = 1 - 0.1 / 3
    for end in ("lower", "upper", "value"):
        ends = [getattr(question.estimate(each, level), end) for each in parts]
        assert getattr(pooled, end) == pytest.approx(np.average(ends, axis=0, weights=[100, 700, 1200]))
    assert (pooled.variance >= plain.variance).all()


def test_one_period_is_its_own_estimate_and_empty_ones_do_not_matter() -> None:
    part, empty = counts(WORK, np.arange(50) % 4, 1), WORK.tally(np.zeros((0, 1), np.uint8))
    plain, pooled = WORK.estimate(part, 0.95), pooled_estimate(WORK, [part, empty], 0.95)
    assert (pooled.lower.tolist(), pooled.upper.tolist()) == (plain.lower.tolist(), plain.upper.tolist())
    with pytest.raises(InvalidParameter, match="no reports"):
        pooled_estimate(WORK, [empty])


@pytest.mark.parametrize(
    ("surveys", "days", "naive_at_most"), [(25, 3, 0.85), pytest.param(400, 10, 0.6, marks=pytest.mark.slow)]
)
def test_coverage_where_devices_report_every_day(surveys: int, days: int, naive_at_most: float) -> None:
    """90 % intervals of 300 devices, each with one report for all days; those of the sum hold too seldom."""
    values = np.arange(300) % 4
    held = [0, 0]
    for seed in range(surveys):
        day = counts(WORK, values, seed)
        pooled = pooled_estimate(WORK, [day] * days, 0.9)
        naive = WORK.estimate(Counts(day.fingerprint, days * day.reports, days * day.sums), 0.9)
        for k, answer in enumerate((pooled, naive)):
            held[k] += bool(answer.lower[0] <= 0.25 <= answer.upper[0])
    assert held[0] / surveys >= 0.9
    assert held[1] / surveys <= naive_at_most


def test_a_mean_is_pooled_too() -> None:
    pay = Question(name="pay", oracle=Duchi(epsilon=1, lower=0, upper=100))
    parts = [counts(pay, np.full(size, 40.0), size) for size in (100, 300)]
    pooled = pooled_estimate(pay, parts)
    assert pooled.lower < pooled.value < pooled.upper
