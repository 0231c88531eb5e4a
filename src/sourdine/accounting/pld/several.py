"""Brackets of one loss at several counts and deltas, which share what they can.

A tilted sum is sharp where its tilt puts the bulk, and true everywhere. So one look at a law does for every
count and delta whose tail it holds, and one sum from above and one from below for deltas close to each other.
What a nearby setting found best is tried first: no bound depends on a guess. Where what is shared leaves more
open than the width, a bracket is made for that delta alone (docs/guarantees/pld.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.pld.composition import (
    ROUGH,
    beyond_lattice,
    epsilon_bracket,
    nothing_finite,
    ordered,
    rough_sum,
    tail_of,
)
from sourdine.accounting.pld.convolution import LossSum, ever
from sourdine.accounting.pld.discretisation import SHIFT
from sourdine.accounting.pld.lattice import (
    COARSEST,
    align,
    finest_step,
    first_step,
    lattice_of,
    sum_above,
    sum_below,
)
from sourdine.accounting.pld.masses import ULP
from sourdine.accounting.pld.scout import Repeated, Scout, look_at
from sourdine.accounting.pld.tilt import Tilt, log_gains, log_moments, tilt_for
from sourdine.core.distributions import Floats, LossDistribution

_ROUNDS = 4
_BLURRED = 10.0  # how many times wider than another a bracket is whose delta is too far from the tilt
_ORDERS = np.geomspace(1e-2, 1e3, 60)
_AIM = 0.7  # the share of the width that a step is chosen for, once one near by is known


@dataclass(frozen=True)
class Guess:
    """What did for a setting near by: its tilt, the step as a share of what the formula says, the answers."""

    tilt: Tilt
    share: float
    uppers: tuple[float, ...]


@dataclass(frozen=True)
class LawFamily:
    """One direction of a loss, looked at once for every count and delta whose tail that look holds."""

    law: LossDistribution
    scout: Scout

    @classmethod
    def of(cls, law: LossDistribution, settings: Sequence[tuple[int, float]]) -> "LawFamily":
        """For pairs of a count and a delta."""
        return cls(law, look_at(Repeated(law, 1), min(tail_of(*setting) for setting in settings)))

    @cached_property
    def _moments(self) -> Floats:
        """log E e^{order L} at each order, or more: the look is a law whose profile is nowhere below."""
        losses = self.scout.look.losses
        farthest = max(abs(float(losses[0])), abs(float(losses[-1])))
        rounding = 4 * ULP * (8 + len(losses) + _ORDERS * farthest)
        moments: Floats = log_moments([self.scout.look], _ORDERS) + rounding
        return moments

    def surely_within(self, count: int, epsilon: float, delta: float) -> bool:
        """Whether Chernoff's bound at some order says that delta is no more than this at an epsilon."""
        left = delta - ever([(self.scout.infinite, count)]) * (1 + 1e-9)
        if left <= 0:
            return False
        terms = np.array([log_gains(_ORDERS), count * self._moments, -_ORDERS * epsilon])
        rounding = 8 * ULP * (1 + np.abs(terms).sum(axis=0))
        return float((terms.sum(axis=0) + rounding).min()) <= math.log(left)

    def told_within(
        self, count: int, epsilons: Sequence[float], deltas: Sequence[float], width: float, tilt: Tilt
    ) -> list[bool]:
        """Whether one sum from above, with a tilt of the other direction, says that of each of them."""
        laws, scouts = self._paid(count)
        if beyond_lattice(scouts) > min(deltas) or nothing_finite(scouts):
            return [False] * len(deltas)
        high = rough_sum(laws, scouts, max(width, ROUGH * min(epsilons)), tilt)
        pairs = zip(epsilons, deltas, strict=True)
        return [high is not None and high.delta(epsilon) <= delta for epsilon, delta in pairs]

    def _paid(self, count: int) -> tuple[list[Repeated], list[Scout]]:
        """The law paid so many times, and the look at it."""
        look = replace(self.scout.look, count=count)
        return [Repeated(self.law, count)], [replace(self.scout, look=look)]

    def brackets(
        self,
        count: int,
        deltas: Sequence[float],
        width: float,
        leasts: Sequence[float],
        guess: Guess | None = None,
    ) -> tuple[list[Bracket], Guess | None]:
        """epsilon at each delta, and a guess for settings near by.

        Of an answer that lies below its `least`, no more than that is said.
        """
        laws, scouts = self._paid(count)
        best, left = [Bracket(0.0, math.inf)] * len(deltas), list(range(len(deltas)))
        after = None
        if beyond_lattice(scouts) <= min(deltas) and not nothing_finite(scouts):
            guess = guess or _first_guess(scouts, deltas, width, leasts)
            finest = finest_step(scouts, guess.tilt.order)
            if finest <= COARSEST:
                shared = _Shared(laws, scouts, tuple(deltas), width, tuple(leasts), finest)
                best, left, after = shared.brackets(guess)
        for k in left:
            alone = epsilon_bracket(laws, deltas[k], width, leasts[k])
            best[k] = Bracket(max(best[k].lower, alone.lower), min(best[k].upper, alone.upper))
        return best, after


