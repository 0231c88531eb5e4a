"""Means from cells that were cleaned inside their range, where noise pulls everything towards the middle.

Each cleaned cell y of a true place x is replaced by a score h(y), chosen before any y is seen, whose mean
given x is x but for a bias that is known: E h(y) = sum over y of P(y | x) h(y). Of all scores the one is
taken that makes the squared bias plus the variance of a mean over n cells least, for places spread evenly.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sourdine.core.mechanism import Mechanism
from sourdine.core.random.tables import Decay, GeometricDecay, StepDecay
from sourdine.local.numeric.bounded import ridge_scores
from sourdine.mechanisms.bounded_laplace import BoundedLaplace
from sourdine.mechanisms.bounded_staircase import BoundedStaircase

_BINS = 96  # of cleaned cells; more of them add nothing that noise would not hide
_PLACES = 385  # true places at which the bias is looked at

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BiasCorrection:
    """Scores of cleaned places 0 .. last, the largest bias of a mean of them, and the least variance that one
    has whatever the true place; all in places.

    The bias is looked at on a grid of places; between them it is smooth, and a tenth is added for that.
    """

    scores: Floats
    bias: float
    least: float
    last: int

    def of(self, places: Floats) -> Floats:
        """The scores of cleaned places."""
        return self.scores[_bin(np.asarray(places, np.int64), self.last)]


def correction_of(mechanism: Mechanism, cells: int) -> BiasCorrection:
    """The scores for a mean over so many cells, rounded to a power of two."""
    return _correction(mechanism, 1 << max(0, cells.bit_length() - 1))


def pulled(mechanism: Mechanism) -> float:
    """Where the mean of cleaned cells lies whose true place is 0, as a share of the range."""
    decay, last = _decay(mechanism)
    low, high = _ends(last)
    return float((_response(decay, last, np.array([0])) @ (low + high))[0] / 2 / last)


@lru_cache(maxsize=64)
def _correction(mechanism: Mechanism, cells: int) -> BiasCorrection:
    decay, last = _decay(mechanism)
    places = np.unique(np.linspace(0, last, min(last + 1, _PLACES)).round().astype(np.int64))
    response = _response(decay, last, places)
    centred = np.asarray(places - last / 2, np.float64)
    scores, bias, variance = next(ridge_scores(response, centred, (1.0,), cells))
    least = max(0.0, float(variance.min()))
    return BiasCorrection(scores + last / 2, 1.1 * float(np.abs(bias).max()), least, last)


def _response(decay: Decay, last: int, places: NDArray[np.int64]) -> Floats:
    """P(bin | place), a row for each place."""
    low, high = _ends(last)
    x = places[:, None]
    weights = _below(decay, x, high[None, :]) - _below(decay, x, low[None, :] - 1)
    rows: Floats = weights / weights.sum(axis=1, keepdims=True)
    return rows


def _below(decay: Decay, x: NDArray[np.int64], y: NDArray[np.int64]) -> Floats:
    """The mass from the far left up to place y, seen from place x; only differences mean anything."""
    down, up = np.maximum(x - y, 0), np.maximum(y - x + 1, 0)
    return np.where(y < x, -decay.mass(down), decay.mass(up) - decay.mass(np.ones_like(up)))


def _ends(last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last place of each bin."""
    bins = min(_BINS, last + 1)
    edges = -(-np.arange(bins + 1) * (last + 1) // bins)
    return edges[:-1], edges[1:] - 1


def _bin(places: NDArray[np.int64], last: int) -> NDArray[np.int64]:
    """Which bin a place falls in; few places have a bin each."""
    return np.clip(places, 0, last) * min(_BINS, last + 1) // (last + 1)


def _decay(mechanism: Mechanism) -> tuple[Decay, int]:
    """The weights of a bounded mechanism whose cells are of length one."""
    if isinstance(mechanism, BoundedLaplace):
        return GeometricDecay(mechanism.scale), mechanism.cells
    assert isinstance(mechanism, BoundedStaircase)
    return StepDecay(mechanism.drop, mechanism.period, mechanism.inner), mechanism.cells
