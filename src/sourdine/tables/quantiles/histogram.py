"""The first cut point with enough values below it, by the sparse vector technique."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.rank_counts import GroupRanks, RankSource, SeparateRanks
from sourdine.mechanisms.laplace import MOST_SCALE, laplace_quantile
from sourdine.tables.quantiles.method import QuantileMethod, Targets

MOST_CUTS = 1 << 24
_CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True)
class ThresholdHistogram(QuantileMethod):
    """Takes the first of some cut points whose noisy count below reaches the noisy rank, for each level.

    Each of m levels costs epsilon / m, with noise of scale 2 D m / epsilon on the rank and 2 r m / epsilon on
    every count (Dwork and Roth 2014), where D is how far one value moves a count less the rank.
    Counts below cut points all move the same way, so r = 1 value suffices (monotone; Lyu, Su, Li 2017);
    without that, r = 2 D. All counts come from one histogram.

    >>> method = ThresholdHistogram(epsilon=1, levels=(Fraction(1, 2),), places=101, cuts=100)
    >>> method.loss(Distance.hamming()).epsilon
    Fraction(1, 1)
    """

    name: ClassVar[str] = "threshold-histogram/1"
    cuts: int
    monotone: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        name = "ThresholdHistogram"
        most = min(MOST_CUTS, self.places)
        object.__setattr__(self, "cuts", check.integer(name, "cuts", self.cuts, 1, most))
        check.boolean(name, "monotone", self.monotone)

    def draw(self, source: RankSource, count: int, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        return self._draw(SeparateRanks.alone(source), np.zeros(count, np.int64), bits)

    def draw_groups(self, values: GroupRanks, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        return self._draw(values, np.arange(len(values)), bits)

    def _draw(self, values: GroupRanks, owner: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        """An answer of each owner's group, some at a time."""
        cuts = 1 + (np.arange(self.cuts, dtype=object) * self.places // self.cuts).astype(np.int64)
        answers = np.append(cuts - 1, self.places - 1)  # the last place where none crosses
        out = np.empty((len(owner), len(self.levels)), np.int64)
        step = max(1, _CHUNK // self.cuts)
        for start in range(0, len(owner), step):
            part = owner[start : start + step]
            groups, which = np.unique(part, return_inverse=True)
            owners = np.broadcast_to(groups[:, None], (len(groups), self.cuts))
            below = values.count_below(owners, np.broadcast_to(cuts, owners.shape))[which.ravel()]
            columns = [self._first(below, level, values.sizes[part], bits) for level in self.levels]
            out[start : start + step] = answers[np.stack(columns, axis=-1)]
        return out

    def _first(
        self, below: NDArray[np.int64], level: Fraction, sizes: NDArray[np.int64], bits: Bits
    ) -> NDArray[np.int64]:
        """In each row the first cut whose noisy count reaches the noisy rank, or one past the last."""
        unit, whole = self._unit(level), level.numerator * sizes
        aim = -(-whole // level.denominator) if unit == 1 else whole
        rank = exact.laplace(self._scales(level)[0], len(below), bits)
        noise = exact.laplace(self._scales(level)[1], below.size, bits)
        above = below * unit - aim[:, None] + noise.reshape(below.shape) >= rank[:, None]
        return np.where(above.any(axis=1), above.argmax(axis=1), self.cuts)

    def _unit(self, level: Fraction) -> int:
        """Counts are whole; a rank q n is so in units of one over q's denominator."""
        return 1 if self.neighbours is Neighbours.REPLACE else level.denominator

    def _scales(self, level: Fraction) -> tuple[Fraction, Fraction]:
        """The scales of the noise on the rank and on the counts, in units."""
        unit, share = self._unit(level), self.epsilon / len(self.levels)
        moved = Fraction(1) if unit == 1 else max(level, 1 - level) * unit
        spread = Fraction(unit) if self.monotone else 2 * moved
        return 2 * moved / share, 2 * spread / share

    def loss(self, distance: Distance) -> PrivacyLoss:
        return PrivacyLoss.pure(self.spent(distance), neighbours=distance.neighbours)

    def error(self, confidence: float = 0.95) -> float:
        """How many ranks all answers are off at most, or else some place since the cut point before."""
        beta = 1 - check.confidence("ThresholdHistogram", confidence)
        scales = [max(self._scales(level)) / self._unit(level) for level in self.levels]
        return 2 * float(max(scales)) * (math.log(self.cuts + 1) + math.log(2 * len(self.levels) / beta))

    @property
    def near(self) -> int:
        return -(-self.places // self.cuts) - 1

    @classmethod
    def examples(cls) -> Iterator[Example]:
        for monotone in (True, False):
            yield Example(
                mechanism=cls(
                    epsilon=Fraction(5, 3), levels=(Fraction(1, 2),), places=6, cuts=6, monotone=monotone
                ),
                value=[0, 0, 5, 5],
                neighbour=[0, 5, 5, 5],
                distance=Distance.hamming(),
                code=lambda answers: answers[..., 0],
            )
        relation = Neighbours.ADD_REMOVE
        yield Example(
            mechanism=cls(
                epsilon=Fraction(5, 3), levels=(Fraction(1, 4),), places=6, cuts=3, neighbours=relation
            ),
            value=[0, 0, 0, 5, 5],
            neighbour=[0, 0, 5, 5],
            distance=Distance.hamming(neighbours=relation),
            code=lambda answers: answers[..., 0],
        )


# Laplace noise on the quantile itself: the baseline, and a warning.


@dataclass(frozen=True, kw_only=True)
class NaiveLaplace(QuantileMethod):
    """Adds Laplace noise to each quantile, and clamps to the grid.

    One value may move a quantile from one end of the grid to the other, so the scale is m (places - 1) /
    epsilon: the error is about the whole range. Kept to be compared with.

    >>> NaiveLaplace(epsilon=1, levels=(Fraction(1, 2),), places=101).error()
    300.0
    """

    name: ClassVar[str] = "naive-laplace/1"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale > MOST_SCALE:
            must = "be larger for so many places and levels, or the noise would not fit"
            raise check.fail("NaiveLaplace", "epsilon", must, self.epsilon, "Use another method.")

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, in steps."""
        return Fraction(len(self.levels) * max(self.places - 1, 1)) / self.epsilon

    def draw(self, source: RankSource, count: int, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        return self._noisy(np.repeat(self._exact(SeparateRanks.alone(source)), count, axis=0), bits)

    def draw_groups(self, values: GroupRanks, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        return self._noisy(self._exact(values), bits)

    def _exact(self, values: GroupRanks) -> NDArray[np.int64]:
        """The quantiles of each group; the middle of the grid where there are no values."""
        answers = np.full((len(values), len(self.levels)), self.places // 2)
        some = np.flatnonzero(values.sizes > 0)
        for column, level in enumerate(self.levels):
            rank = Targets.of(level, values.sizes[some], Neighbours.REPLACE).low
            answers[some, column] = values.values_between(some, rank - 1, rank)
        return answers

    def _noisy(self, exact_places: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        noise = exact.laplace(self.scale, exact_places.size, bits).reshape(exact_places.shape)
        places: NDArray[np.int64] = np.clip(exact_places + noise, 0, self.places - 1)
        return places

    def loss(self, distance: Distance) -> PrivacyLoss:
        return PrivacyLoss.pure(self.spent(distance), neighbours=distance.neighbours)

    def error(self, confidence: float = 0.95) -> float:
        """In steps of the grid, not in ranks; for each level by itself."""
        return float(laplace_quantile(self.scale, check.confidence("NaiveLaplace", confidence)))

    def ranks_off(self, confidence: float = 0.95) -> float | None:
        return None

    @classmethod
    def examples(cls) -> Iterator[Example]:
        for one, other, relation in (
            ([0], [3], Neighbours.REPLACE),
            ([0, 0, 3, 3], [0, 3, 3, 3], Neighbours.REPLACE),
            ([0, 0, 3, 3], [0, 3, 3], Neighbours.ADD_REMOVE),
        ):
            yield Example(
                mechanism=cls(
                    epsilon=Fraction(4, 3), levels=(Fraction(1, 2),), places=4, neighbours=relation
                ),
                value=one,
                neighbour=other,
                distance=Distance.hamming(neighbours=relation),
                code=lambda answers: answers[..., 0],
            )
