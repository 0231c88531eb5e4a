"""Cleaning, learning by Gaussian naive Bayes, and judging, many times over; and learning from local reports.

In the latter, in place of noisy rows, everybody has the same budget as in the source, nine times the epsilon
of a column. A third of it, but no more than 4, pays for the outcome by randomized response. With the rest a
person reports k of the eight features, drawn at random, each by an unbiased mechanism on its declared range:
fewer features, each with less noise, are better than all of them with much (Wang, Xiao, Yang, Zhao, Hui,
Shin, Shin, Yu 2019, where k is the budget divided by 2.5). As the noises of outcome and feature are
independent, the product of a weight without bias for "ill" and a report without bias has the mean P(ill)
E[feature | ill].
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sourdine.core.randomness.bits import Bits
from sourdine.experiments.cleaner.pima import DECLARED, FEATURES, OUTCOME, WHOLE, Floats, Pima, Truth
from sourdine.frames.output import relation_of
from sourdine.local.cleaner import Cleaner, Method
from sourdine.local.numeric.piecewise import Hybrid
from sourdine.mechanisms.bounded_laplace import BoundedLaplace
from sourdine.mechanisms.bounded_staircase import BoundedStaircase
from sourdine.mechanisms.randomized_response import KaryResponse

if TYPE_CHECKING:
    import duckdb

_SMOOTHING = 1e-9  # of the largest variance, as scikit-learn has it


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """For the healthy and the ill: how many they are, and mean and variance of each feature."""

    shares: Floats
    means: Floats
    variances: Floats

    @classmethod
    def fitted(cls, features: Floats, ill: Truth) -> "ClassMoments":
        """What records say of the two classes; one that is empty has no share."""
        parts = [features[ill == k] if (ill == k).any() else features for k in (False, True)]
        least = _SMOOTHING * features.var(axis=0).max()
        return cls(
            np.array([(ill == k).mean() for k in (False, True)]),
            np.array([part.mean(axis=0) for part in parts]),
            np.array([part.var(axis=0) + least for part in parts]),
        )

    def guess(self, features: Floats) -> Truth:
        """Who is ill, by what is likelier."""
        away = (features[:, None, :] - self.means) ** 2 / self.variances + np.log(self.variances)
        with np.errstate(divide="ignore"):
            score = np.log(self.shares) - away.sum(axis=2) / 2
        guess: Truth = score[:, 1] > score[:, 0]
        return guess


def quality(truth: Truth, guess: Truth) -> tuple[float, float]:
    """Accuracy, and F1 for the ill."""
    both = float((truth & guess).sum())
    either = float(truth.sum() + guess.sum())
    return float((truth == guess).mean()), 2 * both / either if either else 0.0


NOISED, LABELS, TRUE = "noised rows and labels", "noised rows, true labels", "true rows and labels"
JUDGED = (NOISED, LABELS, TRUE)
_CELLS = 1 << 16


@dataclass(frozen=True, eq=False)
class CleaningScores:
    """Accuracy and F1 of several cleanings, by what they are judged on."""

    accuracy: Mapping[str, Floats]
    f1: Mapping[str, Floats]

    def of(self, metric: str, judged: str) -> Floats:
        """All scores of one kind."""
        return (self.accuracy if metric == "accuracy" else self.f1)[judged]


@dataclass(frozen=True, eq=False)
class Cleanings:
    """The same table cleaned several times over, one after the other."""

    pima: Pima
    features: Floats
    ill: Truth
    truth: Floats  # the rows that people would put in themselves

    @cached_property
    def scores(self) -> CleaningScores:
        """Learn from the training rows of each, judge by its test rows."""
        train, test = self.pima.train, self.pima.test
        size = len(self.pima.ill)
        found: dict[str, list[tuple[float, float]]] = {judged: [] for judged in JUDGED}
        for start in range(0, len(self.ill), size):
            features, ill = self.features[start : start + size], self.ill[start : start + size]
            made = ClassMoments.fitted(features[train], ill[train])
            guess = made.guess(features[test])
            found[NOISED].append(quality(ill[test], guess))
            found[LABELS].append(quality(self.pima.ill[test], guess))
            found[TRUE].append(quality(self.pima.ill[test], made.guess(self.truth[test])))
        return scores_of(found)


def scores_of(found: Mapping[str, list[tuple[float, float]]]) -> CleaningScores:
    """Lists of pairs as arrays."""
    pairs = {judged: np.array(each) for judged, each in found.items()}
    return CleaningScores(
        {judged: each[:, 0] for judged, each in pairs.items()},
        {judged: each[:, 1] for judged, each in pairs.items()},
    )


def plain(pima: Pima, features: Floats) -> tuple[float, float]:
    """The scores without any noise."""
    made = ClassMoments.fitted(features[pima.train], pima.ill[pima.train])
    return quality(pima.ill[pima.test], made.guess(features[pima.test]))


def as_published(pima: Pima, epsilon: Fraction, method: Method, repeats: int, bits: Bits) -> Cleanings:
    """With bounds and medians of the table itself, and a staircase that is not calibrated: not private.

    Noise outside the bounds is drawn again, as in the source; these mechanisms have the very law of that.
    """
    truth = pima.with_medians()
    features = np.tile(truth, (repeats, 1))
    for i, name in enumerate(FEATURES):
        low, high = Fraction(truth[:, i].min()), Fraction(truth[:, i].max())
        noise = uncalibrated(epsilon, low, high, method)
        features[:, i] = noise.sample(features[:, i], bits)
        if name in WHOLE:
            features[:, i] = np.rint(features[:, i])
    return Cleanings(pima, features, noised_labels(pima, epsilon, repeats, bits), truth)


def uncalibrated(
    epsilon: Fraction, low: Fraction, high: Fraction, method: Method
) -> BoundedLaplace | BoundedStaircase:
    """Laplace noise of scale range/epsilon, or a staircase that falls by epsilon over the range."""
    if method is Method.LAPLACE:
        return BoundedLaplace.calibrated(epsilon=epsilon, lower=low, upper=high, cells=_CELLS)
    inner = round(_CELLS / (1 + exp(float(epsilon) / 2)))
    return BoundedStaircase(
        drop=epsilon, lower=low, upper=high, cells=_CELLS, period=_CELLS, inner=max(1, inner)
    )


def noised_labels(pima: Pima, epsilon: Fraction, repeats: int, bits: Bits) -> Truth:
    """Randomized response to the outcome."""
    answers = np.tile(pima.ill, repeats).astype(np.int64)
    return KaryResponse(epsilon=epsilon, categories=2).sample(answers, bits) > 0


def as_corrected(pima: Pima, epsilon: Fraction, method: Method, repeats: int, bits: Bits) -> Cleanings:
    """With declared bounds and typical values, by the table cleaner."""
    columns = {**DECLARED, OUTCOME: {"type": "flag", "missing": False}}
    cleaned = Cleaner(columns, each=epsilon, method=method).clean(
        _relation(pima, repeats), keep_order=True, bits=bits
    )
    features = np.column_stack([cleaned.columns[name].filled(0).astype(float) for name in FEATURES])
    return Cleanings(pima, features, cleaned.columns[OUTCOME].filled(0) > 0, pima.imputed())


def _relation(pima: Pima, repeats: int) -> "duckdb.DuckDBPyRelation":
    """The table several times over, as something to be cleaned."""
    held = {name: np.tile(values, repeats) for name, values in (pima.columns | {OUTCOME: pima.ill}).items()}
    return relation_of(held)


_LABEL, _MOST_LABEL = Fraction(1, 3), Fraction(4)
_WORTH = Fraction(5, 2)  # epsilon that one feature is worth reporting with
_VARIANCE = 0.1  # of every feature within a class, on [-1, 1]: declared, a sixth of the range as deviation
_SHARES = 0.05, 0.95


def learned(pima: Pima, epsilon: Fraction, repeats: int, bits: Bits) -> CleaningScores:
    """Scores of classes that were learned from reports, on true rows."""
    features = _scaled(pima.imputed())
    train, test = pima.train, pima.test
    found = []
    for _ in range(repeats):
        made = classes(features[train], pima.ill[train], (len(FEATURES) + 1) * epsilon, bits)
        found.append(quality(pima.ill[test], made.guess(features[test])))
    return scores_of({TRUE: found})


def division(budget: Fraction, features: int) -> tuple[Fraction, int, Fraction]:
    """The epsilon of the outcome, how many features a person reports, and the epsilon of each."""
    label = min(budget * _LABEL, _MOST_LABEL)
    count = max(1, min(features, int((budget - label) / _WORTH)))
    return label, count, (budget - label) / count


def classes(features: Floats, ill: NDArray[np.bool_], budget: Fraction, bits: Bits) -> ClassMoments:
    """What reports say of the healthy and the ill; features lie in [-1, 1]."""
    n, d = features.shape
    label, count, epsilon = division(budget, d)
    response = KaryResponse(epsilon=label, categories=2)
    p, q = response.channel
    weight = ((response.sample(ill.astype(np.int64), bits) - q) / (p - q))[:, None]
    chosen = np.argsort(bits.words(n * d).reshape(n, d), axis=1) < count
    reports = np.where(chosen, _reports(features, epsilon, bits), 0.0) * d / count
    share = float(np.clip(weight.mean(), *_SHARES))
    terms = weight * reports / share - (1 - weight) * reports / (1 - share)
    apart = _shrunk(terms.mean(axis=0), terms.var(axis=0) / n)
    middle = reports.mean(axis=0)
    return ClassMoments(
        np.array([1 - share, share]),
        np.clip(np.array([middle - share * apart, middle + (1 - share) * apart]), -1, 1),
        np.full((2, d), _VARIANCE),
    )


def _shrunk(values: Floats, variances: Floats) -> Floats:
    """Differences drawn towards 0 by as much as noise has blown them up (James, Stein 1961)."""
    factor = 1 - (len(values) - 2) / float((values**2 / variances).sum())
    return values * max(0.0, factor)


def _reports(features: Floats, epsilon: Fraction, bits: Bits) -> Floats:
    """What people report of their features, right on average."""
    oracle = Hybrid(epsilon=epsilon, lower=Fraction(-1), upper=Fraction(1))
    reports: Floats = oracle.decoded[oracle.sample(features, bits)]
    return reports


def _scaled(values: Floats) -> Floats:
    """Values on [-1, 1], by their declared bounds."""
    low = np.array([DECLARED[name]["lower"] for name in FEATURES], float)
    high = np.array([DECLARED[name]["upper"] for name in FEATURES], float)
    scaled: Floats = 2 * (values - low) / (high - low) - 1
    return scaled
