from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb

from sourdine.core.interval_arithmetic import precision
from sourdine.core.random.tables import (
    CdfTable,
    GaussianBlocks,
    GaussianWeights,
    GeometricDigit,
    GeometricWeights,
    LaplaceWeights,
    Weights,
    WeightTerms,
    table,
)
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

LAWS: list[Weights] = [
    WeightTerms((2, 3, 1), (0, Fraction(1, 3), Fraction(-2))),
    GeometricDigit(Fraction(30, 7), 16),
    GeometricWeights(Fraction(7, 3)),
    LaplaceWeights(Fraction(3, 2)),
    GaussianWeights(Fraction(22, 7)),
    GaussianBlocks(Fraction(10**6), 8),
]


def weigh(law: Weights, k: int) -> mpmath.mpf:
    """The weight of an outcome by a second big-number library, straight from the docstrings."""
    side = (k + 1) // 2
    match law:
        case WeightTerms():
            return mpmath.mpf(law.factors[k].numerator) * mpmath.exp(rational(law.exponents[k]))
        case GeometricDigit() | GeometricWeights():
            return mpmath.exp(-k / rational(law.scale))
        case LaplaceWeights():
            return mpmath.exp(-side / rational(law.scale))
        case GaussianWeights():
            return mpmath.exp(-(side**2) / (2 * rational(law.variance)))
        case GaussianBlocks():
            return mpmath.exp(-((k * law.width) ** 2) / (2 * rational(law.variance)))
    raise AssertionError


def rational(number: Fraction | int) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator


def cumulative(law: Weights, many: int = 6000) -> list[mpmath.mpf]:
    mpmath.mp.prec = 300
    weights = [weigh(law, k) for k in range(law.size or many)]
    total, sums, running = mpmath.fsum(weights), [], mpmath.mpf(0)
    for weight in weights:
        running += weight
        sums.append(running / total)
    return sums


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_thresholds_agree_with_a_second_big_number_library(law: Weights) -> None:
    thresholds = [int(at) for at in CdfTable(law)._thresholds]
    for ours, at in zip(thresholds, cumulative(law), strict=False):
        assert ours in (int(at * 2**64), int(at * 2**64) - 1)


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("k", [0, 1])
def test_a_tie_with_a_threshold_is_settled_by_further_digits(law: Weights, k: int) -> None:
    """U agrees with P[X <= k] for 64 bits, then 64 more decide: just below gives k, just above k + 1."""
    at = int(cumulative(law)[k] * 2**128)
    for offset, expected in [(-1, k), (1, k + 1), (-(2**63), k), (2**63, k + 1)]:
        digits = at + offset
        cell, inner, rest = digits >> 112, digits >> 64 & (1 << 48) - 1, digits & (1 << 64) - 1
        bits, again = (ScriptedBits([cell, inner << 16, rest]) for _ in range(2))
        assert table(law).sample(1, bits)[0] == expected == table(law).draw(again)
        assert bits.left == again.left
        assert bits.left == 0 or abs(offset) == 2**63


def test_digits_equal_to_a_threshold_for_128_bits_ask_for_more() -> None:
    law = GeometricWeights(Fraction(7, 3))
    at = int(cumulative(law)[0] * 2**192)
    for offset, expected in [(-1, 0), (1, 1)]:
        digits = at + offset
        words = [digits >> 128, digits >> 64 & (1 << 64) - 1, digits & (1 << 64) - 1]
        script = [words[0] >> 48, (words[0] & (1 << 48) - 1) << 16, words[1], words[2]]
        bits, again = ScriptedBits(script), ScriptedBits(script)
        assert table(law).sample(1, bits)[0] == expected == table(law).draw(again)
        assert bits.left == again.left == 0


def test_the_last_word_reaches_into_the_tail() -> None:
    ones = (1 << 64) - 1
    far = table(GeometricWeights(Fraction(1))).sample(1, ScriptedBits([0xFFFF, ones, ones, ones, ones]))[0]
    assert far >= 64 * np.log(2) * 2


def test_a_dyadic_threshold_is_settled_although_no_ball_can_tell_it_from_its_neighbours() -> None:
    law = WeightTerms((1, 1), (Fraction(1, 3), Fraction(1, 3)))  # exactly one half, known only as a ball
    assert table(law).sample(1, ScriptedBits([0x7FFF, ((1 << 48) - 1) << 16]))[0] == 0
    assert table(law).sample(1, ScriptedBits([0x8000, 0]))[0] == 1


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_one_draw_is_what_an_array_of_one_is(law: Weights) -> None:
    bits, again = SeededBits(5), SeededBits(5)
    assert [table(law).draw(bits) for _ in range(300)] == [table(law).sample(1, again)[0] for _ in range(300)]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_samples_follow_the_law_and_not_another(law: Weights) -> None:
    samples = table(law).sample(100_000, SeededBits(3))
    steps = np.diff([0.0, *map(float, cumulative(law))])
    truth = {k: float(p) for k, p in enumerate(steps)}
    assert fit(samples, truth) > ALARM
    wrong = {k: p**1.1 for k, p in truth.items()}
    total = sum(wrong.values())
    assert fit(samples, {k: p / total for k, p in wrong.items()}) < ALARM


@pytest.mark.parametrize(
    "odds",
    [Fraction(1, 999), Fraction(1), Fraction(1, 65535), Fraction(2, 10**9), Fraction(10**9), Fraction(7)],
)
@pytest.mark.parametrize("log_odds", [Fraction(0), Fraction(1)])
@pytest.mark.parametrize("count", [100, 60_000])
def test_coins_are_the_samples_of_a_law_with_two_outcomes(
    odds: Fraction, log_odds: Fraction, count: int
) -> None:
    law = table(WeightTerms((1, odds), (0, log_odds)))
    coins = law.coins(count, SeededBits(4))
    assert coins.dtype == np.bool_
    assert np.array_equal(coins, law.sample(count, SeededBits(4)).astype(bool))


@pytest.mark.parametrize("law", [law for law in LAWS if not law.size], ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("count", [1, 2, 7, 15])
def test_what_is_left_out_of_an_endless_law_is_bounded(law: Weights, count: int) -> None:
    with precision(128):
        outside = sum(law.first(count + 1000)[count:], arb(0))
        assert float(outside) <= float(law.rest(count)) * (1 + 1e-12)
