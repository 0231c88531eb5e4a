"""Columns by their mean and deviation, from noisy sums."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.spend import Spend
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.random.bits import Bits
from sourdine.estimators.moments import blocks, finest_unit, row_distance
from sourdine.estimators.payment import FitBudget, FitPlan, PrivateEstimator
from sourdine.estimators.rows import Floats, Pair, RowRule
from sourdine.estimators.shapes import Array, used_matrix
from sourdine.mechanisms.gaussian import Gaussian


@dataclass(frozen=True, kw_only=True)
class ColumnsPlan:
    """How many rows there are, and for each column the sums of its values and of their squares.

    A value x in [-1, 1], in whole steps of 1/unit, adds x and x^2 - 1/2: no more than sqrt(5/4) in L2
    together, where x^2 itself would make it sqrt(2). So a row of `width` columns moves all sums by at most
    the root of 5/4 width + 1, in units.
    """

    rule: RowRule
    unit: int
    mechanism: Gaussian
    neighbours: Neighbours

    @classmethod
    def within(cls, owner: str, rule: RowRule, budget: FitBudget) -> "ColumnsPlan":
        """The least noise within a budget, on the finest steps whose noise can be drawn."""
        unit, mechanism = finest_unit(
            owner, lambda unit: _moved(unit, rule.width, budget.neighbours), budget.rho, 1 << 10, power=2
        )
        return cls(rule=rule, unit=unit, mechanism=mechanism, neighbours=budget.neighbours)

    @property
    def spends(self) -> tuple[Spend, ...]:
        """One release of all sums."""
        distance = _moved(self.unit, self.rule.width, self.neighbours)
        return (Spend(mechanism=self.mechanism, distance=distance),)

    def run(self, rows: Array, targets: Array | None, bits: Bits) -> Mapping[str, object]:
        """Means and deviations in the columns' own units."""
        squared = self.unit**2
        sums = np.zeros(2 * self.rule.width + 1)
        for (some,) in blocks(rows):
            steps = np.rint(self.rule.spread(some) * self.unit)
            both = [steps * self.unit, np.square(steps) - squared / 2, np.full((len(steps), 1), squared)]
            sums += np.concatenate(both, axis=1).sum(axis=0)  # whole numbers below 2^53
        noisy = self.mechanism.sample(sums.astype(np.int64), bits) / squared
        count = max(float(noisy[-1]), 1.0)
        width = self.rule.width
        means = np.clip(noisy[:width] / count, -1, 1)
        squares = np.clip(noisy[width:-1] / count + 0.5, 0, 1)
        floor = (float(self.mechanism.sigma) / squared / count) ** 2
        variances = np.clip(squares - means**2, min(floor, 1.0), 1)
        assert self.rule.bounds is not None
        lower, upper = (np.array(ends) for ends in zip(*self.rule.bounds, strict=True))
        half, middle = upper / 2 - lower / 2, lower / 2 + upper / 2
        scale = np.sqrt(variances) * half
        return {"mean_": means * half + middle, "var_": scale**2, "scale_": scale, "count_": np.array(count)}


def _moved(unit: int, width: int, neighbours: Neighbours) -> Distance:
    """How far a row moves the sums, in steps of 1/unit^2."""
    square = unit**4 * (math.ceil(5 * width / 4) + 1)
    return row_distance(square, 2 * width + 1, neighbours)


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Columns less their mean, by their deviation: (epsilon, delta)-DP for one row added or removed.

    `bounds` are declared and values outside them clamped, also when they are transformed; so `bounds_` tells
    what a transformed column can hold. What is not a number counts as the middle of its bounds.

    >>> rows = np.random.default_rng(1).normal(50, 10, (10_000, 1))
    >>> StandardScaler(bounds=(0, 100), random_state=1).fit(rows).mean_.round()
    array([50.])
    """

    learnt: ClassVar[tuple[str, ...]] = ("mean_", "var_", "scale_", "count_")
    rule_: RowRule
    mean_: Floats
    scale_: Floats

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: tuple[float, float] | Sequence[tuple[float, float]] | None = None,
        ledger: Ledger | Path | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.ledger = ledger
        self.random_state = random_state

    def declare(self, width: int) -> None:
        self.rule_ = RowRule.declared(type(self).__name__, width, bounds=self.bounds)

    def _plan(self, budget: FitBudget) -> FitPlan:
        return ColumnsPlan.within(type(self).__name__, self.rule_, budget)

    def fit(self, X: object, y: object = None) -> Self:
        """Fit and pay: (epsilon, delta)-DP for one row, charged to the ledger before the rows are read."""
        return self._fit(X)

    @property
    def bounds_(self) -> list[Pair]:
        """What each column can hold after it was transformed."""
        assert self.rule_.bounds is not None
        ends = self._scaled(np.array(self.rule_.bounds).T)
        return [(float(lower), float(upper)) for lower, upper in ends.T]

    def _scaled(self, values: Floats) -> Floats:
        return (values - self.mean_) / self.scale_

    def transform(self, X: object) -> Floats:
        """The columns less their mean, by their deviation."""
        looked = used_matrix(self, X)
        spread = self.rule_.spread(looked)
        assert self.rule_.bounds is not None
        lower, upper = (np.array(ends) for ends in zip(*self.rule_.bounds, strict=True))
        return self._scaled(spread * (upper / 2 - lower / 2) + (lower / 2 + upper / 2))

    def inverse_transform(self, X: object) -> Floats:
        """Back to the columns' own units."""
        return np.asarray(X, np.float64) * self.scale_ + self.mean_
