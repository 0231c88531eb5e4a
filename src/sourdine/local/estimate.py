"""What a collector keeps and reads off it: counts that add up, and values with variances and intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from sourdine.core.display import Figure, Viewable, figure_of
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted
from sourdine.core.lazy import ndtri
from sourdine.local.intervals.inversion import Bools, PeopleRange, people_behind
from sourdine.mechanisms.randomized_response import Channel

Floats = NDArray[np.float64]
_LISTED = 4


@dataclass(frozen=True, eq=False)
class Estimate(Viewable):
    """Unbiased values with the variance of the reports' noise, and intervals at a confidence.

    The values are about those who reported: a share may come out below 0 or above 1, and means no more than
    its interval does. `sourdine.local.simplex` and its like mend that at the price of a bias.

    Intervals of shares lie within 0 and 1 and hold the true share at least as often as the confidence says.
    They may miss a value that lies outside. Where it lies so far out that no share would make it likely,
    `unlikely` says so, and the interval is the nearest share alone: with many categories some are.
    `periods` is how many periods were pooled, in which the same devices may have reported.
    """

    value: Floats
    variance: Floats
    lower: Floats
    upper: Floats
    reports: int
    confidence: float = 0.95
    unlikely: Bools | None = None
    periods: int = 1

    def __repr__(self) -> str:
        ends = zip(self.value.flat, self.lower.flat, self.upper.flat, strict=True)
        intervals = [f"{value:.4g} ({low:.4g} to {high:.4g})" for value, low, high in islice(ends, _LISTED)]
        more = f", … {self.value.size:,} values" if self.value.size > _LISTED else ""
        return f"<Estimate {', '.join(intervals)}{more} from {counted(self.reports, 'report')}>"

    def chart(self, labels: Sequence[str] = ()) -> Figure:
        """The values as bars with their intervals, under the labels of the categories if there are any."""
        return figure_of(self, *labels)


def deviations(confidence: float) -> float:
    """How many standard deviations a normal interval reaches to either side."""
    return float(ndtri((1 + confidence) / 2))


def shares(channel: Channel, supports: NDArray[np.int64], reports: int, confidence: float) -> Estimate:
    """Shares of categories, from how many reports support each, with exact intervals."""
    value = channel.estimate(supports / reports)
    people = people_behind(channel.p, channel.q, supports, reports, confidence)
    return between(value, channel.variance(value, reports), people, reports, confidence)


def between(
    value: Floats, variance: Floats, people: PeopleRange, reports: int, confidence: float
) -> Estimate:
    """Shares with intervals from so many people to so many."""
    lower, upper = people.lower / reports, people.upper / reports
    return Estimate(value, variance, lower, upper, reports, confidence, people.unlikely)


def normal(value: Floats, variance: Floats, reports: int, confidence: float, bias: float = 0.0) -> Estimate:
    """Values whose noise is about normal, with a variance that is known or estimated, and a bounded bias."""
    reach = deviations(confidence) * np.sqrt(variance) + bias
    return Estimate(value, variance, value - reach, value + reach, reports, confidence)


def needed(variance: float, error: float, confidence: float) -> int:
    """How many reports bring a normal interval's half-width down to an error, by the variance of one."""
    return math.ceil(variance * (deviations(confidence) / error) ** 2)


@dataclass(frozen=True, eq=False)
class Counts:
    """Sums over reports made by one oracle, known by its fingerprint.

    >>> one = Counts("f" * 16, 2, np.array([1, 1]))
    >>> (one + one).sums.tolist()
    [2, 2]
    """

    fingerprint: str
    reports: int
    sums: NDArray[np.int64]

    def __add__(self, other: "Counts") -> "Counts":
        if self.fingerprint != other.fingerprint or self.sums.shape != other.sums.shape:
            raise InvalidParameter(
                "These counts are of reports made with other parameters. They measure different things and "
                "cannot be added. Keep them apart, or collect again under one specification."
            )
        return Counts(self.fingerprint, self.reports + other.reports, self.sums + other.sums)

    def to_json(self) -> dict[str, object]:
        """The counts for a file."""
        return {"counts": self.fingerprint, "reports": self.reports, "sums": self.sums.tolist()}

    @classmethod
    def from_json(cls, description: object) -> "Counts":
        """Counts read back; whatever is not counts is refused."""
        if isinstance(description, Mapping) and set(description) == {"counts", "reports", "sums"}:
            fingerprint, reports, sums = description["counts"], description["reports"], description["sums"]
            whole = isinstance(sums, list) and all(type(each) is int and abs(each) < 1 << 62 for each in sums)
            if isinstance(fingerprint, str) and type(reports) is int and 0 <= reports < 1 << 62 and whole:
                return cls(fingerprint, reports, np.array(sums, dtype=np.int64))
        raise InvalidParameter(
            "The counts cannot be read. They are cut short or were changed. Make them again."
        )
