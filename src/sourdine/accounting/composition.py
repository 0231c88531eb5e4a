"""The profile of many losses together, as a certified bracket, on a lattice as fine as it takes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.bracket import Bracket
from sourdine.accounting.convolution import Part, Sum, best_orders, convolve, order_at
from sourdine.accounting.lattice import SHIFT, above, below
from sourdine.core.laws import Floats, Law

_MOST_PLACES = 1 << 22
_ROUNDS = 6
_SCOUTS = 300
_FARTHEST = (
    600.0  # losses beyond it count as infinite, or as no lower than its negative: e^loss must be a float
)
_TILTS = 8
_LOW = 1e-17  # mass under P so low that moving it up changes nothing


@dataclass(frozen=True)
class Repeated:
    """A law and how often it is paid."""

    law: Law
    count: int


@dataclass(frozen=True)
class _Scout:
    """A first rough look at a law: where its losses lie, and how they weigh under the tilt."""

    losses: Floats
    masses: Floats
    infinite: float
    count: int


def epsilon_bracket(laws: Sequence[Repeated], delta: float, width: float, least: float = 0.0) -> Bracket:
    """The least epsilon at this delta, known to within `width` where floats allow.

    It stops early once the answer is known to lie below `least`.
    """
    scouts = _scouts(laws, delta)
    best = Bracket(0.0, math.inf)
    if _infinite(scouts) > delta:
        return best
    best_order, order = best_orders([(scout.losses, scout.masses, scout.count) for scout in scouts], delta)
    finest = _finest(scouts, order)
    step = _align(laws, max(_first_step(laws, best_order, max(width, 0.02 * least)), finest))
    shift = SHIFT * sum(item.count for item in laws)
    for _ in range(_ROUNDS):
        high = _above(laws, scouts, step, order)
        upper = min(best.upper, max(high.epsilon(delta), 0.0))
        if upper <= least:
            return Bracket(0.0, upper)
        low = _below(laws, scouts, step, order).epsilon(delta) - shift
        best = Bracket(min(max(best.lower, low), upper), upper)
        shrink = min(0.5, max(0.1, 0.9 * math.sqrt(width / max(best.width, width))))
        if best.width <= width or shrink * step < finest:
            break
        step = _align(laws, shrink * step)
    return best


def epsilon_above(laws: Sequence[Repeated], delta: float, width: float) -> float:
    """Only the upper end, on one lattice: quick, for searches that check their answer by the bracket."""
    scouts = _scouts(laws, delta)
    if _infinite(scouts) > delta:
        return math.inf
    best_order, order = best_orders([(scout.losses, scout.masses, scout.count) for scout in scouts], delta)
    step = _align(laws, max(_first_step(laws, best_order, width), _finest(scouts, order)))
    return max(_above(laws, scouts, step, order).epsilon(delta), 0.0)


def delta_bracket(laws: Sequence[Repeated], epsilon: float, share: float) -> Bracket:
    """delta at this epsilon, known to within a share of itself where floats allow."""
    scouts = _scouts(laws, 1e-30)
    best = Bracket(0.0, 1.0)
    if any(scout.masses.sum() == 0 for scout in scouts):
        return best
    order = order_at([(scout.losses, scout.masses, scout.count) for scout in scouts], epsilon)
    finest = _finest(scouts, order)
    step = _align(laws, max(_first_step(laws, order, share / (order + 1)), finest))
    for _ in range(_ROUNDS):
        high, low = (sum_of(laws, scouts, step, order) for sum_of in (_above, _below))
        shift = SHIFT * sum(item.count for item in laws)
        best = Bracket(max(best.lower, low.delta(epsilon + shift)), min(best.upper, high.delta(epsilon)))
        if best.width <= share * best.upper or 0.4 * step < finest:
            break
        step = _align(laws, 0.4 * step)
    return best


def profile_above(laws: Sequence[Repeated], epsilons: Floats, share: float) -> Floats:
    """delta at many increasing epsilons at once, from above, to about a share of itself.

    A few tilted sums serve all: each is sharp where its tilt puts the bulk, and true everywhere.
    """
    scouts = _scouts(laws, 1e-30)
    looks = [(scout.losses, scout.masses, scout.count) for scout in scouts]
    centres = np.linspace(epsilons[0], epsilons[-1], _TILTS)
    deltas = np.ones(len(epsilons))
    for order in sorted({order_at(looks, float(centre)) for centre in centres}):
        step = _align(laws, max(_first_step(laws, order, share / (order + 1)), _finest(scouts, order)))
        high = _above(laws, scouts, step, order)
        deltas = np.minimum(deltas, [high.delta(float(epsilon)) for epsilon in epsilons])
    return deltas


def _scouts(laws: Sequence[Repeated], delta: float) -> list["_Scout"]:
    total = sum(item.count for item in laws)
    return [_look(item, 1e-5 * delta / total) for item in laws]


def _below(laws: Sequence[Repeated], scouts: list["_Scout"], step: float, order: float) -> Sum:
    """The sum of the lattice laws below."""
    low = []
    for item, scout in zip(laws, scouts, strict=True):
        places = _places(scout, step, order)
        low.append(_part(places, below(item.law, _losses(places, step)), 0.0, item.count))
    return convolve(low, step, order, pessimistic=False)


def _above(laws: Sequence[Repeated], scouts: list["_Scout"], step: float, order: float) -> Sum:
    """The sum of the lattice laws above."""
    high = []
    for item, scout in zip(laws, scouts, strict=True):
        places = _places(scout, step, order)
        masses, infinite = above(item.law, _losses(places, step))
        high.append(_part(places, masses, infinite, item.count))
    return convolve(high, step, order, pessimistic=True)


def _losses(places: NDArray[np.int64], step: float) -> Floats:
    return places.astype(np.float64) * step


def _part(places: NDArray[np.int64], masses: Floats, infinite: float, count: int) -> Part:
    """Only the places that weigh something."""
    held = masses > 0
    return Part(places[held], masses[held], infinite, count)


def _look(item: Repeated, tail: float) -> _Scout:
    """Points from the lowest to the highest loss that matters, dense where the mass lies."""
    law = item.law
    low, high = _ends(law, tail)
    middle, spread = _centre(law, low, high)
    ends = np.arcsinh((np.array([low, high]) - middle) / spread)
    losses = middle + spread * np.sinh(np.linspace(ends[0], ends[1], _SCOUTS))
    losses[0], losses[-1] = low, high
    losses = np.unique(losses)
    masses, infinite = above(law, losses)
    return _Scout(losses, masses, infinite, item.count)


def _ends(law: Law, tail: float) -> tuple[float, float]:
    """Losses below and above which hardly anything lies."""
    low, high = law.lowest, law.highest
    if not math.isfinite(high):
        high = _search(lambda loss: law.survival(loss).p - law.infinite <= tail)
    if not math.isfinite(low):
        low = -_search(lambda loss: law.cumulative(-loss).p <= _LOW)
    low, high = max(low, -_FARTHEST), min(high, _FARTHEST)
    if high - low < 1e-9:
        low, high = low - 1e-9, high + 1e-9
    return low, high


def _search(enough: Callable[[Floats], NDArray[np.bool_]]) -> float:
    """The least loss of a grid that is enough."""
    losses = np.geomspace(1e-9, 1e9, 200)
    first = int(np.argmax(enough(losses)))
    fine = np.linspace(losses[max(first - 1, 0)], losses[first], 50)
    return float(fine[int(np.argmax(enough(fine)))])


def _centre(law: Law, low: float, high: float) -> tuple[float, float]:
    """The median and the spread of the loss under P, roughly, from a grid and a finer one."""
    whole = high - low
    for _ in range(2):
        grid = np.linspace(low, high, 257)
        quartiles = np.searchsorted(law.cumulative(grid).p, [0.25, 0.5, 0.75])
        low, high = grid[max(quartiles[0] - 1, 0)], grid[min(quartiles[2] + 1, 256)]
    found = grid[np.minimum(quartiles, 256)]
    spread = max(float(found[2] - found[0]) / 2, float(grid[-1] - grid[0]) / 256, whole * 1e-7)
    return float(found[1]), spread


def _infinite(scouts: list[_Scout]) -> float:
    """The chance of a loss that no point holds; delta cannot be less."""
    if any(scout.infinite >= 1 for scout in scouts):
        return 1.0
    return -math.expm1(sum(scout.count * math.log1p(-scout.infinite) for scout in scouts))


def _finest(scouts: list[_Scout], order: float) -> float:
    """The step below which the window of the tilted sum would have too many places."""
    variance, span = 0.0, 0.0
    for scout in scouts:
        weight = scout.masses * np.exp(order * (scout.losses - scout.losses[-1]))
        weight /= max(float(weight.sum()), 1e-300)
        mean = float(np.sum(weight * scout.losses))
        variance += scout.count * float(np.sum(weight * (scout.losses - mean) ** 2))
        span = max(span, float(scout.losses[-1] - scout.losses[0]))
    return (16 * math.sqrt(variance) + span) / _MOST_PLACES


def _first_step(laws: Sequence[Repeated], order: float, width: float) -> float:
    """A step whose two discretisations should differ by the width.

    Chords widen the variance of a loss by step^2/6, tangents narrow it by step^2/12, and a variance v moves
    epsilon by order * v / 2.
    """
    total = sum(item.count for item in laws)
    return math.sqrt(8 * 0.45 * width / ((order + 0.5) * total))


def _align(laws: Sequence[Repeated], step: float) -> float:
    """A step no larger on which the atoms of all laws lie, where they have a common spacing."""
    spacings = {item.law.spacing for item in laws}
    spacing = spacings.pop()
    if spacings or spacing is None or spacing < step / 8:
        return step
    return spacing / math.ceil(spacing / step)


def _places(scout: _Scout, step: float, order: float) -> NDArray[np.int64]:
    """Lattice places for a law: every one where the tilted mass is dense, fewer where it is thin.

    The error of a bin grows as its mass times its width squared, so widths go as density^(-1/3).
    """
    low, high = math.floor(scout.losses[0] / step) - 1, math.ceil(scout.losses[-1] / step) + 1
    if high - low < _SCOUTS:
        return np.arange(low, high + 1)
    losses = scout.losses
    weight = scout.masses * np.exp(order * (losses - losses[-1]))
    density = (weight[1:] + weight[:-1]) / np.diff(losses)
    share = np.minimum(1.0, (density / (0.03 * density.max())) ** (1 / 3)) + 1e-3
    many = np.concatenate([[0.0], np.cumsum(np.diff(losses) * share / step)])
    chosen = np.interp(np.arange(0, many[-1] + 1), many, losses)
    places = np.unique(np.rint(chosen / step).astype(np.int64))
    return np.unique(np.concatenate([[low], places[(places > low) & (places < high)], [high]]))
