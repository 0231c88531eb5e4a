"""k-ary randomized response as an oracle: the report is a category."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.blanket import Favours
from sourdine.local.counts import Counts
from sourdine.local.oracle import CodeReports, FrequencyOracle
from sourdine.mechanisms.response import KaryResponse


@dataclass(frozen=True, kw_only=True)
class KaryOracle(KaryResponse, CodeReports, FrequencyOracle):
    """`KaryResponse` with tally and estimate.

    A changed answer costs epsilon (Kairouz, Bonawitz, Ramage 2016). The unbiased share of a category is
    ((e^epsilon + k - 1) share of reports - 1)/(e^epsilon - 1).

    >>> from sourdine.testing import SeededBits
    >>> oracle = KaryOracle(epsilon=8, categories=3)
    >>> counts = oracle.tally(oracle.sample([0, 1, 1, 1], SeededBits(1)))
    >>> oracle.estimate(counts).value[:2].round(2)
    array([0.25, 0.75])
    """

    name: ClassVar[str] = "grr/1"

    @property
    def codes(self) -> int:
        return self.categories

    @property
    def favours(self) -> tuple[Favours, ...]:
        share = 1 / self.categories
        return (Favours(each=share, alone=share, both=0.0, third=share if self.categories > 2 else 0.0),)

    def supports(self, counts: Counts) -> NDArray[np.int64]:
        return counts.sums
