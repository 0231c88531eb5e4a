"""Coverage of intervals: exactly where the distribution of the counts can be summed, else by simulation."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from sourdine.local import (
    GRR,
    OLH,
    OUE,
    SUE,
    BoundedLaplaceOracle,
    BoundedStaircaseOracle,
    Counts,
    Duchi,
    HadamardResponse,
    Hybrid,
    Piecewise,
    SquareWave,
)
from sourdine.local.poisoning import attackers_reach
from sourdine.local.rappor import Rappor
from sourdine.local.rappor.decode import (
    Candidates,
    Correction,
    DecodingTerms,
    Evidence,
    decode_by_lasso,
    decode_by_least_squares,
)
from sourdine.local.rappor.decode.decoding import intervals_if_found
from sourdine.testing import SeededBits

SHARES = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 5))
KINDS: tuple[Any, ...] = (GRR, OUE, SUE, OLH)
SETTINGS = list(
    product(KINDS, (1, 4), (3, 40), SHARES, ((60, 0), (60, 30), (400, 3), (400, 390), (400, 120)))
)


def honest_coverage(
    kind: Any, epsilon: float, categories: int, share: Fraction, reports: int, holders: int
) -> Iterator[float]:
    """The exact coverage of the honest interval, where attackers support a category with all or no reports.

    The number of honest people who hold the category is cut to those there are. The estimate's interval is
    found for every count of honest supports, weighted by its probability.
    """
    oracle = kind(epsilon=epsilon, categories=categories)
    p, q = oracle.channel
    attackers = -int(-share * reports // 1)
    honest = reports - attackers
    held = min(holders, honest)
    with_it = np.asarray(binom.pmf(range(held + 1), held, p))
    without = np.asarray(binom.pmf(range(honest - held + 1), honest - held, q))
    both = np.convolve(with_it, without)
    for made_up in (0, attackers // 2, attackers):
        seen = np.flatnonzero(both > 1e-15)
        estimate = shares_of(oracle, seen + made_up, reports)
        reach = attackers_reach(oracle, estimate, share)
        inside = (reach.lower <= held / honest + 1e-12) & (held / honest - 1e-12 <= reach.upper)
        yield float(both[seen] @ inside)


def shares_of(oracle: Any, supports: np.ndarray, reports: int) -> Any:
    """An estimate with a category for each number of supports."""
    from sourdine.local.estimate import shares

    return shares(oracle.channel, supports, reports, 0.95)


def check_honest_coverage(settings: list[Any]) -> None:
    for kind, epsilon, categories, share, (reports, holders) in settings:
        worst = min(honest_coverage(kind, epsilon, categories, share, reports, holders))
        assert worst >= 0.95 - 1e-9, (kind, epsilon, categories, share, reports, holders)


def test_the_honest_interval_covers_in_a_dozen_settings() -> None:
    check_honest_coverage(SETTINGS[::20])


@pytest.mark.slow
def test_the_honest_interval_covers_in_240_settings() -> None:
    assert len(SETTINGS) == 240
    check_honest_coverage(SETTINGS)


@pytest.mark.parametrize("kind", [HadamardResponse, Duchi, Piecewise, Hybrid])
@pytest.mark.parametrize("upwards", [False, True])
def test_the_honest_interval_covers_beside_fixed_attackers(kind: Any, upwards: bool) -> None:
    """Surveys with 5 % of attackers, who all send the report that moves the estimate the most."""
    surveys = 40 if kind is HadamardResponse else 200
    if kind is HadamardResponse:
        oracle, truth = kind(epsilon=3, categories=8, blocks=3), 0.3
        values = np.repeat(np.arange(8), [300, 100, 100, 100, 100, 100, 100, 100])
    else:
        oracle, truth = kind(epsilon=2, lower=0, upper=1), 0.9
        values = np.full(1000, truth)
    every = np.arange(oracle.codes)
    alone = [float(oracle.estimate(oracle.tally(np.array([code]))).value.flat[0]) for code in every]
    worst = int(np.argmax(alone) if upwards else np.argmin(alone))
    held = 0
    for seed in range(surveys):
        honest = oracle.sample(values, SeededBits(seed))
        reports = np.concatenate([honest, np.full(52, worst)])
        reach = attackers_reach(oracle, oracle.estimate(oracle.tally(reports)), Fraction(1, 20))
        held += bool(reach.lower.flat[0] <= truth <= reach.upper.flat[0])
    assert held >= surveys * 0.95 - 4 * (surveys * 0.95 * 0.05) ** 0.5


ROUNDED: tuple[Any, ...] = (
    SquareWave,
    BoundedLaplaceOracle,
    BoundedStaircaseOracle,
    Piecewise,
    Hybrid,
    Duchi,
)


@pytest.mark.parametrize("kind", ROUNDED)
def test_the_mean_is_covered_where_all_people_have_one_value_off_the_grid(kind: Any) -> None:
    """Rounding moves all of them alike: with 150,000 reports that is more than the noise."""
    oracle = kind(epsilon=3, lower=0, upper=1, cells=16)
    value = 0.5 + 0.49 / 16
    codes = np.random.default_rng(5).choice(oracle.codes, size=(40, 150_000), p=law_of(oracle, value))
    held = 0
    for row in codes:
        estimate = oracle.mean(oracle.tally(row))
        held += bool(estimate.lower <= value <= estimate.upper)
    assert held >= 40 * 0.95 - 4 * (40 * 0.95 * 0.05) ** 0.5


MEANS = list(product(ROUNDED, (1, 3), (4, 16), (0.02, 0.25, 0.49, 0.51, 0.9), (200, 150_000)))


def check_means(settings: list[Any], surveys: int) -> None:
    """Surveys of people with one value each, which lies off the grid where it is the hardest."""
    for kind, epsilon, cells, value, people in settings:
        oracle = kind(epsilon=epsilon, lower=0, upper=1, cells=cells)
        dice, law = np.random.default_rng(people + cells), law_of(oracle, value)
        held = 0
        for sums in dice.multinomial(people, law / law.sum(), surveys):
            estimate = oracle.mean(Counts(oracle.fingerprint, people, sums))
            held += bool(estimate.lower <= value <= estimate.upper)
        least = surveys * 0.95 - 4 * (surveys * 0.95 * 0.05) ** 0.5
        assert held >= least, (kind, epsilon, cells, value, people, held)


def test_means_are_covered_in_a_dozen_settings() -> None:
    check_means(MEANS[::20], 100)


@pytest.mark.slow
def test_means_are_covered_in_240_settings() -> None:
    assert len(MEANS) == 240
    check_means(MEANS, 400)


def law_of(oracle: Any, value: float) -> np.ndarray:
    """The distribution of the codes of one value, from the oracle's own channel at the nearest places.

    The oracles that round at random mix two places; `Duchi` has its two ends.
    """
    if isinstance(oracle, Duchi):
        upper = np.round(value * oracle.cells) / oracle.cells
        p, q = oracle.response.channel
        return np.array([p - upper * (p - q), q + upper * (p - q)])
    at = value * oracle.cells
    if getattr(oracle, "parts", 1) == 1:
        return np.asarray(oracle.channel[int(np.rint(at))])
    at = np.rint(at * oracle.parts) / oracle.parts
    below = int(at)
    mixed = (1 - (at - below)) * oracle.channel[below] + (at - below) * oracle.channel[below + 1]
    return np.asarray(mixed / mixed.sum())


def test_quantiles_of_a_distribution_allow_for_rounding() -> None:
    oracle = SquareWave(epsilon=4, lower=0, upper=1, cells=8)
    value = 0.5 + 0.49 / 8
    sums = np.round(1e6 * law_of(oracle, value)).astype(np.int64)
    found = oracle.distribution(Counts(oracle.fingerprint, int(sums.sum()), sums)).quantiles(0.5)
    assert found.lower[0] <= value <= found.upper[0]


WORDS = [f"v{i}" for i in range(60)]
FREQUENCIES = np.append(np.exp(-np.arange(30) / 6) / np.exp(-np.arange(30) / 6).sum(), np.zeros(30))
ORACLE = Rappor(bits=64, hashes=2, cohorts=8, f=Fraction(1, 2), p=Fraction(1, 2), q=Fraction(3, 4))


def check_found_words(decoder: Any, correction: Correction, surveys: int) -> None:
    candidates, terms = Candidates.of(ORACLE, WORDS), DecodingTerms(correction=correction)
    dice, held, plain, found = np.random.default_rng(1), 0, 0, 0
    for seed in range(surveys):
        codes = dice.choice(60, size=30_000, p=FREQUENCIES)
        evidence = Evidence.of(ORACLE, ORACLE.tally(ORACLE.encode(WORDS, codes, bits=SeededBits(seed))))
        decoding = decoder(evidence, candidates, terms=terms)
        some = decoding.detected
        inside = (decoding.lower <= FREQUENCIES) & (decoding.upper >= FREQUENCIES)
        near = np.abs(decoding.shares - FREQUENCIES) <= 1.96 * decoding.errors
        found, held, plain = found + some.sum(), held + inside[some].sum(), plain + near[some].sum()
    error = (0.95 * 0.05 / found) ** 0.5
    assert held / found >= 0.95 - 4 * error
    if surveys >= 100:  # the intervals without the condition are shown not to hold
        assert plain / found < 0.95 - 4 * error


def test_the_ends_of_a_found_word_are_those_of_a_truncated_normal() -> None:
    shares, errors, least = np.array([0.2, 0.031, 0.0301]), np.array([0.02, 0.01, 0.01]), 0.03
    lower, upper = intervals_if_found(shares, errors, np.full(3, least), 0.95)
    for share, error, *ends in zip(shares, errors, lower, upper, strict=True):
        for end, tail in zip(ends, (0.025, 0.975), strict=True):
            if end > 1e-9:
                given = norm.sf(share, end, error) / norm.sf(least, end, error)
                assert given == pytest.approx(tail, rel=1e-6)
    assert lower[1] == lower[2] < 1e-15  # barely found
    assert np.abs([lower[0] - 0.2, upper[0] - 0.2]) == pytest.approx(1.96 * 0.02, rel=1e-3)


def test_intervals_of_found_words_hold_given_that_they_were_found() -> None:
    check_found_words(decode_by_least_squares, Correction.BENJAMINI_HOCHBERG, 8)


@pytest.mark.slow
@pytest.mark.parametrize("correction", list(Correction))
@pytest.mark.parametrize("decoder", [decode_by_least_squares, decode_by_lasso])
def test_intervals_of_found_words_hold_in_300_surveys(decoder: Any, correction: Correction) -> None:
    check_found_words(decoder, correction, 300)
