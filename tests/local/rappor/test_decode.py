"""Decoders: the linear algebra against plain solvers, the errors against simulation, the refusals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from sourdine.core.errors import InvalidParameter
from sourdine.local.rappor import BasicRappor, OneTimeRappor, Rappor
from sourdine.local.rappor.decode import (
    Candidates,
    Correction,
    Decoding,
    DecodingTerms,
    Evidence,
    Variable,
    associate,
    decode_by_expectation,
    decode_by_lasso,
    decode_by_least_squares,
    decode_nonnegative,
)
from sourdine.local.rappor.decode.likelihood import likelihoods, unlisted
from sourdine.local.rappor.decode.mixture import most_likely, spreads
from sourdine.local.rappor.decode.regression import Equations, sandwich, select, solve_bounded
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.rappor_laws import bloom, filter_law

WORDS = [f"v{i}" for i in range(30)]
SHARES = np.append(np.exp(-np.arange(20) / 5) / np.exp(-np.arange(20) / 5).sum(), np.zeros(10))
ONCE = OneTimeRappor(bits=32, hashes=2, cohorts=4, f=Fraction(1, 2))
BOTH = Rappor(bits=32, hashes=2, cohorts=4, f=Fraction(1, 4), p=Fraction(1, 4), q=Fraction(3, 4))


def people(count: int, seed: int, shares: np.ndarray = SHARES) -> np.ndarray:
    """Codes of made-up people, drawn from the shares."""
    uniform = (SeededBits(seed).words(count) >> np.uint64(11)) * 2.0**-53
    return np.minimum(np.searchsorted(np.cumsum(shares), uniform, side="right"), len(shares) - 1)


def evidence(oracle: Rappor | OneTimeRappor, count: int, seed: int) -> Evidence:
    rows = oracle.encode(WORDS, people(count, seed), bits=SeededBits(1000 + seed))
    return Evidence.of(oracle, oracle.tally(rows))


def test_debiased_counts_are_the_sources() -> None:
    found = evidence(BOTH, 1000, 1)
    f, p, q = 0.25, 0.25, 0.75
    for cohort, bit in ((0, 0), (3, 31), (2, 7)):
        c, n = found.sums[cohort, bit], found.reports[cohort]
        source = (c - (p + f * q / 2 - f * p / 2) * n) / ((1 - f) * (q - p))
        assert found.debiased[cohort, bit] == pytest.approx(source)
        assert found.shares[32 * cohort + bit] == pytest.approx(source / n)


def test_the_design_has_a_one_where_a_word_sets_a_bit() -> None:
    dense = Candidates.of(BOTH, WORDS).design.todense()
    for j, word in enumerate(WORDS):
        for cohort in range(4):
            found = set(np.flatnonzero(dense[32 * cohort : 32 * cohort + 32, j]).tolist())
            assert found == bloom(word, cohort, 32, 2)
    assert dense.max() == 1


def test_least_squares_is_that_of_a_plain_solver() -> None:
    found = evidence(BOTH, 20_000, 2)
    decoding = decode_by_least_squares(found, Candidates.of(BOTH, WORDS))
    design = np.hstack([Candidates.of(BOTH, WORDS).design.todense(), np.full((128, 1), 1 - (31 / 32) ** 2)])
    one, zero = float(BOTH.coins.one), float(BOTH.coins.zero)
    shares = np.zeros(31)
    for _ in range(3):
        mean = zero + (one - zero) * np.clip(design @ np.maximum(shares, 0), 0, 1)
        root = np.sqrt(np.repeat(found.reports, 32) / (mean * (1 - mean)))
        shares = np.linalg.lstsq(design * root[:, None], found.shares * root, rcond=None)[0]
    assert decoding.shares == pytest.approx(shares[:-1], abs=1e-9)
    assert decoding.unlisted == pytest.approx(shares[-1], abs=1e-9)
    assert decoding.counts == pytest.approx(20_000 * shares[:-1], abs=1e-4)


def test_the_covariance_of_bits_is_that_of_whole_reports() -> None:
    """A cohort's shares, their covariance by enumeration of words and of reports, put through the solver."""
    oracle = OneTimeRappor(bits=4, hashes=2, cohorts=1, f=Fraction(1, 2))
    words = ["a", "b", "d"]
    pi = np.array([0.5, 0.3, 0.2])
    mass = np.zeros(16)
    for word, share in zip(words, pi, strict=True):
        law = filter_law(bloom(word, 0, 4, 2), 4, 0.5, 0.0, 1.0)
        mass += share * np.array([law[code << 4] for code in range(16)])
    bits = np.array(list(itertools.product((0, 1), repeat=4)))
    shares = (bits - 0.25) / 0.5
    mean = mass @ shares
    covariance = (shares - mean).T @ np.diag(mass) @ (shares - mean) / 1000
    made = Evidence(oracle, np.array([1000]), np.zeros((1, 4), np.int64))
    equations = Equations(made, Candidates.of(oracle, words), np.array([1.0, 2.0, 3.0, 1.5]))
    solution, columns = np.append(pi, 0.0), np.arange(2)
    design = equations.design.todense()[:, :2]
    weighted = np.diag(equations.weights) @ design
    inverse = np.linalg.inv(design.T @ weighted)
    expected = inverse @ weighted.T @ covariance @ weighted @ inverse
    assert sandwich(equations, solution, columns) == pytest.approx(expected)


