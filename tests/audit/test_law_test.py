from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from sourdine.audit import Tally, same_law, tally
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.testing import SeededBits


def example(scale: Fraction | int) -> Example:
    return Example(mechanism=Laplace(scale=Fraction(scale)), value=0, neighbour=1, distance=Distance.l1(1))


@pytest.mark.parametrize("counts", [([300, 200, 500], [350, 180, 470]), ([40, 60], [49, 51])])
def test_agrees_with_a_table_of_contingency(counts: tuple[list[int], list[int]]) -> None:
    codes = np.arange(len(counts[0]))
    ours = same_law(Tally(codes, np.array(counts[0])), Tally(codes, np.array(counts[1])))
    assert ours == pytest.approx(float(chi2_contingency(counts, correction=False).pvalue), rel=1e-12)


@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(7, 3), 50, 1 << 30])
def test_p_values_of_one_law_are_uniform(scale: Fraction | int) -> None:
    one = example(scale)
    found = [
        same_law(tally(one, 0, 4_000, SeededBits(2 * i)), tally(one, 0, 4_000, SeededBits(2 * i + 1)))
        for i in range(60)
    ]
    assert 0.35 < np.mean(found) < 0.65
    assert min(found) > 1e-4
    assert np.mean(np.array(found) < 0.1) < 0.25


@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(7, 3), 50, 1 << 30])
def test_a_scale_ten_percent_off_is_another_law(scale: Fraction | int) -> None:
    right, wrong = (tally(example(s), 0, 200_000, SeededBits(1)) for s in (scale, scale * Fraction(11, 10)))
    assert same_law(right, wrong) < 1e-6


def test_a_bias_without_a_loss_of_privacy_is_another_law() -> None:
    one = next(Gaussian.examples())
    shifted = replace(one, code=lambda answers: answers // 2 * 2)
    assert same_law(tally(one, 0, 20_000, SeededBits(1)), tally(shifted, 0, 20_000, SeededBits(2))) < 1e-6


def test_one_outcome_in_common_is_one_law() -> None:
    certain = Tally(np.array([5]), np.array([1000]))
    assert same_law(certain, certain) == 1


def test_disjoint_outcomes_are_two_laws() -> None:
    assert same_law(Tally(np.array([5]), np.array([1000])), Tally(np.array([6]), np.array([1000]))) < 1e-100
