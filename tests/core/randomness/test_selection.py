import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.core.random import selection
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

WORD = 1 << 64
RATE = Fraction(3, 7)


def exact(number: float | Fraction) -> mpmath.mpf:
    number = Fraction(number)
    return mpmath.mpf(number.numerator) / number.denominator


def cumulative(row: list[float], rate: Fraction) -> list[mpmath.mpf]:
    """P[choice <= i], by a second big-number library."""
    mpmath.mp.prec = 1400  # holds 2^62 and 2^-1074 at once
    best = max(row)
    gaps = [math.inf if score == -math.inf else Fraction(best) - Fraction(score) for score in row]
    weights = [mpmath.mpf(0) if gap == math.inf else mpmath.exp(-exact(gap * rate)) for gap in gaps]
    return [part / mpmath.fsum(weights) for part in itertools.accumulate(weights)]


def agrees(row: list[float], rate: Fraction, word: int) -> bool:
    """Whether the choice is how many cumulative probabilities, but the last, are at most the U drawn."""
    bits = ScriptedBits(script := [word, 5, 7])
    choice = selection.choose(selection.scores("Test", np.array(row), len(row)), rate, bits)
    drawn = script[: 3 - bits.left]
    uniform = sum(mpmath.mpf(part) / mpmath.mpf(WORD) ** (i + 1) for i, part in enumerate(drawn))
    return bool(choice == sum(uniform >= at for at in cumulative(row, rate)[:-1]))


ROWS = st.one_of(
    st.lists(st.integers(-20, 20), min_size=1, max_size=8),
    st.lists(st.floats(-30, 30), min_size=1, max_size=8),
    st.lists(st.integers(-(2**62) + 1, 2**62 - 1), min_size=1, max_size=4),
    st.lists(st.floats(-(2.0**62), 2.0**62), min_size=1, max_size=4),
    st.lists(st.sampled_from([-math.inf, 0.0, 5e-324, 1.0, -0.5]), min_size=2, max_size=6).filter(
        lambda row: max(row) > -math.inf
    ),
)


@given(ROWS, st.fractions(Fraction(1, 1000), 100), st.integers(0, WORD - 1))
def test_a_choice_inverts_the_exact_distribution(row: list[float], rate: Fraction, word: int) -> None:
    assert agrees(row, rate, word)


@given(ROWS, st.integers(0, 7), st.integers(-3000, 3000))
def test_a_choice_is_exact_next_to_a_boundary(row: list[float], at: int, offset: int) -> None:
    """Words within and just beyond the last bits that a float can see."""
    boundary = int(cumulative(row, RATE)[at % len(row)] * WORD)
    assert agrees(row, RATE, min(max(boundary + offset, 0), WORD - 1))


