"""Choosing among parameters privately: every candidate is paid for, and so is the choice."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.budget import ConcentratedBudget
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.spend import Spend
from sourdine.accounting.zcdp import RhoCost, ZeroConcentrated
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours, root_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.estimators.binning import Binner
from sourdine.estimators.payment import PrivateEstimator, seeded_or_system
from sourdine.estimators.rows import Pair, one_pair
from sourdine.estimators.shapes import Array, column, matrix
from sourdine.mechanisms.gaussian import Gaussian
from sourdine.mechanisms.selection import Exponential

_FOR_CHOICE = Fraction(1, 8)  # of rho
_STEPS = 1 << 20  # of a regression's score of one row
_LEAST = 0.999999  # what rounding to an epsilon and back may lose of a share


@dataclass(frozen=True)
class SearchBudget:
    """Rho for the fit of each candidate, and epsilon for the choice among them."""

    each: Fraction
    choice: Fraction

    @classmethod
    def within(cls, rho: Fraction, candidates: int) -> "SearchBudget":
        """An eighth of rho for the choice, whose epsilon e costs e^2/8, and the rest for the fits, evenly."""
        squared = 8 * rho * _FOR_CHOICE
        return cls(rho * (1 - _FOR_CHOICE) / candidates, Fraction(1) / root_above(1 / squared))


class PrivateSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A search over parameters that is (epsilon, delta)-DP as a whole, for one row added or removed.

    Each row is held out with the chance `holdout`, by a coin of its own. Every candidate is fitted to the
    other rows with an even share of the budget, and one is chosen by the exponential mechanism: its score is
    how many held-out rows it predicts rightly, or for numbers the sum of 1 - (error / width of
    `target_bounds`)^2, which a row moves by at most 1, and never downwards. The ledger pays for each fit and
    for the choice. The budget is that of the search; `epsilon` and `delta` of the estimator are set by it.
    Held-out rows are predicted one by one, about a thousand a second.

    >>> from sourdine.estimators import LeastSquaresClassifier
    >>> rows = np.random.default_rng(1).uniform(0, 10, (1000, 2))
    >>> model = LeastSquaresClassifier(bounds=(0, 10), classes=[0, 1])
    >>> search = PrivateSearchCV(model, {"norm": [0.01, 1]}, epsilon=5, random_state=1)
    >>> search.fit(rows, (rows[:, 0] > 3).astype(int)).best_params_
    {'norm': 1}
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        param_grid: Mapping[str, Sequence[object]] | Sequence[Mapping[str, Sequence[object]]],
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        holdout: float = 0.25,
        target_bounds: Pair | None = None,
        ledger: Ledger | Path | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.holdout = holdout
        self.target_bounds = target_bounds
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: object, y: object) -> Self:
        """Fit every candidate, choose one, and pay for all of it; nothing is charged for a wrong
        parameter."""
        owner = type(self).__name__
        bits = seeded_or_system(self, self.random_state)
        held = check.inside(owner, "holdout", self.holdout, 0, 1)
        epsilon = check.positive(owner, "epsilon", self.epsilon, 1 << 20)
        delta = float(check.inside(owner, "delta", self.delta, 0, 1))
        ends = None if is_classifier(self.estimator) else self._ends()
        rows = matrix(self, X, reset=True)
        labels = column(owner, y, rows)
        settings = list(ParameterGrid(self.param_grid))
        budget = SearchBudget.within(ConcentratedBudget.within(epsilon, delta).limit, len(settings))
        candidates = [self._prepared(each, budget.each, delta) for each in settings]
        for candidate in candidates:
            rehearse(candidate, rows[:0], labels[:0])
        with opened(self.ledger) as payer:
            related = Neighbours.ADD_REMOVE if payer is None else payer.terms.neighbours
            if related is not Neighbours.ADD_REMOVE:
                raise InvalidParameter(
                    f"{owner} is for rows that are added or removed, and the ledger is for {related} "
                    "neighbours. Use a ledger for add-remove ones."
                )
            if payer is not None:
                payer.check(_alike(ConcentratedBudget.within(epsilon, delta).limit))
        out = coins(bits, len(rows), held)
        for candidate in candidates:
            candidate.fit(rows[~out], labels[~out])
        most = 1 if ends is None else _STEPS
        mechanism = Exponential(
            epsilon=budget.choice, sensitivity=Fraction(most), candidates=len(settings), monotone=True
        )
        spend = Spend(mechanism=mechanism, distance=Distance.linf(most))
        with opened(self.ledger) as payer:
            self.receipt_ = (
                None
                if payer is None
                else payer.charge(spend, purpose=f"choose in {owner}", secure=bits.secure)
            )
        scores = [scored(candidate, rows[out], labels[out], ends) for candidate in candidates]
        chosen = int(mechanism.sample(scores, bits)) if len(settings) > 1 else 0
        self.best_params_, self.best_estimator_ = settings[chosen], candidates[chosen]
        self.spends_ = (
            *(each for one in candidates for part in private_parts(one) for each in part.spends_),
            spend,
        )
        self.epsilon_, self.delta_, self.secure_ = epsilon, delta, bits.secure
        if is_classifier(self.estimator):
            self.classes_ = self.best_estimator_.classes_
        return self

    def _ends(self) -> Pair:
        if self.target_bounds is None:
            raise InvalidParameter(
                "PrivateSearchCV of a regressor has no target_bounds. Declare what y can be, as in "
                "target_bounds=(0, 100): errors are judged by their width."
            )
        return one_pair("PrivateSearchCV", self.target_bounds)

    def _prepared(self, setting: Mapping[str, object], rho: Fraction, delta: float) -> Any:
        """A copy of the estimator with these parameters, whose private parts share rho evenly."""
        candidate = clone(self.estimator).set_params(**setting)
        parts = private_parts(candidate)
        if not parts:
            raise InvalidParameter(
                f"Nothing in {type(self.estimator).__name__} is private: a search would read the rows for "
                "nothing. Use estimators of sourdine.estimators."
            )
        share = Fraction(float(rho) / len(parts) * _LEAST)
        epsilon = ZeroConcentrated().epsilon(RhoCost(Neighbours.ADD_REMOVE, share), delta).upper
        for part in parts:
            part.set_params(epsilon=epsilon, delta=delta, ledger=self.ledger, random_state=self.random_state)
        return candidate

    def predict(self, X: object) -> Array:
        """What the chosen model says."""
        found: Array = self.best_estimator_.predict(self._looked(X))
        return found

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """The chances that the chosen model gives."""
        found: NDArray[np.float64] = self.best_estimator_.predict_proba(self._looked(X))
        return found

    def score(self, X: object, y: object) -> float:
        """Return the exact score of the chosen model, and warn that it is not private."""
        return float(self.best_estimator_.score(self._looked(X), y))

    def _looked(self, rows: object) -> Array:
        """Rows as the candidates were fitted to them; that columns have the same names is checked here."""
        check_is_fitted(self)
        return matrix(self, rows, reset=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = self.estimator.__sklearn_tags__().estimator_type
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True  # the estimator itself says whether it takes texts
        return tags


def private_parts(estimator: BaseEstimator) -> list[PrivateEstimator]:
    """The estimators inside one that pay, such as steps of a pipeline."""
    inner = estimator.get_params(deep=True).values()
    parts = [part for part in (estimator, *inner) if isinstance(part, PrivateEstimator)]
    return list({id(part): part for part in parts}.values())


def rehearse(estimator: BaseEstimator, rows: Array, labels: Array) -> None:
    """Fit a copy to no rows and pay nothing, so that a wrong parameter is found before anything is charged.

    Other libraries' steps cannot be fitted to nothing, so what has some is not rehearsed.
    """
    copy = clone(estimator)
    for part in private_parts(copy):
        part.set_params(ledger=None)
    steps = [step for _, step in copy.steps] if isinstance(copy, Pipeline) else [copy]
    if all(isinstance(step, PrivateEstimator | Binner) for step in steps):
        copy.fit(rows, labels)


def coins(bits: Bits, count: int, chance: Fraction) -> NDArray[np.bool_]:
    """For each row whether its own coin holds it out: with this chance, to 2^-64."""
    return bits.words(count) < np.uint64(min(int(chance * (1 << 64)), (1 << 64) - 1))


def scored(model: Any, rows: Array, labels: Array, ends: Pair | None) -> int:
    """How well a model does on held-out rows, as a sum in which each row counts at most 1, or `_STEPS`.

    Rows are predicted one by one: in a batch, one row more could change the last bit of another's score. A
    row that the model cannot take counts 0.
    """
    return sum(_points(model, rows, labels, ends))


def _points(model: Any, rows: Array, labels: Array, ends: Pair | None) -> Iterator[int]:
    for place in range(len(rows)):
        try:
            said = model.predict(rows[place : place + 1])[0]
            if ends is None:
                yield int(bool(said == labels[place]))
            else:
                error = (float(said) - min(max(float(labels[place]), ends[0]), ends[1])) / (ends[1] - ends[0])
                yield round((1 - min(error * error, 1.0)) * _STEPS)
        except Exception:  # whatever a row makes a model do, it must not tell of it
            yield 0


def _alike(rho: Fraction) -> Spend:
    """One spend of this rho, to ask a ledger whether it could pay."""
    return Spend(
        mechanism=Gaussian(sigma=max(root_above(1 / (2 * rho)), Fraction(1, 10))), distance=Distance.l2(1)
    )
