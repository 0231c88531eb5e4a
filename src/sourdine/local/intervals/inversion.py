"""How many people hold a category, as an interval: every number that does not make the reports unlikely.

Clopper and Pearson 1934 for sums whose steps are not all alike. A number of people is in the interval unless
what was seen, or something further out, has at most half the error's probability under it. So the interval
holds the true number at least as often as the confidence says, whatever the number is and whatever all the
others are (docs/guarantees/intervals.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sourdine.core.lazy import ndtri
from sourdine.local.intervals.sums import Floats, Ints, Sums, SumStep

Bools = NDArray[np.bool_]
# of some rows, each with a number of people: how many steps of each kind
StepCounts = Callable[[Ints, Ints], Ints]
_MANY = 4096  # different sums from which on they are rounded outwards,
_FINE = 64  # by no more than this part of their least deviation
_GROWTH = 4


class PeopleRange(NamedTuple):
    """Least and largest numbers of people, and where no number made what was seen likely enough."""

    lower: Ints
    upper: Ints
    unlikely: Bools


@dataclass(frozen=True, eq=False)
class Inversion:
    """What was seen, row by row, and the steps behind it for any number of people from 0 to `most`.

    `steps` must let the sum rise with the number: P[sum >= x] must grow with it, for every x. If `unsure`, it
    gives one of several numbers of steps that there may be, of one mean, and this the largest variance. Their
    tails are largest there if what was seen is beyond every mode: sqrt(3) deviations from the mean, at most
    (Johnson, Rogers 1951). A number of people is ruled out there only.
    """

    sums: Sums
    steps: StepCounts
    most: Ints
    tail: float
    unsure: bool = False

    def lower(self, totals: Ints) -> Ints:
        """The least numbers with P[sum >= total] above the tail; most + 1 where there is none."""
        tail = self.tail - self._rounding

        def likely(rows: Ints, people: Ints) -> Bools:
            counts = self.steps(rows, people)
            likely: Bools = 1 - self.sums.below(counts, totals[rows] - 1) > tail
            return likely | ~self._beyond(counts, totals[rows], 1)

        def roughly(rows: Ints, people: Ints) -> Bools:
            return self._edge(self.steps(rows, people), 1) > totals[rows] - 0.5

        return least(likely, least(roughly, self.most // 2, self.most), self.most)

    def upper(self, totals: Ints) -> Ints:
        """The largest numbers with P[sum <= total] above the tail; -1 where there is none."""
        tail, most = self.tail - self._rounding, self.most

        def likely(rows: Ints, fewer: Ints) -> Bools:
            counts = self.steps(rows, most[rows] - fewer)
            likely: Bools = self.sums.below(counts, totals[rows]) > tail
            return likely | ~self._beyond(counts, totals[rows], -1)

        def roughly(rows: Ints, fewer: Ints) -> Bools:
            return self._edge(self.steps(rows, most[rows] - fewer), -1) < totals[rows] + 0.5

        return most - least(likely, least(roughly, most // 2, most), most)

    @property
    def _rounding(self) -> float:
        return self.sums.rounding(int(self.most.max(initial=1)))

    def _edge(self, counts: Ints, side: int) -> Floats:
        """About where the tail begins: by the normal law and the first term of Cornish and Fisher."""
        mean, variance, third = (counts @ self.sums.moments).T
        z = float(ndtri(1 - self.tail))
        return np.asarray(
            mean
            + side * z * np.sqrt(np.maximum(variance, 0))
            + (z * z - 1) / 6 * third / np.maximum(variance, 1e-9)
        )

    def _beyond(self, counts: Ints, totals: Ints, side: int) -> Bools:
        """Whether what was seen is beyond every mode that there may be."""
        if not self.unsure:
            return np.ones(len(totals), np.bool_)
        mean, variance, _ = (counts @ self.sums.moments).T
        sure: Bools = side * (totals - mean) - 1 >= np.sqrt(3 * (variance + 1 / 12))
        return np.asarray(sure | (counts[:, 1] == 0))


def least(accepted: Callable[[Ints, Ints], Bools], guess: Ints, most: Ints) -> Ints:
    """The least number from 0 to `most` that is accepted, row by row; most + 1 where none is.

    Steps from the guess grow until there is a number on either side, and then halve. The one before the
    answer was not accepted, and where acceptance rises, as it should, none before it would be.
    """
    low, high = np.full(len(most), -1), most + 1
    at, step = np.clip(guess, 0, most), np.ones(len(most), np.int64)
    rows = np.arange(len(most))
    while rows.size:
        good = accepted(rows, at[rows])
        high[rows[good]], low[rows[~good]] = at[rows[good]], at[rows[~good]]
        rows = rows[high[rows] - low[rows] > 1]
        below, above = low[rows], high[rows]
        up, down = np.minimum(below + step[rows], most[rows]), np.maximum(above - step[rows], 0)
        middle = below + (above - below) // 2
        at[rows] = np.where(above > most[rows], up, np.where(below < 0, down, middle))
        step[rows] = np.minimum(step[rows] * _GROWTH, 1 << 60)
    return high


def coins(p: float, q: float, people: Ints, error: float) -> Inversion:
    """The numbers m of so many people, row by row, where what was seen is Bin(m, p) + Bin(people - m, q)."""
    sums = Sums((SumStep(p), SumStep(q)))
    return Inversion(sums, lambda rows, m: np.stack([m, people[rows] - m], axis=1), people, error / 2)


def people_behind(p: float, q: float, supports: Ints, reports: int, confidence: float) -> PeopleRange:
    """How many hold each category, where a report supports it with probability p if so, and with q if not.

    >>> people_behind(0.75, 0.25, np.array([30, 90]), 120, 0.95)[:2]
    (array([  0, 101]), array([ 19, 120]))
    """
    totals = np.clip(np.asarray(supports, np.int64).reshape(-1), 0, reports)
    down, up = rounded(totals, reports * min(p * (1 - p), q * (1 - q)))
    (low, first), (high, second) = (np.unique(each, return_inverse=True) for each in (down, up))
    lower = coins(p, q, np.full(len(low), reports), 1 - confidence).lower(low)[first]
    upper = coins(p, q, np.full(len(high), reports), 1 - confidence).upper(high)[second]
    return within(lower, upper, reports, np.shape(supports))


def rounded(totals: Ints, variance: float) -> tuple[Ints, Ints]:
    """Sums, or where there are many different ones, round numbers below and above each."""
    step = max(1, int(np.sqrt(variance) / _FINE)) if len(np.unique(totals)) > _MANY else 1
    down = totals // step * step
    return down, -(-totals // step) * step


def within(lower: Ints, upper: Ints, most: int, shape: tuple[int, ...]) -> PeopleRange:
    """Limits within 0 .. most. Where there is no number between them, the nearest end stands for it."""
    unlikely = (lower > most) | (upper < 0) | (lower > upper)
    least = np.clip(np.minimum(lower, upper), 0, most)
    largest = np.clip(np.maximum(lower, upper), 0, most)
    least = np.where(lower > most, most, least)
    largest = np.where(upper < 0, 0, largest)
    return PeopleRange(least.reshape(shape), largest.reshape(shape), unlikely.reshape(shape))
