"""The lattice of a sum of losses: how fine it is, which points each law has, and the sums on them."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.pld.convolution import LossSum, convolve
from sourdine.accounting.pld.discretisation import SHIFT, below
from sourdine.accounting.pld.masses import Component
from sourdine.accounting.pld.scout import Repeated, Scout, origin_of
from sourdine.accounting.pld.tilt import Look, Tilt
from sourdine.core.composed import above
from sourdine.core.distributions import Floats

MOST_PLACES = 1 << 22
COARSEST = 50.0  # a lattice coarser than that would not hold e^loss, and would tell nothing
ROUNDING = 1e-9  # what an infinite mass may err, relative
_FEW_PLACES = 300
_SHORTEST = 100 * SHIFT  # a finer lattice would only show how far its points are moved
_FINER = 0.5

LawPoints = list[tuple[float, NDArray[np.int64]]]  # for each law where its points are counted from, and which


def lattice_of(laws: Sequence[Repeated], scouts: list[Scout], step: float, tilt: Tilt) -> LawPoints:
    """For each law where its points are counted from, and which of them are looked at."""
    origins = [origin_of(item.law, scout, step) for item, scout in zip(laws, scouts, strict=True)]
    return lattice_from(origins, scouts, step, tilt)


def lattice_from(origins: Sequence[float], scouts: list[Scout], step: float, tilt: Tilt) -> LawPoints:
    """The same with points counted from these origins."""
    return [
        (origin, _places(scout.look, step, origin, tilt.deciding))
        for origin, scout in zip(origins, scouts, strict=True)
    ]


def sum_below(laws: Sequence[Repeated], lattice: LawPoints, step: float, tilt: Tilt) -> LossSum:
    """The sum of the lattice laws below."""
    low = []
    for item, (origin, places) in zip(laws, lattice, strict=True):
        infinite = item.law.infinite * (1 - ROUNDING)
        masses = below(item.law, _losses(places, step, origin))
        low.append(_part(places, masses, infinite, item.count, origin))
    return convolve(low, step, tilt.order, pessimistic=False, spare=tilt.spare)


def sum_above(laws: Sequence[Repeated], lattice: LawPoints, step: float, tilt: Tilt) -> LossSum:
    """The sum of the lattice laws above."""
    high = []
    for item, (origin, places) in zip(laws, lattice, strict=True):
        masses, infinite = above(item.law, _losses(places, step, origin))
        high.append(_part(places, masses, infinite, item.count, origin))
    return convolve(high, step, tilt.order, pessimistic=True, spare=tilt.spare)


def _losses(places: NDArray[np.int64], step: float, origin: float) -> Floats:
    return places.astype(np.float64) * step + origin


def _part(places: NDArray[np.int64], masses: Floats, infinite: float, count: int, origin: float) -> Component:
    """Only the places that weigh something."""
    full = masses > 0
    return Component(places[full], masses[full], infinite, count, origin)


def finest_step(scouts: list[Scout], order: float) -> float:
    """The step below which the window of the tilted sum would have too many places, or mean nothing."""
    variance, span = 0.0, 0.0
    for scout in scouts:
        losses, count = scout.look.losses, scout.look.count
        weight = scout.look.masses * np.exp(order * (losses - losses[-1]))
        weight /= max(float(weight.sum()), 1e-300)
        mean = float(np.sum(weight * losses))
        variance += count * float(np.sum(weight * (losses - mean) ** 2))
        span = max(span, float(losses[-1] - losses[0]))
    return max((16 * math.sqrt(variance) + span) / MOST_PLACES, _SHORTEST)


def first_step(laws: Sequence[Repeated], order: float, width: float) -> float:
    """A step whose two discretisations should differ by the width.

    Chords widen the variance of a loss by step^2/6, tangents narrow it by step^2/12, and a variance v moves
    epsilon by order * v / 2.
    """
    total = sum(item.count for item in laws)
    return math.sqrt(8 * 0.45 * width / ((order + 0.5) * total))


def align(laws: Sequence[Repeated], step: float) -> float:
    """A step no larger on which the atoms of all laws lie, where they have a common spacing."""
    spacings = {item.law.spacing for item in laws}
    spacing = spacings.pop()
    if spacings or spacing is None or spacing < step / 8:
        return step
    return spacing / math.ceil(spacing / step)


def _places(look: Look, step: float, origin: float, order: float) -> NDArray[np.int64]:
    """Lattice places for a law: every one where the tilted mass is dense, fewer where it is thin.

    The error of a bin grows as its mass times its width squared, so widths go as density^(-1/3). Where nearly
    all of a law is in one place, its density says nothing of the rest: no stretch errs by much more than if
    the whole law were spread evenly.
    """
    losses = look.losses - origin
    low, high = math.floor(losses[0] / step) - 1, math.ceil(losses[-1] / step) + 1
    if high - low < _FEW_PLACES:
        return np.arange(low, high + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(look.masses) + order * losses
    weight = np.exp(logs - logs.max())  # of the heaviest: the highest loss may weigh nothing, by far
    gaps = np.diff(losses)
    density = (weight[1:] + weight[:-1]) / gaps
    share = np.minimum(1.0, (density / (0.03 * density.max())) ** (1 / 3)) + 1e-3
    mass = weight[1:] + weight[:-1]
    share = np.maximum(share, np.minimum(1.0, _FINER * np.sqrt(mass * len(mass) / mass.sum())))
    many = np.append(0.0, np.cumsum(gaps * share / step))
    places = np.rint(np.interp(np.arange(0, many[-1] + 1), many, losses) / step).astype(np.int64)
    places = np.concatenate([[low], places[(places > low) & (places < high)], [high]])
    distinct: NDArray[np.int64] = places[np.append(True, np.diff(places) > 0)]
    return distinct
