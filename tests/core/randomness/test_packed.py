"""Packed coins: every one is checked against the digits that decided it."""

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sourdine.core.random import bits as branches
from sourdine.core.random import packed
from sourdine.core.random.bits import Bits
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

ONES = (1 << 64) - 1
ODDS = [Fraction(-1), Fraction(-1, 2), Fraction(4, 3), Fraction(1, 1 << 20), Fraction(-512), Fraction(512)]


class Record:
    """Bits that remember what they gave."""

    secure = False

    def __init__(self, source: Bits) -> None:
        self.source = source
        self.given: list[NDArray[np.uint64]] = []

    def words(self, count: int, /) -> NDArray[np.uint64]:
        self.given.append(self.source.words(count))
        return self.given[-1]


def digits_of(log_odds: Fraction, count: int) -> int:
    """floor(2^count/(1 + e^-log_odds)), by a second big-number library."""
    with mpmath.workprec(count + 1200):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(log_odds.numerator) / log_odds.denominator))
        return int(mpmath.floor(p * mpmath.mpf(2) ** count))


@pytest.mark.parametrize("log_odds", ODDS)
@pytest.mark.parametrize("count", [1, 12, 65, 129, 900])
def test_digits_are_those_of_the_probability(log_odds: Fraction, count: int) -> None:
    assert packed.Odds(log_odds).first(count) == digits_of(log_odds, count)


def test_digits_are_worked_out_further_where_a_ball_cannot_tell() -> None:
    near_half = Fraction(1, 1 << 200)  # p = 1/2 + 2^-202 or so: its digits are 1000...
    assert packed.Odds(near_half).first(150) == 1 << 149
    assert packed.Odds(-near_half).first(150) == (1 << 149) - 1


@given(st.fractions(0, 1), st.integers(0, 200))
def test_digits_of_a_rational(p: Fraction, count: int) -> None:
    assert packed.Share(p).first(count) <= p * 2**count < packed.Share(p).first(count) + 1


def replayed(count: int, digits: Callable[[int], int], given_words: list[NDArray[np.uint64]]) -> list[int]:
    """The coins that these words stand for: each is U < p, where a random 1 says that U has p's digit."""
    first, *later = (words.reshape(-1, words.size) for words in given_words)
    first = first.reshape(12, count)
    still_open = np.flatnonzero(np.bitwise_and.reduce(first, axis=0))
    places = len(later[0].reshape(-1)) // 52
    rows = [later[0].reshape(52, places), *(words.reshape(64, places) for words in later[1:])]
    tails = np.concatenate(rows)
    coins = []
    for i in range(count):
        at = np.flatnonzero(still_open == i)
        column = [*first[:, i].tolist(), *(tails[:, at[0]].tolist() if at.size else [])]
        depth = len(column)
        p = digits(depth)
        word = 0
        for lane in range(64):
            agrees = int("".join(str(each >> lane & 1) for each in column), 2)
            u = p ^ agrees ^ ((1 << depth) - 1)  # the digits of p, turned over where they do not agree
            assert u != p, "a coin was left open"
            word |= int(u < p) << lane
        coins.append(word)
    return coins


@pytest.mark.parametrize("log_odds", ODDS[:4])
@pytest.mark.parametrize("count", [1, 3, 400])
def test_a_coin_is_whether_u_is_below_p(log_odds: Fraction, count: int) -> None:
    bits = Record(SeededBits(count))
    found = packed.bernoulli_odds(log_odds, count, bits)
    assert found.tolist() == replayed(count, lambda size: digits_of(log_odds, size), bits.given)


def test_a_coin_still_open_after_64_digits_goes_on() -> None:
    lane = 1 << 5
    script = [word | lane for word in SeededBits(3).words(130).tolist()]
    bits = Record(ScriptedBits(script, seed=4))
    found = packed.bernoulli_odds(Fraction(-1), 1, bits)
    assert [len(words) for words in bits.given] == [12, 52, 64, 64]
    assert found.tolist() == replayed(1, lambda size: digits_of(Fraction(-1), size), bits.given)


def test_more_open_words_than_places_all_go_on() -> None:
    count = 300
    bits = Record(ScriptedBits([ONES] * (12 * count), seed=5))
    found = packed.bernoulli_odds(Fraction(-1), count, bits)
    assert len(bits.given[1]) == 52 * count
    assert found.tolist() == replayed(count, lambda size: digits_of(Fraction(-1), size), bits.given)


