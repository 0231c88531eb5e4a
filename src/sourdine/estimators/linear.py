"""Least squares from one release of noisy sums: a classifier, a regressor, and the intervals of its
coefficients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import ndtri
from sourdine.core.random.bits import Bits
from sourdine.estimators.moments import ConstantRule, NoisyProducts, ProductSums, blocks, draw, finest
from sourdine.estimators.payment import (
    ExactScores,
    FitBudget,
    FitPlan,
    PrivateEstimator,
    codes,
    declared_classes,
)
from sourdine.estimators.rows import Floats, Pair, RowRule, one_pair
from sourdine.estimators.shapes import Array, used_matrix
from sourdine.mechanisms.gaussian import Gaussian

RIDGE = 1.0


@dataclass(frozen=True, kw_only=True)
class TargetRule:
    """What is summed beside the products: a sign for two classes, a column a class for more, or a number."""

    classes: Array | None = None
    bounds: Pair | None = None

    @property
    def width(self) -> int:
        """How many numbers a target is."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    def whole(self, targets: Array, unit: int) -> tuple[Floats, Array]:
        """Whole numbers of at most `unit` a row together, and which rows have a target at all."""
        if self.classes is not None:
            places = codes(self.classes, targets)
            known = places >= 0
            if self.width == 1:
                return np.where(places == 1, unit, -unit)[:, None] * known[:, None].astype(float), known
            return (places[:, None] == np.arange(self.width)) * float(unit), known
        assert self.bounds is not None
        numbers = RowRule(width=1, bounds=(self.bounds,)).spread(targets[:, None])
        return np.rint(numbers * unit), np.ones(len(targets), np.bool_)


@dataclass(frozen=True, kw_only=True)
class EquationsPlan:
    """The normal equations of rows and targets, released once with Gaussian noise."""

    rule: ConstantRule
    target: TargetRule
    moments: ProductSums
    mechanism: Gaussian
    budget: FitBudget

    @classmethod
    def within(cls, owner: str, rule: ConstantRule, target: TargetRule, budget: FitBudget) -> "EquationsPlan":
        """The least noise within a budget."""
        moments, mechanism = finest(owner, rule.width, target.width, budget.rho, budget.neighbours)
        return cls(rule=rule, target=target, moments=moments, mechanism=mechanism, budget=budget)

    @property
    def spends(self) -> tuple[Spend, ...]:
        """One release of all sums."""
        distance = self.moments.distance(self.budget.neighbours)
        return (Spend(mechanism=self.mechanism, distance=distance),)

    def release(self, rows: Array, targets: Array, bits: Bits) -> NoisyProducts:
        """The noisy equations."""
        sums = self.moments.start()
        for some, goals in blocks(rows, targets):
            whole, known = self.target.whole(goals, self.moments.unit)
            kept = self.rule.whole(some, self.moments.unit) * known[:, None]
            self.moments.add(sums, kept, whole)
        return draw(self.moments, self.mechanism, sums, bits)

    def run(self, rows: Array, targets: Array | None, bits: Bits) -> Mapping[str, object]:
        """Weights of the scaled rows, and how sure they are."""
        assert targets is not None
        noisy = self.release(rows, targets, bits)
        weights, held = noisy.solved(RIDGE)
        return {"weights_": weights, "errors_": standard_errors(noisy, weights, held)}


def standard_errors(noisy: NoisyProducts, weights: Floats, held: bool) -> Floats:
    """The standard errors that the noise gives each weight, to first order; NaN where noise was stopped.

    A solution w of A w = b moves by A^-1 (db - dA w). The noise of A is symmetric, with one deviation on the
    diagonal and another off it: dA w has the covariance o^2 (|w|^2 I + w w^T) + (d^2 - 2 o^2) diag(w_i^2).
    """
    if held:
        return np.full_like(weights, np.nan)
    inverse = np.linalg.inv(noisy.matrix)
    errors = np.empty_like(weights)
    for place, column in enumerate(weights.T):
        beside, diagonal = noisy.beside**2, noisy.noise**2
        covariance = beside * (column @ column * np.eye(len(column)) + np.outer(column, column))
        covariance += np.diag((diagonal - 2 * beside) * column**2 + diagonal)
        errors[:, place] = np.sqrt(np.einsum("ij,jk,ik->i", inverse, covariance, inverse))
    return errors


