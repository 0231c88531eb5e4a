from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from sourdine.core import threads
from sourdine.core.random import bits as branches
from sourdine.core.random import samplers as ceiling
from sourdine.core.random.samplers import GaussianCeiling, GeometricCeiling, bernoulli_exp, sampler
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

LAWS = [
    GeometricCeiling(Fraction(100, 3), 0, two_sided=True),
    GeometricCeiling(Fraction(1000), 2, two_sided=False),
    GeometricCeiling(Fraction(2**40), 33, two_sided=True),
    GaussianCeiling(Fraction(1000**2), 3),
    GaussianCeiling(Fraction(2**60), 23),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_what_one_word_settles_is_what_all_its_bits_say(law: ceiling.Ceiling) -> None:
    """The quick path never keeps what the coin would refuse, nor takes another block than the search."""
    drawn, count = sampler(law), 100_000
    source = branches.branches(SeededBits(1), 1)[0]
    words = branches.branches(SeededBits(1), 1)[0].words(count)  # the same ones
    quick = np.empty(count, np.int64)
    space = ceiling._Space(count)
    open_, open_words = drawn._quick(quick, 0, space, source)
    assert np.array_equal(words[open_], open_words)
    assert 0 < len(open_) < 0.08 * count
    numbers, kept = drawn._settle(words, SeededBits(2))
    settled = np.setdiff1d(np.arange(count), open_)
    assert np.array_equal(quick[settled], numbers[settled])
    assert kept[settled].all()
    assert 0 < np.count_nonzero(~kept) < len(open_)


def test_a_refused_word_is_drawn_again() -> None:
    law = GeometricCeiling(Fraction(1000), 2, two_sided=True)
    ones = (1 << 64) - 1
    place, coin = 2 << 16, ones >> 19 << 18  # the largest coin there is
    script = [place | coin, 0, ones, 1 << 16]  # a word, its search, the rest of its coin, a word
    bits, again = ScriptedBits(script), ScriptedBits(script)
    assert sampler(law).sample(1, bits).tolist() == [1] == [sampler(law).draw(again)]
    assert bits.left == again.left == 0


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_one_draw_is_what_an_array_of_one_is(law: ceiling.Ceiling) -> None:
    bits, again = SeededBits(6), SeededBits(6)
    one = sampler(law)
    assert [one.draw(bits) for _ in range(300)] == [one.sample(1, again)[0] for _ in range(300)]


def test_a_coin_of_one_draw_that_floats_cannot_tell_is_settled() -> None:
    """Digits within 2^-53 of e^-x, on either side."""
    law = GeometricCeiling(Fraction(1000), 2, two_sided=True)
    digits = 63 - 16 - 2
    with mp.workprec(400):
        at = int(mp.floor(mp.exp(mpf(-2) / 1000) * mpf(2) ** (digits + 64)))
    for offset, kept in ((-1, True), (1, False)):
        coin, rest = divmod(at + offset, 1 << 64)
        word = 2 << 16 | coin << 64 - digits - 1
        script = [word, 0, rest, 1 << 16, 0, 0]
        bits, again = ScriptedBits(script), ScriptedBits(script)
        assert sampler(law).draw(bits) == (2 if kept else 1) == sampler(law).sample(1, again)[0]
        assert bits.left == again.left


def test_the_side_is_the_first_bit() -> None:
    law = GeometricCeiling(Fraction(1000), 2, two_sided=True)
    word = 2 << 16  # place 2 in the first block
    assert sampler(law).sample(1, ScriptedBits([word, 0, 0])).tolist() == [2]
    assert sampler(law).sample(1, ScriptedBits([word | 1 << 63, 0, 0])).tolist() == [-3]


@pytest.mark.parametrize("law", [LAWS[2], LAWS[3]], ids=str)
def test_the_answer_does_not_hang_on_the_number_of_threads(
    law: ceiling.Ceiling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branches, "BLOCK", 10_000)
    monkeypatch.setattr(ceiling, "_CHUNK", 3_000)
    answers = []
    for number in (1, 2, 5):
        monkeypatch.setattr(threads, "processors", lambda number=number: number)
        answers.append(sampler(law).sample(55_555, SeededBits(3)))
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])
    assert np.mean(answers[0][:10_000] == answers[0][10_000:20_000]) < 0.1  # blocks differ


def test_blocks_too_wide_for_a_word_are_refused() -> None:
    with pytest.raises(ArithmeticError, match="too wide"):
        sampler(GeometricCeiling(Fraction(2**50), 43, two_sided=True))
    with pytest.raises(ArithmeticError, match="64 bits"):
        GaussianCeiling(Fraction(2**63), 24)


@pytest.mark.parametrize("count", [100_000, pytest.param(2_000_000, marks=pytest.mark.slow)])
def test_exponential_coins_follow_their_law(count: int) -> None:
    bits, units = SeededBits(15), np.full(count, 7, dtype=np.int64)
    law = {0: 1 - np.exp(-7 / 9), 1: np.exp(-7 / 9)}
    assert fit(bernoulli_exp(units, Fraction(1, 9), bits) * 1, law) > ALARM
    first = bits.words(count) >> np.uint64(52)
    assert fit(bernoulli_exp(units, Fraction(1, 9), bits, first, 12) * 1, law) > ALARM


def test_a_coin_goes_on_where_its_first_digits_left_it() -> None:
    mpmath.mp.prec = 400
    at = int(mpmath.exp(mpmath.mpf(-5) / 7) * mpmath.mpf(2) ** 76)
    for offset, expected in [(-1, True), (1, False)]:
        first, rest = divmod(at + offset, 1 << 64)
        begin = np.array([first], np.uint64)
        assert (
            bool(bernoulli_exp(np.array([5]), Fraction(1, 7), ScriptedBits([rest]), begin, 12)[0]) is expected
        )


@pytest.mark.parametrize("digits", [64, 128, 192])
def test_an_exponential_coin_on_the_edge_is_settled_by_balls(digits: int) -> None:
    mpmath.mp.prec = 400
    at = int(mpmath.exp(mpmath.mpf(-5) / 7) * mpmath.mpf(2) ** digits)
    for offset, expected in [(-1, True), (1, False)]:
        value = at + offset
        words = [value >> shift & (2**64 - 1) for shift in range(digits - 64, -1, -64)]
        bits = ScriptedBits(words)
        assert bool(bernoulli_exp(np.array([5]), Fraction(1, 7), bits)[0]) is expected
        assert bits.left == 0


@given(st.integers(0, 2**62), st.fractions(min_value=Fraction(1, 2**61), max_value=4))
def test_the_float_filter_is_never_wrong(units: int, rate: Fraction) -> None:
    """A uniform two margins away from the true probability is on the side the float says."""
    mpmath.mp.prec = 300
    p = mpmath.exp(-mpmath.mpf(units) * rate.numerator / rate.denominator)
    for shift, expected in [(-2, True), (2, False)]:
        word = int((p + shift * mpmath.mpf(2) ** -40) * 2**64)
        if 0 <= word < 2**64:
            assert bool(bernoulli_exp(np.array([units]), rate, ScriptedBits([word]))[0]) is expected
