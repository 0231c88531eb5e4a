"""Principal components from one release of noisy sums of products."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.random.bits import Bits
from sourdine.estimators.moments import ConstantRule, NoisyProducts, ProductSums, blocks, draw, finest
from sourdine.estimators.payment import FitBudget, FitPlan, PrivateEstimator
from sourdine.estimators.rows import Floats, RowRule
from sourdine.estimators.shapes import Array, used_matrix
from sourdine.mechanisms.gaussian import Gaussian


@dataclass(frozen=True, kw_only=True)
class ProductsPlan:
    """The sums of products of columns, with a constant among them, released once."""

    rule: ConstantRule
    moments: ProductSums
    mechanism: Gaussian
    budget: FitBudget
    components: int

    @classmethod
    def within(cls, owner: str, rule: ConstantRule, components: int, budget: FitBudget) -> "ProductsPlan":
        """The least noise within a budget."""
        moments, mechanism = finest(owner, rule.width, 0, budget.rho, budget.neighbours)
        return cls(rule=rule, moments=moments, mechanism=mechanism, budget=budget, components=components)

    @property
    def spends(self) -> tuple[Spend, ...]:
        """One release."""
        distance = self.moments.distance(self.budget.neighbours)
        return (Spend(mechanism=self.mechanism, distance=distance),)

    def release(self, rows: Array, bits: Bits) -> NoisyProducts:
        """The noisy products."""
        sums = self.moments.start()
        for (some,) in blocks(rows):
            self.moments.add(sums, self.rule.whole(some, self.moments.unit), np.zeros((len(some), 0)))
        return draw(self.moments, self.mechanism, sums, bits)

    def run(self, rows: Array, targets: Array | None, bits: Bits) -> Mapping[str, object]:
        """The mean, the components and how much of the variance each has."""
        _, mean, spread = centred(self.rule, self.release(rows, bits))
        values, vectors = np.linalg.eigh(spread)
        order = np.argsort(values)[::-1]
        kept = order[: self.components]
        found = vectors[:, kept].T
        signs = np.sign(found[np.arange(len(found)), np.abs(found).argmax(axis=1)])
        variances = np.maximum(values, 0)
        return {
            "mean_": mean,
            "components_": found * signs[:, None],
            "explained_variance_": variances[kept],
            "explained_variance_ratio_": variances[kept] / max(float(variances.sum()), 1e-300),
        }


def centred(rule: ConstantRule, noisy: NoisyProducts) -> tuple[float, Floats, Floats]:
    """How many rows there are, their mean and their covariance, in the columns' own units, as noise
    allows."""
    constant = rule.constant
    count = max(float(noisy.matrix[-1, -1]) / constant**2, 1.0)
    mean = np.clip(noisy.matrix[:-1, -1] / (constant * count), -1, 1)
    spread = noisy.matrix[:-1, :-1] / count - np.outer(mean, mean)
    widths, middles = units(rule)
    return count, mean * widths + middles, spread * np.outer(widths, widths)


def units(rule: ConstantRule) -> tuple[Floats, Floats]:
    """What a length of 1 is worth in each column's own unit, and the middle of its bounds."""
    inner = rule.rule
    if inner.bounds is None:
        return np.full(inner.width, inner.radius / rule.share), np.zeros(inner.width)
    lower, upper = (np.array(ends) for ends in zip(*inner.bounds, strict=True))
    return (upper / 2 - lower / 2) * inner.radius / rule.share, lower / 2 + upper / 2


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components, (epsilon, delta)-DP for one row added or removed.

    The covariance is released once with discrete Gaussian noise, and all components are read off it. Declare
    `bounds` of the columns, or the `norm` that rows are shortened to, or both.

    >>> along = np.random.default_rng(1).uniform(-1, 1, (5000, 1))
    >>> np.abs(PCA(1, bounds=(-1, 1), random_state=1).fit(along * [1, 0.5]).components_).round(1)
    array([[0.9, 0.5]])
    """

    learnt: ClassVar[tuple[str, ...]] = (
        "mean_",
        "components_",
        "explained_variance_",
        "explained_variance_ratio_",
    )
    rule_: ConstantRule
    mean_: Floats
    components_: Floats

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: tuple[float, float] | Sequence[tuple[float, float]] | None = None,
        norm: float | None = None,
        ledger: Ledger | Path | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm = norm
        self.ledger = ledger
        self.random_state = random_state

    def declare(self, width: int) -> None:
        owner = type(self).__name__
        wanted = width if self.n_components is None else self.n_components
        self.kept_ = check.integer(owner, "n_components", wanted, 1, width)
        self.rule_ = ConstantRule.beside(RowRule.declared(owner, width, bounds=self.bounds, norm=self.norm))

    def _plan(self, budget: FitBudget) -> FitPlan:
        return ProductsPlan.within(type(self).__name__, self.rule_, self.kept_, budget)

    def fit(self, X: object, y: object = None) -> Self:
        """Fit and pay: (epsilon, delta)-DP for one row, charged to the ledger before the rows are read."""
        return self._fit(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: object) -> Floats:
        """The rows along each component; a row is brought within its bounds and norm first."""
        looked = used_matrix(self, X)
        widths, middles = units(self.rule_)
        within = self.rule_.rule.scaled(looked) * self.rule_.share * widths + middles
        found: Floats = (within - self.mean_) @ self.components_.T
        return found

    def inverse_transform(self, X: object) -> Floats:
        """Rows of the columns' own units again."""
        found: Floats = np.asarray(X, np.float64) @ self.components_ + self.mean_
        return found
