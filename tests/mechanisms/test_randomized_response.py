import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import BinaryResponse, KaryResponse, Response, TwoCoins, Warner
from sourdine.testing import ScriptedBits, SeededBits
from tests.choice_laws import kary_response, two_coins, warner
from tests.statistics import ALARM, fit

KARY = KaryResponse(epsilon=Fraction(4, 3), categories=3)
BINARY = [Warner(truth=Fraction(7, 10)), TwoCoins()]


def law_of(response: Response, truth: int) -> dict[int, float]:
    laws = {KaryResponse: kary_response, Warner: warner, TwoCoins: two_coins}
    return laws[type(response)](response, truth)


def every_report(response: Response, truths: list[int]) -> list[tuple[list[int], float]]:
    """All reports these people may send, with their probabilities."""
    laws = [law_of(response, truth) for truth in truths]
    return [
        ([report for report, _ in reports], math.prod(mass for _, mass in reports))
        for reports in itertools.product(*(law.items() for law in laws))
    ]


@pytest.mark.parametrize("response", BINARY)
@pytest.mark.parametrize("truths", [[0], [1], [0, 1, 1], [1, 1, 1, 0, 0]])
def test_binary_estimates_are_unbiased_with_the_stated_variance(
    response: BinaryResponse, truths: list[int]
) -> None:
    cases = every_report(response, truths)
    mean = sum(mass * response.estimate(reports) for reports, mass in cases)
    spread = sum(mass * (response.estimate(reports) - mean) ** 2 for reports, mass in cases)
    assert mean == pytest.approx(np.mean(truths), abs=1e-12)
    assert spread == pytest.approx(float(response.variance(np.mean(truths), len(truths))))


def test_estimates_follow_the_published_formulas() -> None:
    growth = math.exp(4 / 3)
    first = (3 - 2 + growth) / (8 * (growth - 1) ** 2)
    assert float(KARY.variance(0.0, 8)) == pytest.approx(first)
    assert float(KARY.variance(0.3, 8)) == pytest.approx(first + 0.3 * (3 - 2) / (8 * (growth - 1)))
    assert TwoCoins().estimate([True, False, False, False]) == pytest.approx(2 / 4 - 1 / 2)
    assert float(TwoCoins().variance(0.9, 5)) == pytest.approx(3 / 20)
    assert Warner(truth=Fraction(7, 10)).estimate([1, 1, 0, 1]) == pytest.approx((0.75 - 0.3) / 0.4)
    assert float(Warner(truth=Fraction(7, 10)).variance(0.2, 10)) == pytest.approx(0.21 / (10 * 0.16))


def test_a_frequency_outside_its_range_counts_as_the_nearest_inside() -> None:
    assert np.array_equal(KARY.variance([-0.2, 1.4], 3), KARY.variance([0.0, 1.0], 3))


@pytest.mark.parametrize("categories", [2, 3, 8])
def test_the_loss_is_that_of_the_reports(categories: int) -> None:
    response = KaryResponse(epsilon=Fraction(4, 3), categories=categories)
    p, q = law_of(response, 0), law_of(response, 1)
    loss = response.loss(Distance.hamming())
    assert loss.epsilon == Fraction(4, 3)
    assert loss.neighbours is Neighbours.REPLACE
    for x in np.linspace(-1.5, 1.5, 13):
        true = sum(max(0.0, p[report] - math.exp(x) * q[report]) for report in p)
        assert float(loss.profile(x)) == pytest.approx(true, abs=1e-12)


def test_several_changed_answers_add_up() -> None:
    loss = KARY.loss(Distance.hamming(3))
    assert loss.epsilon == 4
    assert loss.rho == 3 * KARY.loss(Distance.hamming()).rho == Fraction(8, 3)
    p, q = (law_of(KARY, [truth] * 3) for truth in (0, 1))  # type: ignore[arg-type]
    for x in np.linspace(0, 4, 9):
        true = sum(max(0.0, p[report] - math.exp(x) * q[report]) for report in p)
        assert true <= float(loss.profile(x)) + 1e-12


@pytest.mark.parametrize("truth", [Fraction(7, 10), Fraction(3, 4), 1 - Fraction(1, 10**30)])
@pytest.mark.parametrize("changed", [1, 2, 7])
def test_logarithms_are_rounded_up(truth: Fraction, changed: int) -> None:
    mpmath.mp.prec = 300
    odds = truth / (1 - truth)
    true = changed * mpmath.log(mpmath.mpf(odds.numerator) / odds.denominator)
    epsilon = Warner(truth=truth).loss(Distance.hamming(changed)).epsilon
    assert true < epsilon <= true * (1 + mpmath.mpf(2) ** -50)


def test_two_coins_cost_ln_3() -> None:
    two, one = TwoCoins().loss(Distance.hamming()), Warner(truth=Fraction(3, 4)).loss(Distance.hamming())
    assert two.epsilon == one.epsilon == pytest.approx(math.log(3))
    assert float(two.profile(0.0)) == pytest.approx(0.5)
    assert float(two.profile(two.epsilon)) == 0


@pytest.mark.parametrize(
    "response", [*BINARY, KARY, KaryResponse(epsilon=Fraction(1), categories=500)], ids=repr
)
@pytest.mark.parametrize("reports", [1, 2, 30, 400])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_error_covers_whatever_the_frequency(response: Response, reports: int, confidence: float) -> None:
    """Exactly: the number of reports of a category is a sum of two binomial variables."""
    p, q = response.channel
    width = response.error(confidence, reports)
    for holders in sorted({0, reports // 10, reports // 2, reports}):
        count = np.convolve(binomial(holders, p), binomial(reports - holders, q))
        estimates = (np.arange(reports + 1) / reports - q) / (p - q)
        beyond = np.abs(estimates - holders / reports) > width * (1 + 1e-12)
        assert count[beyond].sum() <= 1 - confidence


def binomial(trials: int, p: float) -> np.ndarray:
    return np.array([math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)])


def test_the_error_is_within_sight_of_the_standard_deviation() -> None:
    for response in (*BINARY, KaryResponse(epsilon=Fraction(1), categories=500)):
        worst = math.sqrt(float(np.max(response.variance([0.0, 1.0], 10**6))))
        assert 1.96 * worst < response.error(0.95, reports=10**6) < 2.8 * worst


@pytest.mark.parametrize("categories", [2, 3, 10])
def test_reports_follow_the_stated_law(categories: int) -> None:
    response = KaryResponse(epsilon=Fraction(4, 3), categories=categories)
    wrong = KaryResponse(epsilon=Fraction(22, 15), categories=categories)
    for truth in (0, categories - 1):
        reports = response.sample(np.full(200_000, truth), SeededBits(truth))
        assert fit(reports, law_of(response, truth)) > ALARM
        assert fit(reports, law_of(wrong, truth)) < ALARM


@pytest.mark.parametrize("response", BINARY)
def test_answers_follow_the_stated_law(response: BinaryResponse) -> None:
    for truth in (0, 1):
        answers = response.sample(np.full(200_000, truth), SeededBits(truth))
        assert answers.dtype == np.bool_
        assert fit(answers.astype(np.int64), law_of(response, truth)) > ALARM
        off = float(response.honesty) + 0.02
        assert fit(answers.astype(np.int64), {truth: off, 1 - truth: 1 - off}) < ALARM


def test_two_coins_are_two_coins() -> None:
    heads, tails = 0xFFFF_FFFF_FFFF_FFFF, 0
    assert TwoCoins().sample([0, 1], ScriptedBits([heads, tails])).tolist() == [False, True]
    assert TwoCoins().sample([0, 1], ScriptedBits([tails, heads])).tolist() == [True, True]
    assert TwoCoins().sample([0, 1], ScriptedBits([tails, tails])).tolist() == [False, False]


def test_values_outside_the_categories_are_clipped() -> None:
    sure = KaryResponse(epsilon=500, categories=4)
    assert sure.sample([[-5, 10**30], [2, 3]], SeededBits(1)).tolist() == [[0, 3], [2, 3]]
    honest = Warner(truth=1 - Fraction(1, 10**12))
    assert honest.sample([-3, 0, 1, 12], SeededBits(1)).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("kind", "field", "bad"),
    [
        (KaryResponse, "epsilon", 0),
        (KaryResponse, "epsilon", 600),
        (KaryResponse, "categories", 1),
        (KaryResponse, "categories", 2.5),
        (Warner, "truth", Fraction(1, 2)),
        (Warner, "truth", 1),
        (Warner, "truth", 0.25),
    ],
)
def test_bad_parameters_are_refused(kind: type[Response], field: str, bad: object) -> None:
    good = {"epsilon": Fraction(1), "categories": 3} if kind is KaryResponse else {"truth": Fraction(2, 3)}
    with pytest.raises(InvalidParameter, match=f"The '{field}' of {kind.__name__}"):
        kind(**good | {field: bad})


@pytest.mark.parametrize("response", BINARY)
def test_estimates_need_reports(response: Response) -> None:
    with pytest.raises(InvalidParameter, match="no report"):
        response.estimate(np.zeros(0, int))  # type: ignore[attr-defined]
    for bad in (0, 2.5, -1):
        with pytest.raises(InvalidParameter, match="'reports'"):
            response.error(0.95, reports=bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="'reports'"):
            response.variance(0.5, bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="integers"):
        response.sample([0.5])