class LinearModel(PrivateEstimator):
    """A linear function of the scaled rows."""

    bounds: tuple[float, float] | Sequence[tuple[float, float]] | None
    norm: float | None
    rule_: ConstantRule
    target_: TargetRule
    weights_: Floats

    def _target(self) -> TargetRule:
        """What is declared of the target."""
        raise NotImplementedError

    def declare(self, width: int) -> None:
        rule = RowRule.declared(type(self).__name__, width, bounds=self.bounds, norm=self.norm)
        self.rule_, self.target_ = ConstantRule.beside(rule), self._target()

    def fit(self, X: object, y: object) -> Self:
        """Fit and pay: (epsilon, delta)-DP for one row, charged to the ledger before the rows are read."""
        return self._fit(X, y)

    def _scores(self, rows: object) -> Floats:
        looked = used_matrix(self, rows)
        return self.rule_.scaled(looked) @ self.weights_

    def _factors(self) -> tuple[Floats, Floats]:
        """What a weight of a scaled row is worth by its column's own unit, and where the column's 0 lies."""
        rule = self.rule_.rule
        if rule.bounds is None:
            lower, upper = -np.ones(rule.width), np.ones(rule.width)
        else:
            lower, upper = (np.array(ends) for ends in zip(*rule.bounds, strict=True))
        return self.rule_.share / rule.radius / (upper / 2 - lower / 2), lower / 2 + upper / 2

    def _line(self) -> tuple[Floats, Floats]:
        """Coefficients by column, and intercepts, of rows within their bounds."""
        factors, middles = self._factors()
        slopes = self.weights_[:-1] * factors[:, None]
        return slopes.T, self.weights_[-1] * self.rule_.constant - middles @ slopes


class LinearClassifier(ExactScores, ClassifierMixin, LinearModel):  # type: ignore[misc]
    """Classes by a linear function: one score for two classes, else one for each."""

    classes: Sequence[object] | None
    classes_: Array

    def _target(self) -> TargetRule:
        self.classes_ = declared_classes(self, self.classes)
        return TargetRule(classes=self.classes_)

    @property
    def coef_(self) -> Floats:
        """Coefficients by the columns' own units, of rows within their bounds and norm."""
        check_is_fitted(self, "weights_")
        return self._line()[0]

    @property
    def intercept_(self) -> Floats:
        """What a row of zeros gets."""
        check_is_fitted(self, "weights_")
        return self._line()[1]

    def decision_function(self, X: object) -> Floats:
        """Scores: one a row for two classes, above 0 for the second; else one for each class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: object) -> Array:
        """The class of each row."""
        scores = self.decision_function(X)
        places = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        found: Array = self.classes_[places]
        return found


class LeastSquaresClassifier(LinearClassifier):
    """A linear classifier by least squares, (epsilon, delta)-DP for one row added or removed.

    Sums of products of columns, and of columns and classes, are released once with discrete Gaussian noise;
    all else is computed from them (docs/guarantees/estimators.md). Declare `bounds`, a pair for all columns
    or one for each, or the `norm` that rows are shortened to, or both; and the `classes`. Rows with a label
    that was not declared count for nothing, and what is not a number counts as the middle of its bounds.

    >>> rows = np.random.default_rng(1).uniform(0, 10, (2000, 2))
    >>> model = LeastSquaresClassifier(bounds=(0, 10), classes=[0, 1], random_state=1)
    >>> model.fit(rows, rows[:, 0] > 5).predict([[9, 1], [1, 9]]).tolist()
    [1, 0]
    """

    learnt: ClassVar[tuple[str, ...]] = ("weights_", "errors_")

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: tuple[float, float] | Sequence[tuple[float, float]] | None = None,
        norm: float | None = None,
        classes: Sequence[object] | None = None,
        ledger: Ledger | Path | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm = norm
        self.classes = classes
        self.ledger = ledger
        self.random_state = random_state

    def _plan(self, budget: FitBudget) -> FitPlan:
        return EquationsPlan.within(type(self).__name__, self.rule_, self.target_, budget)

    def predict_proba(self, X: object) -> Floats:
        """Scores brought to [0, 1]; the order is that of the scores, and they are not calibrated."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            second = expit(4 * scores)
            return np.column_stack([1 - second, second])
        found: Floats = softmax(4 * scores, axis=1)
        return found


