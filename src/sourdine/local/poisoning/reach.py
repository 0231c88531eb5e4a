"""How far a share of attackers could have moved an estimate, whatever they sent.

Honest devices can send every report, so no test sees a careful attacker; but each report moves an estimate by
a known amount at most, and that can be said beside it (docs/guarantees/poisoning.md).
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.local.estimate import Estimate
from sourdine.local.frequency.hadamard import HadamardResponse
from sourdine.local.intervals.inversion import PeopleRange, people_behind
from sourdine.local.numeric.oracle import UnbiasedOracle
from sourdine.local.oracle import FrequencyOracle, Oracle

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reach:
    """What a share of attackers among those who reported could have done, for each value of an estimate.

    `up` and `down` are how far they could have moved it, each at least 0. `lower` and `upper` are an interval
    for the honest people alone, whatever the others sent, at the estimate's confidence: it is found by
    inverting the distribution of the honest reports, with the attackers' number fixed. An estimate of several
    periods does not show in which of them the attackers were, so the interval is all that people can have.
    """

    share: float
    up: Floats
    down: Floats
    oracle: Oracle = field(repr=False)
    estimate: Estimate = field(repr=False)

    @property
    def lower(self) -> Floats:
        """The lower ends for the honest people."""
        return self._honest[0]

    @property
    def upper(self) -> Floats:
        """The upper ends for the honest people."""
        return self._honest[1]

    @cached_property
    def _honest(self) -> tuple[Floats, Floats]:
        attackers = math.ceil(self.share * self.estimate.reports)
        if not attackers:
            return self.estimate.lower, self.estimate.upper
        honest = self.estimate.reports - attackers
        least, most = report_range(self.oracle)[2:]
        every = np.zeros_like(self.estimate.value) + least, np.zeros_like(self.estimate.value) + most
        if self.estimate.periods > 1 or honest < 1:
            return every
        if isinstance(self.oracle, HadamardResponse) and self.oracle.blocks > 1:
            people = self.oracle.honest_people(self.estimate, attackers)
        elif isinstance(self.oracle, FrequencyOracle):
            people = _honest_people(self.oracle, self.estimate, attackers)
        else:
            assert isinstance(self.oracle, UnbiasedOracle)  # `report_range` refuses others
            return self.oracle.honest_mean(self.estimate, attackers)
        return (every[0] if people is None else people.lower / honest), (
            every[1] if people is None else people.upper / honest
        )


def attackers_reach(oracle: Oracle, estimate: Estimate, share: Fraction | float) -> Reach:
    """How far attackers could have moved an estimate, if they sent this share of its reports.

    An estimate is the mean of what each report alone would give, between g- and g+. If attackers sent a share
    b of the reports, it is (1 - b) times that of the honest people, plus b times something from g- to g+: so
    it lies at most b (g+ - f) above the honest value f and b (f - g-) below. For shares g+ = (1 - q)/(p - q)
    and g- = -q/(p - q). Only the estimate e is known, and e - f = b (g - e)/(1 - b): that is what is given.

    >>> from sourdine.local import GRR
    >>> from sourdine.testing import SeededBits
    >>> oracle = GRR(epsilon=1, categories=10)
    >>> counts = oracle.tally(oracle.sample([0] * 1000, SeededBits(1)))
    >>> attackers_reach(oracle, oracle.estimate(counts), 0.01).up[1].round(2)  # 6.24 a unit, and more
    np.float64(0.06)
    """
    part = float(check.between("attackers_reach", "share", share, Fraction(0), Fraction(1, 2)))
    low, high, least, most = report_range(oracle)
    value, odds = np.clip(estimate.value, least, most), part / (1 - part)
    up, down = odds * np.maximum(high - value, 0.0), odds * np.maximum(value - low, 0.0)
    return Reach(part, up, down, oracle, estimate)


def _honest_people(oracle: FrequencyOracle, estimate: Estimate, attackers: int) -> PeopleRange:
    """Honest people with each category: attackers support it with all their reports, or with none.

    The other reports are Bin(m, p) + Bin(honest - m, q) in number. A lower limit takes away as many supports
    as there are attackers, an upper limit none; with fewer attackers than that both limits only move inwards.
    """
    p, q = oracle.channel
    honest = estimate.reports - attackers
    # the estimate is (supports/n - q)/(p - q), so this is a whole number but for the rounding of floats
    supports = np.rint((estimate.value * (p - q) + q) * estimate.reports).astype(np.int64)
    fewest = people_behind(p, q, np.maximum(supports - attackers, 0), honest, estimate.confidence)
    most = people_behind(p, q, np.minimum(supports, honest), honest, estimate.confidence)
    return PeopleRange(fewest.lower, most.upper, fewest.unlikely & most.unlikely)


def has_reach(oracle: Oracle) -> bool:
    """Whether it is known how far attackers could move what this oracle estimates."""
    return isinstance(oracle, FrequencyOracle | UnbiasedOracle)


def report_range(oracle: Oracle) -> tuple[float, float, float, float]:
    """The least and largest value that one report alone gives, and those that an honest person can have."""
    if isinstance(oracle, HadamardResponse) and oracle.blocks > 1:
        lean = 2 * oracle.channel.p - 1
        return -1 / lean, 1 / lean, 0.0, 1.0
    if isinstance(oracle, FrequencyOracle):
        p, q = oracle.channel
        return -q / (p - q), (1 - q) / (p - q), 0.0, 1.0
    if isinstance(oracle, UnbiasedOracle):
        ends = oracle.middle + oracle.reach * np.array([oracle.decoded.min(), oracle.decoded.max()])
        return float(ends[0]), float(ends[1]), float(oracle.lower), float(oracle.upper)
    raise InvalidParameter(
        f"How far attackers could move an estimate is known for shares and for means, and not for "
        f"{type(oracle).__name__}. Leave the attackers out."
    )
