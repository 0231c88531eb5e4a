"""What the counts say about the bits of the filters, before any word is thought of."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.local.counts import Counts
from sourdine.local.rappor.rappor import BloomOracle
from sourdine.mechanisms.response import Channel

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Reports by cohort and sums by cohort and bit."""

    oracle: BloomOracle
    reports: NDArray[np.int64]
    sums: NDArray[np.int64]

    @classmethod
    def of(cls, oracle: BloomOracle, counts: Counts) -> "Evidence":
        """The evidence in counts, which must be this oracle's."""
        table = oracle.table(counts)
        return cls(oracle, table[:, 0], table[:, 1:])

    def __post_init__(self) -> None:
        if self.total < 1:
            raise InvalidParameter("There are no reports to decode. Collect some first.")

    @property
    def total(self) -> int:
        """How many reports there are."""
        return int(self.reports.sum())

    @property
    def channel(self) -> Channel:
        return self.oracle.channel

    @property
    def debiased(self) -> Floats:
        """t_ij = (c_ij - p* N_i)/(q* - p*): the estimated number of filters with bit j in cohort i."""
        one, zero = self.channel
        return np.asarray((self.sums - zero * self.reports[:, None]) / (one - zero))

    @cached_property
    def shares(self) -> Floats:
        """The same by report, flat; 0 in a cohort without reports."""
        found: Floats = (self.debiased / np.maximum(self.reports, 1)[:, None]).ravel()
        return found

    @cached_property
    def sizes(self) -> Floats:
        """The number of reports behind each share."""
        return np.repeat(self.reports, self.oracle.bits).astype(float)

    def precisions(self, bit_shares: Floats) -> Floats:
        """1/variance of each share, if so many of the filters have the bit; 0 in a cohort without reports."""
        one, zero = self.channel
        mean = zero + (one - zero) * np.clip(bit_shares, 0.0, 1.0)
        return self.sizes * (one - zero) ** 2 / (mean * (1 - mean))
