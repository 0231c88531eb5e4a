"""Every estimator as its tests use it: declared for made-up rows of four numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.estimators import (
    PCA,
    KMeans,
    LeastSquaresClassifier,
    LeastSquaresRegressor,
    LogisticRegression,
    NaiveBayes,
    StandardScaler,
)
from sourdine.estimators.payment import PrivateEstimator

BOUNDS = [(-1.0, 3.0), (0.0, 100.0), (-5.0, 5.0), (0.0, 1.0)]
Make = Callable[..., PrivateEstimator]

ESTIMATORS: dict[str, Make] = {
    "least squares": lambda **more: LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1], **more),
    "three classes": lambda **more: LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1, 2], **more),
    "with a norm": lambda **more: LeastSquaresClassifier(bounds=BOUNDS, norm=0.5, classes=[0, 1], **more),
    "regression": lambda **more: LeastSquaresRegressor(bounds=BOUNDS, target_bounds=(0, 2), **more),
    "logistic": lambda **more: LogisticRegression(bounds=BOUNDS, classes=[0, 1], **more),
    "logistic, three": lambda **more: LogisticRegression(norm=2, classes=[0, 1, 2], **more),
    "naive Bayes": lambda **more: NaiveBayes(bounds=BOUNDS, bins=5, classes=[0, 1, 2], **more),
    "scaler": lambda **more: StandardScaler(bounds=BOUNDS, **more),
    "components": lambda **more: PCA(2, bounds=BOUNDS, **more),
    "k-means": lambda **more: KMeans(3, bounds=BOUNDS, rounds=2, **more),
}


def made_up(count: int, seed: int = 1) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows within the bounds, and classes that hang on the first column."""
    draw = np.random.default_rng(seed)
    lower, upper = np.array(BOUNDS).T
    rows = draw.uniform(lower, upper, (count, 4))
    return rows, (rows[:, 0] > 1).astype(np.int64)


def odd_rows() -> list[tuple[NDArray[Any], int]]:
    """Single rows as nobody would like them, each with a target."""
    far = np.array([1e308, -1e308, np.inf, -np.inf])
    return [
        (np.array([3.0, 100.0, 5.0, 1.0]), 1),
        (np.array([-1.0, 0.0, -5.0, 0.0]), 0),
        (far, 1),
        (-far, 2),
        (np.full(4, np.nan), 1),
        (np.array([np.nan, 1e-320, 7.0, -0.0]), 7),
        (np.array([1.0, 50.0, 0.0, 0.5]), -1),
        (np.array([2.9999999999999996, 99.99999999999999, 5.0, 0.9999999999999999]), 1),
    ]