@pytest.mark.parametrize("oracle", [ONCE, BOTH])
def test_least_squares_covers_the_truth_as_often_as_it_says(oracle: Rappor | OneTimeRappor) -> None:
    candidates = Candidates.of(oracle, WORDS)
    found = [decode_by_least_squares(evidence(oracle, 20_000, seed), candidates) for seed in range(40)]
    scores = np.array([(one.shares - SHARES) / one.errors for one in found])
    assert np.abs(scores.mean()) < 0.2
    assert 0.9 < scores.std() < 1.1  # 1,200 scores; those of one run hang together a little
    covered = np.mean([(one.lower <= SHARES) & (one.upper >= SHARES) for one in found])
    assert 0.92 < covered < 0.98
    false = np.mean([one.detected[20:].sum() / max(1, one.detected.sum()) for one in found])
    assert false < 0.08
    assert np.mean([one.detected[:5].mean() for one in found]) > 0.95


def test_words_off_the_list_show_as_unlisted_and_not_as_others() -> None:
    rows = ONCE.encode([*WORDS, *(f"other {i}" for i in range(500))], _half_unlisted(), bits=SeededBits(5))
    found = Evidence.of(ONCE, ONCE.tally(rows))
    decoding = decode_by_least_squares(found, Candidates.of(ONCE, WORDS))
    assert decoding.unlisted == pytest.approx(0.5, abs=0.1)
    scores = (decoding.shares - SHARES / 2) / decoding.errors
    assert np.abs(scores).max() < 4.5
    by_reports = decode_by_expectation(ONCE, rows, Candidates.of(ONCE, WORDS))
    assert by_reports.unlisted == pytest.approx(0.5, abs=0.1)


def _half_unlisted() -> np.ndarray:
    codes = people(40_000, 9)
    strangers = 30 + (SeededBits(10).words(20_000) % np.uint64(500)).astype(np.int64)
    codes[::2] = strangers
    return codes


