"""Checks of who was drawn, against the law of Poisson batches, and of how far a unit moved a sum."""

import math
from fractions import Fraction

import numpy as np

from sourdine.audit.training.checks import (
    POWER,
    Check,
    either,
    farthest,
    least_scale,
    of_normal,
    of_square,
    spread,
)
from sourdine.audit.training.trace import LAGS, Trace
from sourdine.core.random.bits import Bits

_ROUNDING = 1e-4  # what float32 may make a unit move a sum beyond the norm


def size_check(trace: Trace, size: int, rate: Fraction, alarm: float, bits: Bits) -> Check:
    """Batch sizes are binomial and independent: neither off in the mean, nor too even, nor too uneven.

    `size` is how many units were declared: what the check would have seen is told by public numbers alone.
    """
    apart = spread(trace.sizes, trace.units, float(rate), bits)
    steps = len(apart)
    mean = float(np.mean(trace.sizes))
    chance = either(
        of_normal(float(apart.sum()) / math.sqrt(steps)), of_square(float((apart**2).sum()), steps)
    )
    off = (farthest(alarm / 2) + farthest(2 * (1 - POWER))) * math.sqrt(
        float((1 - rate) / rate) / (steps * size)
    )
    return Check(
        name="batch sizes",
        finding=f"{mean:,.1f} units on average, {trace.units * float(rate):,.1f} by the claimed rate",
        chance=chance,
        alarm=alarm,
        smallest=f"a sampling rate {100 * off:.2g} % above the claim" if rate < 1 else "",
    )


def drawing_check(trace: Trace, size: int, rate: Fraction, alarm: float, bits: Bits) -> Check:
    """Each unit is drawn in each step by a coin of its own.

    How often a unit was drawn is binomial over the steps, how many of an earlier batch come again is binomial
    over that batch, and how many pairs of units come together is binomial over the pairs. Given all that was
    before, each of these numbers has that law, so as normal numbers they are independent within their kind.
    """
    units = spread(trace.draws, trace.steps, float(rate), bits)
    count = len(units)
    chances = [of_square(float((units**2).sum()), count), of_normal(float(units.sum()) / math.sqrt(count))]
    for overlaps in trace.overlaps.values():
        if overlaps:
            both, before = np.array(overlaps).T
            chances.append(_normals(spread(both, before, float(rate), bits)))
    for lag, pairs in trace.pairs.items():
        if pairs:
            trials = trace.units // (2 * lag) * lag
            chances.append(_normals(spread(pairs, trials, float(rate**2), bits)))
    even = least_scale(size, alarm / (2 + 2 * len(LAGS)))  # of public numbers alone, like all that is told
    low, high = int(trace.draws.min()), int(trace.draws.max())
    return Check(
        name="drawing",
        finding=f"units drawn {low:,} to {high:,} times in {trace.steps:,} steps"
        + (f", {trace.twice:,} twice in a batch" if trace.twice else ""),
        chance=0.0 if trace.twice else either(*chances),
        alarm=alarm,
        smallest=f"numbers of draws that spread less than {even:.3f} times those of coins"
        if rate < 1
        else "",
    )


def clipping_check(trace: Trace, single: float, alarm: float) -> Check:
    """No canary moves the sum farther than the clipping norm, and each counts where it was drawn.

    `single` is the most that one of the other canaries moves it by alone, in clipping norms.
    """
    most = max(trace.moved, single)
    within = most <= 1 + _ROUNDING and trace.astray == 0
    return Check(
        name="clipping",
        finding=f"a unit moves the sum by at most {most:.4f} clipping norms"
        + (f"; {trace.astray:,} times a canary counted otherwise than drawn" if trace.astray else ""),
        chance=1.0 if within else 0.0,
        alarm=alarm,
        smallest="any canary that moves a sum beyond the norm",
    )


def steps_check(trace: Trace, planned: int, alarm: float) -> Check:
    """As many steps as were paid for, and no more."""
    return Check(
        name="steps",
        finding=f"{trace.steps:,} of {planned:,} that were claimed",
        chance=1.0 if trace.steps <= planned else 0.0,
        alarm=alarm,
        smallest="one step too many",
    )


def _normals(numbers: np.ndarray) -> float:
    return either(
        of_normal(float(numbers.sum()) / math.sqrt(len(numbers))),
        of_square(float((numbers**2).sum()), len(numbers)),
    )
