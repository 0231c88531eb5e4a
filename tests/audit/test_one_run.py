import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.stats import binom, norm

from sourdine.audit import Hypothesis, OneRunBound, bound_from_scores, largest_bound
from sourdine.audit.one_run import (
    ApproximateTradeOff,
    GaussianTradeOff,
    ProfileTradeOff,
    TradeOff,
    epsilon_from_guesses,
    epsilon_of_mu,
    mu_from_guesses,
    numbers_of_guesses,
    refutes,
    tail_bound,
)
from sourdine.core.errors import InvalidParameter


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("count", [20, 300])
def test_randomised_response_is_accused_as_rarely_as_stated_and_hardly_more_rarely(
    epsilon: float, count: int
) -> None:
    """All coins answered with exactly epsilon: the number of right guesses is binomial, so all is known."""
    share = 1 / (1 + math.exp(-epsilon))
    accused = [
        right
        for right in range(count + 1)
        if epsilon_from_guesses(right, count, candidates=count, delta=0.0, confidence=0.9) > epsilon
    ]
    alarm = sum(binom.pmf(right, count, share) for right in accused)
    assert alarm <= 0.1
    one_less = binom.pmf(min(accused, default=count + 1) - 1, count, share)
    assert alarm + one_less > 0.1  # the bound wastes nothing: one right guess fewer would be too often


@pytest.mark.parametrize("delta", [1e-4, 1e-3])
def test_coins_that_leak_with_delta_are_accused_as_rarely_as_stated(delta: float) -> None:
    count, epsilon = 100, 1.0
    q = 1 / (1 + math.exp(-epsilon))
    share = (1 - delta) * q + delta  # (epsilon, delta)-private: outright with delta, else randomised
    alarm = sum(
        binom.pmf(right, count, share)
        for right in range(count + 1)
        if epsilon_from_guesses(right, count, candidates=count, delta=delta, confidence=0.9) > epsilon
    )
    assert alarm <= 0.1


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5, 1.5]), st.sampled_from([2, 3]))
def test_the_inequality_holds_for_any_mechanism(seed: int, epsilon: float, count: int) -> None:
    """Any table of chances from coins to guesses, with its delta counted out over all neighbours."""
    random = np.random.default_rng(seed)
    coins = np.array(list(itertools.product([-1, 1], repeat=count)))
    guesses = np.array(list(itertools.product([-1, 0, 1], repeat=count)))
    chance = random.dirichlet(np.full(len(guesses), random.choice([0.05, 0.3, 2.0])), size=len(coins))
    chance = random.uniform() * chance + (1 - random.uniform()) * chance.mean(0)
    chance /= chance.sum(1, keepdims=True)
    delta = max(
        np.maximum(chance[i] - math.exp(epsilon) * chance[j], 0).sum()
        for i, j in itertools.permutations(range(len(coins)), 2)
        if (coins[i] != coins[j]).sum() == 1
    )
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    right = (coins[:, None, :] * guesses[None, :, :] == 1).sum(2)
    made = (guesses != 0).sum(1)
    allowed = lambda least: np.array([binom.sf(least - 1, int(r), share) for r in made])
    for least in range(1, count + 1):
        found = (chance * (right >= least)).sum(1).mean()
        # the number of guesses may vary here: the binomial part is then its mean over what was guessed
        most = (chance.mean(0) * allowed(least)).sum() + count * delta / (1 + math.exp(epsilon))
        assert found <= most + 1e-12


def test_the_inequality_is_sharp_enough_to_fail_without_its_last_term() -> None:
    """One coin told outright with chance delta: more right guesses than the binomial part allows."""
    delta, q = 0.2, 0.5
    assert (1 - delta) * q + delta > binom.sf(0, 1, q)
    assert (1 - delta) * q + delta == pytest.approx(
        binom.sf(0, 1, q) + delta / 2
    )  # and no smaller term would do


def gaussian_canaries(seed: int, candidates: int, mu: float) -> tuple[NDArray[Any], NDArray[Any]]:
    random = np.random.default_rng(seed)
    included = random.random(candidates) < 0.5
    return random.normal(size=candidates) + mu * included, included


def shown(seed: int, candidates: int, mu: float) -> float:
    scores, included = gaussian_canaries(seed, candidates, mu)
    return bound_from_scores(scores, included, delta=1e-5).epsilon


