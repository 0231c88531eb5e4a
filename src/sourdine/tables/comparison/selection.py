"""Which intervals of an answer stay valid although noise chose the rows that are shown.

HAVING and LIMIT keep rows by noisy values, and what is kept is more often too high than too low. An answer
whose noise took no part in the choice keeps its intervals. One that is compared with a constant gets
intervals that are valid given that its row is shown. All others get intervals that hold for every declared
key at once, whichever of them are shown (docs/guarantees/row_selection.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from sourdine.tables.answers.estimate import GroupEstimate
from sourdine.tables.answers.selection import LinearNoise, interval_above
from sourdine.tables.comparison.show import RowFilter, Show
from sourdine.tables.comparison.steps import NO_ENDS, AnswerStep

_ABOVE = (">", ">=")
_MOST_STEPS = 2.0**50  # above it a float has no room for halves of a step


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
    filters: tuple[RowFilter, ...] = ()
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


def selected_intervals(
    show: Show,
    steps: Sequence[AnswerStep],
    *,
    rows: frozenset[str],
    lines: Mapping[str, object],
    keys: Mapping[str, int],
    noises: Mapping[str, tuple[LinearNoise | None, float | None]],
) -> dict[str, SelectedIntervals]:
    """Return what becomes of the intervals of each answer whose rows are chosen, by its label.

    All of it follows from declarations.

    Args:
        show: how the answers are shown.
        steps: what is computed from answers.
        rows: the labels of the answers whose rows are chosen.
        lines: what each statistic is read off, by its label: two with the same share their noise.
        keys: how many declared keys each statistic has.
        noises: the noise of each statistic that is a weighted sum, and what no true number of it is below.
    """
    sources: dict[str, frozenset[str]] = {label: frozenset({label}) for label in lines}
    for step in steps:
        sources[step.label] = frozenset().union(*(sources[each] for each in step.uses))
    read_off = {label: {id(lines[each]) for each in parts} for label, parts in sources.items()}
    most = {label: max(keys[each] for each in parts) for label, parts in sources.items()}
    limited = show.limits(max(keys.values()))
    ranked: set[int] = set()
    if limited:
        ranked = set().union(*(read_off[each.of] for each in show.order if each.of in read_off))
    filters = [each for each in show.having if each.of in read_off]
    found: dict[str, SelectedIntervals] = {}
    for label in rows:
        if not (show.having or limited):
            continue
        own = [each for each in filters if read_off[each.of] & read_off[label]]
        if not own and not read_off[label] & ranked:
            found[label] = SelectedIntervals(kind=IntervalKind.USUAL)
            continue
        noise, floor = noises.get(label, (None, None))
        alone = not read_off[label] & ranked and all(each.of == label and each.sign in _ABOVE for each in own)
        # without a floor an interval of Laplace noise may have no lower end, since its tail has no memory
        if alone and noise is not None and noise.known and (noise.normal or floor is not None):
            found[label] = SelectedIntervals(kind=IntervalKind.CONDITIONAL, filters=tuple(own), floor=floor)
        else:
            found[label] = SelectedIntervals(kind=IntervalKind.SIMULTANEOUS, keys=most[label])
    return found


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
        np.maximum(np.minimum(ends[0], usual.value), NO_ENDS[0]) + 0.0,  # not -0.0
        np.maximum(ends[1], usual.value) + 0.0,
    )


def _digits(estimate: GroupEstimate) -> int:
    """The decimal digits that the values of an answer are rounded to: their usual intervals are as wide."""
    width = float(estimate.upper[0] - estimate.lower[0])
    return 2 - math.floor(math.log10(width)) if width > 0 and math.isfinite(width) else 15


def _least_shown(each: RowFilter, digits: int) -> float:
    """The least number that is rounded to one that a filter keeps, but for a tie."""
    step, constant = 10.0**-digits, float(each.value)
    if abs(constant) >= _MOST_STEPS * step:  # floats have no steps there
        return constant
    place = math.floor(constant / step) - 1
    while not each.keeps(round(place * step, digits)):
        place += 1
    return (place - 0.5) * step
