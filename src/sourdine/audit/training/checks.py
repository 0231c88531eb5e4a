"""What a check of a trace tells: how likely its finding is if all is as claimed, and what it would see."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammainc, gammaincc, gammainccinv, gammaincinv, log_ndtr, ndtri

from sourdine.core.random.bits import Bits

Floats = NDArray[np.float64]
ALARM = 1e-6  # the chance that a faultless run is accused by any of the checks
POWER = 0.95  # the chance with which the smallest fault that is told would have been seen

_FAR = 1e6  # deviations, where a float says that something has no chance


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at.

    `chance` bounds how often a faultless run shows as much; below `alarm` the run is accused. `smallest` says
    which fault would have been seen in 19 of 20 runs.
    """

    name: str
    finding: str
    chance: float
    alarm: float
    smallest: str = ""

    @property
    def failed(self) -> bool:
        """Whether the run is accused."""
        return self.chance < self.alarm

    def sealed(self) -> "Check":
        """The verdict alone: figures of the noise, beside a model, would take the noise away again."""
        return replace(self, finding="", chance=0.0 if self.failed else 1.0)


def either(*chances: float) -> float:
    """The chance that the least of some p-values is as small as it is, at most (Bonferroni)."""
    return min(1.0, len(chances) * min(chances))


def of_square(value: float, degrees: float) -> float:
    """The two-sided p-value of a sum of squares of so many independent standard normal numbers."""
    if not math.isfinite(value):
        return 0.0
    return min(
        1.0, 2 * min(float(gammainc(degrees / 2, value / 2)), float(gammaincc(degrees / 2, value / 2)))
    )


def of_normal(value: float, count: int = 1) -> float:
    """The two-sided p-value of the farthest of so many standard normal numbers."""
    if math.isnan(value):
        return 0.0
    return min(1.0, 2 * count * math.exp(float(log_ndtr(-abs(value)))))


def farthest(chance: float, count: int = 1) -> float:
    """How far a normal number must be off, to either side, to be as unlikely among so many."""
    return float(-ndtri(chance / 2 / count))


def least_scale(degrees: float, alarm: float) -> float:
    """The scale nearest below 1 at which a sum of squares is too small for the check, POWER of the time.

    >>> round(least_scale(400_000, 1e-7), 3)
    0.992
    """
    allowed = float(gammaincinv(degrees / 2, alarm / 2))
    return math.sqrt(allowed / float(gammainccinv(degrees / 2, 1 - POWER)))


def spread(counts: ArrayLike, trials: ArrayLike, rate: float, bits: Bits) -> Floats:
    """Counts as standard normal numbers: exactly so, and independent, where they are binomial.

    The place of a count in its law, spread evenly over the count's own chance, is uniform
    (Rosenblatt 1952, with the jumps filled). A count that cannot be is a million deviations off.
    """
    k, n = np.broadcast_arrays(np.asarray(counts, float), np.asarray(trials, float))
    within = ((bits.words(max(1, k.size))[: k.size] >> np.uint64(11)) * 2.0**-53).reshape(k.shape)
    below = np.where(k > 0, betainc(n - k + 1, np.maximum(k, 1), 1 - rate), 0.0)
    upto = np.where(k < n, betainc(np.maximum(n - k, 1), k + 1, 1 - rate), 1.0)
    return normal_at(np.clip(below + within * (upto - below), 0.0, 1.0))


def normal_at(places: Floats) -> Floats:
    """The normal numbers at some places of their law, whose ends are finite here: they can be added up."""
    return np.clip(ndtri(places), -_FAR, _FAR)