@pytest.mark.parametrize("count", [1, 50, 5000, 70_000])
def test_the_work_does_not_tell_the_outcome(count: int) -> None:
    sizes = set()
    for seed in range(5 if count > 10_000 else 40):
        bits = Record(SeededBits(seed))
        packed.bernoulli_odds(Fraction(-1), count, bits)
        sizes.add(tuple(len(words) for words in bits.given))
    assert len(sizes) == 1


@pytest.mark.parametrize("count", [5000, 70_000])
def test_nor_does_the_work_of_tables(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that need more than 16 bits are as many as are ever needed."""
    sizes = []
    words = branches.Branch.words

    def record(branch: branches.Branch, size: int) -> NDArray[np.uint64]:
        sizes.append(size)
        return words(branch, size)

    monkeypatch.setattr(branches.Branch, "words", record)
    for seed in range(8):
        packed.bernoulli_odds(Fraction(-1), count, SeededBits(seed))
    assert len(sizes) == 8 * -(-8 * count // branches.BLOCK)
    assert len(set(sizes)) == len(set(sizes[: len(sizes) // 8]))


@pytest.mark.parametrize(
    "p", [packed.Odds(Fraction(-1)), packed.Share(Fraction(1, 3)), packed.Odds(Fraction(512))]
)
def test_cells_settle_bytes_as_often_as_they_may(p: packed.Share | packed.Odds) -> None:
    """Renaming cells loses none: an outcome has all that lie wholly within its part of the unit interval."""
    made = packed._bytes(p)
    settled = np.bincount(made._outcomes[len(made._open) :], minlength=256)
    assert settled.sum() + len(made._open) == 1 << 16
    assert len(np.unique(made._open)) == len(made._open)
    chance = float(p.first(200)) / 2.0**200
    for byte, share in byte_law(chance).items():
        assert settled[byte] <= share * 2**16 + 1e-6
        assert settled[byte] >= share * 2**16 - 4


@pytest.mark.parametrize("digits", range(7))
def test_few_digits_are_exact_by_enumeration(digits: int) -> None:
    """The 64 lanes hold every combination of up to six random bits, so that ones can be counted."""
    every = [sum((lane >> j & 1) << lane for lane in range(64)) for j in range(digits)]
    for numerator in range((1 << digits) + 1):
        bits = ScriptedBits(every)
        found = int(packed.dyadic(numerator, digits, 1, bits)[0])
        assert found.bit_count() << digits == 64 * numerator
        assert bits.left == (digits if numerator == 1 << digits else 0)


def byte_law(p: float) -> dict[int, float]:
    return {byte: p ** byte.bit_count() * (1 - p) ** (8 - byte.bit_count()) for byte in range(256)}


@settings(max_examples=10, derandomize=True)
@given(st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=1 << 16), st.integers(0, 1000))
def test_rational_coins_follow_their_law(p: Fraction, seed: int) -> None:
    found = packed.bernoulli(p, 4000, SeededBits(seed)).view(np.uint8).astype(np.int64)
    assert fit(found, byte_law(float(p))) > ALARM


@pytest.mark.parametrize("log_odds", ODDS[:3])
def test_coins_follow_their_law_over_several_blocks(log_odds: Fraction) -> None:
    found = packed.bernoulli_odds(log_odds, 140_000, SeededBits(1)).view(np.uint8).astype(np.int64)
    p = float(1 / (1 + mpmath.exp(-float(log_odds))))
    assert fit(found, byte_law(p)) > ALARM
    assert fit(found, byte_law(1.02 * p)) < ALARM


def test_sure_and_fair_coins() -> None:
    assert packed.bernoulli(Fraction(0), 3, SeededBits(1)).tolist() == [0] * 3
    assert packed.bernoulli(Fraction(1), 3, SeededBits(1)).tolist() == [ONES] * 3
    fair = packed.bernoulli_odds(Fraction(0), 3, SeededBits(1))
    assert np.array_equal(fair, SeededBits(1).words(3))
    assert packed.bernoulli_odds(Fraction(-1), 0, SeededBits(1)).shape == (0,)
    assert packed.bernoulli_odds(Fraction(-512), 3, SeededBits(1)).tolist() == [0] * 3