@pytest.mark.parametrize(
    ("candidates", "mu", "peer"),
    [
        (2000, 1, 1.71),
        (2000, 2, 3.59),
        (2000, 4, 6.94),
        (20_000, 1, 2.12),
        (20_000, 2, 4.42),
        (20_000, 4, 8.50),
    ],
)
def test_more_is_shown_than_by_jax_privacy_on_the_same_scores(
    candidates: int, mu: float, peer: float
) -> None:
    """The peer's figures are of epsilon_one_run_fdp(0.05, 1e-5) in jax_privacy 2.0.0, on these scores."""
    assert peer < shown(1, candidates, mu) < epsilon_of_mu(mu, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.5, 1, 2, 4])
def test_more_canaries_show_more(mu: float) -> None:
    medians = [np.median([shown(seed, count, mu) for seed in range(20)]) for count in (2000, 4000, 20_000)]
    assert medians == sorted(medians)


def test_many_canaries_do_not_blind_a_bound_with_delta() -> None:
    """With 4,000 canaries and delta 1e-5 the older bound showed nothing, however many guesses were right."""
    assert epsilon_from_guesses(1742, 2000, candidates=4000, delta=1e-5, confidence=0.95) > 1.5
    scores, included = gaussian_canaries(1, 4000, 2.0)
    for hypothesis in Hypothesis:
        assert bound_from_scores(scores, included, delta=1e-5, hypothesis=hypothesis).epsilon > 3
    assert largest_bound(4000, delta=1e-5, hypothesis="approximate") > 5
    assert largest_bound(1 << 20, delta=1e-5) > largest_bound(20_000, delta=1e-5) > 12


@pytest.mark.parametrize(
    ("candidates", "guesses", "right", "alarm", "delta", "epsilon"),
    [
        (2000, 62, 60, 0.05, 1e-5, 2.99438),
        (4000, 2000, 1742, 0.05, 1e-5, 2.93603),
        (1000, 1000, 700, 0.01, 1e-6, 1.22900),
        (20_000, 625, 590, 0.001, 1e-5, 2.44425),
        (300, 300, 300, 0.05, 1e-5, 10.24525),
        (500, 100, 52, 0.05, 1e-5, 0.0),
    ],
)
def test_one_number_of_guesses_shows_what_jax_privacy_computes(
    candidates: int, guesses: int, right: int, alarm: float, delta: float, epsilon: float
) -> None:
    mu = mu_from_guesses(right, guesses, candidates=candidates, confidence=1 - alarm)
    assert epsilon_of_mu(mu, delta) == pytest.approx(epsilon, rel=2e-4)


def most_likely(curve: TradeOff, right: int, guesses: int, candidates: int) -> float:
    """The largest P[X >= right] under theorem 1, over all distributions of X, by a linear program."""
    counts = np.arange(guesses + 1)
    rows, limits = [], []
    for true_positives in np.concatenate((np.geomspace(1e-6, 0.01, 60), np.linspace(0.01, 0.999, 240))):
        at = float(true_positives)
        false_positives = curve.false_positives(at)
        slope = (curve.false_positives(at + 1e-7) - false_positives) / 1e-7
        for least in range(1, guesses + 1):  # slope * R_c - W_(c-1) is at most what the tangent leaves
            r = np.where(counts >= least, counts, 0) / candidates
            w = np.where(counts >= least - 1, guesses - counts, 0) / candidates
            rows.append(slope * r - w)
            limits.append(slope * at - false_positives)
    solved = linprog(
        -(counts >= right).astype(float), np.array(rows), limits, np.ones((1, guesses + 1)), [1.0]
    )
    return -float(solved.fun or 0.0)


@pytest.mark.parametrize("curve", [GaussianTradeOff(0.7), ApproximateTradeOff(0.5, 0.01)])
@pytest.mark.parametrize(("right", "guesses", "candidates"), [(7, 8, 8), (8, 8, 20), (6, 6, 12), (9, 12, 15)])
def test_the_recursion_solves_the_program_of_the_theorem(
    curve: TradeOff, right: int, guesses: int, candidates: int
) -> None:
    found = tail_bound(curve, right, guesses, candidates=candidates)
    assert found == pytest.approx(most_likely(curve, right, guesses, candidates), rel=2e-3)


def profile_of(chances: NDArray[Any], pairs: list[tuple[int, int]]) -> ProfileTradeOff:
    """The trade-off of a table of chances over all pairs of neighbours, from delta at many epsilons."""
    epsilons = np.linspace(0, 6, 80)
    deltas = [
        max(float(np.maximum(chances[i] - math.exp(e) * chances[j], 0).sum()) for i, j in pairs)
        for e in epsilons
    ]
    return ProfileTradeOff(epsilons.tolist(), deltas)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]))
