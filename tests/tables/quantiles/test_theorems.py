import math
from dataclasses import astuple
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erfinv
from scipy.stats import beta, binom, laplace

from sourdine.core.errors import InvalidParameter
from sourdine.frames.rank_counts import SortedPlaces
from sourdine.tables.quantiles import InverseSensitivity, ThresholdHistogram
from sourdine.tables.quantiles.theorems import (
    histogram_error,
    histogram_on_normal,
    histogram_rate,
    histogram_tail,
    inverse_error,
    inverse_tail,
    inverse_tail_of_sample,
    inverse_tail_on_uniform,
    least_size,
)
from sourdine.testing import SeededBits

PLACES = (1 << 30) + 1
STEP = 2.0**-30
NINE = tuple(Fraction(i, 10) for i in range(1, 10))


def beta_law(x: float, rank: float, n: int) -> float:
    """P(X_(rank) <= x) of n uniform values, from the density of the beta law, summed around its mode."""
    t = np.linspace(0, x, 400_001)[1:-1]
    with np.errstate(under="ignore"):
        inside = np.exp(beta.logpdf(t, rank, n - rank + 1))
    return float(inside.sum() * (t[1] - t[0]))


def alpha(epsilon: float, chance: float, cuts: float) -> float:
    return 8 * (math.log(cuts) + math.log(2 / chance)) / epsilon


def uniform(n: int, bits: SeededBits) -> SortedPlaces:
    """Uniform values on [0, 1], as places of a grid with 2^30 steps."""
    return SortedPlaces(np.sort((bits.words(n) >> np.uint64(34)).astype(np.int64)))


def surely_above(count: int, trials: int, probability: float) -> bool:
    """Whether a count would come about by chance less than once in a million."""
    return float(binom.sf(count - 1, trials, probability)) < 1e-6


@pytest.mark.parametrize(("n", "decile", "gamma"), [(5000, 1, 0.04), (5000, 5, 0.05), (40_000, 9, 0.03)])
def test_tails_of_the_histogram_are_those_of_order_statistics(n: int, decile: int, gamma: float) -> None:
    chance = 1 / (math.sqrt(n) * math.log(n))
    cuts = 1.5 * n / math.log(n)
    found = histogram_tail(n, 1.0, decile=decile, gamma=gamma)
    d = decile / 10
    for tail, ranks in (
        (found.published, alpha(1.0, chance, cuts)),
        (found.corrected, alpha(1 / 9, chance, math.ceil(cuts))),
    ):
        low, high = math.floor(n * d - ranks), math.ceil(n * d + ranks)
        below = beta_law(d - gamma, low, n) if low > 0 else 1.0
        inside = beta_law(d + gamma, high, n) - below
        assert tail.distance == pytest.approx(gamma + 1 / cuts)
        assert tail.probability == pytest.approx(min(1.0, 1 - inside + chance), abs=1e-6)


def test_the_published_figure_of_bounds_comes_out() -> None:
    # points of the source's curves for the first decile, which it integrated to about 1e-5
    for n, epsilon, drawn in ((910, 1.0, 0.676131), (7980, 1.0, 0.0313518), (7990, 0.25, 0.118881)):
        found = histogram_error(n, epsilon, decile=1, rounded=False)
        assert found.published == pytest.approx(drawn, abs=2e-5)


def test_the_printed_theorem_rounds_its_ranks_outwards() -> None:
    n, d = 910, 0.1
    ranks = 8 * math.log(3 * n * math.sqrt(n))
    low, high = math.floor(91 - ranks), math.ceil(91 + ranks)
    # an order statistic is at most x when at least as many values as its rank are
    t = np.linspace(0, d, 20_001)
    right = float(np.trapezoid(binom.cdf(high - 1, n, d + t), t))
    left = float(np.trapezoid(binom.sf(low - 1, n, d - t), t))
    far = binom.cdf(high - 1, n, d + 0.1)  # nothing lies below 0, which is d - 0.1
    chance = 1 / (math.sqrt(n) * math.log(n))
    by_hand = float(2 * math.log(n) / (3 * n) + (1 + d) * chance + right + left + far)
    assert histogram_error(n, 1.0, decile=1).published == pytest.approx(by_hand, rel=1e-5)
    assert by_hand == pytest.approx(0.6917, abs=5e-5)


