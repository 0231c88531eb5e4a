"""What a collector reads off its counts: values with their variances and intervals."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sourdine.local.inversion import Bools, People, people_behind
from sourdine.mechanisms.response import Channel

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unbiased values with the variance of the reports' noise, and intervals at a confidence.

    The values are about those who reported: a share may come out below 0 or above 1, and means no more than
    its interval does. `sourdine.local.simplex` and its like mend that at the price of a bias.

    Intervals of shares lie within 0 and 1 and hold the true share at least as often as the confidence says.
    They may miss a value that lies outside. Where it lies so far out that no share would make it likely,
    `unlikely` says so, and the interval is the nearest share alone: with many categories some are.
    """

    value: Floats
    variance: Floats
    lower: Floats
    upper: Floats
    reports: int
    confidence: float = 0.95
    unlikely: Bools | None = None


def deviations(confidence: float) -> float:
    """How many standard deviations a normal interval reaches to either side."""
    return float(ndtri((1 + confidence) / 2))


def shares(channel: Channel, supports: NDArray[np.int64], reports: int, confidence: float) -> Estimate:
    """Shares of categories, from how many reports support each, with exact intervals."""
    value = channel.estimate(supports / reports)
    found = people_behind(channel.p, channel.q, supports, reports, confidence)
    return between(value, channel.variance(value, reports), found, reports, confidence)


def between(value: Floats, variance: Floats, found: People, reports: int, confidence: float) -> Estimate:
    """Shares with intervals from so many people to so many."""
    lower, upper = found.lower / reports, found.upper / reports
    return Estimate(value, variance, lower, upper, reports, confidence, found.unlikely)


def normal(value: Floats, variance: Floats, reports: int, confidence: float) -> Estimate:
    """Values whose noise is about normal, with a variance that is known or estimated."""
    reach = deviations(confidence) * np.sqrt(variance)
    return Estimate(value, variance, value - reach, value + reach, reports, confidence)


def needed(variance: float, error: float, confidence: float) -> int:
    """How many reports bring a normal interval's half-width down to an error, by the variance of one."""
    return math.ceil(variance * (deviations(confidence) / error) ** 2)