@pytest.mark.parametrize("size", [1000, pytest.param(30_000, marks=pytest.mark.slow)])
def test_the_margin_covers_the_errors_of_long_sums(size: int) -> None:
    """Words so near a boundary that the float sums alone would often get them wrong."""
    row = (np.arange(size) * 7919 % 101 - 50).tolist()
    mpmath.mp.prec = 200
    weight = {score: mpmath.exp((score - 50) * exact(RATE) / 9) for score in set(row)}
    sums = list(itertools.accumulate(weight[score] for score in row))
    scored = np.array(row)
    for k in range(size // 2, size - 1, size // 7):
        boundary = int(sums[k] / sums[-1] * WORD)
        for offset in (-5000, -1, 1, 5000):
            assert selection.choose(scored, RATE / 9, ScriptedBits([boundary + offset])) == k + (offset > 0)


def test_a_tie_draws_bits_until_it_is_settled() -> None:
    mpmath.mp.prec = 400
    odds = mpmath.exp(-exact(RATE))
    digits = int(odds / (1 + odds) * mpmath.mpf(2) ** 192)
    script = [digits >> 128, digits >> 64 & WORD - 1, digits & WORD - 1]
    for last, expected in [(0, 0), (WORD - 1, 1)]:
        bits = ScriptedBits([*script[:2], last])
        assert selection.choose(np.array([-1, 0]), RATE, bits) == expected
        assert bits.left == 0
    bits = ScriptedBits([*script, 0])
    assert selection.choose(np.array([-1, 0]), RATE, bits) == 0
    assert bits.left == 0


def test_a_boundary_that_is_a_word_is_settled_at_once() -> None:
    for word, expected in [(WORD // 2 - 1, 0), (WORD // 2, 1)]:
        bits = ScriptedBits([word, 77])
        assert selection.choose(np.array([4, 4]), RATE, bits) == expected
        assert bits.left == 1


def test_what_has_no_weight_is_never_chosen() -> None:
    first = selection.scores("Test", [-math.inf, 0.0, 0.0], 3)
    assert selection.choose(first, RATE, ScriptedBits([0])) == 1
    last = selection.scores("Test", [0.0, 0.0, math.nan], 3)
    assert selection.choose(last, RATE, ScriptedBits([WORD - 1, WORD - 1, 0])) == 1
    assert selection.flip(first, RATE, ScriptedBits([0, 0, 0, 0])) in (1, 2)


def test_coins_are_exact_next_to_their_probability() -> None:
    mpmath.mp.prec = 300
    digits = int(mpmath.exp(-exact(RATE) / 4) * mpmath.mpf(2) ** 128)
    row = np.array([0.0, 0.25])
    for word, more, heads in [
        ((digits >> 64) - 1, [], True),
        ((digits >> 64) + 1, [], False),
        (digits >> 64, [(digits & WORD - 1) - 1], True),
        (digits >> 64, [(digits & WORD - 1) + 1], False),
    ]:
        # Two coins, the words that settle the first, and a low word that picks the first of the heads.
        bits = ScriptedBits([word, WORD // 2, *more, 1 << 33])
        assert selection.flip(row, RATE, bits) == (0 if heads else 1)
        assert bits.left == 0


def test_coins_do_not_trust_the_last_bits_of_a_float() -> None:
    mpmath.mp.prec = 300
    for gap in range(1, 80):
        boundary = int(mpmath.exp(-exact(gap * RATE)) * WORD)
        for offset in (-700, 700):
            word = max(0, boundary + offset)
            bits = ScriptedBits([word, 0, 1 << 33])
            assert selection.flip(np.array([-gap, 0]), RATE, bits) == (0 if word < boundary else 1)


def test_the_best_always_shows_heads() -> None:
    bits = ScriptedBits([WORD - 1, WORD - 1])
    assert selection.flip(np.array([0, 50]), RATE, bits) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000, 1 << 20])
def test_every_number_below_a_size_is_equally_likely(size: int) -> None:
    drawn = selection._below(np.full(200_000, size), SeededBits(size))
    cells = min(size, 7)
    law = dict.fromkeys(range(cells), 0.0)
    for number in range(size):
        law[number % cells] += 1 / size
    assert drawn.min() >= 0
    assert drawn.max() < size
    assert fit(drawn % cells, law) > ALARM


def test_words_that_would_favour_some_are_refused() -> None:
    """2^32 = 3 * 1431655765 + 1: of all 32-bit words, 0 alone is one too many."""
    for words, expected in [([0, 3 << 62], 2), ([0, 0, 0], 0), ([1 << 32], 0)]:
        bits = ScriptedBits([*words, 1 << 62] if words == [0, 0, 0] else words)
        assert selection._below(np.array([3]), bits) == expected
        assert bits.left == 0


@pytest.mark.parametrize("sampler", [selection.choose, selection.flip])
def test_rows_are_independent_of_how_they_are_stacked(sampler: object) -> None:
    row = np.array([3, 5, 1])
    many = np.broadcast_to(row, (4, 60_000, 3))
    drawn = sampler(many, RATE, SeededBits(1))  # type: ignore[operator]
    assert drawn.shape == (4, 60_000)
    one = sampler(row, RATE, SeededBits(1))  # type: ignore[operator]
    assert one.shape == ()
    parts = [np.bincount(part, minlength=3) / 60_000 for part in drawn]
    assert np.ptp(parts, axis=0).max() < 0.02


def test_scores_are_repaired_whatever_they_are() -> None:
    inf = math.inf
    wild = np.array([math.nan, inf, -inf, 1e300])
    assert selection.scores("Test", wild, 4).tolist() == [-inf, 2.0**62, -inf, 2.0**62]
    assert selection.scores("Test", [[-inf, math.nan], [0.5, -inf]], 2).tolist() == [[0, 0], [0.5, -inf]]
    assert selection.scores("Test", [10**30, -(10**30)], 2).tolist() == [2**53, -(2**53)]
    assert selection.scores("Test", np.array([2**63 - 1, 5]), 2).tolist() == [2**62 - 1, 5]
    assert selection.scores("Test", np.array([True, False]), 2).tolist() == [1, 0]
    assert selection.scores("Test", np.array([0.1], np.float32), 1).tolist() == [float(np.float32(0.1))]
    given = np.array([math.nan, 1.0])
    selection.scores("Test", given, 2)
    assert math.isnan(given[0])  # the caller's array is left alone


@pytest.mark.parametrize("other", [1, 0.5, 10**30, -math.inf, np.float32(2)])
def test_the_kind_of_one_item_does_not_change_how_another_is_read(other: float) -> None:
    scored = selection.scores("Test", [2**60 + 100, 2**53 - 1, other], 3)
    assert scored.tolist()[:2] == [2**53, 2**53 - 1]


@pytest.mark.parametrize(
    "values", [3, [1, 2], [[1], [2]], ["a", "b", "c"], np.zeros(3, complex), np.zeros(3, np.longdouble)]
)
def test_wrong_shapes_and_kinds_are_refused(values: object) -> None:
    with pytest.raises(InvalidParameter, match="given to Test"):
        selection.scores("Test", values, 3)  # type: ignore[arg-type]
