"""Laplace noise on the quantile itself: the baseline, and a warning."""

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
