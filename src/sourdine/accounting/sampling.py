"""From the loss of a mechanism to its loss on a random part of the data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sourdine.core.laws import Floats, Law, Pair


@dataclass(frozen=True)
class PoissonRemove(Law):
    """P = (1-q) Q0 + q P0 against Q = Q0: the unit was there, and drawn with probability q."""

    base: Law
    rate: float

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return float(np.log1p(self.rate * np.expm1(self.base.lowest)))

    @property
    def highest(self) -> float:  # type: ignore[override]
        return float(np.logaddexp(np.log1p(-self.rate), np.log(self.rate) + self.base.highest))

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return self.rate * self.base.infinite

    def survival(self, loss: ArrayLike) -> Pair:
        whole, at = self._at(loss)
        above = self.base.survival(at)
        p = (1 - self.rate) * above.q + self.rate * above.p
        return Pair(np.where(whole, 1.0, p), np.where(whole, 1.0, above.q))

    def cumulative(self, loss: ArrayLike) -> Pair:
        whole, at = self._at(loss)
        below = self.base.cumulative(at)
        p = (1 - self.rate) * below.q + self.rate * below.p
        return Pair(np.where(whole, 0.0, p), np.where(whole, 0.0, below.q))

    def _at(self, loss: ArrayLike) -> tuple[np.ndarray, Floats]:
        """Where everything lies above, and the base's loss log((e^l - 1 + q)/q) elsewhere."""
        loss = np.asarray(loss, float)
        shifted = np.expm1(np.minimum(loss, 600.0)) + self.rate
        whole = shifted <= 0
        at = np.log(np.where(whole, 1.0, shifted)) - np.log(self.rate)
        return whole, np.where(loss > 600.0, loss - np.log(self.rate), at)


@dataclass(frozen=True)
class PoissonAdd(Law):
    """P = P0 against Q = (1-q) P0 + q Q0: the unit was not there, and would have been drawn so."""

    base: Law
    rate: float

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return -float(np.logaddexp(np.log1p(-self.rate), np.log(self.rate) - self.base.lowest))

    @property
    def highest(self) -> float:  # type: ignore[override]
        if self.base.infinite:
            return -float(np.log1p(-self.rate))
        return -float(np.log1p(self.rate * np.expm1(-self.base.highest)))

    def survival(self, loss: ArrayLike) -> Pair:
        none, at = self._at(loss)
        above = self.base.survival(at)
        q = (1 - self.rate) * above.p + self.rate * above.q
        return Pair(np.where(none, 0.0, above.p), np.where(none, 0.0, q))

    def cumulative(self, loss: ArrayLike) -> Pair:
        none, at = self._at(loss)
        below = self.base.cumulative(at)
        q = (1 - self.rate) * below.p + self.rate * below.q
        return Pair(np.where(none, 1.0, below.p), np.where(none, 1.0, q))

    def _at(self, loss: ArrayLike) -> tuple[np.ndarray, Floats]:
        """Where nothing lies above, and the base's loss -log((e^-l - 1 + q)/q) elsewhere."""
        loss = np.asarray(loss, float)
        shifted = np.expm1(np.minimum(-loss, 600.0)) + self.rate
        none = shifted <= 0
        at = np.log(self.rate) - np.log(np.where(none, 1.0, shifted))
        return none, np.where(loss < -600.0, loss + np.log(self.rate), at)