def test_candidates_that_cannot_be_told_apart_are_refused_but_by_lasso() -> None:
    oracle = OneTimeRappor(bits=16, hashes=2, cohorts=2, f=Fraction(1, 4))
    words = [f"v{i}" for i in range(100)]
    rows = oracle.encode(words, people(50_000, 3), bits=SeededBits(3))
    found = Evidence.of(oracle, oracle.tally(rows))
    with pytest.raises(InvalidParameter, match="100 candidates cannot be told apart by 32 bits"):
        decode_by_least_squares(found, Candidates.of(oracle, words))
    decoding = decode_by_lasso(found, Candidates.of(oracle, words))
    assert len(decoding.words) == 100
    assert np.count_nonzero(decoding.shares) <= 16


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_bounded_least_squares_is_that_of_lawson_and_hanson(seed: int) -> None:
    draws = (SeededBits(seed).words(20 * 8 + 20) >> np.uint64(11)) * 2.0**-53 - 0.5
    a, y = draws[:160].reshape(20, 8), draws[160:]
    found = solve_bounded(a.T @ a, a.T @ y, np.zeros(8), np.zeros(8), np.zeros(8))
    assert found == pytest.approx(nnls(a, y)[0], abs=1e-7)
    priced = solve_bounded(a.T @ a, a.T @ y, np.full(8, 0.05), np.zeros(8), np.ones(8))
    slope = a.T @ (y - a @ priced) - 0.05  # the conditions of Karush, Kuhn and Tucker
    assert np.all(slope <= 1e-7)
    assert np.all(np.abs(slope[priced > 0]) <= 1e-7)


def test_lasso_takes_the_frequent_words_and_then_is_plain_least_squares() -> None:
    found = evidence(BOTH, 50_000, 4)
    candidates = Candidates.of(BOTH, WORDS)
    taken = select(Equations(found, candidates, found.sizes))
    assert set(range(8)) <= set(taken.tolist())
    decoding = decode_by_lasso(found, candidates)
    assert np.flatnonzero(decoding.shares).tolist() == taken.tolist()
    design = np.hstack([candidates.design.todense()[:, taken], np.full((128, 1), 1 - (31 / 32) ** 2)])
    root = np.sqrt(np.repeat(found.reports, 32))[:, None]
    solution, square, *_ = np.linalg.lstsq(design * root, found.shares * root[:, 0], rcond=None)
    assert decoding.shares[taken] == pytest.approx(solution[:-1], abs=1e-9)
    spread = square[0] / (128 - len(taken) - 1) * np.linalg.inv((design * root).T @ (design * root))
    assert decoding.errors[taken] == pytest.approx(np.sqrt(np.diag(spread))[:-1])
    assert np.all(decoding.p_values[np.setdiff1d(np.arange(30), taken)] == 1)


def test_non_negative_shares_are_closer_and_resampling_tells_how_close() -> None:
    candidates = Candidates.of(BOTH, WORDS)
    free, bound, spread = [], [], []
    for seed in range(12):
        found = evidence(BOTH, 5000, 50 + seed)
        free.append(decode_by_least_squares(found, candidates).shares - SHARES)
        decoding = decode_nonnegative(found, candidates, rounds=20, bits=SeededBits(seed))
        assert decoding.shares.min() >= 0
        assert np.all(decoding.lower <= decoding.upper)
        assert np.all(decoding.lower >= 0)
        bound.append(decoding.shares - SHARES)
        spread.append(decoding.errors)
    assert np.mean(np.square(bound)) < 0.9 * np.mean(np.square(free))
    assert np.mean(spread) == pytest.approx(np.std(bound, axis=0, ddof=1).mean(), rel=0.25)
    with refusal_of("rounds", "decode_nonnegative"):
        decode_nonnegative(found, candidates, rounds=1)


def test_likelihoods_are_ratios_of_true_laws() -> None:
    oracle = Rappor(bits=5, hashes=2, cohorts=2, f=Fraction(1, 4), p=Fraction(1, 4), q=Fraction(2, 3))
    candidates = Candidates.of(oracle, ["a", "b"])
    rows = oracle.sample(np.array(["a", "b"] * 20), SeededBits(1))
    found = likelihoods(oracle, rows, candidates)
    empty = filter_law(set(), 5, 0.25, 0.25, 2 / 3)
    every = [set(pair) for pair in itertools.product(range(5), repeat=2)]
    for row, ratios in zip(rows, found, strict=True):
        cohort, code = int(row[0]), int(row[1])
        for word, ratio in zip(candidates.words, ratios[:-1], strict=True):
            law = filter_law(bloom(word, cohort, 5, 2), 5, 0.25, 0.25, 2 / 3)
            assert ratio == pytest.approx(law[code] / empty[code], rel=1e-5)
        mean = np.mean([filter_law(truth, 5, 0.25, 0.25, 2 / 3)[code] for truth in every])
        assert ratios[-1] == pytest.approx(mean / empty[code], rel=1e-5)


