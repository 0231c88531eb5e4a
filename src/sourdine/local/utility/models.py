"""Classifiers to be tried on cleaned tables, and how good their guesses are.

Naive Bayes is here: numbers are normal within a class, keys have a share each. Logistic regression and a
decision tree are those of scikit-learn, where it is installed.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
NO_LABEL = -1
"""The label of a row from which nothing is learned, and by which nothing is tested."""
_SMOOTHING = 1e-9  # of the largest variance, as scikit-learn has it
_DEPTH = 5  # of a tree: noise makes deeper ones learn it by heart


class LearningModel(StrEnum):
    """What learns."""

    NAIVE_BAYES = "naive-bayes"
    LOGISTIC = "logistic"
    TREE = "tree"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn from or to test by: features, and the place of each row's label among the classes.

    `keys` tells for each feature how many keys it has, whose places are the values; 0 is for a number.
    """

    features: Floats
    labels: Places
    keys: tuple[int, ...]
    classes: int

    def part(self, rows: Places) -> "Rows":
        """Some rows, without those that have no label."""
        places = rows[self.labels[rows] != NO_LABEL]
        return Rows(self.features[places], self.labels[places], self.keys, self.classes)


class Classifier(Protocol):
    """What was learned."""

    def guess(self, features: Floats) -> Places:
        """The likeliest class of each row."""


@dataclass(frozen=True, eq=False)
class MixedNaiveBayes:
    """For each class its share, mean and variance of each number, and the share of each key.

    `numbers` and `categories` say which features are which; without them all are numbers.
    """

    shares: Floats
    means: Floats
    variances: Floats
    numbers: tuple[int, ...] | None = None
    categories: tuple[int, ...] = ()
    tables: tuple[Floats, ...] = ()

    @classmethod
    def fitted(cls, rows: Rows) -> "MixedNaiveBayes":
        """What rows say; a class that has none has no share. Every key of a class counts once more."""
        numbers = tuple(place for place, keys in enumerate(rows.keys) if not keys)
        categories = tuple(place for place, keys in enumerate(rows.keys) if keys)
        values = rows.features[:, numbers]
        inside = [rows.labels == k for k in range(rows.classes)]
        parts = [values[each] if each.any() else values for each in inside]
        least = _SMOOTHING * values.var(axis=0).max() if numbers and len(values) else 0.0
        tables = []
        for place in categories:
            cells = rows.features[:, place].astype(np.int64)
            counts = [np.bincount(cells[each], minlength=rows.keys[place]) for each in inside]
            tables.append(
                (np.array(counts) + 1.0) / (np.sum(counts, axis=1, keepdims=True) + rows.keys[place])
            )
        return cls(
            np.array([each.mean() for each in inside]),
            np.array([part.mean(axis=0) for part in parts]),
            np.array([part.var(axis=0) + least for part in parts]),
            numbers,
            categories,
            tuple(tables),
        )

    def guess(self, features: Floats) -> Places:
        values = features if self.numbers is None else features[:, self.numbers]
        variances = np.maximum(self.variances, np.finfo(float).tiny)
        away = (values[:, None, :] - self.means) ** 2 / variances + np.log(variances)
        with np.errstate(divide="ignore"):
            score = np.log(self.shares) - away.sum(axis=2) / 2
        for place, table in zip(self.categories, self.tables, strict=True):
            score += np.log(table)[:, features[:, place].astype(np.int64)].T
        guesses: Places = score.argmax(axis=1)
        return guesses


@dataclass(frozen=True)
class Always:
    """Whatever the row, the same class."""

    place: int

    @classmethod
    def commonest(cls, rows: Rows) -> "Always":
        """The class that most rows have; the first where none has any."""
        return cls(int(np.bincount(rows.labels, minlength=rows.classes).argmax()))

    def guess(self, features: Floats) -> Places:
        return np.full(len(features), self.place, np.int64)


def learn(model: LearningModel, rows: Rows) -> Classifier:
    """A classifier learned from rows; where all are of one class, it knows that class alone."""
    if len(np.unique(rows.labels)) < 2:
        return Always.commonest(rows)
    return (
        MixedNaiveBayes.fitted(rows) if model is LearningModel.NAIVE_BAYES else _Foreign.fitted(model, rows)
    )


def check_installed(model: LearningModel) -> None:
    """Refuse a model of scikit-learn where that is not installed."""
    if model is LearningModel.NAIVE_BAYES:
        return
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise InvalidParameter(
            f"The model {model} is scikit-learn's, which is not installed. Install it, as in pip install "
            f"scikit-learn, or take {LearningModel.NAIVE_BAYES}, which needs nothing."
        ) from None


class _Estimator(Protocol):
    def fit(self, features: Floats, labels: Places) -> object: ...

    def predict(self, features: Floats) -> Places: ...


@dataclass(frozen=True, eq=False)
class _Foreign:
    """An estimator of scikit-learn: numbers by their mean and deviation, a column for each key."""

    estimator: _Estimator
    keys: tuple[int, ...]
    middle: Floats
    spread: Floats

    @classmethod
    def fitted(cls, model: LearningModel, rows: Rows) -> "_Foreign":
        spread = rows.features.std(axis=0)
        classifier = cls(
            _estimator(model), rows.keys, rows.features.mean(axis=0), np.where(spread > 0, spread, 1.0)
        )
        classifier.estimator.fit(classifier._design(rows.features), rows.labels)
        return classifier

    def _design(self, features: Floats) -> Floats:
        parts = [
            (features[:, place, None] == np.arange(keys)).astype(float)
            if keys
            else (features[:, place, None] - self.middle[place]) / self.spread[place]
            for place, keys in enumerate(self.keys)
        ]
        return np.concatenate(parts, axis=1)

    def guess(self, features: Floats) -> Places:
        return np.asarray(self.estimator.predict(self._design(features)), np.int64)


def _estimator(model: LearningModel) -> _Estimator:
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    estimator: _Estimator = (
        LogisticRegression(max_iter=1000)
        if model is LearningModel.LOGISTIC
        else DecisionTreeClassifier(max_depth=_DEPTH, random_state=0)
    )
    return estimator


@dataclass(frozen=True, eq=False)
class Scores:
    """Accuracy and F1 of several classifiers, one for each cleaning."""

    accuracy: Floats
    f1: Floats

    @classmethod
    def of(cls, pairs: list[tuple[float, float]]) -> "Scores":
        """From pairs of accuracy and F1."""
        table = np.array(pairs, float).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])


def quality(truth: Places, guess: Places, classes: int) -> tuple[float, float]:
    """Accuracy, and F1 of the last of two classes; of more, the mean of all classes' F1.

    >>> quality(np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0]), 2)
    (0.5, 0.5)
    """
    if not len(truth):
        return 0.0, 0.0
    labels = (1,) if classes == 2 else range(classes)
    scores = []
    for k in labels:
        both = float(((truth == k) & (guess == k)).sum())
        either = float((truth == k).sum() + (guess == k).sum())
        scores.append(2 * both / either if either else 0.0)
    return float((truth == guess).mean()), float(np.mean(scores))
