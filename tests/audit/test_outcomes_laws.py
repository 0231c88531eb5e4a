from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import chdtrc
from scipy.stats import chi2_contingency

from sourdine.audit import Tally, same_law, tally
from sourdine.audit.outcomes import same_laws
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
    apart = float(chi2_contingency(counts, correction=False).pvalue)
    assert ours == pytest.approx(
        min(1, 3 * apart), rel=1e-12
    )  # one of three tests, the least of which counts


def test_samples_of_other_sizes_are_compared_and_pairs_add_up() -> None:
    counts = [[300, 200, 500], [730, 330, 940]]
    one, other = (Tally(np.arange(3), np.array(row)) for row in counts)
    apart = chi2_contingency(counts, correction=False)
    assert same_laws([(one, other)]) == pytest.approx(min(1, 3 * float(apart.pvalue)), rel=1e-9)
    both = 3 * float(chdtrc(2 * apart.dof, 2 * apart.statistic))
    assert same_laws([(one, other), (other, one)]) == pytest.approx(both, rel=1e-9)


def test_one_rare_code_among_many_is_seen() -> None:
    """Two hundred against none, beside ten thousand others: the sum over all of them would hide it."""
    dice = np.random.default_rng(1)
    common = [dice.multinomial(10**6, np.full(10_000, 1e-4)) for _ in range(2)]
    rare = [
        Tally(np.arange(10_001), np.append(row, more)) for row, more in zip(common, (200, 0), strict=True)
    ]
    alike = [Tally(np.arange(10_000), row) for row in common]
    assert same_law(*alike) > 1e-3
    assert same_law(*rare) < 1e-30


@pytest.mark.parametrize(
    "scale", [Fraction(2, 3), Fraction(7, 3), 50, pytest.param(1 << 30, marks=pytest.mark.slow)]
)
def test_p_values_of_one_law_are_uniform(scale: Fraction | int) -> None:
    one = example(scale)
    found = [
        same_law(tally(one, 0, 4_000, SeededBits(2 * i)), tally(one, 0, 4_000, SeededBits(2 * i + 1)))
        for i in range(60)
    ]
    assert np.mean(found) > 0.4  # the least of three is counted three times, so it errs upwards
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
