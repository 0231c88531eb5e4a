"""What a collector reads off its counts: values with their variances and intervals."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sourdine.mechanisms.response import Channel

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unbiased values with the variance of the reports' noise, and intervals at a confidence.

    The values are about those who reported: a share may come out below 0 or above 1, and means no more than
    its interval does. `sourdine.local.simplex` and its like mend that at the price of a bias.
    """

    value: Floats
    variance: Floats
    lower: Floats
    upper: Floats
    reports: int
    confidence: float = 0.95


def deviations(confidence: float) -> float:
    """How many standard deviations a normal interval reaches to either side."""
    return float(ndtri((1 + confidence) / 2))


def shares(channel: Channel, supports: NDArray[np.int64], reports: int, confidence: float) -> Estimate:
    """Shares of categories, from how many reports support each."""
    none, all_ = (float(channel.variance(f, reports)) for f in (0.0, 1.0))
    return scores(channel.estimate(supports / reports), none, all_ - none, reports, confidence)


def scores(value: Floats, none: Floats | float, slope: float, reports: int, confidence: float) -> Estimate:
    """Shares whose variance is none + slope f at the share f.

    The interval holds every share f that the estimate lies within z standard deviations of, at the variance
    that it would have: between the roots of (value - f)^2 = z^2 (none + slope f) (Wilson 1927, generalised).
    """
    square = deviations(confidence) ** 2
    middle = value + square * slope / 2
    reach = np.sqrt(np.maximum(middle**2 - value**2 + square * none, 0.0))
    variance = none + slope * np.clip(value, 0.0, 1.0)
    return Estimate(value, variance, middle - reach, middle + reach, reports, confidence)


def normal(value: Floats, variance: Floats, reports: int, confidence: float) -> Estimate:
    """Values whose noise is about normal, with a variance that is known or estimated."""
    reach = deviations(confidence) * np.sqrt(variance)
    return Estimate(value, variance, value - reach, value + reach, reports, confidence)


def needed(variance: float, error: float, confidence: float) -> int:
    """How many reports bring a normal interval's half-width down to an error, by the variance of one."""
    return math.ceil(variance * (deviations(confidence) / error) ** 2)
