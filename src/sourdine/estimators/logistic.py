"""Logistic regression: private least squares first, then a few noisy Newton-like steps from there.

The matrix of least squares, already released, bounds the curvature of the logistic loss from above (a quarter
of it, Boehning and Lindsay 1988), so each step solves with it and needs only a new gradient. Chances are
whole numbers from a table, and products of whole rows and weights are exact: no row changes how another is
read.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.random.bits import Bits
from sourdine.estimators.linear import EquationsPlan, LinearClassifier, TargetRule
from sourdine.estimators.moments import ConstantRule, blocks, finest_unit, row_distance
from sourdine.estimators.payment import FitBudget, FitPlan, codes
from sourdine.estimators.rows import Floats
from sourdine.estimators.shapes import Array
from sourdine.mechanisms.gaussian import Gaussian

_ONE = 1 << 12  # a chance of 1
_FINE = 1 << 8  # steps of a score, by which chances are looked up
_FAR = 20  # a score this far below the best has no chance
_TABLE = np.rint(np.exp(-np.arange(_FAR * _FINE + 1) / _FINE) * (1 << 30)).astype(np.int64)
_WEIGHT_STEP, _MOST_WEIGHT = 2.0**-16, 2.0**11
_CURVATURE = 0.25
_EQUATIONS = Fraction(1, 2)  # of the budget for least squares
_RIDGE = 1.5
_START = 2.0  # a target of +-1 is about tanh of half a score


def chances(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Softmax in whole numbers: chances of `_ONE` in all at most, for scores in steps of 1/`_FINE`.

    >>> chances(np.array([[0, 0], [0, 256]])).tolist()
    [[2048, 2048], [1101, 2994]]
    """
    behind = np.clip(scores.max(axis=1, keepdims=True) - scores, 0, _FAR * _FINE)
    odds = _TABLE[behind]
    shares: NDArray[np.int64] = odds * _ONE // odds.sum(axis=1, keepdims=True)
    return shares


@dataclass(frozen=True, kw_only=True)
class LogisticPlan:
    """Least squares, then `steps` gradients, each with its noise."""

    equations: EquationsPlan
    steps: int
    unit: int
    mechanism: Gaussian
    neighbours: Neighbours

    @classmethod
    def within(
        cls, owner: str, rule: ConstantRule, target: TargetRule, steps: int, budget: FitBudget
    ) -> "LogisticPlan":
        """The least noise within a budget, half of which is for the equations."""
        equations = EquationsPlan.within(owner, rule, target, budget.share(_EQUATIONS))
        each = budget.share((1 - _EQUATIONS) / steps)
        unit, mechanism = finest_unit(
            owner, lambda unit: _moved(unit, target.width, budget.neighbours), each.rho, 1 << 12
        )
        return cls(
            equations=equations,
            steps=steps,
            unit=unit,
            mechanism=mechanism,
            neighbours=budget.neighbours,
        )

    @property
    def spends(self) -> tuple[Spend, ...]:
        """The equations, and all gradients."""
        distance = _moved(self.unit, self.equations.target.width, self.neighbours)
        gradients = Spend(mechanism=self.mechanism, distance=distance, count=self.steps)
        return (*self.equations.spends, gradients)

    def run(self, rows: Array, targets: Array | None, bits: Bits) -> Mapping[str, object]:
        """Weights of the scaled rows."""
        assert targets is not None
        noisy = self.equations.release(rows, targets, bits)
        values, vectors = np.linalg.eigh(noisy.matrix)
        held = np.maximum(values, _RIDGE * noisy.beside * math.sqrt(len(values)))

        def solve(columns: Floats) -> Floats:
            found: Floats = vectors @ ((vectors.T @ columns) / held[:, None])
            return found

        weights = _START * solve(noisy.columns)
        for _ in range(self.steps):
            weights = weights + solve(self._gradient(rows, targets, weights, bits)) / _CURVATURE
        return {"weights_": weights}

    def _gradient(self, rows: Array, targets: Array, weights: Floats, bits: Bits) -> Floats:
        """Where the weights should go, of rows of length 1, with noise."""
        rule, target = self.equations.rule, self.equations.target
        steps = np.rint(np.clip(weights, -_MOST_WEIGHT, _MOST_WEIGHT) / _WEIGHT_STEP)
        total = np.zeros(weights.shape)
        for some, labels in blocks(rows, targets):
            assert target.classes is not None
            places = codes(target.classes, labels)
            whole = rule.whole(some, self.unit) * (places >= 0)[:, None]
            raw = whole @ steps  # whole numbers below 2^53: exact in any order
            scores = np.rint(raw * (_WEIGHT_STEP / self.unit * _FINE)).astype(np.int64)
            if target.width == 1:
                scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
            residual = (places[:, None] == np.arange(scores.shape[1])) * _ONE - chances(scores)
            total += whole.T @ residual[:, -target.width :].astype(np.float64)
        noisy = self.mechanism.sample(total.astype(np.int64), bits)
        return noisy / (_ONE * float(self.unit))


def _moved(unit: int, width: int, neighbours: Neighbours) -> Distance:
    """How far a row moves a gradient.

    A residual is a class less chances that add up to 1 at most: no longer than 1 where one column counts, as
    with two classes, and than sqrt(2) in all (the class's own at most 1, and chances at most 1 together).
    """
    square = _ONE**2 * unit**2 * (1 if width == 1 else 2)
    return row_distance(square, None, neighbours)


class LogisticRegression(LinearClassifier):
    """Logistic regression, (epsilon, delta)-DP for one row added or removed.

    Half of the budget releases the equations of least squares, the other half `steps` gradients
    (docs/guarantees/estimators.md). Declare `bounds` of the columns, or the `norm` that rows are shortened
    to, or both; and the `classes`. Rows with a label that was not declared count for nothing.

    >>> rows = np.random.default_rng(1).uniform(0, 10, (2000, 2))
    >>> model = LogisticRegression(bounds=(0, 10), classes=[0, 1], random_state=1)
    >>> model.fit(rows, rows[:, 0] > 5).predict([[9, 1], [1, 9]]).tolist()
    [1, 0]
    """

    learnt: ClassVar[tuple[str, ...]] = ("weights_",)

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: tuple[float, float] | Sequence[tuple[float, float]] | None = None,
        norm: float | None = None,
        classes: Sequence[object] | None = None,
        steps: int = 3,
        ledger: Ledger | Path | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm = norm
        self.classes = classes
        self.steps = steps
        self.ledger = ledger
        self.random_state = random_state

    def _plan(self, budget: FitBudget) -> FitPlan:
        owner = type(self).__name__
        steps = check.integer(owner, "steps", self.steps, 1, 1000)
        return LogisticPlan.within(owner, self.rule_, self.target_, steps, budget)

    def predict_proba(self, X: object) -> Floats:
        """The chance of each class."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        found: Floats = softmax(scores, axis=1)
        return found
