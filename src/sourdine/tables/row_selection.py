"""The intervals of answers some of whose rows are not shown, and those that are valid given a threshold.

Which of them an answer has is decided from declarations, in `comparison.selection`.
"""

import math
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy as np

from sourdine.tables.intervals import GroupEstimate, interval_above

_MOST_STEPS = 2.0**50  # above it a float has no room for halves of a step
_NO_END = -sys.float_info.max  # what stands for no end of an interval, which tables and files leave empty


class Comparison(Protocol):
    """A comparison of shown values with a constant."""

    @property
    def value(self) -> int | float | str | bool: ...

    def keeps(self, values: Any) -> Any: ...


class IntervalKind(Enum):
    """Of what kind the intervals of an answer are."""

    USUAL = "each by itself"
    CONDITIONAL = "given that the row is shown"
    SIMULTANEOUS = "for all keys at once"


@dataclass(frozen=True, kw_only=True)
class SelectedIntervals:
    """The intervals of an answer some of whose rows are not shown.

    `keys` is how many declared keys simultaneous ones are for. Conditional ones have `filters`, which compare
    this answer with constants, and a `floor` where no true number is below one.
    """

    kind: IntervalKind
    keys: int = 1
    filters: tuple[Comparison, ...] = ()
    floor: float | None = None

    def level(self, confidence: float) -> float:
        """Return the confidence that each interval needs alone: by Bonferroni's inequality, for all keys."""
        if self.kind is not IntervalKind.SIMULTANEOUS:
            return confidence
        return 1 - (1 - confidence) / self.keys

    @property
    def note(self) -> str:
        """What a reader of the intervals must know; empty where they are the usual ones."""
        if self.kind is IntervalKind.CONDITIONAL:
            return "intervals given that the row is shown"
        if self.kind is IntervalKind.SIMULTANEOUS:
            return f"intervals for all {self.keys:,} keys at once"
        return ""


def conditional_estimate(
    estimate: GroupEstimate, intervals: SelectedIntervals, *, confidence: float, whole: bool
) -> GroupEstimate:
    """Return the values of an answer, rounded as usual, with intervals that are valid given what is shown.

    A row is shown by its rounded value, so the threshold is moved to where rounding changes.
    """
    noise = estimate.noise
    assert noise is not None
    usual = estimate.rounded(whole)
    if not usual.value.size:
        return usual
    digits = 0 if whole else _digits(estimate)
    threshold = max(_least_shown(each, digits) for each in intervals.filters)
    if noise.grid > 0 and abs(threshold) < _MOST_STEPS * noise.grid:
        place = math.floor(threshold / noise.grid) - 1
        while not all(each.keeps(round(place * noise.grid, digits)) for each in intervals.filters):
            place += 1
        threshold = place * noise.grid
    lower, upper = interval_above(estimate.value, threshold, noise, confidence, intervals.floor)
    step = 10.0**-digits
    with np.errstate(invalid="ignore"):
        ends = np.round(np.floor(lower / step) * step, digits), np.round(np.ceil(upper / step) * step, digits)
    return GroupEstimate(
        usual.value,
        np.maximum(np.minimum(ends[0], usual.value), _NO_END) + 0.0,  # not -0.0
        np.maximum(ends[1], usual.value) + 0.0,
    )


def _digits(estimate: GroupEstimate) -> int:
    """The decimal digits that the values of an answer are rounded to: their usual intervals are as wide."""
    width = float(estimate.upper[0] - estimate.lower[0])
    return 2 - math.floor(math.log10(width)) if width > 0 and math.isfinite(width) else 15


def _least_shown(each: Comparison, digits: int) -> float:
    """The least number that is rounded to one that a filter keeps, but for a tie."""
    step, constant = 10.0**-digits, float(each.value)
    if abs(constant) >= _MOST_STEPS * step:  # floats have no steps there
        return constant
    place = math.floor(constant / step) - 1
    while not each.keeps(round(place * step, digits)):
        place += 1
    return (place - 0.5) * step