def _first_guess(
    scouts: list[Scout], deltas: Sequence[float], width: float, leasts: Sequence[float]
) -> Guess:
    """Where nothing near by is known: the tilt of the middle delta, with a window for all of them."""
    middle = math.exp(math.fsum(math.log(delta) for delta in deltas) / len(deltas))
    tilt = tilt_for([scout.look for scout in scouts], middle)
    share = math.sqrt(max(1.0, ROUGH * min(leasts) / width))
    return Guess(tilt if len(deltas) == 1 else tilt.widened(), share, ())


@dataclass(frozen=True)
class _Shared:
    """Deltas that are read off the same two sums, again and again until each is known well enough."""

    laws: list[Repeated]
    scouts: list[Scout]
    deltas: tuple[float, ...]
    width: float
    leasts: tuple[float, ...]
    finest: float

    def brackets(self, guess: Guess) -> tuple[list[Bracket], list[int], Guess]:
        """The brackets, which of them are too wide still, and what did."""
        best = [Bracket(0.0, math.inf)] * len(self.deltas)
        left = list(range(len(self.deltas)))
        blurred: list[int] = []
        tilt, formula = guess.tilt, first_step(self.laws, guess.tilt.deciding, self.width)
        step = align(self.laws, max(guess.share * formula, self.finest))
        for _ in range(_ROUNDS):
            holds = self._read(left, step, tilt, best, guess.uppers)
            widths = [best[k].width for k in left if best[k].upper > self.leasts[k]]
            left = [k for k in left if best[k].width > self.width and best[k].upper > self.leasts[k]]
            aim = math.sqrt(_AIM * self.width / max(widths)) if widths else 1.0
            share = step / formula * min(max(aim, 0.1), 1.5)
            blurred += [k for k in left if best[k].width > _BLURRED * min(widths)]
            left = [k for k in left if k not in blurred]
            if not left or (step <= 1.1 * self.finest if holds else tilt.spare is None):
                break
            if not holds:
                tilt = tilt.widened()  # the window was too short: a finer lattice alone would not mend that
                if widths == [math.inf]:
                    continue
            worst = max(best[k].width for k in left)
            aim = min(max(math.sqrt(_AIM * self.width / worst), 0.1), 0.9)
            step = align(self.laws, max(aim * step, self.finest))
        return best, left + blurred, Guess(tilt, share, tuple(bracket.upper for bracket in best))

    def _read(
        self, left: list[int], step: float, tilt: Tilt, best: list[Bracket], nears: tuple[float, ...]
    ) -> bool:
        """Read deltas off the sums at a step, into `best`; whether the window is long enough for all."""
        points = lattice_of(self.laws, self.scouts, step, tilt)
        high = sum_above(self.laws, points, step, tilt)
        low: LossSum | None = None
        holds = True
        for k in left:
            delta, least = self.deltas[k], self.leasts[k]
            if least and high.delta(least) <= delta:
                best[k] = Bracket(0.0, least)
                continue
            low = low or sum_below(self.laws, points, step, tilt)
            upper = min(best[k].upper, max(high.epsilon(delta, nears[k] if nears else None), 0.0))
            lower = low.epsilon(delta, upper)
            shift = SHIFT * self.laws[0].count
            best[k] = ordered("epsilon", max(best[k].lower, lower - shift), upper)
            holds = holds and (best[k].width <= self.width or (high.holds(upper) and low.holds(lower)))
        return holds
