"""The laws of quantile methods from their definitions, place by place, without the code under test."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from sourdine.core.distance import Neighbours
from tests.choice_laws import laplace_tail

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
TENTHS = [Fraction(i, 10) for i in range(1, 10)]

Values = tuple[int, ...]


def datasets(places: int, size: int) -> Iterator[Values]:
    """Every multiset of so many places."""
    return itertools.combinations_with_replacement(range(places), size)


def replaced(values: Values, places: int) -> set[Values]:
    """Every data set with one value replaced."""
    return {
        tuple(sorted((*values[:i], new, *values[i + 1 :])))
        for i in range(len(values))
        for new in range(places)
    }


def removed(values: Values) -> set[Values]:
    """Every data set with one value less."""
    return {values[:i] + values[i + 1 :] for i in range(len(values))}


def neighbours(values: Values, places: int, relation: Neighbours) -> set[Values]:
    """Every neighbour that has to be looked at; under replacement a value may also turn into no number."""
    return removed(values) | (replaced(values, places) if relation is REPLACE else set())


def gap(values: Sequence[int], place: int, level: Fraction, relation: Neighbours) -> Fraction:
    """How many values lie between a place and the quantile."""
    n = len(values)
    below, upto = sum(v < place for v in values), sum(v <= place for v in values)
    if relation is REPLACE:
        rank = min(max(math.ceil(level * n), 1), max(n, 1))
        return Fraction(max(0, below - (rank - 1), rank - upto))
    return max(Fraction(0), below - level * n, level * n - upto)


def smooth_gap(
    values: Sequence[int], place: int, level: Fraction, relation: Neighbours, places: int, radius: int
) -> Fraction:
    """The least gap within a radius."""
    near = range(max(0, place - radius), min(places, place + radius + 1))
    return min(gap(values, t, level, relation) for t in near)


@cache
def inverse(
    values: Values, level: Fraction, relation: Neighbours, places: int, radius: int, epsilon: Fraction
) -> tuple[float, ...]:
    """e^{-epsilon gap / (2 moved)}, normalised."""
    moved = 1 if relation is REPLACE else max(level, 1 - level)
    rate = epsilon / (2 * moved)
    gaps = [smooth_gap(values, t, level, relation, places, radius) for t in range(places)]
    weights = [math.exp(-rate * each) for each in gaps]
    return tuple(weight / sum(weights) for weight in weights)


def recursive(
    values: Values,
    levels: Sequence[Fraction],
    relation: Neighbours,
    places: int,
    radius: int,
    epsilon: Fraction,
) -> dict[Values, float]:
    """Every tuple of answers, by following all ways down."""
    rounds = math.ceil(math.log2(len(levels) + 1))
    below = epsilon / rounds / (2 if relation is REPLACE else 1)

    def parts(
        held: Values, wanted: Sequence[Fraction], low: Fraction, high: Fraction, first: int, last: int
    ) -> dict[Values, float]:
        if not wanted:
            return {(): 1.0}
        if first == last:
            return {(first,) * len(wanted): 1.0}
        middle = len(wanted) // 2
        root = len(wanted) == len(levels)
        law = inverse(
            tuple(v - first for v in held),
            (wanted[middle] - low) / (high - low),
            relation if root else ADD_REMOVE,
            last - first,
            radius,
            epsilon / rounds if root else below,
        )
        found: dict[Values, float] = {}
        for at, chance in enumerate(law, first):
            left, right = tuple(v for v in held if v < at), tuple(v for v in held if v >= at)
            lower = parts(left, wanted[:middle], low, wanted[middle], first, at)
            upper = parts(right, wanted[middle + 1 :], wanted[middle], high, at, last)
            for (a, p), (b, q) in itertools.product(lower.items(), upper.items()):
                found[(*a, at, *b)] = found.get((*a, at, *b), 0.0) + chance * p * q
        return found

    return parts(values, levels, Fraction(0), Fraction(1), 0, places)


def recursive_apart(
    values: Values,
    levels: Sequence[Fraction],
    relation: Neighbours,
    places: int,
    radius: int,
    epsilon: Fraction,
    fine: int,
) -> dict[Values, float]:
    """The same on a grid whose steps are cut into 2^fine, over all ways to set the values apart."""
    law: dict[Values, float] = {}
    parts = list(itertools.product(range(1 << fine), repeat=len(values)))
    for jitter in parts:
        held = tuple(sorted((v << fine) + j for v, j in zip(values, jitter, strict=True)))
        given = recursive(held, levels, relation, places << fine, radius << fine, epsilon)
        for answers, chance in given.items():
            key = tuple(answer >> fine for answer in answers)
            law[key] = law.get(key, 0.0) + chance / len(parts)
    return law


def first_crossing(
    values: Values,
    level: Fraction,
    relation: Neighbours,
    cuts: Sequence[int],
    epsilon: Fraction,
    monotone: bool,
) -> list[float]:
    """The chance of each cut to be the first with enough values below, and of none."""
    unit = 1 if relation is REPLACE else level.denominator
    moved = 1 if relation is REPLACE else max(level, 1 - level) * unit
    line, query = float(2 * moved / epsilon), float(2 * (unit if monotone else 2 * moved) / epsilon)
    aim = math.ceil(level * len(values)) if relation is REPLACE else level * len(values) * unit
    noise = np.arange(-int(45 * line) - 2, int(45 * line) + 3)
    left = np.exp(-np.abs(noise) / line)
    left /= left.sum()
    law = []
    for cut in cuts:
        above = laplace_tail(int(aim) + noise - unit * sum(v < cut for v in values), query)
        law.append(float((left * above).sum()))
        left = left * (1 - above)
    return [*law, float(left.sum())]


def joint_weights(
    values: Sequence[int], levels: Sequence[Fraction], places: int, rate: float
) -> dict[Values, float]:
    """e^{-rate gap} for every rising tuple."""
    n = len(values)
    edges = [Fraction(0), *levels, Fraction(1)]
    wanted = [float((b - a) * n) for a, b in itertools.pairwise(edges)]
    ranks = [sum(v < t for v in values) for t in range(places)]
    found = {}
    for tuple_ in itertools.combinations_with_replacement(range(places), len(levels)):
        at = [0, *(ranks[t] for t in tuple_), n]
        off = sum(abs(b - a - s) for (a, b), s in zip(itertools.pairwise(at), wanted, strict=True))
        found[tuple_] = math.exp(-rate * off)
    return found


def joint(
    values: Values, levels: Sequence[Fraction], places: int, rate: float, fine: int
) -> dict[Values, float]:
    """The law on a grid whose steps are cut into 2^fine, over all ways to set the values apart."""
    law: dict[Values, float] = {}
    parts = list(itertools.product(range(1 << fine), repeat=len(values)))
    for jitter in parts:
        held = [(v << fine) + j for v, j in zip(values, jitter, strict=True)]
        weights = joint_weights(held, levels, places << fine, rate)
        total = sum(weights.values()) * len(parts)
        for fine_tuple, weight in weights.items():
            key = tuple(t >> fine for t in fine_tuple)
            law[key] = law.get(key, 0.0) + weight / total
    return law


def worst_ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest absolute logarithm of a ratio."""
    return max(abs(math.log(p / q)) for p, q in zip(one, other, strict=True))
