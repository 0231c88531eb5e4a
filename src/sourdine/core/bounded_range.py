"""The loss of a mechanism of bounded range, such as the exponential mechanism."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sourdine.core.laws import Floats, Law, Pair


@dataclass(frozen=True)
class BoundedRangeLaw(Law):
    """The law that dominates every mechanism whose loss stays within an interval of length epsilon.

    Where the interval lies may depend on the two data sets. delta(x) = (1 - e^{(x - epsilon)/2})^2 /
    (1 - e^{-epsilon}) for |x| <= epsilon (Dong, Durfee, Rogers 2020; docs/guarantees/exponential.md proves
    it): at x = 0, about half of what pure epsilon-DP alone would give.

    >>> round(float(BoundedRangeLaw(1.0).profile(0.0)), 4)
    0.2449
    """

    epsilon: float

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return -self.epsilon

    @property
    def highest(self) -> float:  # type: ignore[override]
        return self.epsilon

    def survival(self, loss: ArrayLike) -> Pair:
        x = self._inside(loss)
        p = np.expm1((x - self.epsilon) / 2) / np.expm1(-self.epsilon)
        return Pair(p, np.exp(-(x + self.epsilon) / 2) * p)

    def cumulative(self, loss: ArrayLike) -> Pair:
        x = self._inside(loss)
        q = np.expm1(-(x + self.epsilon) / 2) / np.expm1(-self.epsilon)
        return Pair(np.exp((x - self.epsilon) / 2) * q, q)

    def profile(self, epsilon: ArrayLike) -> Floats:
        x = self._inside(epsilon)
        inner = np.expm1((x - self.epsilon) / 2) ** 2 / -np.expm1(-self.epsilon)
        low = np.minimum(np.asarray(epsilon, float), -self.epsilon)
        delta: Floats = np.where(low < -self.epsilon, -np.expm1(low), inner)
        return delta

    def _inside(self, loss: ArrayLike) -> Floats:
        inside: Floats = np.clip(np.asarray(loss, float), -self.epsilon, self.epsilon)
        return inside