def test_an_unlisted_word_has_a_law_too() -> None:
    """Its likelihood ratio has mean 1 where no bit is set."""
    for bits, hashes in ((5, 3), (32, 2), (8, 1)):
        ratios = unlisted(bits, hashes, 0.7 / 0.4, 0.3 / 0.6)
        chances = [math.comb(bits, u) * 0.4**u * 0.6 ** (bits - u) for u in range(bits + 1)]
        assert ratios @ chances == pytest.approx(1)


def test_expectation_is_the_most_likely_mixture_and_beats_counts_once() -> None:
    candidates = Candidates.of(ONCE, WORDS)
    rows = ONCE.encode(WORDS, people(20_000, 6), bits=SeededBits(6))
    decoding = decode_by_expectation(ONCE, rows, candidates)
    ratios = likelihoods(ONCE, rows, candidates).astype(float)
    shares = np.append(decoding.shares, decoding.unlisted)
    assert shares.sum() == pytest.approx(1, abs=1e-4)
    slope = (ratios / (ratios @ shares)[:, None]).mean(axis=0)  # 1 where a share is above 0, at most 1 at 0
    assert slope.max() < 1.0001
    assert np.abs(slope[shares > 0.001] - 1).max() < 1e-3
    plain = decode_by_least_squares(Evidence.of(ONCE, ONCE.tally(rows)), candidates)
    assert np.mean((decoding.shares - SHARES) ** 2) < 0.8 * np.mean((plain.shares - SHARES) ** 2)
    assert 1.1 < np.mean(plain.errors) / np.mean(decoding.errors) < 2
    assert np.abs((decoding.shares - SHARES) / decoding.errors).max() < 4.5


def test_a_mixture_of_two_known_laws() -> None:
    """Heads 30 times in 100, from coins of chances 0.2 and 0.6: a quarter is of the second."""
    laws = np.array([[0.2, 0.6], [0.8, 0.4]])
    seen = np.array([0.3, 0.7])

    def step(shares: np.ndarray) -> tuple[np.ndarray, float]:
        density = laws @ shares
        return shares * (laws.T @ (seen / density)), float(seen @ np.log(density))

    def information(shares: np.ndarray) -> np.ndarray:
        scores = laws / (laws @ shares)[:, None]
        return np.asarray(scores.T @ np.diag(seen) @ scores)

    found = most_likely(step, information, np.full(2, 0.5))
    assert found == pytest.approx([0.75, 0.25], abs=1e-4)
    assert spreads(1000 * information(found)) == pytest.approx([math.sqrt(0.21 / 1000) / 0.4] * 2, rel=1e-4)
    seen[:] = [0.1, 0.9]  # fewer heads than either coin has: all of the first
    assert most_likely(step, information, np.full(2, 0.5)) == pytest.approx([1, 0], abs=1e-6)


