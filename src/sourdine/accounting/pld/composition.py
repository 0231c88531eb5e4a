"""The profile of many losses together, as a certified bracket, on a lattice as fine as it takes."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.pld.convolution import LossSum, convolve, ever
from sourdine.accounting.pld.discretisation import SHIFT, above, below
from sourdine.accounting.pld.masses import Component
from sourdine.accounting.pld.scout import Repeated, Scout, look_at, origin_of
from sourdine.accounting.pld.tilt import Look, Tilt, tilt_at, tilt_for
from sourdine.core.distributions import Floats

_MOST_PLACES = 1 << 22
_ROUNDS = 6
_FEW_PLACES = 300
_TILTS = 8
_COARSEST = 50.0  # a lattice coarser than that would not hold e^loss, and would tell nothing
_TAIL = 1e-5  # the share of delta that losses beyond the lattice may have
_SMALLEST = 1e-290  # a mass under P below it has none under Q that a float can hold
_NOTHING = 1e-15  # mass at finite losses that leaves no more to say than that the others are infinite
_SHORTEST = 100 * SHIFT  # a finer lattice would only show how far its points are moved
_ROUNDING = 1e-9  # what an infinite mass may err, relative
_LAST_DIGITS = 2.0**-48  # what reading an end off may err, relative
_FINER = 0.5


def epsilon_bracket(laws: Sequence[Repeated], delta: float, width: float, least: float = 0.0) -> Bracket:
    """The least epsilon at this delta, known to within `width` where floats allow.

    It stops early once the answer is known to lie below `least`.
    """
    scouts = _scouts(laws, delta)
    if _ever([Repeated(item.law.least, item.count) for item in laws]) > delta:
        return Bracket(math.inf, math.inf)
    best = Bracket(0.0, math.inf)
    if _infinite(scouts) > delta or _nothing_finite(scouts):
        return best
    looks = [scout.look for scout in scouts]
    tilt = tilt_for(looks, delta)
    finest = _finest(scouts, tilt.order)
    if finest > _COARSEST:
        return best
    step = _align(laws, max(_first_step(laws, tilt.deciding, max(width, 0.02 * least)), finest))
    shift = SHIFT * sum(item.count for item in laws)
    known, known_scouts = _known(laws, scouts, delta)
    for _ in range(_ROUNDS):
        lattice = _lattice(laws, scouts, step, tilt)
        high = _above(laws, lattice, step, tilt)
        if least and high.delta(least) <= delta:
            return Bracket(0.0, least)
        upper = min(best.upper, max(high.epsilon(delta), 0.0))
        if upper <= least:
            return Bracket(0.0, upper)
        low = _below(
            known, lattice if known is laws else _lattice(known, known_scouts, step, tilt), step, tilt
        )
        lower = low.epsilon(delta, upper)
        before, best = best, _ordered("epsilon", max(best.lower, lower - shift), upper)
        if best.width <= width or (known is not laws and before.width - best.width < width / 2):
            break  # what is open between two laws no lattice can close
        if tilt.spare is not None and not (high.holds(best.upper) and low.holds(lower)):
            tilt = tilt.widened()  # the window was too short: a finer lattice alone would not mend that
            if not math.isfinite(lower):
                continue
        shrink = min(0.5, max(0.1, 0.9 * math.sqrt(width / max(best.width, width))))
        if step <= 1.1 * finest:
            break
        step = _align(laws, max(shrink * step, finest))
    return best


def epsilon_above(laws: Sequence[Repeated], delta: float, width: float) -> float:
    """Only the upper end, on one lattice: quick, for searches that check their answer by the bracket."""
    scouts = _scouts(laws, delta)
    if _infinite(scouts) > delta or _nothing_finite(scouts):
        return math.inf
    looks = [scout.look for scout in scouts]
    tilt = tilt_for(looks, delta)
    finest = _finest(scouts, tilt.order)
    if finest > _COARSEST:
        return math.inf
    step = _align(laws, max(_first_step(laws, tilt.deciding, width), finest))
    lattice = _lattice(laws, scouts, step, tilt)
    high = _above(laws, lattice, step, tilt)
    epsilon = high.epsilon(delta)
    if not high.holds(epsilon):
        epsilon = _above(laws, lattice, step, tilt.widened()).epsilon(delta)
    return max(epsilon, 0.0)


def delta_bracket(laws: Sequence[Repeated], epsilon: float, share: float) -> Bracket:
    """delta at this epsilon, known to within a share of itself where floats allow."""
    scouts = _scouts(laws, 1e-30)
    known, known_scouts = _known(laws, scouts, 1e-30)
    best = Bracket(_ever(known), 1.0)
    if _nothing_finite(scouts):
        return best
    tilt = tilt_at([scout.look for scout in scouts], epsilon)
    finest = _finest(scouts, tilt.order)
    if finest > _COARSEST:
        return best
    step = _align(laws, max(_first_step(laws, tilt.order, share / (tilt.order + 1)), finest))
    shift = SHIFT * sum(item.count for item in laws)
    for _ in range(_ROUNDS):
        lattice = _lattice(laws, scouts, step, tilt)
        other = lattice if known is laws else _lattice(known, known_scouts, step, tilt)
        high, low = _above(laws, lattice, step, tilt), _below(known, other, step, tilt)
        lower, upper = low.delta(epsilon + shift), high.delta(epsilon)
        bracket = _ordered("delta", max(best.lower, lower), min(best.upper, upper))
        best = Bracket(bracket.lower, min(bracket.upper, 1.0))
        if best.width <= share * best.upper or 0.4 * step < finest:
            break
        step = _align(laws, 0.4 * step)
    return best


def profile_above(laws: Sequence[Repeated], epsilons: Floats, share: float) -> Floats:
    """delta at many increasing epsilons at once, from above, to about a share of itself.

    A few tilted sums serve all: each is sharp where its tilt puts the bulk, and true everywhere.
    """
    scouts = _scouts(laws, 1e-30)
    looks = [scout.look for scout in scouts]
    centres = np.linspace(epsilons[0], epsilons[-1], _TILTS)
    deltas = np.ones(len(epsilons))
    if _nothing_finite(scouts):
        return deltas
    for tilt in {tilt_at(looks, float(centre)) for centre in centres}:
        finest = _finest(scouts, tilt.order)
        if finest <= _COARSEST:
            step = _align(laws, max(_first_step(laws, tilt.order, share / (tilt.order + 1)), finest))
            high = _above(laws, _lattice(laws, scouts, step, tilt), step, tilt)
            deltas = np.minimum(deltas, [high.delta(float(epsilon)) for epsilon in epsilons])
    return deltas


def _ordered(name: str, lower: float, upper: float) -> Bracket:
    """The bracket, its last digits given away; ends that cross would mean that one of them is wrong."""
    lower, upper = lower - _LAST_DIGITS * abs(lower), upper + _LAST_DIGITS * abs(upper)
    if lower > upper:
        raise ArithmeticError(
            f"The lower end of {name}, {lower!r}, lies above the upper one, {upper!r}: one of them is wrong. "
            "Use another accountant for this plan, and report it as a fault of Sourdine."
        )
    return Bracket(lower, upper)


def why_wide(laws: Sequence[Repeated], delta: float, width: float) -> str:
    """What keeps a bracket of epsilon from being so narrow, in words; empty if nothing is known to."""
    total = sum(item.count for item in laws)
    if _TAIL * delta / total < _SMALLEST:
        return "masses that decide such a delta are below the smallest float"
    scouts = _scouts(laws, delta)
    if _infinite(scouts) > delta or _nothing_finite(scouts):
        return "losses as large as that are too likely, or too large, for a lattice"
    tilt = tilt_for([scout.look for scout in scouts], delta)
    step, finest = _first_step(laws, tilt.deciding, width), _finest(scouts, tilt.order)
    if step < finest:
        return f"the lattice would need {_MOST_PLACES * finest / step:.2g} places, and has {_MOST_PLACES:,}"
    return "the rounding of floats adds up to more than that over so many places and uses"


def _known(
    laws: Sequence[Repeated], scouts: list["Scout"], delta: float
) -> tuple[Sequence[Repeated], list["Scout"]]:
    """What the lower end is read off: the laws that the true ones are nowhere below."""
    known = [Repeated(item.law.least, item.count) for item in laws]
    if all(one.law is other.law for one, other in zip(known, laws, strict=True)):
        return laws, scouts
    return known, _scouts(known, delta)


def _scouts(laws: Sequence[Repeated], delta: float) -> list["Scout"]:
    total = sum(item.count for item in laws)
    return [look_at(item, _TAIL * delta / total) for item in laws]


def _lattice(
    laws: Sequence[Repeated], scouts: list["Scout"], step: float, tilt: Tilt
) -> list[tuple[float, NDArray[np.int64]]]:
    """For each law where its points are counted from, and which of them are looked at."""
    origins = [origin_of(item.law, scout, step) for item, scout in zip(laws, scouts, strict=True)]
    return [
        (origin, _places(scout.look, step, origin, tilt.deciding))
        for origin, scout in zip(origins, scouts, strict=True)
    ]


def _below(
    laws: Sequence[Repeated], lattice: list[tuple[float, NDArray[np.int64]]], step: float, tilt: Tilt
) -> LossSum:
    """The sum of the lattice laws below."""
    low = []
    for item, (origin, places) in zip(laws, lattice, strict=True):
        infinite = item.law.infinite * (1 - _ROUNDING)
        masses = below(item.law, _losses(places, step, origin))
        low.append(_part(places, masses, infinite, item.count, origin))
    return convolve(low, step, tilt.order, pessimistic=False, spare=tilt.spare)


def _above(
    laws: Sequence[Repeated], lattice: list[tuple[float, NDArray[np.int64]]], step: float, tilt: Tilt
) -> LossSum:
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


def _infinite(scouts: list[Scout]) -> float:
    """The chance of a loss that no point holds; the upper end of delta cannot be less."""
    return ever([(scout.infinite, scout.look.count) for scout in scouts])


def _ever(laws: Sequence[Repeated]) -> float:
    """The chance of an infinite loss; delta cannot be less."""
    return ever([(item.law.infinite * (1 - _ROUNDING), item.count) for item in laws])


def _nothing_finite(scouts: list[Scout]) -> bool:
    """Whether some loss is hardly ever finite, so that no order would say where it lies."""
    return any(float(scout.look.masses.sum()) < _NOTHING for scout in scouts)


def _finest(scouts: list[Scout], order: float) -> float:
    """The step below which the window of the tilted sum would have too many places, or mean nothing."""
    variance, span = 0.0, 0.0
    for scout in scouts:
        losses, count = scout.look.losses, scout.look.count
        weight = scout.look.masses * np.exp(order * (losses - losses[-1]))
        weight /= max(float(weight.sum()), 1e-300)
        mean = float(np.sum(weight * losses))
        variance += count * float(np.sum(weight * (losses - mean) ** 2))
        span = max(span, float(losses[-1] - losses[0]))
    return max((16 * math.sqrt(variance) + span) / _MOST_PLACES, _SHORTEST)


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
