"""Naive Bayes from noisy counts of bins by class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.spend import Spend
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.random.bits import Bits
from sourdine.estimators.binning import BinRule, bin_rules
from sourdine.estimators.moments import deviation
from sourdine.estimators.payment import (
    ExactScores,
    FitBudget,
    FitPlan,
    PrivateEstimator,
    codes,
    declared_classes,
)
from sourdine.estimators.rows import Floats
from sourdine.estimators.shapes import Array, used_matrix
from sourdine.mechanisms.gaussian import Gaussian


@dataclass(frozen=True, kw_only=True)
class CountsPlan:
    """How many rows of each class there are in all, and in each bin of each column, with Gaussian noise."""

    rules: tuple[BinRule, ...]
    classes: Array
    mechanism: Gaussian
    neighbours: Neighbours

    @classmethod
    def within(cls, rules: tuple[BinRule, ...], classes: Array, budget: FitBudget) -> "CountsPlan":
        """The least noise within a budget."""
        mechanism = Gaussian(sigma=deviation(_moved(len(rules), budget.neighbours), budget.rho, 1))
        return cls(rules=rules, classes=classes, mechanism=mechanism, neighbours=budget.neighbours)

    @property
    def spends(self) -> tuple[Spend, ...]:
        """One release of all counts."""
        distance = _moved(len(self.rules), self.neighbours)
        return (Spend(mechanism=self.mechanism, distance=distance),)

    def run(self, rows: Array, targets: Array | None, bits: Bits) -> Mapping[str, object]:
        """Log chances of a bin given a class, for the bins of all columns, and of a class."""
        assert targets is not None
        many = len(self.classes)
        places = codes(self.classes, targets)
        known = places >= 0
        counts = [np.bincount(places[known], minlength=many)[:, None]]
        for rule, values in zip(self.rules, rows.T, strict=True):
            bins = rule.places(values)
            both = known & (bins >= 0)
            cells = np.bincount(places[both] * rule.bins + bins[both], minlength=many * rule.bins)
            counts.append(cells.reshape(many, rule.bins))
        noisy = self.mechanism.sample(np.concatenate(counts, axis=1), bits).astype(np.float64)
        return self._read(noisy)

    def _read(self, noisy: Floats) -> Mapping[str, object]:
        """Counts below what the noise could make of nothing are taken for less, and none for 0."""
        doubt = 1 + float(self.mechanism.sigma) / 2
        held = np.maximum(noisy, 0) + doubt
        start, parts = 1, []
        for rule in self.rules:
            part = held[:, start : start + rule.bins]
            parts.append(np.log(part) - np.log(part.sum(axis=1, keepdims=True)))
            start += rule.bins
        priors = held[:, 0]
        return {"log_bins_": np.concatenate(parts, axis=1), "log_classes_": np.log(priors / priors.sum())}


def _moved(columns: int, neighbours: Neighbours) -> Distance:
    """A row counts once in its class and once in a bin of each column; one that is replaced leaves and
    enters."""
    moved = (columns + 1) * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
    return Distance.l2(square=moved, coordinates=moved, neighbours=neighbours)


class NaiveBayes(ExactScores, ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Naive Bayes over declared bins, (epsilon, delta)-DP for one row added or removed.

    Counts of each bin by class are released once with discrete Gaussian noise. `bounds` declares each column:
    a pair, cut into so many `bins`; edges of bins; or a list of categories. Rows with a label that was not
    declared count for nothing.

    >>> rows = np.random.default_rng(1).uniform(0, 10, (2000, 2))
    >>> model = NaiveBayes(bounds=(0, 10), classes=[0, 1], random_state=1)
    >>> model.fit(rows, rows[:, 0] > 5).predict([[9, 1], [1, 9]]).tolist()
    [1, 0]
    """

    learnt: ClassVar[tuple[str, ...]] = ("log_bins_", "log_classes_")
    rules_: tuple[BinRule, ...]
    log_bins_: Floats
    log_classes_: Floats

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: tuple[float, float] | Sequence[Sequence[object]] | None = None,
        bins: int | Sequence[int] = 8,
        classes: Sequence[object] | None = None,
        ledger: Ledger | Path | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bins = bins
        self.classes = classes
        self.ledger = ledger
        self.random_state = random_state

    def declare(self, width: int) -> None:
        self.classes_ = declared_classes(self, self.classes)
        self.rules_ = bin_rules(type(self).__name__, self.bounds, self.bins, width)

    def _plan(self, budget: FitBudget) -> FitPlan:
        return CountsPlan.within(self.rules_, self.classes_, budget)

    def fit(self, X: object, y: object) -> Self:
        """Fit and pay: (epsilon, delta)-DP for one row, charged to the ledger before the rows are read."""
        return self._fit(X, y)

    def predict_joint_log_proba(self, X: object) -> Floats:
        """The logarithm of the chance of each class together with the row."""
        looked, start = used_matrix(self, X), 0
        found = np.tile(self.log_classes_, (len(looked), 1))
        for rule, values in zip(self.rules_, looked.T, strict=True):
            places = rule.places(values)
            part = self.log_bins_[:, start : start + rule.bins]
            found += np.where(places[:, None] >= 0, part.T[np.maximum(places, 0)], 0.0)
            start += rule.bins
        return found

    def predict(self, X: object) -> Array:
        """The class of each row."""
        places = self.predict_joint_log_proba(X).argmax(axis=1)
        found: Array = self.classes_[places]
        return found

    def predict_proba(self, X: object) -> Floats:
        """The chance of each class."""
        found: Floats = softmax(self.predict_joint_log_proba(X), axis=1)
        return found

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags
