"""Cleaning, learning and judging, many times over."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sourdine.core.bits import Bits
from sourdine.experiments.cleaner.bayes import Classes, quality
from sourdine.experiments.cleaner.pima import DECLARED, FEATURES, OUTCOME, WHOLE, Floats, Pima, Truth
from sourdine.local.cleaner import Cleaner, Method
from sourdine.mechanisms.bounded_laplace import BoundedLaplace
from sourdine.mechanisms.bounded_staircase import BoundedStaircase
from sourdine.mechanisms.response import KaryResponse

if TYPE_CHECKING:
    import duckdb

NOISED, LABELS, TRUE = "noised rows and labels", "noised rows, true labels", "true rows and labels"
JUDGED = (NOISED, LABELS, TRUE)
_CELLS = 1 << 16


@dataclass(frozen=True, eq=False)
class Scores:
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
    def scores(self) -> Scores:
        """Learn from the training rows of each, judge by its test rows."""
        train, test = self.pima.train, self.pima.test
        size = len(self.pima.ill)
        found: dict[str, list[tuple[float, float]]] = {judged: [] for judged in JUDGED}
        for start in range(0, len(self.ill), size):
            features, ill = self.features[start : start + size], self.ill[start : start + size]
            made = Classes.fitted(features[train], ill[train])
            guess = made.guess(features[test])
            found[NOISED].append(quality(ill[test], guess))
            found[LABELS].append(quality(self.pima.ill[test], guess))
            found[TRUE].append(quality(self.pima.ill[test], made.guess(self.truth[test])))
        return scores_of(found)


def scores_of(found: Mapping[str, list[tuple[float, float]]]) -> Scores:
    """Lists of pairs as arrays."""
    pairs = {judged: np.array(each) for judged, each in found.items()}
    return Scores(
        {judged: each[:, 0] for judged, each in pairs.items()},
        {judged: each[:, 1] for judged, each in pairs.items()},
    )


def plain(pima: Pima, features: Floats) -> tuple[float, float]:
    """The scores without any noise."""
    made = Classes.fitted(features[pima.train], pima.ill[pima.train])
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
    import duckdb

    connection = duckdb.connect()
    held: dict[str, NDArray[np.generic]] = {
        name: np.tile(values, repeats) for name, values in pima.columns.items()
    }
    connection.register("held", held | {OUTCOME: np.tile(pima.ill, repeats)})
    connection.execute("CREATE TABLE pima AS SELECT * FROM held")
    return connection.table("pima")