@pytest.mark.parametrize("decile", [1, 5, 9])
def test_mean_errors_of_the_histogram_by_integration(decile: int) -> None:
    n, epsilon, d = 60_000, 1.0, decile / 10
    chance = 1 / (math.sqrt(n) * math.log(n))
    cuts = 1.5 * n / math.log(n)
    ranks = alpha(epsilon / 9, chance, math.ceil(cuts))
    low, high = math.floor(n * d - ranks), math.ceil(n * d + ranks)
    # an order statistic is at most x when at least as many values as its rank are
    t = np.linspace(0, d, 20_001)
    right = float(np.trapezoid(binom.cdf(high - 1, n, np.minimum(d + t, 1)), t))
    left = float(np.trapezoid(binom.sf(low - 1, n, d - t), t))
    far = binom.sf(low - 1, n, d - 0.1) + binom.cdf(high - 1, n, d + 0.1)
    by_hand = float(1 / cuts + d * chance + right + left + chance + far)
    assert histogram_error(n, epsilon, decile=decile).corrected == pytest.approx(by_hand, rel=1e-5)


def least_by_search(epsilon: float) -> int:
    """The least n from which on 8 log(3 n sqrt n) / epsilon <= n / 10, by walking down."""
    n = 50_000
    while 8 * math.log(3 * n * math.sqrt(n)) / epsilon <= n / 10:
        n -= 1
    return n + 1


def test_the_least_size_by_search() -> None:
    least = least_size(1)
    assert (least.published, least.corrected) == (905, 10_824)
    assert least.published == least_by_search(1.0)
    assert least.corrected == least_by_search(1 / 9)
    assert least_size(2.5).corrected == least_by_search(2.5 / 9)


def test_the_least_size_where_every_size_will_do() -> None:
    last = 120 * 3 ** (2 / 3) / math.e
    assert least_size(last * 0.999).published is not None
    # as published the formula should reach e times further, where Lambert's function has no real value
    assert least_size(last * 1.001).published is None
    assert least_size(9 * last * 1.001).corrected == 2
    assert all(8 * math.log(3 * n**1.5) / (last * 1.001) <= n / 10 for n in range(1, 200))


@given(
    st.integers(1000, 10**7),
    st.fractions(Fraction(1, 20), 8, max_denominator=40),
    st.integers(1, 9),
    st.integers(1, 20),
)
def test_the_rate_lies_above_the_bound_it_simplifies(n: int, epsilon: Fraction, decile: int, m: int) -> None:
    exact = histogram_error(n, float(epsilon), decile=decile, answers=m).corrected
    assert histogram_rate(n, float(epsilon), decile=decile, answers=m).corrected >= exact * (1 - 1e-9)


def test_the_published_rate_lies_below_the_bound_it_simplifies() -> None:
    # with the whole epsilon, as published, and for one answer, so that only the arithmetic differs
    whole = histogram_rate(10**6, 0.01, decile=1, answers=1)
    assert whole.published < histogram_error(10**6, 0.01, decile=1, answers=1).corrected < whole.corrected


def exact_mean(n: int, epsilon: float, decile: int) -> float:
    """E|A - d| of the method itself, for values evenly spread, by integrating over the threshold's noise."""
    cuts = math.ceil(1.5 * n / math.log(n))
    places = np.arange(1, cuts + 1) / cuts
    total = 0.0
    shares = (np.arange(60) + 0.5) / 60
    for share in shares:
        noise = laplace.ppf(share, scale=18 / epsilon)
        crossing = laplace.sf(n * (decile / 10 - places) + noise, scale=36 / epsilon)
        none_before = np.exp(np.append(0, np.cumsum(np.log1p(-np.minimum(crossing, 1 - 1e-15))))[:-1])
        total += float((none_before * crossing * np.abs(places - decile / 10)).sum())
    return total / len(shares)


def test_the_published_rate_fails_for_small_epsilon_and_the_corrected_one_holds() -> None:
    n, epsilon = 2_000_000, 0.001
    published = least_size(epsilon).published
    assert published is not None
    assert n > published
    stated = histogram_rate(n, epsilon, decile=5)
    found = exact_mean(n, epsilon, 5)
    assert stated.published + 0.01 < found < stated.corrected
    assert exact_mean(5000, 1.0, 5) < histogram_rate(5000, 1.0, decile=5).published


