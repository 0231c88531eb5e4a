"""The profile of many losses together, as a certified bracket, on a lattice as fine as it takes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.pld.convolution import LossSum, ever
from sourdine.accounting.pld.discretisation import SHIFT
from sourdine.accounting.pld.lattice import (
    COARSEST,
    MOST_PLACES,
    ROUNDING,
    align,
    finest_step,
    first_step,
    lattice_from,
    lattice_of,
    sum_above,
    sum_below,
)
from sourdine.accounting.pld.scout import Repeated, Scout, look_at
from sourdine.accounting.pld.tilt import Tilt, tilt_at, tilt_for
from sourdine.core.distributions import AtomLaw, Floats, LossDistribution

_ROUNDS = 6
_COARSER = tuple(10.0**k for k in range(-9, 1))
_FEW_VALUES = 64
_SMALL = 1e-6  # an epsilon of which no share is asked for
_TILTS = 8
ROUGH = 0.02  # the share of an epsilon to which another is told to lie below it
_TAIL = 1e-5  # the share of delta that losses beyond the lattice may have
_SMALLEST = 1e-290  # a mass under P below it has none under Q that a float can hold
_NOTHING = 1e-15  # mass at finite losses that leaves no more to say than that the others are infinite
_LAST_DIGITS = 2.0**-48  # what reading an end off may err, relative


class Width(NamedTuple):
    """How much of epsilon may stay open: so much, and such a share of it."""

    absolute: float
    relative: float = 1.0

    def at(self, epsilon: float) -> float:
        """How much that is at an epsilon."""
        return min(self.absolute, self.relative * max(epsilon, _SMALL))

    def no_less(self, each: float) -> "Width":
        """The same, but no narrower than this."""
        return Width(max(self.absolute, each), max(self.relative, each))


def epsilon_bracket(
    laws: Sequence[Repeated], delta: float, width: Width | float, least: float = 0.0
) -> Bracket:
    """The least epsilon at this delta, known to within `width` where floats allow.

    It stops early once the answer is known to lie below `least`.
    """
    return epsilon_and_tilt(laws, delta, width, least)[0]


def epsilon_and_tilt(
    laws: Sequence[Repeated],
    delta: float,
    width: Width | float,
    least: float = 0.0,
    near: Tilt | None = None,
) -> tuple[Bracket, Tilt | None]:
    """`epsilon_bracket`, and the tilt it was found with, for the other direction of the same losses.

    There it is `near`, with which an answer below `least` is told without looking for a better one.
    """
    width = width if isinstance(width, Width) else Width(width)
    scouts = _scouts(laws, delta)
    if _ever([Repeated(item.law.least, item.count) for item in laws]) > delta:
        return Bracket(math.inf, math.inf), None
    if beyond_lattice(scouts) > delta or nothing_finite(scouts):
        return Bracket(0.0, math.inf), None
    high = rough_sum(laws, scouts, max(width.at(least), ROUGH * least), near) if least and near else None
    if high is not None and high.delta(least) <= delta:
        return Bracket(0.0, least), near
    tilt = tilt_for([scout.look for scout in scouts], delta)
    return _Refinement(laws, scouts, delta, least).bracket(width, tilt), tilt


def rough_sum(laws: Sequence[Repeated], scouts: list[Scout], width: float, tilt: Tilt) -> LossSum | None:
    """One sum from above, for answers that need only be told to lie below another; None if it were too long.

    Chords are as good wherever points are counted from, so that is not looked for.
    """
    step = align(laws, first_step(laws, tilt.deciding, width))
    if step < finest_step(scouts, tilt.order):
        return None
    return sum_above(laws, lattice_from([0.0] * len(laws), scouts, step, tilt), step, tilt)


class _Reading(NamedTuple):
    """What two sums of a step and a tilt say, and whether their window is long enough."""

    upper: float
    lower: float
    holds: bool


@dataclass(frozen=True)
class _Refinement:
    """One direction, read off finer and finer lattices; what was read once is kept."""

    laws: Sequence[Repeated]
    scouts: list[Scout]
    delta: float
    least: float
    readings: dict[tuple[float, Tilt], _Reading] = field(default_factory=dict)

    def bracket(self, width: Width, tilt: Tilt) -> Bracket:
        """The bracket, as narrow as asked or as floats allow.

        Where they do not, it is what any larger width would have given too: coarser lattices have fewer
        points, with less rounding. All ends are proven, so the best of them stay, and less is never known
        where more was asked for.
        """
        if finest_step(self.scouts, tilt.order) > COARSEST:
            return Bracket(0.0, math.inf)
        best, done = self._narrow(width, tilt)
        for wide in (width.no_less(each) for each in _COARSER):
            if done:
                break
            if wide != width:
                found, done = self._narrow(wide, tilt)
                best = Bracket(max(best.lower, found.lower), min(best.upper, found.upper))
                done = best.upper <= self.least or best.width <= width.at(best.upper)
        return best

    def _narrow(self, width: Width, tilt: Tilt) -> tuple[Bracket, bool]:
        """The bracket, and whether no other lattice is worth a look."""
        best = Bracket(0.0, math.inf)
        finest = finest_step(self.scouts, tilt.order)
        first = max(width.at(tilt.epsilon) if tilt.epsilon > 0 else width.absolute, ROUGH * self.least)
        step = align(self.laws, max(first_step(self.laws, tilt.deciding, first), finest))
        shift = SHIFT * sum(item.count for item in self.laws)
        for _ in range(_ROUNDS):
            found = self._read(step, tilt)
            upper = min(best.upper, max(found.upper, 0.0))
            if upper <= self.least:
                return Bracket(0.0, upper), True
            before, best = best, ordered("epsilon", max(best.lower, found.lower - shift), upper)
            aim = width.at(best.upper)
            if best.width <= aim or (self._known[0] is not self.laws and before.width - best.width < aim / 2):
                return best, True  # what is open between two laws no lattice can close
            if tilt.spare is not None and not found.holds:
                tilt = tilt.widened()  # the window was too short: a finer lattice alone would not mend that
                if not math.isfinite(found.lower):
                    continue
            shrink = min(0.5, max(0.1, 0.9 * math.sqrt(aim / max(best.width, aim))))
            if step <= 1.1 * finest:
                break
            step = align(self.laws, max(shrink * step, finest))
        return best, False

    def _read(self, step: float, tilt: Tilt) -> _Reading:
        if (step, tilt) not in self.readings:
            self.readings[step, tilt] = self._sums(step, tilt)
        return self.readings[step, tilt]

    def _sums(self, step: float, tilt: Tilt) -> _Reading:
        lattice = lattice_of(self.laws, self.scouts, step, tilt)
        high = sum_above(self.laws, lattice, step, tilt)
        if self.least and high.delta(self.least) <= self.delta:
            return _Reading(self.least, 0.0, True)
        upper = high.epsilon(self.delta)
        known, scouts = self._known
        other = lattice if known is self.laws else lattice_of(known, scouts, step, tilt)
        low = sum_below(known, other, step, tilt)
        lower = low.epsilon(self.delta, max(upper, 0.0))
        return _Reading(upper, lower, high.holds(max(upper, 0.0)) and low.holds(lower))

    @cached_property
    def _known(self) -> tuple[Sequence[Repeated], list[Scout]]:
        return _known(self.laws, self.scouts, self.delta)


def epsilon_above(laws: Sequence[Repeated], delta: float, width: float) -> float:
    """Only the upper end, on one lattice: quick, for searches that check their answer by the bracket."""
    scouts = _scouts(laws, delta)
    if beyond_lattice(scouts) > delta or nothing_finite(scouts):
        return math.inf
    looks = [scout.look for scout in scouts]
    tilt = tilt_for(looks, delta)
    finest = finest_step(scouts, tilt.order)
    if finest > COARSEST:
        return math.inf
    step = align(laws, max(first_step(laws, tilt.deciding, width), finest))
    lattice = lattice_of(laws, scouts, step, tilt)
    high = sum_above(laws, lattice, step, tilt)
    epsilon = high.epsilon(delta)
    if not high.holds(epsilon):
        epsilon = sum_above(laws, lattice, step, tilt.widened()).epsilon(delta)
    return max(epsilon, 0.0)


def delta_bracket(laws: Sequence[Repeated], epsilon: float, share: float) -> Bracket:
    """delta at this epsilon, known to within a share of itself where floats allow."""
    scouts = _scouts(laws, 1e-30)
    known, known_scouts = _known(laws, scouts, 1e-30)
    best = Bracket(_ever(known), 1.0)
    if nothing_finite(scouts):
        return best
    tilt = tilt_at([scout.look for scout in scouts], epsilon)
    finest = finest_step(scouts, tilt.order)
    if finest > COARSEST:
        return best
    step = align(laws, max(first_step(laws, tilt.order, share / (tilt.order + 1)), finest))
    shift = SHIFT * sum(item.count for item in laws)
    for _ in range(_ROUNDS):
        lattice = lattice_of(laws, scouts, step, tilt)
        other = lattice if known is laws else lattice_of(known, known_scouts, step, tilt)
        high, low = sum_above(laws, lattice, step, tilt), sum_below(known, other, step, tilt)
        lower, upper = low.delta(epsilon + shift), high.delta(epsilon)
        bracket = ordered("delta", max(best.lower, lower), min(best.upper, upper))
        best = Bracket(bracket.lower, min(bracket.upper, 1.0))
        if best.width <= share * best.upper or 0.4 * step < finest:
            break
        step = align(laws, 0.4 * step)
    return best


def profile_above(laws: Sequence[Repeated], epsilons: Floats, share: float) -> Floats:
    """delta at many increasing epsilons at once, from above, to about a share of itself.

    A few tilted sums serve all: each is sharp where its tilt puts the bulk, and true everywhere.
    """
    scouts = _scouts(laws, 1e-30)
    looks = [scout.look for scout in scouts]
    centres = np.linspace(epsilons[0], epsilons[-1], _TILTS)
    deltas = np.ones(len(epsilons))
    if nothing_finite(scouts):
        return deltas
    for tilt in {tilt_at(looks, float(centre)) for centre in centres}:
        finest = finest_step(scouts, tilt.order)
        if finest <= COARSEST:
            step = align(laws, max(first_step(laws, tilt.order, share / (tilt.order + 1)), finest))
            high = sum_above(laws, lattice_of(laws, scouts, step, tilt), step, tilt)
            deltas = np.minimum(deltas, [high.delta(float(epsilon)) for epsilon in epsilons])
    return deltas


def ordered(name: str, lower: float, upper: float) -> Bracket:
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
    if beyond_lattice(scouts) > delta or nothing_finite(scouts):
        return "losses as large as that are too likely, or too large, for a lattice"
    tilt = tilt_for([scout.look for scout in scouts], delta)
    step, finest = first_step(laws, tilt.deciding, width), finest_step(scouts, tilt.order)
    if step < finest:
        return f"the lattice would need {MOST_PLACES * finest / step:.2g} places, and has {MOST_PLACES:,}"
    if any(_between_points(item.law) for item in laws):
        return "losses of a few values lie between the points of a lattice, and are rounded down"
    return "the rounding of floats adds up to more than that over so many places and uses"


def _between_points(law: LossDistribution) -> bool:
    """Whether a law has a few values without a common step: next to them no mass is there to borrow from."""
    return isinstance(law, AtomLaw) and law.spacing is None and len(law.atoms[0]) <= _FEW_VALUES


def _known(
    laws: Sequence[Repeated], scouts: list[Scout], delta: float
) -> tuple[Sequence[Repeated], list[Scout]]:
    """What the lower end is read off: the laws that the true ones are nowhere below."""
    known = [Repeated(item.law.least, item.count) for item in laws]
    if all(one.law is other.law for one, other in zip(known, laws, strict=True)):
        return laws, scouts
    return known, _scouts(known, delta)


def _scouts(laws: Sequence[Repeated], delta: float) -> list[Scout]:
    total = sum(item.count for item in laws)
    return [look_at(item, tail_of(total, delta)) for item in laws]


def tail_of(count: int, delta: float) -> float:
    """The mass that losses beyond the lattice may have, where so many are paid."""
    return _TAIL * delta / count


def beyond_lattice(scouts: list[Scout]) -> float:
    """The chance of a loss that no point holds; the upper end of delta cannot be less."""
    return ever([(scout.infinite, scout.look.count) for scout in scouts])


def _ever(laws: Sequence[Repeated]) -> float:
    """The chance of an infinite loss; delta cannot be less."""
    return ever([(item.law.infinite * (1 - ROUNDING), item.count) for item in laws])


def nothing_finite(scouts: list[Scout]) -> bool:
    """Whether some loss is hardly ever finite, so that no order would say where it lies."""
    return any(float(scout.look.masses.sum()) < _NOTHING for scout in scouts)
