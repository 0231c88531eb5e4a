"""Unary encodings: every report by enumeration, in big numbers and in rationals of the channel."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.local import OUE, SUE
from sourdine.local.frequency.unary import Unary
from sourdine.testing import ScriptedBits, SeededBits
from tests import bit_laws, contract
from tests.laws import law_of
from tests.statistics import ALARM, fit

KINDS = contract.oracles(Unary)
EPSILONS = [Fraction(1, 1 << 20), Fraction(1, 2), Fraction(1), Fraction(4), Fraction(512)]


def channel_of(kind: type[Unary], epsilon: Fraction) -> tuple[mpmath.mpf, mpmath.mpf]:
    """p and q as defined, to 1600 bits."""
    mpmath.mp.prec = 1600
    e = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    chances = {
        SUE: (mpmath.sqrt(e) / (mpmath.sqrt(e) + 1), 1 / (mpmath.sqrt(e) + 1)),
        OUE: (mpmath.mpf(1) / 2, 1 / (e + 1)),
    }
    assert kind in chances, f"write p and q of {kind.__name__}, as they are defined, in channel_of"
    return chances[kind]


def masses(kind: type[Unary], epsilon: Fraction, k: int, truth: int) -> list[mpmath.mpf]:
    """The probability of every report."""
    p, q = channel_of(kind, epsilon)
    chances = [p if category == truth else q for category in range(k)]
    return [
        mpmath.fprod(chance if bit else 1 - chance for bit, chance in zip(report, chances, strict=True))
        for report in itertools.product((0, 1), repeat=k)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_no_report_is_more_than_e_to_the_epsilon_as_likely(
    kind: type[Unary], epsilon: Fraction, k: int
) -> None:
    laws = [masses(kind, epsilon, k, truth) for truth in range(k)]
    mpmath.mp.prec = 1600
    most = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    ratios = [
        a / b for one, other in itertools.permutations(laws, 2) for a, b in zip(one, other, strict=True)
    ]
    assert abs(max(ratios) / most - 1) < mpmath.mpf(10) ** -200
    oracle = kind(epsilon=epsilon, categories=k)
    assert oracle.loss(Distance.hamming()).epsilon == epsilon
    assert oracle.channel == pytest.approx([float(each) for each in channel_of(kind, epsilon)], rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4, 3), Fraction(4)])
def test_the_loss_is_that_of_the_reports(kind: type[Unary], epsilon: Fraction) -> None:
    loss = kind(epsilon=epsilon, categories=4).loss(Distance.hamming())
    one, other = (np.array([float(m) for m in masses(kind, epsilon, 4, truth)]) for truth in (0, 2))
    for x in np.linspace(-float(epsilon) - 0.1, float(epsilon) + 0.1, 15):
        true = np.maximum(one - math.exp(x) * other, 0.0).sum()
        assert float(loss.profile(x)) == pytest.approx(true, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "truths", [[0], [2], [0, 2], [1, 1], pytest.param([0, 1, 2], marks=pytest.mark.slow)]
)
def test_estimates_are_unbiased_with_the_stated_variance(kind: type[Unary], truths: Sequence[int]) -> None:
    oracle = kind(epsilon=Fraction(4, 3), categories=3)
    laws = [bit_laws.unary(*oracle.channel, 3, truth) for truth in truths]
    mean, square = np.zeros(3), np.zeros(3)
    f = np.bincount(truths, minlength=3) / len(truths)
    for reports in itertools.product(*(law.items() for law in laws)):
        rows = np.packbits([report for report, _ in reports], axis=1)
        mass = math.prod(mass for _, mass in reports)
        value = oracle.estimate(oracle.tally(rows)).value
        mean += mass * value
        square += mass * (value - f) ** 2
    assert mean == pytest.approx(f, abs=1e-12)
    assert square == pytest.approx(oracle.variance(f, len(truths)))


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_variances_are_the_published_ones(epsilon: Fraction) -> None:
    e = math.exp(epsilon)
    symmetric, optimal = SUE(epsilon=epsilon, categories=9), OUE(epsilon=epsilon, categories=9)
    assert float(symmetric.variance(0.0, 7)) == pytest.approx(math.sqrt(e) / (7 * (math.sqrt(e) - 1) ** 2))
    assert float(symmetric.variance(0.4, 7)) == pytest.approx(float(symmetric.variance(0.0, 7)))
    assert float(optimal.variance(0.0, 7)) == pytest.approx(4 * e / (7 * (e - 1) ** 2))
    assert float(optimal.variance(1.0, 7)) == pytest.approx((e + 1) ** 2 / (7 * (e - 1) ** 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [2, 8, 9, 12])
def test_reports_follow_the_stated_law(kind: type[Unary], k: int) -> None:
    oracle, wrong = (kind(epsilon=Fraction(each, 15), categories=k) for each in (20, 22))
    for truth in (0, k - 1):
        rows = oracle.sample(np.full(200_000, truth), SeededBits(truth)).astype(np.int64)
        codes = rows @ (256 ** np.arange(rows.shape[1])[::-1])
        assert fit(codes, law_of(oracle, truth)) > ALARM
        assert fit(codes, law_of(wrong, truth)) < ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_bits_of_different_reports_and_places_are_independent(kind: type[Unary]) -> None:
    oracle = kind(epsilon=Fraction(1), categories=100)
    rows = oracle.sample(np.arange(20_000) % 100, SeededBits(2))
    bits = np.unpackbits(rows, axis=1)[:, :100].astype(float)
    true = np.eye(100)[np.arange(20_000) % 100]
    p, q = oracle.channel
    noise = bits - np.where(true > 0, p, q)
    within = noise.T @ noise / 20_000 - np.diag(np.mean(noise**2, axis=0))
    assert np.abs(within).max() < 7 * 0.25 / math.sqrt(20_000)
    between = (noise[1:] * noise[:-1]).mean()
    assert abs(between) < 6 * 0.25 / math.sqrt(noise.size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_reports_have_the_shape_of_the_values(kind: type[Unary], shape: tuple[int, ...]) -> None:
    oracle = kind(epsilon=Fraction(1), categories=20)
    rows = oracle.sample(np.ones(shape, int), SeededBits(1))
    assert rows.shape == (*shape, 3)
    assert rows.dtype == np.uint8
    assert not np.any(rows[..., -1] & 0b1111)
    packed = oracle.pack(rows)
    assert packed.shape == (math.prod(shape), 3)
    assert np.array_equal(oracle.unpack(packed).reshape(rows.shape), rows)
    assert oracle.tally(rows).reports == math.prod(shape)


def test_values_outside_the_categories_are_clipped() -> None:
    sure = SUE(epsilon=Fraction(512), categories=4)
    rows = sure.sample([[-5, 10**30], [2, 3]], SeededBits(1))
    assert rows[..., 0].tolist() == [[0b10000000, 0b00010000], [0b00100000, 0b00010000]]


def test_the_true_bit_of_the_optimal_encoding_is_a_fair_coin() -> None:
    script = SeededBits(1).words(64).tolist()
    heads, tails = (OUE(epsilon=Fraction(1), categories=8) for _ in range(2))
    with_coin = heads.sample(3, ScriptedBits([*script, 0xFFFF_FFFF_FFFF_FFFF]))
    without = tails.sample(3, ScriptedBits([*script, 0]))
    assert int(with_coin[0] ^ without[0]) == 0b00010000


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_reports_are_refused(kind: type[Unary]) -> None:
    oracle = kind(epsilon=Fraction(1), categories=12)
    good = oracle.sample([1, 2, 3], SeededBits(1))
    bad = good.copy()
    bad[1, 1] |= 1
    for act in (oracle.tally, oracle.unpack):
        with pytest.raises(InvalidParameter, match="Report 2 is none"):
            act(bad)
    for other in (good.astype(np.int64), good[:, :1], np.uint8(3)):
        with pytest.raises(InvalidParameter, match="rows of 2 bytes"):
            oracle.tally(np.asarray(other))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("field", "bad"), [("epsilon", 0), ("epsilon", 600), ("categories", 1), ("categories", 2.5)]
)
def test_bad_parameters_are_refused(kind: type[Unary], field: str, bad: object) -> None:
    good: dict[str, object] = {"epsilon": Fraction(1), "categories": 3}
    with pytest.raises(InvalidParameter, match=f"The '{field}' of {kind.__name__}"):
        kind(**good | {field: bad})  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="integers"):
        kind(epsilon=Fraction(1), categories=3).sample([0.5])
