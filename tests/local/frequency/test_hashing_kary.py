"""k-ary response as an oracle: unbiased, with the stated variance, by enumeration of every report."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.local import GRR
from sourdine.testing import SeededBits

KARY = GRR(epsilon=Fraction(4, 3), categories=3)


@settings(max_examples=10)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=4))
def test_estimates_are_unbiased_with_the_stated_variance(truths: list[int]) -> None:
    growth = math.exp(4 / 3)
    cases = list(itertools.product(range(3), repeat=len(truths)))
    masses = np.array(
        [
            math.prod((growth if a == b else 1) / (growth + 2) for a, b in zip(case, truths, strict=True))
            for case in cases
        ]
    )
    values = np.array([KARY.estimate(KARY.tally(np.array(case))).value for case in cases])
    frequencies = np.bincount(truths, minlength=3) / len(truths)
    assert masses.sum() == pytest.approx(1)
    assert masses @ values == pytest.approx(frequencies, abs=1e-12)
    assert masses @ (values - frequencies) ** 2 == pytest.approx(KARY.variance(frequencies, len(truths)))


def test_the_estimator_is_the_published_one() -> None:
    growth = math.exp(4 / 3)
    assert KARY.estimate(KARY.tally(np.array([0, 0, 1]))).value == pytest.approx(
        [((growth + 2) * share - 1) / (growth - 1) for share in (2 / 3, 1 / 3, 0)]
    )


def test_reports_of_another_oracle_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="Report 2 is none"):
        KARY.tally(np.array([0, 3]))
    other = GRR(epsilon=1, categories=3)
    with pytest.raises(InvalidParameter, match="other parameters"):
        KARY.estimate(other.tally(np.array([0, 1])))
    with pytest.raises(InvalidParameter, match="no reports"):
        KARY.estimate(KARY.tally(np.zeros(0, np.int64)))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("categories", [16, 1000])
def test_the_variance_and_the_intervals_are_as_stated(epsilon: Fraction, categories: int) -> None:
    """Averaged over all categories and many crowds, 3 % are more than five standard errors."""
    oracle = GRR(epsilon=epsilon, categories=categories)
    people, rounds = 20_000, 40 if categories > 100 else 1200
    answers = np.arange(people) % categories
    truth = np.bincount(answers, minlength=categories) / people
    bits = SeededBits(categories)
    squares, held = 0.0, 0
    for _ in range(rounds):
        found = oracle.estimate(oracle.tally(oracle.sample(answers, bits)))
        squares += float(((found.value - truth) ** 2).sum())
        held += int(((found.lower <= truth) & (truth <= found.upper)).sum())
    variance = float(oracle.variance(truth, people).mean())
    assert squares / (rounds * categories) == pytest.approx(variance, rel=0.03)
    assert 0.94 <= held / (rounds * categories) <= 0.96
