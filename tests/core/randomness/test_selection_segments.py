import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.random.selection import Segments, choose_segments, places_in
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

WORD = 1 << 64
RATE = Fraction(3, 7)


def made(rows: list[tuple[int, int]]) -> Segments:
    """Segments one after the other, by size and gap."""
    sizes = np.array([size for size, _ in rows], np.int64)
    gaps = np.array([[gap for _, gap in rows]], np.int64)
    return Segments((np.cumsum(sizes) - sizes)[None], sizes[None], gaps)


def cumulative(rows: list[tuple[int, int]], rate: Fraction) -> list[mpmath.mpf]:
    """P[choice <= i], by a second big-number library."""
    mpmath.mp.prec = 1400
    best = min(gap for _, gap in rows)
    drop = mpmath.mpf(rate.numerator) / rate.denominator
    weights = [size * mpmath.exp(-(gap - best) * drop) for size, gap in rows]
    return [part / mpmath.fsum(weights) for part in itertools.accumulate(weights)]


def agrees(rows: list[tuple[int, int]], rate: Fraction, word: int) -> bool:
    """Whether the choice is how many cumulative probabilities, but the last, are at most the U drawn."""
    bits = ScriptedBits(script := [word, 5, 7])
    choice = int(choose_segments(made(rows), rate, np.zeros(1, np.int64), bits)[0])
    drawn = script[: 3 - bits.left]
    uniform = sum(mpmath.mpf(part) / mpmath.mpf(WORD) ** (i + 1) for i, part in enumerate(drawn))
    return bool(choice == sum(uniform >= at for at in cumulative(rows, rate)[:-1]))


ROWS = st.one_of(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 40)), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(1, 2**52), st.integers(0, 120)), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(1, 2**60), st.integers(0, 2**62)), min_size=1, max_size=4),
)


@given(ROWS, st.fractions(Fraction(1, 1000), 100), st.integers(0, WORD - 1))
def test_a_choice_inverts_the_exact_distribution(
    rows: list[tuple[int, int]], rate: Fraction, word: int
) -> None:
    assert agrees(rows, rate, word)


@given(ROWS, st.integers(0, 8), st.integers(-3000, 3000))
def test_a_choice_is_exact_next_to_a_boundary(rows: list[tuple[int, int]], at: int, offset: int) -> None:
    """Words within and just beyond the last bits that a float can see."""
    boundary = int(cumulative(rows, RATE)[at % len(rows)] * WORD)
    assert agrees(rows, RATE, min(max(boundary + offset, 0), WORD - 1))


def test_the_margin_covers_wide_segments_far_from_the_best() -> None:
    """A size of 2^52 makes up for a gap of 36 e-folds, whose float exponent is off by many units."""
    rows = [(1, 0), *((1 << 47, 700 + i) for i in range(30))]
    rate = Fraction(36, 700)
    for at, offset in itertools.product(range(0, 30, 5), (-(1 << 16), -(1 << 13), -1, 1, 1 << 13, 1 << 16)):
        boundary = int(cumulative(rows, rate)[at] * WORD)
        assert agrees(rows, rate, boundary + offset)


def test_undecided_words_ask_for_more_bits() -> None:
    """U = 1/2 exactly on the boundary of two halves belongs to the second."""
    halves = made([(3, 5), (3, 5)])
    assert choose_segments(halves, RATE, np.zeros(1, np.int64), ScriptedBits([WORD // 2])) == 1
    thirds = made([(1, 0), (2, 0)])
    for following, answer in [(0, 0), (WORD - 1, 1)]:
        bits = ScriptedBits([WORD // 3, following, 0])
        assert choose_segments(thirds, RATE, np.zeros(1, np.int64), bits) == answer
        assert bits.left < 2


def test_choices_follow_the_law_and_not_one_ten_percent_off() -> None:
    rows = [(5, 3), (1, 0), (40, 4), (7, 1), (1, 9)]
    drawn = choose_segments(made(rows), RATE, np.zeros(200_000, np.int64), SeededBits(4))

    def law(rate: Fraction) -> dict[int, float]:
        sums = [0.0, *(float(at) for at in cumulative(rows, rate))]
        return {i: b - a for i, (a, b) in enumerate(itertools.pairwise(sums))}

    assert fit(drawn, law(RATE)) > ALARM
    assert fit(drawn, law(RATE * Fraction(11, 10))) < ALARM


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_places_are_uniform_in_their_segment(size: int) -> None:
    segments = Segments(np.array([[0, 100]]), np.array([[50, size]]), np.array([[0, 0]]))
    drawn = places_in(segments, np.zeros(50_000, np.int64), np.ones(50_000, np.int64), SeededBits(size))
    assert fit(drawn, {100 + i: 1 / size for i in range(size)}) > ALARM
    assert set(drawn.tolist()) == set(range(100, 100 + size))


@pytest.mark.parametrize("size", [2**53 + 1, 2**61 - 1, 2**61])
def test_places_of_segments_longer_than_floats_can_count(size: int) -> None:
    segments = Segments(np.array([[0]]), np.array([[size]]), np.array([[0]]))
    rows = columns = np.zeros(20_000, np.int64)
    drawn = places_in(segments, rows, columns, SeededBits(1))
    assert drawn.min() >= 0
    assert drawn.max() < size
    assert fit(drawn // -(-size // 8), dict.fromkeys(range(8), 1 / 8)) > ALARM


def test_words_beyond_the_size_are_drawn_again() -> None:
    segments = Segments(np.array([[10]]), np.array([[5]]), np.array([[0]]))
    bits = ScriptedBits([7 << 61, 5 << 61, 4 << 61])
    rows = columns = np.zeros(1, np.int64)
    assert places_in(segments, rows, columns, bits) == 14
    assert bits.left == 0


def test_segments_that_hold_nothing_are_never_chosen_and_do_not_count_as_the_best() -> None:
    """A gap far below all others, of what holds nothing, changes neither the law nor what is seen of it."""
    held = Segments(np.array([[0, 0, 5, 9]]), np.array([[0, 5, 4, 0]]), np.array([[0, 10**6, 10**6 + 3, 0]]))
    drawn = choose_segments(held, RATE, np.zeros(50_000, np.int64), SeededBits(6))
    weights = np.array([5.0, 4 * math.exp(-3 * float(RATE))])
    assert fit(drawn, dict(enumerate(weights / weights.sum(), 1))) > ALARM
    for word in (0, WORD - 1):
        assert choose_segments(held, RATE, np.zeros(1, np.int64), ScriptedBits([word, 0, 0])) == 1 + (
            word > 0
        )


def test_every_row_has_its_own_law() -> None:
    sizes, gaps = np.array([[3, 1, 0], [1, 1, 6]]), np.array([[0, 2, 9], [4, 0, 1]])
    which = np.tile([1, 0, 1], 30_000)
    drawn = choose_segments(Segments(np.zeros_like(sizes), sizes, gaps), RATE, which, SeededBits(7))
    for row in (0, 1):
        weights = sizes[row] * np.exp(-gaps[row] * float(RATE))
        law = {i: share for i, share in enumerate(weights / weights.sum()) if share}
        assert fit(drawn[which == row], law) > ALARM


def test_a_hopeless_segment_is_never_chosen() -> None:
    drawn = choose_segments(made([(1, 0), (1 << 40, 10**15)]), RATE, np.zeros(1000, np.int64), SeededBits(2))
    assert not drawn.any()
