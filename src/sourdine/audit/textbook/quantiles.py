"""Quantiles by enumeration: every place, or every tuple of ranks, with its weight."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.audit.textbook.dice import Dice, Ints, laplace, pick
from sourdine.core.distance import Neighbours
from sourdine.tables.quantiles.histogram import NaiveLaplace, ThresholdHistogram
from sourdine.tables.quantiles.inverse import InverseSensitivity
from sourdine.tables.quantiles.joint import JointExponential
from sourdine.tables.quantiles.method import SetApart, fine_bits
from sourdine.tables.quantiles.recursive import EXAMPLE_BITS, RecursiveQuantiles

Floats = NDArray[np.float64]
Answers = NDArray[Any]


def draw_naive(mechanism: NaiveLaplace, value: ArrayLike, count: int, dice: Dice) -> Answers:
    values, m = np.sort(np.asarray(value)), len(mechanism.levels)
    ranks = [min(max(math.ceil(level * len(values)), 1), len(values)) for level in mechanism.levels]
    scale = m * (mechanism.places - 1) / float(mechanism.epsilon)
    noisy = values[np.array(ranks) - 1] + laplace(scale, (count, m), dice)
    return np.sort(np.clip(noisy, 0, mechanism.places - 1), axis=-1)


def draw_histogram(mechanism: ThresholdHistogram, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """The first cut whose noisy count reaches the noisy rank, all in units in which ranks are whole."""
    values, cuts = np.asarray(value), mechanism.cuts
    after = 1 + np.arange(cuts) * mechanism.places // cuts
    below = (values[:, None] < after).sum(axis=0)
    columns = []
    for level in mechanism.levels:
        share = float(mechanism.epsilon) / len(mechanism.levels)
        replaced = mechanism.neighbours is Neighbours.REPLACE
        unit, moved = (1, 1.0) if replaced else (level.denominator, float(max(level, 1 - level)))
        aim = math.ceil(level * len(values)) if replaced else level * len(values)
        spread = 1.0 if mechanism.monotone else 2 * moved
        rank = laplace(2 * moved * unit / share, (count, 1), dice)
        noise = laplace(2 * spread * unit / share, (count, cuts), dice)
        reached = below * unit - int(aim * unit) + noise >= rank
        first = np.where(reached.any(axis=1), reached.argmax(axis=1), cuts)
        columns.append(np.append(after - 1, mechanism.places - 1)[first])
    return np.sort(np.stack(columns, axis=-1), axis=-1)


def draw_inverse(mechanism: InverseSensitivity, value: ArrayLike, count: int, dice: Dice) -> Answers:
    price = float(mechanism.epsilon) / len(mechanism.levels)
    columns = [
        pick(
            _weights(
                np.asarray(value),
                level,
                mechanism.places,
                relation=mechanism.neighbours,
                radius=mechanism.radius,
                price=price,
            ),
            count,
            dice,
        )
        for level in mechanism.levels
    ]
    return np.sort(np.stack(columns, axis=-1), axis=-1)


def draw_recursive(mechanism: RecursiveQuantiles, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """The middle level, then the levels below it among the values below, and those above among the rest.

    Values are set apart as in the examples of the mechanism, which fix how.
    """
    apart = SetApart.evenly(value, mechanism.places, EXAMPLE_BITS)
    values, levels = apart.fine, [Fraction(0), *mechanism.levels, Fraction(1)]
    answers = np.empty((count, len(mechanism.levels)), np.int64)
    price = float(mechanism.epsilon) / len(mechanism.levels).bit_length()

    def go(first: int, last: int, begin: int, end: int, who: Ints) -> None:
        """The levels first .. last - 1, for answers that have come to the places begin .. end - 1."""
        if first == last or not len(who):
            return
        if end == begin:  # no place is left below
            answers[who, first:last] = begin
            return
        root, middle = (first, last) == (0, len(mechanism.levels)), (first + last) // 2
        relation = mechanism.neighbours if root else Neighbours.ADD_REMOVE
        halved = 1 if root or mechanism.neighbours is Neighbours.ADD_REMOVE else 2
        level = (levels[middle + 1] - levels[first]) / (levels[last + 1] - levels[first])
        inside = values[(values >= begin) & (values < end)] - begin
        weights = _weights(
            inside,
            level,
            end - begin,
            relation=relation,
            radius=mechanism.radius << apart.shift,
            price=price / halved,
        )
        places = begin + pick(weights, len(who), dice)
        answers[who, middle] = places
        for place in np.unique(places).tolist():
            go(first, middle, begin, place, who[places == place])
            go(middle + 1, last, place, end, who[places == place])

    go(0, len(mechanism.levels), 0, apart.size, np.arange(count))
    return np.sort(answers >> apart.shift, axis=-1)


def _weights(
    values: NDArray[Any], level: Fraction, places: int, *, relation: Neighbours, radius: int, price: float
) -> Floats:
    """e^{-price gap / (2 change)}, where one value changes the gap of a place by at most `change` ranks."""
    place = np.arange(places)
    below, upto = (values[:, None] < place).sum(axis=0), (values[:, None] <= place).sum(axis=0)
    if relation is Neighbours.REPLACE:
        rank = min(max(math.ceil(level * len(values)), 1), max(len(values), 1))
        gaps, change = np.maximum(np.maximum(below - (rank - 1), rank - upto), 0.0), 1.0
    else:
        aim = float(level * len(values))
        gaps, change = np.maximum(np.maximum(below - aim, aim - upto), 0.0), float(max(level, 1 - level))
    least = [gaps[max(at - radius, 0) : at + radius + 1].min() for at in range(places)]
    return np.exp(-price * np.array(least) / (2 * change))


def draw_joint(mechanism: JointExponential, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """Every rising tuple of ranks, then fine places between the values that have these ranks."""
    m, size = len(mechanism.levels), mechanism.places << fine_bits(mechanism.places)
    fine = np.concatenate([[-1], SetApart.evenly(value, mechanism.places).fine, [size - 1]])
    n, widths = len(fine) - 2, np.diff(fine)
    shares = np.diff([0.0, *map(float, mechanism.levels), 1.0])
    moved = 2.0 if mechanism.neighbours is Neighbours.REPLACE else 2 * (1 - shares.min())
    rate = float(mechanism.epsilon) / (2 * moved)
    tuples = list(combinations_with_replacement(range(n + 1), m))
    logs = np.array([_log_places(ranks, widths) for ranks in tuples])
    gaps = [
        sum(abs(b - a - s * n) for (a, b), s in zip(pairwise([0, *ranks, n]), shares, strict=True))
        for ranks in tuples
    ]
    logs -= rate * np.array(gaps)
    ranks = np.array(tuples)[pick(np.exp(logs - logs.max()), count, dice)]
    inside = 1 + np.floor(dice.random((count, m)) * widths[ranks])
    return (np.sort(fine[ranks] + inside.astype(np.int64), axis=-1)) >> fine_bits(mechanism.places)


def _log_places(ranks: tuple[int, ...], widths: Ints) -> float:
    """The logarithm of how many rising tuples of fine places have these ranks."""
    logs = 0.0
    for rank, times in Counter(ranks).items():
        if widths[rank] == 0:
            return -math.inf
        logs += math.log(math.comb(int(widths[rank]) + times - 1, times))
    return logs
