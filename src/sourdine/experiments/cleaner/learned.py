"""Learning from local reports instead of from noisy rows: unbiased class means, few features a person.

Everybody has the same budget as in the source, nine times the epsilon of a column. A third of it, but no more
than 4, pays for the outcome by randomized response. With the rest a person reports k of the eight features,
drawn at random, each by an unbiased mechanism on its declared range: fewer features, each with less noise,
are better than all of them with much (Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu 2019, where k is the budget
divided by 2.5). As the noises of outcome and feature are independent, the product of a weight without bias
for "ill" and a report without bias has the mean P(ill) E[feature | ill].
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core.bits import Bits
from sourdine.experiments.cleaner.bayes import Classes, quality
from sourdine.experiments.cleaner.measure import TRUE, Scores, scores_of
from sourdine.experiments.cleaner.pima import DECLARED, FEATURES, Floats, Pima
from sourdine.local.hybrid import Hybrid
from sourdine.mechanisms.response import KaryResponse

_LABEL, _MOST_LABEL = Fraction(1, 3), Fraction(4)
_WORTH = Fraction(5, 2)  # epsilon that one feature is worth reporting with
_VARIANCE = 0.1  # of every feature within a class, on [-1, 1]: declared, a sixth of the range as deviation
_SHARES = 0.05, 0.95


def learned(pima: Pima, epsilon: Fraction, repeats: int, bits: Bits) -> Scores:
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


def classes(features: Floats, ill: NDArray[np.bool_], budget: Fraction, bits: Bits) -> Classes:
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
    return Classes(
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
