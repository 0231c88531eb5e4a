"""The one-coin survey: a teaching example of an answer that looks protected and is not."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.bits import SYSTEM, Bits, coins
from sourdine.core.distance import Distance
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import Loss
from sourdine.mechanisms.response import Channel, proportion, yes_or_no


@dataclass(frozen=True, kw_only=True)
class OneCoin:
    """Answers a yes-no question with one coin: heads, the truth; tails, yes.

    Its epsilon is infinite: only those whose truth is no ever say no. It is no Mechanism, so that no ledger
    can be charged for it.

    >>> OneCoin().estimate([True, True, True, False])
    0.5
    """

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[np.bool_]:
        """What each person says."""
        truth = yes_or_no("OneCoin", values)
        return truth | coins(bits, truth.size).reshape(truth.shape)

    def loss(self, distance: Distance) -> Loss:
        """Always raises: there is no finite loss to state."""
        raise UnsupportedLoss(
            "The one-coin survey has no finite epsilon. A 'no' betrays itself, since only a true 'no' can "
            "say it. Use TwoCoins, whose epsilon is ln 3."
        )

    @property
    def channel(self) -> Channel:
        """Yes is always said where it is true, and half of the time where it is not."""
        return Channel(1.0, 0.5)

    def estimate(self, reports: ArrayLike) -> float:
        """The unbiased proportion of yes: 2 share - 1."""
        return proportion("OneCoin", self.channel, reports)
