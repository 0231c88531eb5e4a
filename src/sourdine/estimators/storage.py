"""Fitted models back from JSON: parameters, what was learnt, and what it cost."""

import importlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from sourdine.accounting.spend import Spend
from sourdine.core.errors import InvalidParameter
from sourdine.estimators.payment import FORMAT, PrivateEstimator

_HOMES = {
    "KMeans": "clusters",
    "LeastSquaresClassifier": "linear",
    "LeastSquaresRegressor": "linear",
    "LogisticRegression": "logistic",
    "NaiveBayes": "naive_bayes",
    "PCA": "components",
    "StandardScaler": "scaling",
}


def from_json(text: str) -> PrivateEstimator:
    """The fitted model that a text of `to_json` holds; the receipt stays with the ledger."""
    try:
        described = json.loads(text)
        if described["format"] != FORMAT:
            raise KeyError("format")
        return _restored(described)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        if isinstance(problem, InvalidParameter):
            raise
        raise InvalidParameter(
            f"The text is no model of the format {FORMAT}. Pass what to_json() returned, unchanged."
        ) from problem


def _restored(described: Mapping[str, Any]) -> PrivateEstimator:
    name = described["model"]
    home = importlib.import_module(f"sourdine.estimators.{_HOMES[name]}")
    model: PrivateEstimator = getattr(home, name)(**_pairs(described["parameters"]))
    model.n_features_in_ = int(described["columns"])
    if described["names"] is not None:
        model.feature_names_in_ = np.array(described["names"], dtype=np.object_)
    model.declare(model.n_features_in_)
    for each in model.learnt:
        setattr(model, each, _array(described["learnt"][each]))
    model.spends_ = tuple(Spend.from_json(spend) for spend in described["spends"])
    model.epsilon_, model.delta_ = float(described["epsilon"]), float(described["delta"])
    model.secure_, model.notes_ = bool(described["secure"]), tuple(described["notes"])
    model.receipt_ = None
    return model


def _pairs(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as they were given: a pair of bounds is a tuple."""
    bounds = parameters.get("bounds")
    flat = isinstance(bounds, list) and not any(isinstance(each, list) for each in bounds)
    return {**parameters, **({"bounds": tuple(bounds)} if flat and bounds is not None else {})}


def _array(value: object) -> Any:
    """Numbers again, None as NaN."""
    return np.array(value, dtype=np.float64)
