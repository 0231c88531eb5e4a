"""scikit-learn's own checks of estimators, with what cannot hold under privacy named and explained."""

from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from sourdine import estimators
from sourdine.estimators.payment import PrivateEstimator

_TELLS = "an error over a value, or over how many rows there are, would tell of them"
FAIL_ALWAYS = {
    "check_dtype_object": _TELLS,
    "check_estimators_empty_data_messages": _TELLS,
    "check_classifiers_regression_target": _TELLS,
    "check_clustering": "labels of the rows were not paid for, so there is no labels_",
    "check_estimator_sparse_array": "sets with_mean of scikit-learn's own scaler by its name",
    "check_estimator_sparse_matrix": "sets with_mean of scikit-learn's own scaler by its name",
}
FAIL_WITH_NOISE = FAIL_ALWAYS | {
    "check_classifiers_train": "a few dozen rows, and noise for one of them",
    "check_classifiers_classes": "a few dozen rows, and noise for one of them",
    "check_classifiers_one_label": "a few dozen rows, and noise for one of them",
    "check_regressors_train": "a few dozen rows, and noise for one of them",
    "check_estimators_overwrite_params": "nothing is overwritten; noise differs",
}


class DeclaredByTheTest:
    """Declares what the rows hold, which is never done with real ones: the checks bring rows of their own."""

    def fit(self, X: Any, y: Any = None) -> Any:
        values = (
            np.asarray(X, dtype=float) if not hasattr(X, "toarray") and np.ndim(X) == 2 else np.zeros((1, 1))
        )
        low, high = (float(np.nanmin(values, initial=0)), float(np.nanmax(values, initial=0)))
        self._seen, self._targets = (low, high if high > low else low + 1), y
        return super().fit(X) if y is None else super().fit(X, y)  # type: ignore[misc]

    def declare(self, width: int) -> None:
        mine: Any = self
        kept = {
            name: getattr(mine, name)
            for name in ("bounds", "classes", "target_bounds")
            if hasattr(mine, name)
        }
        mine.bounds = self._seen
        targets = np.array([]) if self._targets is None else np.array(list(self._targets))
        if "classes" in kept:
            known = np.unique(targets)
            mine.classes = (
                known if len(known) > 1 else [*known, *(["other"] if known.dtype.kind in "UO" else [99])]
            )
        if "target_bounds" in kept:
            low, high = float(targets.min()), float(targets.max())
            mine.target_bounds = (low, high if high > low else low + 1)
        try:
            super().declare(width)  # type: ignore[misc]
        finally:
            for name, value in kept.items():
                setattr(mine, name, value)


class LeastSquaresClassifier(DeclaredByTheTest, estimators.LeastSquaresClassifier):
    """With declarations of the test."""


class LeastSquaresRegressor(DeclaredByTheTest, estimators.LeastSquaresRegressor):
    """With declarations of the test."""


class LogisticRegression(DeclaredByTheTest, estimators.LogisticRegression):
    """With declarations of the test."""


class NaiveBayes(DeclaredByTheTest, estimators.NaiveBayes):
    """With declarations of the test."""


class StandardScaler(DeclaredByTheTest, estimators.StandardScaler):
    """With declarations of the test."""


class PCA(DeclaredByTheTest, estimators.PCA):
    """With declarations of the test."""


class KMeans(DeclaredByTheTest, estimators.KMeans):
    """With declarations of the test."""


ALL = [
    LeastSquaresClassifier,
    LeastSquaresRegressor,
    LogisticRegression,
    NaiveBayes,
    StandardScaler,
    PCA,
    KMeans,
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("epsilon", [1.0, 1e5])
def test_checks_of_scikit_learn(kind: type[PrivateEstimator], epsilon: float) -> None:
    expected = FAIL_WITH_NOISE if epsilon == 1 else FAIL_ALWAYS
    model = kind(epsilon=epsilon)
    found = check_estimator(model, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {
        each["check_name"]: str(each["exception"])[:300] for each in found if each["status"] == "failed"
    }
    assert failed == {}


@pytest.mark.filterwarnings("ignore")
def test_checks_of_bins() -> None:
    found = check_estimator(
        estimators.Binner(bounds=(-5, 5)),
        expected_failed_checks={"check_estimators_empty_data_messages": _TELLS},
        on_fail=None,
        on_skip=None,
    )
    assert [each["check_name"] for each in found if each["status"] == "failed"] == []