def test_the_bound_holds_for_any_mechanism(seed: int, size: tuple[int, int]) -> None:
    """Any table of chances from coins to a fixed number of guesses, with its trade-off counted out."""
    count, made = size
    random = np.random.default_rng(seed)
    coins = np.array(list(itertools.product([-1, 1], repeat=count)))
    every = np.array(list(itertools.product([-1, 0, 1], repeat=count)))
    guesses = every[(every != 0).sum(1) == made]
    right = (coins[:, None, :] * guesses[None, :, :] == 1).sum(2)
    chance = random.dirichlet(np.full(len(guesses), random.choice([0.1, 0.5, 2.0])), size=len(coins))
    chance = chance * np.exp(random.uniform(0, 3) * right)  # guesses that are right more often than by coins
    chance /= chance.sum(1, keepdims=True)
    pairs = [
        (i, j) for i, j in itertools.permutations(range(len(coins)), 2) if (coins[i] != coins[j]).sum() == 1
    ]
    curve = profile_of(chance, pairs)
    for least in range(1, made + 1):
        found = float((chance * (right >= least)).sum(1).mean())
        assert found <= tail_bound(curve, least, made, candidates=count) * (1 + 1e-3)


@pytest.mark.parametrize("curve", [GaussianTradeOff(1.0), ApproximateTradeOff(1.0, 0.0)])
@pytest.mark.parametrize(("guesses", "candidates"), [(5, 5), (4, 9)])
def test_all_right_guesses_are_bounded_as_sharply_as_is_true(
    curve: TradeOff, guesses: int, candidates: int
) -> None:
    """The run of theorem 3 is as private as the trade-off says, and has this chance of all right guesses."""
    chance = tail_bound(curve, guesses, guesses, candidates=candidates) * (1 - 1e-4)
    tails = [chance]
    while len(tails) <= guesses:  # the recursion again, in the terms of W and R
        counts = guesses - np.arange(len(tails))
        p = np.diff([0.0, *tails])
        needed = candidates * curve.false_positives(float((counts * p).sum()) / candidates)
        lower = int(counts[-1]) - 1
        wrong = float(((guesses - counts) * p).sum())
        tails.append(tails[-1] + max(0.0, (needed - wrong) / (guesses - lower)))
    assert tails[-1] <= 1
    p = np.diff([0.0, *tails])[::-1]  # of 0, 1 ... guesses right; with chance 1 - tails[-1] nothing is told
    others = np.arange(guesses)  # right among the other guesses
    informed = np.array([(others + 1) * p[1:], (guesses - others) * p[:-1]]) / candidates
    rest = 1 - informed.sum()
    laws = np.concatenate((informed, [[rest], [rest]], informed[::-1]), axis=1)  # guessed b, nothing, not b
    order = np.argsort(-laws[0] / laws[1], kind="stable")
    true_positives, false_positives = np.cumsum(laws[:, order], axis=1)
    for true, false in zip(true_positives, false_positives, strict=True):
        assert curve.false_positives(min(1.0, float(true))) <= false + 1e-9
    assert chance > 0.05


@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_gaussian_canaries_at_the_level_are_not_accused(mu: float) -> None:
    """60 runs at 80 % confidence each: at most 20 % may be accused, and independent canaries far fewer."""
    accused, least = 0, epsilon_of_mu(mu, 1e-5)
    for seed in range(60):
        found = bound_from_scores(*gaussian_canaries(seed, 300, mu), delta=1e-5, confidence=0.8)
        accused += found.epsilon > least
    assert accused <= binom.isf(1e-6, 60, 0.2)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomized_response_at_the_level_is_not_accused(epsilon: float) -> None:
    random, share, accused = np.random.default_rng(1), 1 / (1 + math.exp(-epsilon)), 0
    # randomized response is mu-GDP with this mu, and no less
    levels = {"approximate": epsilon, "gaussian": epsilon_of_mu(2 * norm.ppf(share), 1e-9)}
    for _ in range(30):
        included = random.random(300) < 0.5
        scores = np.where(random.random(300) < share, included, ~included)
        for hypothesis, level in levels.items():
            found = bound_from_scores(scores, included, delta=1e-9, confidence=0.8, hypothesis=hypothesis)
            accused += found.epsilon > level
    assert accused <= binom.isf(1e-6, 60, 0.2)


