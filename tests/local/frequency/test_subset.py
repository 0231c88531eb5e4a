"""Subset selection: every set by enumeration, in big numbers and in rationals."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.local import GRR, OUE, SUE, SubsetSelection
from sourdine.local.frequency.subset import best_size
from sourdine.testing import SeededBits
from tests import bit_laws
from tests.statistics import ALARM, fit

CASES = [(2, 1), (3, 1), (4, 2), (5, 2), (7, 3)]
EPSILONS = [Fraction(1, 1 << 20), Fraction(1, 2), Fraction(1), Fraction(4), Fraction(512)]


def law(epsilon: Fraction, k: int, size: int, truth: int) -> dict[tuple[int, ...], mpmath.mpf]:
    """The probability of every set, from the definition."""
    mpmath.mp.prec = 1600
    e = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    weights = {chosen: e if truth in chosen else 1 for chosen in itertools.combinations(range(k), size)}
    total = mpmath.fsum(weights.values())
    return {chosen: weight / total for chosen, weight in weights.items()}


@pytest.mark.parametrize(("k", "size"), CASES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_report_is_more_than_e_to_the_epsilon_as_likely(epsilon: Fraction, k: int, size: int) -> None:
    laws = [law(epsilon, k, size, truth) for truth in range(k)]
    most = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    ratios = [one[chosen] / other[chosen] for one, other in itertools.permutations(laws, 2) for chosen in one]
    assert abs(max(ratios) / most - 1) < mpmath.mpf(10) ** -200
    oracle = SubsetSelection(epsilon=epsilon, categories=k, size=size)
    assert oracle.loss(Distance.hamming()).epsilon == epsilon
    inside = [
        mpmath.fsum(mass for chosen, mass in laws[0].items() if category in chosen) for category in (0, 1)
    ]
    assert oracle.channel == pytest.approx([float(share) for share in inside], rel=1e-12)


@pytest.mark.parametrize(("k", "size"), CASES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4, 3), Fraction(4)])
def test_the_loss_is_that_of_the_reports(epsilon: Fraction, k: int, size: int) -> None:
    loss = SubsetSelection(epsilon=epsilon, categories=k, size=size).loss(Distance.hamming())
    one, other = (
        np.array([float(mass) for mass in law(epsilon, k, size, truth).values()]) for truth in (0, k - 1)
    )
    for x in np.linspace(-float(epsilon) - 0.1, float(epsilon) + 0.1, 15):
        true = np.maximum(one - math.exp(x) * other, 0.0).sum()
        assert float(loss.profile(x)) == pytest.approx(true, abs=1e-12)


@pytest.mark.parametrize("truths", [[0], [3], [0, 3], [1, 1], [0, 1, 3]])
def test_estimates_are_unbiased_with_the_stated_variance(truths: Sequence[int]) -> None:
    oracle = SubsetSelection(epsilon=Fraction(4, 3), categories=4, size=2)
    laws = [bit_laws.subset(4 / 3, 2, 4, truth) for truth in truths]
    mean, square = np.zeros(4), np.zeros(4)
    f = np.bincount(truths, minlength=4) / len(truths)
    for reports in itertools.product(*(law.items() for law in laws)):
        rows = np.packbits([report for report, _ in reports], axis=1)
        mass = math.prod(mass for _, mass in reports)
        value = oracle.estimate(oracle.tally(rows)).value
        mean += mass * value
        square += mass * (value - f) ** 2
    assert mean == pytest.approx(f, abs=1e-12)
    assert square == pytest.approx(oracle.variance(f, len(truths)))


def total_variance(epsilon: float, k: int, size: int) -> float:
    """Of all estimates together, from p and q as defined."""
    p = size * math.exp(epsilon) / (size * math.exp(epsilon) + k - size)
    q = p * (size - 1) / (k - 1) + (1 - p) * size / (k - 1)
    return (p * (1 - p) + (k - 1) * q * (1 - q)) / (p - q) ** 2


@pytest.mark.parametrize("k", [2, 3, 4, 5, 10, 16, 101, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 0.25, 0.5, 1.0, 2.0, 4.0, 9.0])
def test_the_size_is_the_best_of_all(k: int, epsilon: float) -> None:
    least = min(total_variance(epsilon, k, size) for size in range(1, k))
    oracle = SubsetSelection(epsilon=epsilon, categories=k)
    assert total_variance(epsilon, k, oracle.size) <= least * (1 + 1e-12)
    assert oracle.size == best_size(Fraction(epsilon), k) <= max(1, k // 2)


@pytest.mark.parametrize("k", [2, 3, 10, 100, 1000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4)])
def test_no_other_oracle_has_less_variance(k: int, epsilon: Fraction) -> None:
    ours = float(SubsetSelection(epsilon=epsilon, categories=k).variance(1 / k, 1))
    for kind in (GRR, SUE, OUE):
        assert ours <= float(kind(epsilon=epsilon, categories=k).variance(1 / k, 1)) * (1 + 1e-12)


def test_the_known_figures() -> None:
    kinds = (SubsetSelection, OUE, GRR)
    found = [kind(epsilon=Fraction(1), categories=10).variance(0.1, 1) for kind in kinds]
    assert [round(float(each), 2) for each in found] == [2.91, 3.78, 4.1]
    rare = SubsetSelection(epsilon=Fraction(1), categories=10, size=2)  # the best for shares near 0
    assert round(float(rare.variance(0.0, 1)), 2) == 2.82


@pytest.mark.parametrize("k", [2, 3, 17])
def test_a_set_of_one_is_k_ary_response(k: int) -> None:
    one = SubsetSelection(epsilon=Fraction(4, 3), categories=k, size=1)
    assert one.channel == pytest.approx(GRR(epsilon=Fraction(4, 3), categories=k).channel)


@pytest.mark.parametrize(("k", "size"), [*CASES, (9, 4), (12, 3)])
def test_reports_follow_the_stated_law(k: int, size: int) -> None:
    oracle, wrong = (
        SubsetSelection(epsilon=Fraction(each, 15), categories=k, size=size) for each in (20, 23)
    )
    for truth in (0, k - 1):
        rows = oracle.sample(np.full(200_000, truth), SeededBits(truth)).astype(np.int64)
        codes = rows @ (256 ** np.arange(rows.shape[1])[::-1])
        assert fit(codes, bit_laws.subset_selection(oracle, truth)) > ALARM
        assert fit(codes, bit_laws.subset_selection(wrong, truth)) < ALARM


def test_a_set_with_the_truth_and_one_without_are_as_uniform_in_large() -> None:
    oracle = SubsetSelection(epsilon=Fraction(1), categories=300)
    count = 30_000
    bits = np.unpackbits(oracle.sample(np.full(count, 123), SeededBits(4)), axis=1)[:, :300]
    assert set(bits.sum(axis=1).tolist()) == {oracle.size}
    for told in (0, 1):
        part = np.delete(bits[bits[:, 123] == told], 123, axis=1)
        q = (oracle.size - told) / 299
        assert np.abs(part.mean(axis=0) - q).max() < 6 * math.sqrt(q * (1 - q) / len(part))
    p = oracle.channel.p
    assert abs(bits[:, 123].mean() - p) < 6 * math.sqrt(p * (1 - p) / count)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_reports_have_the_shape_of_the_values(shape: tuple[int, ...]) -> None:
    oracle = SubsetSelection(epsilon=Fraction(1), categories=20)
    rows = oracle.sample(np.ones(shape, int), SeededBits(1))
    assert rows.shape == (*shape, 3)
    assert rows.dtype == np.uint8
    packed = oracle.pack(rows)
    assert np.array_equal(oracle.unpack(packed).reshape(rows.shape), rows)
    assert oracle.tally(rows).sums.sum() == math.prod(shape) * oracle.size


def test_values_outside_the_categories_are_clipped() -> None:
    sure = SubsetSelection(epsilon=Fraction(512), categories=4, size=1)
    rows = sure.sample([[-5, 10**30], [2, 3]], SeededBits(1))
    assert rows[..., 0].tolist() == [[0b10000000, 0b00010000], [0b00100000, 0b00010000]]


def test_reports_with_another_number_of_bits_are_refused() -> None:
    oracle = SubsetSelection(epsilon=Fraction(1), categories=12, size=3)
    good = oracle.sample([1, 2, 3], SeededBits(1))
    for wrong in ([0b11000000, 0], [0b11110000, 0], [0b11000000, 1], [0, 0]):
        bad = good.copy()
        bad[2] = wrong
        for act in (oracle.tally, oracle.unpack):
            with pytest.raises(InvalidParameter, match="Report 3 is none"):
                act(bad)


@pytest.mark.parametrize(
    ("field", "bad"),
    [("epsilon", 0), ("epsilon", 600), ("categories", 1), ("size", 6), ("size", -1), ("size", 2.0)],
)
def test_bad_parameters_are_refused(field: str, bad: object) -> None:
    good: dict[str, object] = {"epsilon": Fraction(1), "categories": 11, "size": 5}
    with pytest.raises(InvalidParameter, match=f"The '{field}' of SubsetSelection"):
        SubsetSelection(**good | {field: bad})  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="integers"):
        SubsetSelection(epsilon=Fraction(1), categories=3).sample([0.5])
