"""Empirical bounds on epsilon never exceed the claim, and do exceed one that is too low."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from sourdine.audit import bound_epsilon
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.tables.quantiles import (
    InverseSensitivity,
    JointExponential,
    NaiveLaplace,
    QuantileMethod,
    RecursiveQuantiles,
    ThresholdHistogram,
)
from sourdine.testing import SeededBits

KINDS = [InverseSensitivity, NaiveLaplace, RecursiveQuantiles, ThresholdHistogram, JointExponential]
SLOW = {JointExponential: 1000, RecursiveQuantiles: 1000}  # samples, where each sets values apart
PAIRS = [  # ties, one end to the other, all at a bound, one value
    ([2, 2, 2, 5, 5, 5], [2, 2, 5, 5, 5, 5]),
    ([0, 0, 0, 5, 5], [0, 0, 5, 5, 5]),
    ([0] * 9, [0] * 8 + [5]),
    ([0], [5]),
]


def code(answers: np.ndarray) -> np.ndarray:
    return np.asarray(answers[..., 0] * 6 + answers[..., -1])


def example(kind: type[QuantileMethod], one: list[int], other: list[int], **given: object) -> Example:
    more: dict[str, object] = {"cuts": 6} if kind is ThresholdHistogram else {}
    common = {"epsilon": Fraction(2), "levels": (Fraction(1, 2),), "places": 6}
    mechanism = kind(**(common | more | given))  # type: ignore[arg-type]
    distance = Distance.hamming(neighbours=mechanism.neighbours)
    return Example(mechanism=mechanism, value=one, neighbour=other, distance=distance, code=code)


CASES = [
    pytest.param(kind, pair, marks=[pytest.mark.slow] if kind in SLOW and i else [])
    for kind in KINDS
    for i, pair in enumerate(PAIRS)
]


@pytest.mark.parametrize(("kind", "pair"), CASES)
def test_replaced_values(kind: type[QuantileMethod], pair: tuple[list[int], list[int]]) -> None:
    found = bound_epsilon(example(kind, *pair), samples=SLOW.get(kind, 40_000), bits=SeededBits(0))
    assert not found.exceeded


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in SLOW else []) for kind in KINDS]
)
def test_removed_values_and_two_levels(kind: type[QuantileMethod]) -> None:
    levels = (Fraction(1, 5), Fraction(1, 2))
    for one, other in [([0, 0, 5, 5], [0, 5, 5]), ([3], [])][: 1 if kind in SLOW else 2]:
        case = example(kind, one, other, levels=levels, neighbours=Neighbours.ADD_REMOVE)
        found = bound_epsilon(case, samples=SLOW.get(kind, 40_000), bits=SeededBits(1))
        assert not found.exceeded


def third_claimed(kind: type[QuantileMethod]) -> type[QuantileMethod]:
    """The same method, stating a third of its epsilon."""

    class Liar(kind):  # type: ignore[misc, valid-type]
        def loss(self, distance: Distance) -> PrivacyLoss:
            true = super().loss(distance)
            return PrivacyLoss.pure(true.epsilon / 3, neighbours=distance.neighbours)

    return dataclasses.dataclass(frozen=True, kw_only=True)(Liar)


@pytest.mark.parametrize(
    ("kind", "pair"),
    [
        (InverseSensitivity, ([0], [5])),
        (NaiveLaplace, ([0], [5])),
        (ThresholdHistogram, ([0, 0, 0, 5, 5], [0, 0, 5, 5, 5])),
    ],
)
def test_a_claim_of_a_third_is_found_out(
    kind: type[QuantileMethod], pair: tuple[list[int], list[int]]
) -> None:
    one, other = pair
    more: dict[str, object] = {"cuts": 6} if kind is ThresholdHistogram else {}
    case = example(third_claimed(kind), one, other, **more)
    assert bound_epsilon(case, samples=200_000, bits=SeededBits(2)).exceeded


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_examples_of_every_method(kind: type[QuantileMethod]) -> None:
    for case in kind.examples():
        assert not bound_epsilon(case, samples=1_000_000, bits=SeededBits(3)).exceeded
