"""What every estimator does alike: look at shapes only, fix the sums, pay for them, and only then read."""

import json
import math
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sourdine.accounting.certificate.card import Card
from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.accounting.ledger.budget import ConcentratedBudget
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.release import Release
from sourdine.accounting.spend import Spend
from sourdine.accounting.zcdp import ZeroConcentrated
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import plain
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.estimators.rows import MOST_COLUMNS
from sourdine.estimators.shapes import Array, fitted_pair, refuse_other_kind
from sourdine.testing import SeededBits

_MOST_EPSILON = 1 << 20
FORMAT = "sourdine.estimator/1"


class ExactScoreWarning(UserWarning):
    """A score that was computed from private rows exactly, and what was chosen by it, is not private."""


@dataclass(frozen=True)
class FitBudget:
    """What a fit may cost: rho in all, for these neighbours."""

    rho: Fraction
    neighbours: Neighbours

    def share(self, part: Fraction) -> "FitBudget":
        """A part of it."""
        return replace(self, rho=self.rho * part)


class FitPlan(Protocol):
    """All that will be released of the rows, fixed before they are looked at."""

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What is paid for, as one block."""
        ...

    def run(self, rows: Array, targets: Array | None, bits: Bits) -> Mapping[str, object]:
        """The fitted attributes. Total: whatever the values are, it raises nothing that they could decide."""
        ...


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose every fit is (epsilon, delta)-DP for one row, and is paid before rows are read.

    The unit is one row: neighbours are tables where a row is added or removed, or replaced where the ledger
    says so. The number of columns, their names and types are public, as are all parameters.
    """

    epsilon: float
    delta: float
    ledger: Ledger | Path | str | None
    random_state: int | None
    spends_: tuple[Spend, ...]
    receipt_: Receipt | None
    notes_: tuple[str, ...]

    learnt: ClassVar[tuple[str, ...]] = ()
    """The fitted attributes that a model consists of, all of them arrays."""

    def declare(self, width: int) -> None:
        """Keep what the declarations say of rows of so many columns; nothing of the data is known yet."""
        raise NotImplementedError

    def _plan(self, budget: FitBudget) -> FitPlan:
        """The sums, within a budget, after `declare`."""
        raise NotImplementedError

    def _declared(self) -> dict[str, str]:
        """What the fit rests on, for the ledger and the card."""
        hidden = {"epsilon", "delta", "ledger", "random_state"}
        given = self.get_params(deep=False)
        return {name: _short(value) for name, value in given.items() if name not in hidden}

    def _fit(self, rows: object, targets: object = None) -> Self:
        """Look at shapes, plan, pay, read."""
        bits = seeded_or_system(self, self.random_state)
        looked, labels = fitted_pair(self, rows, targets)
        with opened(self.ledger) as payer:
            neighbours = Neighbours.ADD_REMOVE if payer is None else payer.terms.neighbours
            plan = self.plan(looked.shape[1], neighbours)
            if hasattr(self, "classes_"):
                refuse_other_kind(type(self).__name__, self.classes_, targets)
            receipt = None
            if payer is not None:
                receipt = payer.charge(
                    *plan.spends,
                    purpose=f"fit {type(self).__name__}",
                    secure=bits.secure,
                    declared=self._declared(),
                )
        self._keep(plan, receipt, bits, plan.run(looked, labels, bits))
        if _in_model_selection():
            warnings.warn(
                "This fit was paid for. The scores of cross-validation are exact, so they, and what is "
                "chosen by them, are not private: do not publish them, and take PrivateSearchCV to choose.",
                ExactScoreWarning,
                stacklevel=3,
            )
            self.notes_ = (*self.notes_, _EXACT)
        return self

    def plan(self, width: int, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> FitPlan:
        """What a fit to rows of so many columns will release and spend; no row is needed."""
        self.declare(check.integer(type(self).__name__, "width", width, 1, MOST_COLUMNS))
        return self._plan(budget_of(self, neighbours))

    def _keep(self, plan: FitPlan, receipt: Receipt | None, bits: Bits, fitted: Mapping[str, object]) -> None:
        """Fitted attributes, as scikit-learn names them."""
        accountant = ZeroConcentrated()
        cost = accountant.lift(plan.spends[0].loss())
        for spend in plan.spends[1:]:
            cost = accountant.join(cost, accountant.lift(spend.loss()))
        self.spends_, self.receipt_ = plan.spends, receipt
        self.delta_ = float(self.delta)
        self.epsilon_ = accountant.epsilon(cost, self.delta_).upper
        self.secure_ = bits.secure
        self.notes_ = () if bits.secure else (_SEEDED,)
        for name, value in fitted.items():
            setattr(self, name, value)

    def release(self) -> Release:
        """The fit as a release: what it cost and the receipt, so that it can be certified."""
        check_is_fitted(self)
        return Release(
            values=self.parameters(),
            intervals=None,
            spends=self.spends_,
            receipt=self.receipt_,
            secure=self.secure_,
            notes=self.notes_,
            declarations=self._declared(),
        )

    def parameters(self) -> dict[str, Array]:
        """What was learnt, by name."""
        check_is_fitted(self)
        return {name: getattr(self, name) for name in self.learnt}

    def card(self, *, name: str | None = None) -> Card:
        """The card that goes with the model; with the ledger that paid, its certificate is part of it."""
        check_is_fitted(self)
        facts = {
            "model": type(self).__name__,
            "epsilon": f"{self.epsilon_:.6g}",
            "delta": plain(self.delta_),
            "unit": "row",
            "neighbours": str(self.spends_[0].distance.neighbours),
            "noise bits": "secure" if self.secure_ else "SEEDED: this model protects nobody",
        } | self._declared()
        paid = self.receipt_ is not None and self.ledger is not None
        return Card(
            name=name or f"{type(self).__name__}, fitted with differential privacy",
            facts=facts,
            assumptions=(*_ASSUMPTIONS, *self.notes_),
            limits=_LIMITS,
            certificate=self.release().certificate(self.ledger) if paid and self.ledger is not None else None,
        )

    def to_json(self) -> str:
        """The fitted model as text, for `sourdine.estimators.from_json`: nothing that was not paid for."""
        check_is_fitted(self)
        given = {name: value for name, value in self.get_params(deep=False).items() if name != "ledger"}
        names = getattr(self, "feature_names_in_", None)
        described = {
            "format": FORMAT,
            "model": type(self).__name__,
            "parameters": {name: _plain(value) for name, value in given.items()},
            "columns": self.n_features_in_,
            "names": None if names is None else list(names),
            "learnt": {name: _plain(value) for name, value in self.parameters().items()},
            "spends": [spend.to_json() for spend in self.spends_],
            "epsilon": self.epsilon_,
            "delta": self.delta_,
            "secure": self.secure_,
            "notes": list(self.notes_),
        }
        return json.dumps(described, indent=1, allow_nan=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # an error over a value would tell of it
        tags.input_tags.sparse = False
        return tags


class ExactScores:
    """Mix-in before scikit-learn's own, whose scores read rows exactly: each call warns of it.

    Privacy:
        None. A score is for the holder of the rows, unless these are public.
    """

    def score(self, X: object, *others: object, **named: object) -> float:
        """Return the score of scikit-learn's mix-in, and warn that it is not private."""
        warnings.warn(
            "This score is exact, so it is not private: do not publish it, unless the rows are public.",
            ExactScoreWarning,
            stacklevel=2,
        )
        return float(super().score(X, *others, **named))  # type: ignore[misc]


_ASSUMPTIONS = (
    "The unit is one row. Where a person has several, each row is protected by itself.",
    "Bounds, classes and all other parameters were chosen without looking at these rows.",
)
_LIMITS = (
    "Other fits on the same rows, and scores computed from them, cost extra and are not counted here.",
    "The guarantee is about one row. What is true of a whole group may be learnt, and should be.",
)
_SEEDED = "A random_state makes the noise repeatable: this model protects nobody."
_EXACT = "Fitted inside a cross-validation, whose exact scores are not private."


def budget_of(estimator: PrivateEstimator, neighbours: Neighbours) -> FitBudget:
    """What the declared epsilon and delta allow."""
    owner = type(estimator).__name__
    epsilon = check.positive(owner, "epsilon", estimator.epsilon, _MOST_EPSILON)  # exact, as a ledger has it
    delta = float(check.inside(owner, "delta", estimator.delta, 0, 1))  # Gaussian noise needs one
    return FitBudget(ConcentratedBudget.within(epsilon, delta).limit, neighbours)


def seeded_or_system(estimator: BaseEstimator, random_state: object) -> Bits:
    """Secure bits, unless a seed is given: then noise can be repeated, and nobody is protected."""
    if random_state is None:
        return SYSTEM
    return SeededBits(check.integer(type(estimator).__name__, "random_state", random_state, 0, (1 << 64) - 1))


def codes(classes: Array, labels: ArrayLike) -> NDArray[np.int64]:
    """The place of each label among the declared classes; -1 for one that was not declared.

    >>> codes(np.array(["no", "yes"]), ["yes", "perhaps", None, "no"]).tolist()
    [1, -1, -1, 0]
    """
    given = np.asarray(labels)
    numeric = "iufb"
    if classes.dtype.kind in numeric and given.dtype.kind in numeric:
        wanted = given.astype(np.float64)
        order = np.argsort(classes)
        known = classes[order].astype(np.float64)
        place = np.clip(np.searchsorted(known, wanted), 0, len(known) - 1)
        return np.where(known[place] == wanted, order[place], -1)
    places = {item: place for place, item in enumerate(classes.tolist())}
    return np.array([_place(places, item) for item in given.tolist()], np.int64)


def _place(places: dict[object, int], item: object) -> int:
    try:
        return places.get(item, -1)
    except TypeError:  # a list or such is no label
        return -1


def declared_classes(estimator: BaseEstimator, classes: object) -> Array:
    """Declared labels in scikit-learn's order, two or more, each once."""
    owner = type(estimator).__name__
    if classes is None:
        raise InvalidParameter(
            f"{owner} has no classes. They are never read from the data, which would tell of a rare one. "
            "Declare them, as in classes=[0, 1]."
        )
    listed = np.asarray(classes)
    if listed.ndim != 1 or len(listed) < 2:
        raise check.fail(owner, "classes", "be a list of two labels or more", classes)
    if listed.dtype.kind not in "iufbUO":
        raise check.fail(owner, "classes", "be numbers or texts", classes)
    found: Array = np.unique(listed)
    if len(found) < len(listed):
        raise check.fail(owner, "classes", "name each label once", classes)
    return found


def _in_model_selection() -> bool:
    """Whether scikit-learn's search or cross-validation asked for this fit."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection"):
            return True
        frame = frame.f_back
    return False


def _short(value: object) -> str:
    """A parameter as the ledger keeps it."""
    shown = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return shown if len(shown) <= 2000 else shown[:1997] + "..."


def _plain(value: object) -> object:
    """A value as JSON has it; what is no number is None."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple | range):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
