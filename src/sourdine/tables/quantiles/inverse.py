"""Inverse sensitivity: places of the grid, the likelier the fewer values would have to change for them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.loss import BoundedRangeLaw, PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.random.samplers import exp_coin
from sourdine.core.random.selection import choose_segments, places_in
from sourdine.frames.rank_counts import GroupRanks, RankSource, SeparateRanks
from sourdine.tables.quantiles.method import MOST_PLACES, Ints, QuantileMethod, Targets, around, gap_at

_CELLS = 1 << 20  # segments that are looked at together
_NEGLIGIBLE = 30.0  # beyond this many e-folds more than the grid can make up for, places go into a tail


def moved_by_one(level: Fraction, neighbours: Neighbours) -> Fraction:
    """How far one value moves the gaps of a level, in their units."""
    if neighbours is Neighbours.REPLACE:
        return Fraction(1)
    return max(level, 1 - level) * level.denominator


def draw_places(
    values: GroupRanks,
    targets: Targets,
    *,
    places: Ints,
    rate: Fraction,
    radius: int,
    owner: Ints,
    bits: Bits,
) -> Ints:
    """A place of each owner's group, t with probability proportional to e^{-rate gap(t)}.

    Places far from the target are two tails with a bound on their weight: when a tail is chosen, one of its
    places is drawn and kept with what its weight is of the bound, and else all begins anew. This is the
    stated law exactly.
    """
    reach = math.ceil((math.log(int(places.max(initial=1))) + _NEGLIGIBLE) / float(rate))
    out = np.empty(len(owner), np.int64)
    for groups, answers in _batches(values, targets, owner, reach):
        windows = around(values, groups, targets, places=places, reach=reach, radius=radius)
        todo, which = answers, np.searchsorted(groups, owner[answers])
        while len(todo):
            chosen = choose_segments(windows.segments, rate, which, bits)
            out[todo] = places_in(windows.segments, which, chosen, bits)
            again = np.zeros(len(todo), bool)
            for i in np.flatnonzero(windows.tail[which, chosen]):
                group, place = int(owner[todo[i]]), int(out[todo[i]])
                near = [min(max(place + step, 0), int(places[group]) - 1) for step in (-radius, radius)]
                gap = min(gap_at(values, group, targets, each) for each in near)
                beyond = gap - int(windows.segments.gap[which[i], chosen[i]])
                again[i] = not exp_coin(int(bits.words(1)[0]), beyond * rate, bits)
            todo, which = todo[again], which[again]
    return out


def _batches(values: GroupRanks, targets: Targets, owner: Ints, reach: int) -> Iterator[tuple[Ints, Ints]]:
    """Groups, as many at a time as fit into memory, and which answers are about them."""
    groups = np.unique(owner)
    first, last = targets.window(reach)
    wide = np.clip(np.minimum(last, values.sizes) - first, 0, None)[groups]
    groups = groups[np.argsort(wide, kind="stable")]  # alike in width, so that little is padded
    wide = np.sort(wide)
    start = 0
    while start < len(groups):
        many = _CELLS // (2 * wide[start:] + 1)
        fit = np.arange(1, len(many) + 1) <= many
        end = start + max(1, len(fit) if fit.all() else int(fit.argmin()))
        here = np.sort(groups[start:end])
        yield here, np.flatnonzero(np.isin(owner, here))
        start = end


@dataclass(frozen=True, kw_only=True)
class InverseSensitivity(QuantileMethod):
    """Chooses place t of a grid with probability proportional to e^{-rate gap(t)}, for each level by itself.

    The gap is the number of values to replace so that t becomes the quantile (Asi and Duchi 2020, algorithm
    1), and one value replaced costs epsilon / m = 2 rate for each of m levels. Where values may be added or
    removed, it is the distance of q n from the ranks of t. With a radius, the gap is the least within that
    many steps (smooth inverse sensitivity), which saves it on repeated values. rho is m (epsilon / m)^2 / 8,
    since each is an exponential mechanism.

    >>> half = (Fraction(1, 2),)
    >>> InverseSensitivity(epsilon=1, levels=half, places=121).loss(Distance.hamming()).rho
    Fraction(1, 8)
    """

    name: ClassVar[str] = "inverse-sensitivity/1"
    radius: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        radius = check.integer(type(self).__name__, "radius", self.radius, 0, MOST_PLACES)
        object.__setattr__(self, "radius", radius)

    def rate(self, level: Fraction) -> Fraction:
        """What a unit of a level's gap takes off the logarithm of a place's weight."""
        return self.epsilon / len(self.levels) / (2 * moved_by_one(level, self.neighbours))

    def draw(self, source: RankSource, count: int, bits: Bits = SYSTEM) -> Ints:
        return self._draw(SeparateRanks.alone(source), np.zeros(count, np.int64), bits)

    def draw_groups(self, values: GroupRanks, bits: Bits = SYSTEM) -> Ints:
        return self._draw(values, np.arange(len(values)), bits)

    def _draw(self, values: GroupRanks, owner: Ints, bits: Bits) -> Ints:
        """An answer of each owner's group."""
        columns = [
            draw_places(
                values,
                Targets.of(level, values.sizes, self.neighbours),
                places=np.full(len(values), self.places),
                rate=self.rate(level),
                radius=self.radius,
                owner=owner,
                bits=bits,
            )
            for level in self.levels
        ]
        return np.stack(columns, axis=-1)

    def loss(self, distance: Distance) -> PrivacyLoss:
        epsilon, m = self.spent(distance), len(self.levels)
        rho = epsilon**2 * self.rho_at_one(m)
        if m > 1:
            return PrivacyLoss.pure(epsilon, neighbours=distance.neighbours, rho=rho)
        return PrivacyLoss.symmetric(
            BoundedRangeLaw(float(epsilon)), neighbours=distance.neighbours, epsilon=epsilon, rho=rho
        )

    @classmethod
    def rho_at_one(cls, count: int) -> Fraction:
        return Fraction(1, 8 * count)

    def error(self, confidence: float = 0.95) -> float:
        """How many ranks any answer is off at most, all of them at once with this confidence.

        With a radius it is so of some place within the radius of each.
        """
        beta = (1 - check.confidence(type(self).__name__, confidence)) / len(self.levels)
        units = [1 if self.neighbours is Neighbours.REPLACE else level.denominator for level in self.levels]
        return max(
            math.log(self.places / beta) / float(self.rate(level)) / unit
            for level, unit in zip(self.levels, units, strict=True)
        )

    @property
    def near(self) -> int:
        return self.radius

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(4, 3), levels=(Fraction(1, 2),), places=9),
            value=[2, 2, 4, 6, 6],
            neighbour=[2, 2, 6, 6, 6],
            distance=Distance.hamming(),
            code=lambda answers: answers[..., 0],
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(1), levels=(Fraction(3, 10),), places=12, radius=1),
            value=[0, 0, 5, 5, 11],
            neighbour=[0, 5, 5, 5, 11],
            distance=Distance.hamming(),
            code=lambda answers: answers[..., 0],
        )
        relation = Neighbours.ADD_REMOVE
        yield Example(
            mechanism=cls(
                epsilon=Fraction(3, 2), levels=(Fraction(1, 4), Fraction(1, 2)), places=6, neighbours=relation
            ),
            value=[0, 0, 5, 5],
            neighbour=[0, 5, 5],
            distance=Distance.hamming(neighbours=relation),
            code=lambda answers: answers @ [6, 1],
        )