def test_a_profile_is_bounded_by_its_points() -> None:
    epsilons = np.linspace(0, 8, 300)
    deltas = norm.cdf(0.5 - epsilons) - np.exp(epsilons) * norm.cdf(-0.5 - epsilons)
    points, curve = ProfileTradeOff(epsilons.tolist(), deltas.tolist()), GaussianTradeOff(1.0)
    for true in np.concatenate((np.geomspace(1e-5, 0.1, 50), np.linspace(0.1, 1, 50))):
        exact = curve.false_positives(float(true))
        assert exact * 0.999 - 1e-7 <= points.false_positives(float(true)) <= exact + 1e-12
    few = [
        max(
            0.0,
            *((true - d) * math.exp(-e) for e, d in lines),
            *(1 - d - math.exp(e) * (1 - true) for e, d in lines),
        )
        for lines in [list(zip(epsilons[::30].tolist(), deltas[::30].tolist(), strict=True))]
        for true in (0.01, 0.3, 0.7, 0.99)
    ]
    coarse = ProfileTradeOff(epsilons[::30].tolist(), deltas[::30].tolist())
    assert [coarse.false_positives(true) for true in (0.01, 0.3, 0.7, 0.99)] == pytest.approx(few)


def test_guesses_are_the_ends_of_the_order_and_the_best_number_is_shown() -> None:
    included = np.array([True, False] * 64)
    stated: dict[str, Any] = {"delta": 0.0, "confidence": 0.95, "hypothesis": "approximate"}
    perfect = bound_from_scores(np.where(included, 1.0, -1.0), included, **stated)
    assert (perfect.right, perfect.guesses) == (64, 64)
    assert perfect.epsilon == pytest.approx(math.log(0.0125 ** (1 / 64) / (1 - 0.0125 ** (1 / 64))))
    assert perfect.epsilon == largest_bound(128, **stated)
    assert bound_from_scores(-np.where(included, 1.0, -1.0), included, **stated).epsilon == 0
    only_ends = np.where(included, 1.0, -1.0)
    only_ends[12:-12] = 0.0
    only_ends[12:-12][::3] *= -1
    few = bound_from_scores(only_ends, included, **stated)
    assert few.right == few.guesses == 24
    assert bound_from_scores(np.full(128, np.nan), included, **stated).epsilon < 1
    assert isinstance(few, OneRunBound)
    assert numbers_of_guesses(128) == [64, 24, 10, 4]


def test_the_four_numbers_of_guesses_share_the_confidence() -> None:
    """Coins of epsilon 0: the best of four bounds is above 0 no more often than stated."""
    random = np.random.default_rng(1)
    accused = sum(
        bound_from_scores(
            random.normal(size=200),
            random.random(200) < 0.5,
            delta=0.0,
            confidence=0.8,
            hypothesis="approximate",
        ).epsilon
        > 0
        for _ in range(500)
    )
    assert 5 < accused < 100 + 6 * math.sqrt(500 * 0.2 * 0.8)


def test_a_large_delta_shows_less_and_a_large_epsilon_is_finite() -> None:
    assert epsilon_from_guesses(1000, 1000, candidates=1000, delta=0.2, confidence=0.95) == 0
    assert epsilon_from_guesses(10**6, 10**6, candidates=10**6, delta=0.0, confidence=0.95) < 14
    assert not refutes(ApproximateTradeOff(0.0, 0.2), 1000, 1000, candidates=1000, alarm=0.05)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scores": [1.0]},
        {"scores": [[1.0], [2.0]]},
        {"delta": 0.0},
        {"delta": 1.0},
        {"confidence": 1.0},
        {"hypothesis": "laplace"},
    ],
)
def test_wrong_scores_are_refused(wrong: dict[str, Any]) -> None:
    stated = {"scores": [1.0, 2.0], "included": [True, False], "delta": 1e-5, "confidence": 0.9, **wrong}
    with pytest.raises(InvalidParameter):
        bound_from_scores(**stated)


@pytest.mark.parametrize(
    "wrong", [{"right": 11}, {"guesses": 21}, {"delta": -0.1}, {"confidence": 1.0}, {"candidates": 0}]
)
def test_wrong_numbers_are_refused(wrong: dict[str, Any]) -> None:
    stated = {"right": 5, "guesses": 10, "candidates": 20, "delta": 0.0, "confidence": 0.9, **wrong}
    with pytest.raises(InvalidParameter):
        epsilon_from_guesses(**stated)