class LeastSquaresRegressor(ExactScores, RegressorMixin, LinearModel):  # type: ignore[misc]
    """Linear regression by least squares, (epsilon, delta)-DP for one row added or removed.

    Sums of products are released once with discrete Gaussian noise. Declare `bounds` of the columns and
    `target_bounds` of y: values outside are clamped. `interval` tells how sure each coefficient is.

    >>> rows = np.random.default_rng(1).uniform(0, 10, (5000, 1))
    >>> model = LeastSquaresRegressor(bounds=(0, 10), target_bounds=(0, 30), epsilon=10, random_state=1)
    >>> model.fit(rows, 3 * rows[:, 0]).coef_.round(1)
    array([3.])
    """

    learnt: ClassVar[tuple[str, ...]] = ("weights_", "errors_")
    errors_: Floats

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: tuple[float, float] | Sequence[tuple[float, float]] | None = None,
        target_bounds: Pair | None = None,
        norm: float | None = None,
        ledger: Ledger | Path | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.norm = norm
        self.ledger = ledger
        self.random_state = random_state

    def _target(self) -> TargetRule:
        owner = type(self).__name__
        if self.target_bounds is None:
            raise InvalidParameter(
                f"{owner} has no target_bounds. Declare what y can be, as in target_bounds=(0, 100)."
            )
        self.ends_ = one_pair(owner, self.target_bounds)
        return TargetRule(bounds=self.ends_)

    def _plan(self, budget: FitBudget) -> FitPlan:
        return EquationsPlan.within(type(self).__name__, self.rule_, self.target_, budget)

    def predict(self, X: object) -> Floats:
        """The value of each row, within the target's bounds."""
        lower, upper = self._ends()
        return np.clip(
            self._scores(X)[:, 0] * (upper / 2 - lower / 2) + (lower / 2 + upper / 2), lower, upper
        )

    def _ends(self) -> Pair:
        check_is_fitted(self, "weights_")
        return self.ends_

    @property
    def coef_(self) -> Floats:
        """Coefficients in units of y by units of each column."""
        lower, upper = self._ends()
        return np.asarray(self._line()[0][0] * (upper / 2 - lower / 2))

    @property
    def intercept_(self) -> float:
        """What a row of zeros gets."""
        lower, upper = self._ends()
        return float(self._line()[1][0] * (upper / 2 - lower / 2) + (lower / 2 + upper / 2))

    def intervals(self, confidence: float = 0.95) -> Floats:
        """A lower and an upper end for each coefficient, by the noise alone, to first order.

        They are about the coefficients that the same rows would have given without noise, not about those of
        other rows. NaN where the noise was so large that the equations had to be held against it.
        """
        lower, upper = self._ends()
        sure = check.confidence("intervals", confidence)
        wide = -float(ndtri((1 - sure) / 2)) * (upper / 2 - lower / 2)
        reach = self.errors_[:-1, 0] * self._factors()[0] * wide
        return np.asarray(np.column_stack([self.coef_ - reach, self.coef_ + reach]))
