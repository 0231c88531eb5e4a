"""Which noise each measurement of a plan gets, where a delta allows for several: by declarations alone.

Pure epsilons add up, and the rhos of the others amount to an epsilon at delta; both together add up again
(docs/guarantees/tables.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sourdine.core.distance import root_above
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import Gaussian, Laplace, PartitionThreshold
from sourdine.tables.intervals import like_noises
from sourdine.tables.measurement import PlannedMeasurement
from sourdine.tables.privacy import NoiseChoice, Privacy
from sourdine.tables.quantiles.method import QuantileMethod

_MOST_DIVISIONS = 8  # divisions into two kinds of noise that are looked at beside the two of one kind
_ALIKE = 1e-9  # ratios of errors that differ by less are rounding


@dataclass(frozen=True, kw_only=True)
class Composition:
    """The lines of a plan, and the guarantee of all of them together."""

    guarantee: Privacy
    lines: tuple[PlannedMeasurement, ...]

    @property
    def noise(self) -> NoiseChoice:
        """Whether all lines are pure, all are paid in rho, or some of each."""
        kinds = {line.squared for line in self.lines}
        if len(kinds) == 2:
            return NoiseChoice.NEAREST
        return NoiseChoice.GAUSSIAN if True in kinds else NoiseChoice.LAPLACE


def nearest(lines: Callable[..., Composition], confidence: float) -> Composition:
    """Return the composition whose errors have the least geometric mean, weighted by shares.

    `lines` makes the plan's, by `pure` and by the places of those that are paid in rho. Where both kinds of
    noise are as near, it is the pure one.
    """
    try:
        pure = lines(pure=True)
    except InvalidParameter:
        return lines(pure=False)
    try:
        gaussian = lines(pure=False)
    except InvalidParameter:
        return pure
    epsilon, rho = pure.guarantee.epsilon, gaussian.guarantee.allot().total
    gains = []
    for one, other in zip(pure.lines, gaussian.lines, strict=True):
        # Laplace noise of scale 1/e has the deviation sqrt(2)/e, and Gaussian noise of rho r 1/sqrt(2r)
        spread = 2 * root_above(other.share * rho) / (one.share * epsilon)
        gains.append(math.log(_ratio(one, other, float(spread), confidence)))
    # A line that is nearer with all others pure is nearer with some of them in rho, and the reverse: a part
    # of epsilon gives less than its part of rho.
    if max(gains) <= _ALIKE:
        return pure
    if min(gains) >= -_ALIKE:
        return gaussian
    best: tuple[int, ...] = ()
    least = 0.0
    for places in _divisions(gains):
        part = sum((pure.lines[place].share for place in places), Fraction(0))
        try:
            less = math.log(rho / gaussian.guarantee.allot(part).total) / 2
        except InvalidParameter:
            continue
        change = sum(float(pure.lines[place].share) * (less - gains[place]) for place in places)
        if change < least - _ALIKE:
            best, least = places, change
    if not best:
        return pure
    if len(best) == len(gains):
        return gaussian
    try:
        return lines(pure=False, gaussian=best)
    except InvalidParameter:
        return pure


def _divisions(gains: list[float]) -> list[tuple[int, ...]]:
    """The places of those that gain most by rho, for each of some bounds, and at last all."""
    bounds = sorted({round(gain, 6) for gain in gains}, reverse=True)
    step = math.ceil(len(bounds) / _MOST_DIVISIONS)
    taken = {*bounds[::step], bounds[-1]}
    return [
        tuple(place for place, gain in enumerate(gains) if round(gain, 6) >= bound)
        for bound in sorted(taken, reverse=True)
    ]


def _ratio(pure: PlannedMeasurement, gaussian: PlannedMeasurement, spread: float, confidence: float) -> float:
    """The error of pure noise over that of noise paid in rho, for one measurement.

    Of two choices of keys the one with the lower threshold is nearer, and of a method of quantiles the one
    with the larger epsilon. The errors of two methods are bounds of unlike sharpness, so there the standard
    deviations of one count decide: `spread` is their ratio for a unit that moves one group. For g groups it
    is sqrt(g) times that, since L1 grows as g and L2 as its root.
    """
    one, other = pure.mechanism, gaussian.mechanism
    if isinstance(one, PartitionThreshold) and isinstance(other, PartitionThreshold):
        return one.threshold / other.threshold
    if isinstance(one, QuantileMethod) and type(one) is type(other):
        return float(other.epsilon / one.epsilon)
    if isinstance(one, QuantileMethod) or isinstance(other, QuantileMethod):
        return spread * math.sqrt(max(pure.count, gaussian.count))
    if isinstance(one, Laplace) and isinstance(other, Gaussian):
        # of noise on all numbers: that on a grid is whole, and none at all where the budget is large
        return float(like_noises(one, 1, confidence) / like_noises(other, 1, confidence))
    return one.error(confidence) / other.error(confidence)
