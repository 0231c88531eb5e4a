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

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits
from sourdine.frames.files import relation_of
from sourdine.local.cleaner import Cleaner, Method
from sourdine.local.numeric.piecewise import Hybrid
from sourdine.local.utility.measure import JudgedOn, try_models
from sourdine.local.utility.models import LearningModel, MixedNaiveBayes, Rows, Scores, learn, quality
from sourdine.local.utility.rows import Split, cleaned_rows, true_rows
from sourdine.mechanisms.bounded_laplace import BoundedLaplace
from sourdine.mechanisms.bounded_staircase import BoundedStaircase
from sourdine.mechanisms.randomized_response import KaryResponse
from sourdine_reproduction.cleaner.pima import DECLARED, FEATURES, OUTCOME, SIZE, WHOLE, Floats, Pima, Truth

NOISED, LABELS, TRUE = "noised rows and labels", "noised rows, true labels", "true rows and labels"
JUDGED = (NOISED, LABELS, TRUE)
_CELLS = 1 << 16
_MODEL = LearningModel.NAIVE_BAYES


_WORDS = {JudgedOn.CLEANED: NOISED, JudgedOn.CLEANED_FEATURES: LABELS, JudgedOn.UNTOUCHED: TRUE}


@dataclass(frozen=True, eq=False)
class CleaningScores:
    """Accuracy and F1 of several cleanings, by what they are judged on."""

    accuracy: Mapping[str, Floats]
    f1: Mapping[str, Floats]

    @classmethod
    def by_kind(cls, scores: Mapping[JudgedOn, Scores]) -> "CleaningScores":
        """The scores of the tool, under the names of the source's way of testing and of others."""
        return cls(
            {_WORDS[kind]: each.accuracy for kind, each in scores.items()},
            {_WORDS[kind]: each.f1 for kind, each in scores.items()},
        )

    def of(self, metric: str, judged: str) -> Floats:
        """All scores of one kind."""
        return (self.accuracy if metric == "accuracy" else self.f1)[judged]


@dataclass(frozen=True, eq=False)
class Cleanings:
    """The same table cleaned several times over, and the rows that people would put in themselves."""

    pima: Pima
    cleaned: tuple[Rows, ...]
    truth: Rows

    @cached_property
    def scores(self) -> CleaningScores:
        """Learn from the training rows of each, judge by its test rows."""
        split = Split(self.pima.train, self.pima.test)
        scores = try_models(self.truth, split, self.cleaned, lambda rows: {_MODEL: learn(_MODEL, rows)})
        return CleaningScores.by_kind(scores[_MODEL])


def plain(pima: Pima, features: Floats) -> tuple[float, float]:
    """The scores without any noise."""
    rows = rows_of(pima, features, pima.ill)
    test = rows.part(pima.test)
    return quality(test.labels, learn(_MODEL, rows.part(pima.train)).guess(test.features), 2)


def rows_of(pima: Pima, features: Floats, ill: Truth) -> Rows:
    """Rows as the tool takes them."""
    return Rows(features, ill.astype(np.int64), (0,) * len(pima.columns), 2)


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
    ill = noised_labels(pima, epsilon, repeats, bits)
    cleaned = tuple(
        rows_of(pima, features[start : start + SIZE], ill[start : start + SIZE])
        for start in range(0, repeats * SIZE, SIZE)
    )
    return Cleanings(pima, cleaned, rows_of(pima, truth, pima.ill))


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
    cleaner = Cleaner(columns, each=epsilon, method=method)
    private = cleaner.read(cleaner.open(relation_of(pima.columns | {OUTCOME: pima.ill})))
    cleaned = tuple(cleaned_rows(cleaner, OUTCOME, private, repeats, bits))
    return Cleanings(pima, cleaned, true_rows(cleaner, OUTCOME, private))


_LABEL, _MOST_LABEL = Fraction(1, 3), Fraction(4)
_WORTH = Fraction(5, 2)  # epsilon that one feature is worth reporting with
_VARIANCE = 0.1  # of every feature within a class, on [-1, 1]: declared, a sixth of the range as deviation
_SHARES = 0.05, 0.95


def learned(pima: Pima, epsilon: Fraction, repeats: int, bits: Bits) -> CleaningScores:
    """Scores of classes that were learned from reports, on true rows."""
    features = _scaled(pima.imputed())
    train, test = pima.train, pima.test
    truth, qualities = pima.ill.astype(np.int64), []
    for _ in range(repeats):
        model = classes(features[train], pima.ill[train], (len(FEATURES) + 1) * epsilon, bits)
        qualities.append(quality(truth[test], model.guess(features[test]), 2))
    return CleaningScores.by_kind({JudgedOn.UNTOUCHED: Scores.of(qualities)})


def division(budget: Fraction, features: int) -> tuple[Fraction, int, Fraction]:
    """The epsilon of the outcome, how many features a person reports, and the epsilon of each."""
    label = min(budget * _LABEL, _MOST_LABEL)
    count = max(1, min(features, int((budget - label) / _WORTH)))
    return label, count, (budget - label) / count


def classes(features: Floats, ill: NDArray[np.bool_], budget: Fraction, bits: Bits) -> MixedNaiveBayes:
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
    return MixedNaiveBayes(
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
