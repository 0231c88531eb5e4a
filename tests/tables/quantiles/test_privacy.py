"""Privacy by enumeration: the exact laws of all neighbouring pairs of tiny data sets."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from sourdine.core.distance import Distance, Neighbours
from sourdine.tables.quantiles import (
    InverseSensitivity,
    JointExponential,
    RecursiveQuantiles,
    ThresholdHistogram,
)
from tests.tables.quantiles import brute

RELATIONS = [brute.REPLACE, brute.ADD_REMOVE]
EPSILON = Fraction(3, 2)
ROUNDING = 1e-9


def pairs(
    places: int, sizes: Sequence[int], relation: Neighbours
) -> Iterator[tuple[brute.Values, brute.Values]]:
    for size in sizes:
        for values in brute.datasets(places, size):
            for other in brute.neighbours(values, places, relation):
                yield values, other


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)


def check_rho(p: Sequence[float], q: Sequence[float], rho: float) -> None:
    one, other = np.array(p), np.array(q)
    for order in (1.01, 2.0, 5.0, 30.0):
        assert renyi(one, other, order) <= rho * order + ROUNDING
        assert renyi(other, one, order) <= rho * order + ROUNDING


@pytest.mark.parametrize("radius", [0, 1])
@pytest.mark.parametrize("relation", RELATIONS)
def test_inverse_sensitivity(relation: Neighbours, radius: int) -> None:
    worst = 0.0
    for places, sizes in [(2, range(1, 6)), (5, range(1, 4))]:
        for (one, other), level in itertools.product(pairs(places, sizes, relation), brute.TENTHS):
            laws = [brute.inverse(x, level, relation, places, radius, EPSILON) for x in (one, other)]
            losses = np.log(np.array(laws[0]) / laws[1])
            assert np.ptp(losses) <= EPSILON + ROUNDING  # bounded range, which makes it eps^2/8-zCDP
            worst = max(worst, float(np.abs(losses).max()))
    assert worst <= EPSILON + ROUNDING
    if radius == 0:
        assert worst > 0.65 * EPSILON  # the enumeration sees hard cases


@pytest.mark.parametrize("levels", ["1/2", "1/10 9/10", "1/4 1/2 3/4", "1/5 2/5 3/5 4/5"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_recursive_quantiles(relation: Neighbours, levels: str) -> None:
    at = tuple(Fraction(each) for each in levels.split())
    mechanism = RecursiveQuantiles(epsilon=EPSILON, levels=at, places=3, neighbours=relation)
    loss = mechanism.loss(Distance.hamming(neighbours=relation))
    assert loss.epsilon == EPSILON
    cases = [(3, range(1, 4), 0), (2, range(1, 5), 1)] if len(at) > 2 else [(4, range(1, 4), 1), (4, [3], 0)]
    for places, sizes, radius in cases:
        laws = {
            values: brute.recursive(values, at, relation, places, radius, EPSILON)
            for size in range(max(sizes) + 1)
            for values in brute.datasets(places, size)
        }
        assert sum(laws[(1,) * max(sizes)].values()) == pytest.approx(1)
        for one, other in pairs(places, sizes, relation):
            assert laws[one].keys() == laws[other].keys()
            p, q = [laws[one][key] for key in laws[one]], [laws[other][key] for key in laws[one]]
            assert brute.worst_ratio(p, q) <= EPSILON + ROUNDING
            check_rho(p, q, float(loss.rho))


def like_ways(
    one: brute.Values, other: brute.Values, fine: int
) -> Iterator[tuple[brute.Values, brute.Values]]:
    """Both with the same random parts where they are the same value: every way to set them apart."""
    shared = list((Counter(one) & Counter(other)).elements())
    alone = [list((Counter(a) - Counter(b)).elements()) for a, b in ((one, other), (other, one))]
    for parts in itertools.product(range(1 << fine), repeat=len(shared)):
        kept = [(v << fine) + part for v, part in zip(shared, parts, strict=True)]
        both = [
            {tuple(sorted([*kept, *((v << fine) + part for v in own)])) for part in range(1 << fine)}
            for own in alone
        ]
        yield from itertools.product(*both)


@pytest.mark.parametrize("levels", ["1/10 9/10", "1/4 1/2 3/4", "1/5 2/5 3/5 4/5"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_recursive_quantiles_of_values_set_apart(relation: Neighbours, levels: str) -> None:
    """Given each way to set equal values apart, and over all of them.

    Values that are the same in both have the same random part, the one that changes any: so a split, which
    goes by the place alone, never sends a second value elsewhere.
    """
    at = tuple(Fraction(each) for each in levels.split())
    loss = RecursiveQuantiles(epsilon=EPSILON, levels=at, places=2, neighbours=relation).loss(
        Distance.hamming(neighbours=relation)
    )
    assert loss.rho is not None
    worst = given = 0.0
    law = cache(lambda values: brute.recursive(values, at, relation, 4, 0, EPSILON))
    over = cache(lambda values: brute.recursive_apart(values, at, relation, 2, 0, EPSILON, 1))
    for one, other in pairs(2, (1, 2, 3, 4), relation):
        for held in like_ways(one, other, 1):
            p, q = law(held[0]), law(held[1])
            given = max(given, brute.worst_ratio(list(p.values()), [q[key] for key in p]))
        p, q = over(one), over(other)
        worst = max(worst, brute.worst_ratio(list(p.values()), [q[key] for key in p]))
        check_rho(list(p.values()), [q[key] for key in p], float(loss.rho))
    assert worst <= given <= EPSILON + ROUNDING
    assert given > 0.2 * EPSILON  # the enumeration sees hard cases


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("relation", RELATIONS)
def test_threshold_histogram(relation: Neighbours, monotone: bool) -> None:
    epsilon = Fraction(5, 2)
    places = 4
    worst = 0.0
    for level in (Fraction(1, 10), Fraction(1, 2), Fraction(7, 10)):
        law = {
            values: brute.first_crossing(values, level, relation, range(1, places + 1), epsilon, monotone)
            for size in range(4)
            for values in brute.datasets(places, size)
        }
        for one, other in pairs(places, (1, 2, 3), relation):
            worst = max(worst, brute.worst_ratio(law[one], law[other]))
    assert 0.5 * epsilon < worst <= epsilon + 1e-6


def test_the_enumeration_sees_half_the_noise() -> None:
    """A threshold method at twice the epsilon would not pass for one at the epsilon."""
    laws = [
        brute.first_crossing(x, Fraction(1, 2), brute.REPLACE, range(1, 5), Fraction(5, 2) * 2, True)
        for x in [(0, 0, 3), (0, 3, 3)]
    ]
    assert brute.worst_ratio(*laws) > 2.5


@pytest.mark.parametrize("levels", ["1/2", "1/3 2/3", "1/10 3/10 9/10"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_joint_exponential(relation: Neighbours, levels: str) -> None:
    at = tuple(Fraction(each) for each in levels.split())
    mechanism = JointExponential(epsilon=EPSILON, levels=at, places=3, neighbours=relation)
    rate, worst = float(mechanism.rate), 0.0
    for places, sizes, fine in [(3, range(1, 4), 1), (4, range(1, 3), 0), (2, range(1, 5), 0)]:
        laws = {
            values: brute.joint(values, at, places, rate, fine)
            for size in range(max(sizes) + 1)
            for values in brute.datasets(places, size)
        }
        for one, other in pairs(places, sizes, relation):
            p, q = [laws[one][key] for key in laws[one]], [laws[other][key] for key in laws[one]]
            worst = max(worst, brute.worst_ratio(p, q))
            check_rho(p, q, float(EPSILON) ** 2 / 8)
    assert 0.3 * EPSILON < worst <= EPSILON - mechanism.slack + ROUNDING


def test_a_joint_gap_moves_by_its_sensitivity_and_no_less() -> None:
    """So a smaller one would be wrong: the bound is met, up to the smallest share."""
    at = (Fraction(1, 5), Fraction(1, 2))
    for relation in RELATIONS:
        mechanism = JointExponential(epsilon=1, levels=at, places=4, neighbours=relation)
        moved = 0.0
        for one, other in pairs(4, (1, 2, 3), relation):
            a, b = (brute.joint_weights(x, at, 4, 1.0) for x in (one, other))
            moved = max(moved, *(abs(math.log(a[t] / b[t])) for t in a))
        assert moved == pytest.approx(float(mechanism.moved))


def test_ledgers_are_charged_what_the_laws_show() -> None:
    """Two values changed cost twice, in epsilon and in the length of the range."""
    mechanism = InverseSensitivity(epsilon=EPSILON, levels=(Fraction(1, 2),), places=4)
    loss = mechanism.loss(Distance.hamming(2))
    law: Callable[[brute.Values], tuple[float, ...]] = lambda x: brute.inverse(
        x, Fraction(1, 2), brute.REPLACE, 4, 0, EPSILON
    )
    for one in brute.datasets(4, 3):
        for other in brute.datasets(4, 3):
            if sum(a != b for a, b in zip(one, other, strict=True)) <= 2:
                p, q = np.array(law(one)), np.array(law(other))
                assert brute.worst_ratio(law(one), law(other)) <= float(loss.epsilon) + ROUNDING
                for x in np.linspace(0, 3, 13):
                    assert np.maximum(p - math.exp(x) * q, 0).sum() <= loss.profile(x) + ROUNDING


def test_threshold_costs_add_up_over_levels() -> None:
    mechanism = ThresholdHistogram(epsilon=2, levels=(Fraction(1, 3), Fraction(2, 3)), places=9, cuts=5)
    assert mechanism._scales(Fraction(1, 3)) == (2, 2)
    assert mechanism.loss(Distance.hamming(3)).epsilon == 6