@pytest.mark.slow  # quick ones find the same of the whole experiment
def test_a_published_bound_of_the_histogram_fails_and_the_corrected_one_holds() -> None:
    n, samples, bits = 5000, 1500, SeededBits(31)
    cuts = math.ceil(1.5 * n / math.log(n))
    method = ThresholdHistogram(
        epsilon=Fraction(1, 9), levels=(Fraction(1, 10),), places=PLACES, cuts=cuts, monotone=False
    )
    answers = np.array([method.draw(uniform(n, bits), 1, bits)[0, 0] for _ in range(samples)]) * STEP
    stated = histogram_tail(n, 1.0, decile=1, gamma=0.04)
    missed = int((np.abs(answers - 0.1) > stated.published.distance).sum())
    assert stated.published.probability < 0.002
    assert surely_above(missed, samples, stated.published.probability)
    assert not surely_above(missed, samples, stated.corrected.probability)
    assert np.abs(answers - 0.1).mean() < histogram_error(n, 1.0, decile=1).corrected


def test_corrected_bounds_of_the_histogram_hold_where_they_say_something() -> None:
    n, samples, bits = 40_000, 60, SeededBits(32)
    method = ThresholdHistogram(
        epsilon=Fraction(4, 9),
        levels=(Fraction(1, 2),),
        places=PLACES,
        cuts=math.ceil(1.5 * n / math.log(n)),
        monotone=False,
    )
    answers = np.array([method.draw(uniform(n, bits), 1, bits)[0, 0] for _ in range(samples)]) * STEP
    tail = histogram_tail(n, 4.0, decile=5, gamma=0.02).corrected
    assert tail.probability < 0.01
    assert not surely_above(int((np.abs(answers - 0.5) > tail.distance).sum()), samples, tail.probability)
    mean = np.abs(answers - 0.5).mean()
    assert mean < histogram_error(n, 4.0, decile=5).corrected < histogram_rate(n, 4.0, decile=5).corrected
    assert histogram_rate(n, 4.0, decile=5).corrected < 0.05


def test_the_published_bound_for_the_normal_law_by_hand() -> None:
    n, i, gamma, cuts, chance = 30_000, 8, 0.3, 400, 0.01
    found = histogram_on_normal(n, 2.0, decile=i, gamma=gamma, bounds=(-5, 5), cuts=cuts, beta=chance)
    with mpmath.workdps(30):
        d = mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(2 * i) / 10 - 1)
        ranks = 8 * (mpmath.log(cuts) + mpmath.log(2 / mpmath.mpf(chance))) / 2
        root = mpmath.sqrt(2 * mpmath.pi)
        mu = 2 * mpmath.exp(
            -n
            * gamma
            / (4 * root)
            * (mpmath.exp(-((d + gamma) ** 2) / 2) - 2 * ranks * root / (n * gamma)) ** 3
        )
        eta = mpmath.exp(-n * gamma**2 / i**2 * (i / 10 - gamma / (2 * root)) * mpmath.exp(-(d**2)))
        eta += mpmath.exp(
            -5 * gamma**2 * i * n / (16 * mpmath.pi * (i + 5 * gamma / root) ** 2) * mpmath.exp(-(d**2))
        )
    assert astuple(found.published) == (gamma, pytest.approx(float(chance + eta + mu), rel=1e-9))
    assert found.corrected.distance == pytest.approx(gamma + 10 / cuts)


def test_the_published_bound_for_the_normal_law_says_nothing_up_to_the_median() -> None:
    for decile in range(1, 6):
        stated = histogram_on_normal(10**6, 1.0, decile=decile, gamma=0.2, bounds=(-6, 6), cuts=1000)
        assert stated.published.probability == 1
        assert stated.corrected.probability < 1e-4


