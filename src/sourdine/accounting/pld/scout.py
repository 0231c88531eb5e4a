"""A rough look at a law: where it lies, where it is dense, and where its points are counted from."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.pld.discretisation import bin_around
from sourdine.accounting.pld.tilt import Look
from sourdine.core.composed import above
from sourdine.core.distributions import Floats, LossDistribution

_FARTHEST = 600.0  # losses beyond it count as infinite, or as no lower than its negative: e^loss is a float
_LOW = 1e-17  # mass under P so low that moving it up changes nothing
_BEYOND = 16
_DISTANCES = np.geomspace(1e-9, 1e9, 200)
_FINE = np.linspace(0.0, 1.0, 33)
_GRID = np.linspace(0.0, 1.0, 129)
_SCOUTS = np.linspace(0.0, 1.0, 120)
_MOSTLY = 0.2  # the share of a law in one bin from which its loss is a point of the lattice
_TURNS = 20
_AT_END = (0.45, 4.0)  # how many steps above the beginning of a law most of it lies, to be counted from there
_ABOVE_END = 0.37


@dataclass(frozen=True)
class Repeated:
    """A law and how often it is paid."""

    law: LossDistribution
    count: int


@dataclass(frozen=True)
class Scout:
    """A first rough look at a law: where its losses lie, and how they weigh under the tilt."""

    look: Look
    infinite: float


def origin_of(law: LossDistribution, scout: Scout, step: float) -> float:
    """Where the points of a law are counted from: 0, the loss of the bin that holds most of it, or its end.

    A loss that is nearly always the same, as at a small sampling rate, would lie between two points, and the
    one next to it has too little to lend: it would be rounded down, each time it is paid. So would a law that
    is dense up to where it begins, were its first point not a third of a step or so above its beginning.

    It is a guess, and no bound depends on it. Both discretisations are given the losses of their points, the
    origin added, and hold for any increasing points; the sum is moved by what was taken from each loss, and
    what floats lose by that is charged by the origin's size. A poor origin makes a bracket wide.
    """
    if law.spacing is not None or _thin(scout.look, 2 * step):
        return 0.0
    middle = _median(law, scout.look, step)
    heavy = _heavy(law, middle, step)
    steps_up = ((middle if heavy is None else heavy) - law.lowest) / step
    if _AT_END[0] < steps_up < _AT_END[1]:
        return law.lowest + _ABOVE_END * step
    return heavy or 0.0


def _heavy(law: LossDistribution, middle: float, step: float) -> float | None:
    """The loss of the bin that holds most of a law, as that bin's masses say, if there is one."""
    moved = math.inf
    for _ in range(_TURNS):
        p, q = bin_around(law, middle, step)
        if p < _MOSTLY or q <= 0:
            return None
        loss, before = math.log(p / q), moved
        moved, middle = abs(loss - middle), loss
        if not 0 < moved < before / 2:  # it is found, or there is no one place: any point will do then
            break
    return middle


def look_at(item: Repeated, tail: float) -> Scout:
    """Points from the lowest to the highest loss that matters, dense where the mass lies."""
    law = item.law
    low, high = _ends(law, tail)
    middle, spread = _centre(law, low, high)
    ends = math.asinh((low - middle) / spread), math.asinh((high - middle) / spread)
    losses = middle + spread * np.sinh(ends[0] + (ends[1] - ends[0]) * _SCOUTS)
    losses[0], losses[-1] = low, high
    losses = losses[np.append(True, np.diff(losses) > 0)]
    masses, infinite = above(law, losses)
    return Scout(Look(losses, masses, item.count), infinite)


def _ends(law: LossDistribution, tail: float) -> tuple[float, float]:
    """Losses below and above which hardly anything lies."""
    low, high = law.lowest, law.highest
    high += 1e-12 * (1 + abs(high))  # rounded down, it would leave the highest atom out
    reach = _search(lambda loss: law.survival(loss).p - law.infinite <= tail)
    depth = _search(lambda loss: law.cumulative(-loss).p <= _LOW)
    # An end far beyond the mass, as on samples under much noise, would weigh most once it is tilted.
    high = reach if high > _BEYOND * reach else high
    low = -depth if low < -_BEYOND * depth else low
    high = min(high, _FARTHEST)
    low = min(max(low, -_FARTHEST), high)
    if high - low < 1e-9:
        low, high = low - 1e-9, high + 1e-9
    return low, high


def _search(enough: Callable[[Floats], NDArray[np.bool_]]) -> float:
    """The least loss of a grid that is enough."""
    first = int(np.argmax(enough(_DISTANCES)))
    start, end = _DISTANCES[max(first - 1, 0)], _DISTANCES[first]
    fine = start + (end - start) * _FINE
    return float(fine[int(np.argmax(enough(fine)))])


def _centre(law: LossDistribution, low: float, high: float) -> tuple[float, float]:
    """The median and the spread of the loss under P, roughly, from a grid and a finer one."""
    whole, last = high - low, len(_GRID) - 1
    for _ in range(2):
        grid = low + (high - low) * _GRID
        quartiles = np.searchsorted(law.cumulative(grid).p, [0.25, 0.5, 0.75])
        low, high = grid[max(quartiles[0] - 1, 0)], grid[min(quartiles[2] + 1, last)]
    losses = grid[np.minimum(quartiles, last)]
    spread = max(float(losses[2] - losses[0]) / 2, float(grid[-1] - grid[0]) / last, whole * 1e-7)
    return float(losses[1]), spread


def _thin(look: Look, width: float) -> bool:
    """Whether no stretch of this width can hold most of a law, by a rough look at it."""
    sums = np.append(0.0, np.cumsum(look.masses))
    ends = np.searchsorted(look.losses, look.losses + width, side="right")
    return float((sums[ends] - sums[:-1]).max()) < _MOSTLY / 2


def _median(law: LossDistribution, look: Look, step: float) -> float:
    """The median of the loss under P, to within a part of a step."""
    low, high = float(look.losses[0]) - step, float(look.losses[-1])
    while high - low > step / 8:
        grid = low + (high - low) * _GRID
        place = min(max(int(np.searchsorted(law.cumulative(grid).p, 0.5)), 1), len(grid) - 1)
        low, high = float(grid[place - 1]), float(grid[place])
    return high