def test_two_variables_are_seen_together() -> None:
    joint = np.array([[0.30, 0.10, 0.05], [0.05, 0.20, 0.10], [0.02, 0.08, 0.10]])
    codes = people(40_000, 7, joint.ravel())
    words = ["a", "b", "c"]
    second = BasicRappor(categories=3, f=0.25, p=0.25, q=0.75)
    found = associate(
        Variable(
            oracle=BOTH,
            rows=BOTH.encode(words, codes // 3, bits=SeededBits(7)),
            candidates=Candidates.of(BOTH, words),
        ),
        Variable(oracle=second, rows=second.sample(codes % 3, SeededBits(8))),
    )
    assert (found.rows, found.columns) == (("a", "b", "c"), ("0", "1", "2"))
    assert found.shares.sum() == pytest.approx(1, abs=1e-4)
    assert np.all(found.shares[:, -1] == 0)
    scores = (found.shares[:3, :3] - joint) / found.errors[:3, :3]
    assert np.abs(scores).max() < 4
    assert found.errors[:3, :3].max() < 0.01
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    assert found.lift[:3, :3] == pytest.approx(joint / apart, abs=0.25)


def test_reports_that_do_not_pair_are_refused() -> None:
    one = Variable(oracle=BOTH, rows=BOTH.sample(["a", "b"]), candidates=Candidates.of(BOTH, ["a"]))
    other = Variable(oracle=BOTH, rows=BOTH.sample(["a"]), candidates=Candidates.of(BOTH, ["a"]))
    with pytest.raises(InvalidParameter, match="2 reports of one variable and 1 of the other"):
        associate(one, other)
    with pytest.raises(InvalidParameter, match="need candidates"):
        associate(Variable(oracle=BOTH, rows=BOTH.sample(["a"])), other)
    many = Candidates.of(BOTH, [f"v{i}" for i in range(70)])
    crowd = Variable(oracle=BOTH, rows=BOTH.sample(["a"]), candidates=many)
    with pytest.raises(InvalidParameter, match="71 by 71"):
        associate(crowd, crowd)


def test_evidence_of_nobody_and_foreign_candidates_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="no reports"):
        Evidence.of(BOTH, BOTH.tally(np.zeros((0, BOTH.width), np.uint8)))
    with pytest.raises(InvalidParameter, match="no reports"):
        decode_by_expectation(BOTH, np.zeros((0, BOTH.width), np.uint8), Candidates.of(BOTH, ["a"]))
    other = Candidates.of(Rappor(bits=16, hashes=2, cohorts=4, f=0.25, p=0.25, q=0.75), WORDS)
    for decode in (decode_by_least_squares, decode_by_lasso, decode_nonnegative):
        with pytest.raises(InvalidParameter, match="hashed for other parameters"):
            decode(evidence(BOTH, 100, 1), other)


def test_a_cohort_without_reports_is_no_obstacle() -> None:
    rows = BOTH.encode(WORDS, people(20_000, 8), cohorts=np.arange(20_000) % 3, bits=SeededBits(8))
    found = Evidence.of(BOTH, BOTH.tally(rows))
    candidates = Candidates.of(BOTH, WORDS)
    for decoding in (decode_by_least_squares(found, candidates), decode_by_lasso(found, candidates)):
        assert abs(decoding.shares[0] - SHARES[0]) < 5 * decoding.errors[0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from([0.01, 0.05, 0.3]))
def test_corrections_are_as_defined(p_values: list[float], level: float) -> None:
    ordered = sorted(p_values)
    count = len(ordered)
    last = max((i for i in range(count) if ordered[i] <= level * (i + 1) / count), default=-1)
    found = Correction.BENJAMINI_HOCHBERG.detect(np.array(p_values), level)
    assert found.sum() == last + 1
    assert all(p_values[i] <= ordered[last] for i in np.flatnonzero(found))
    strict = Correction.BONFERRONI.detect(np.array(p_values), level)
    assert strict.tolist() == [p <= level / count for p in p_values]


def test_what_is_found_has_its_mass_and_order() -> None:
    decoding = Decoding.normal(
        "test",
        ("a", "b", "c"),
        np.array([0.2, 0.5, -0.1]),
        np.array([0.01, 0.01, 0.01]),
        unlisted=0.1,
        reports=10,
        terms=DecodingTerms(),
    )
    assert decoding.discoveries == ("b", "a")
    assert decoding.mass == pytest.approx(0.7)
    assert decoding.p_values[2] > 0.99
    for wrong in ({"level": 0}, {"confidence": 1}, {"correction": "none"}):
        with pytest.raises(InvalidParameter):
            DecodingTerms(**wrong)