def test_the_corrected_bound_for_the_normal_law_by_order_statistics() -> None:
    n, i, gamma, cuts, chance = 30_000, 3, 0.2, 400, 0.01
    found = histogram_on_normal(n, 2.0, decile=i, gamma=gamma, bounds=(-5, 5), cuts=cuts, beta=chance)
    ranks = alpha(2 / 9, chance, cuts)
    d = mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(2 * i) / 10 - 1)
    # an order statistic is at most x when at least as many values as its rank are
    right = binom.cdf(math.ceil(n * 3 // 10 + ranks) - 1, n, float(mpmath.ncdf(d + gamma)))
    left = binom.sf(math.floor(n * 3 // 10 - ranks) - 1, n, float(mpmath.ncdf(d - gamma)))
    assert found.corrected.probability == pytest.approx(right + left + chance, rel=1e-8)


def test_the_published_bound_for_the_normal_law_fails_between_cuts() -> None:
    n, cuts, bits = 100_000, 40, SeededBits(33)
    size = 1 << 20
    method = ThresholdHistogram(
        epsilon=Fraction(1, 9), levels=(Fraction(9, 10),), places=size + 1, cuts=cuts, monotone=False
    )
    d = float(mpmath.sqrt(2) * mpmath.erfinv(0.8))
    stated = histogram_on_normal(n, 1.0, decile=9, gamma=0.2, bounds=(-6, 6), cuts=cuts)
    # the cut above the decile lies 0.22 away, so nearly every answer does
    missed = far = 0
    for _ in range(12):
        share = (bits.words(n).astype(np.float64) + 0.5) * 2.0**-64
        values = np.sqrt(2) * np.asarray(erfinv(2 * share - 1))
        places = np.clip(np.rint((values + 6) / 12 * size), 0, size).astype(np.int64)
        answer = method.draw(SortedPlaces(np.sort(places)), 1, bits)[0, 0] * 12 / size - 6
        missed += abs(answer - d) > stated.published.distance
        far += abs(answer - d) > stated.corrected.distance
    assert stated.published.probability < 0.01
    assert surely_above(missed, 12, stated.published.probability)
    assert not surely_above(far, 12, stated.corrected.probability)


def test_bounds_of_inverse_sensitivity_by_hand() -> None:
    n, epsilon, gamma, u, rho, p, span = 20_000, 2.0, 0.4, 0.05, 0.02, 0.5, 3.0

    sparse = 2 * gamma / u * math.exp(-n * p * u / 8)
    astray = 4 * math.exp(-n * gamma**2 * p**2 / 8)
    heavy = span / (2 * rho) * math.exp(-n * p * u * epsilon / 4)
    shared = span / rho * math.exp(-n * p * u * epsilon / 9 / 4)
    of_sample = inverse_tail_of_sample(n, epsilon, gamma=gamma, u=u, rho=rho, density=p, span=span)
    assert astuple(of_sample.published) == (2 * u + rho, pytest.approx(heavy + astray + sparse))
    assert astuple(of_sample.corrected) == (2 * u + rho, pytest.approx(shared + astray + sparse))
    of_law = inverse_tail(n, epsilon, gamma=gamma, u=u, rho=rho, density=p, span=span)
    assert astuple(of_law.published) == (2 * u + rho, pytest.approx(heavy + sparse))
    assert of_law.corrected.distance == pytest.approx(2 * u + rho + gamma / 2)
    assert of_law.corrected.probability == of_sample.corrected.probability


def test_mean_errors_of_inverse_sensitivity_lie_above_an_integral_of_the_tails() -> None:
    # E|M - x_(k)| <= rho + 4/sqrt(n) + 2 int P(|M - x_(k)| > 2u + rho) du, and the sample's own error
    n, epsilon, rho = 3000, 4.0, 0.05
    each, root = epsilon / 9, math.sqrt(n)
    with mpmath.workdps(20):
        tails = mpmath.quad(
            lambda u: mpmath.exp(-n * u * each / 4) / rho + mpmath.exp(-n * u / 8) / u,
            [2 / root, 0.1, 0.2, 0.5],
        )
    needed = rho + 4 / root + 2 * float(tails) + 1 / (2 * root)
    stated = inverse_error(n, epsilon, rho=rho)
    assert needed <= stated.corrected <= 1.05 * needed
    assert stated.published == pytest.approx(
        rho
        + 4 / root
        + 4 / (n * epsilon * rho) * math.exp(-root * epsilon / 2)
        + 16 / root * math.exp(-root / 4)
    )


def inverse(epsilon: Fraction, levels: tuple[Fraction, ...], rho: float) -> InverseSensitivity:
    return InverseSensitivity(epsilon=epsilon, levels=levels, places=PLACES, radius=round(rho / STEP))


def test_published_bounds_of_inverse_sensitivity_about_the_law_fail_and_corrected_ones_hold() -> None:
    n, u, rho, samples, bits = 1_000_000, 2e-4, 1e-4, 12, SeededBits(34)
    method = inverse(Fraction(1), (Fraction(1, 2),), rho)
    answers = np.array([method.draw(uniform(n, bits), 1, bits)[0, 0] for _ in range(samples)]) * STEP
    missed = np.abs(answers - 0.5)
    general = inverse_tail(n, 1.0, gamma=0.01, u=u, rho=rho, density=1.0, answers=1)
    special = inverse_tail_on_uniform(n, 1.0, u=u, rho=rho, answers=1)
    assert special.published.probability == pytest.approx(2.8e-7, rel=0.02)
    for stated in (general, special):
        published, corrected = stated.published, stated.corrected
        assert surely_above(int((missed > published.distance).sum()), samples, published.probability)
        assert not surely_above(int((missed > corrected.distance).sum()), samples, corrected.probability)
    assert general.corrected.probability < 1e-4


def test_the_bound_about_the_sample_fails_for_nine_deciles_that_share_epsilon() -> None:
    n, bits = 100_000, SeededBits(35)
    u, rho = 0.0064, 0.005
    method = inverse(Fraction(1, 10), NINE, rho)
    values = uniform(n, bits)
    truth = values.places[np.arange(1, 10) * n // 10 - 1]
    missed = np.abs(method.draw(values, 8000, bits) - truth) * STEP
    stated = inverse_tail_of_sample(n, 0.1, gamma=0.05, u=u, rho=rho, density=1.0)
    beyond = int((missed > stated.published.distance).sum())
    assert surely_above(beyond, missed.size, stated.published.probability)
    # with the share that each has it holds, and says something for more values
    tight = inverse_tail_of_sample(1_000_000, 0.1, gamma=0.05, u=u, rho=rho, density=1.0)
    assert tight.corrected.probability < 1e-4
    alone = inverse(Fraction(1, 10), (Fraction(1, 2),), rho)
    single = np.abs(alone.draw(values, 8000, bits)[:, 0] - truth[4]) * STEP
    assert not surely_above(
        int((single > stated.published.distance).sum()), single.size, stated.published.probability
    )


def test_corrected_bounds_about_sample_and_law_hold_for_nine_deciles() -> None:
    n, bits = 200_000, SeededBits(36)
    u, rho, gamma = 0.003, 0.002, 0.03
    method = inverse(Fraction(1), NINE, rho)
    sample_tail = inverse_tail_of_sample(n, 1.0, gamma=gamma, u=u, rho=rho, density=1.0).corrected
    law_tail = inverse_tail(n, 1.0, gamma=gamma, u=u, rho=rho, density=1.0).corrected
    mean = inverse_error(n, 1.0, rho=rho).corrected
    assert sample_tail.probability < 1e-3
    missed, astray = [], []
    for _ in range(3):
        values = uniform(n, bits)
        truth = values.places[np.arange(1, 10) * n // 10 - 1]
        answers = method.draw(values, 200, bits)
        missed.append(np.abs(answers - truth) * STEP)
        astray.append(np.abs(answers * STEP - np.arange(1, 10) / 10))
    for found, tail in ((missed, sample_tail), (astray, law_tail)):
        count = int((np.array(found) > tail.distance).sum())
        assert not surely_above(count, np.array(found).size, tail.probability)
    assert np.array(astray).mean() < mean < 0.02


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: histogram_tail(1, 1.0, decile=1, gamma=0.1), "'size' of histogram_tail"),
        (lambda: histogram_tail(100, 0, decile=1, gamma=0.1), "'epsilon' of histogram_tail"),
        (lambda: histogram_error(100, 1.0, decile=10), "'decile' of histogram_error"),
        (lambda: histogram_error(100, 1.0, decile=1, beta=1.0), "'beta' of histogram_error"),
        (lambda: histogram_rate(100, 1.0, decile=1, answers=0), "'answers' of histogram_rate"),
        (lambda: least_size(-1), "'epsilon' of least_size"),
        (
            lambda: histogram_on_normal(100, 1.0, decile=6, gamma=0.1, bounds=(1, 0), cuts=9),
            "'bounds' of histogram_on_normal",
        ),
        (
            lambda: inverse_tail_of_sample(100, 1.0, gamma=0.1, u=0.03, rho=0.1, density=1.0),
            "'u' of inverse_tail_of_sample must be at most gamma / 4",
        ),
        (lambda: inverse_tail(100, 1.0, gamma=0.1, u=0.02, rho=0, density=1.0), "'rho' of inverse_tail"),
        (lambda: inverse_tail_on_uniform(100, 1.0, u=0, rho=0.1), "'u' of inverse_tail_on_uniform"),
        (lambda: inverse_error(100, 1.0, rho=-1), "'rho' of inverse_error"),
    ],
)
def test_bad_parameters_name_themselves(call: object, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        call()  # type: ignore[operator]
