"""The loss of a mechanism that may tell everything, with a small probability."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from sourdine.core.laws import Law, Pair


@dataclass(frozen=True)
class LeakyLaw(Law):
    """With probability delta the outcome tells everything, else it has the loss of another law.

    P = delta [leak] + (1 - delta) P0 and Q = delta [another leak] + (1 - delta) Q0, so that the profile is
    delta + (1 - delta) times that of the base. It grows with delta, and dominates whatever follows
    the base outside an event of probability delta (docs/guarantees/key_threshold.md).

    >>> from sourdine.core.laws import pure_law
    >>> round(float(LeakyLaw(pure_law(1.0), 0.25).profile(1.0)), 9)
    0.25
    """

    base: Law
    delta: float

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return self.base.lowest

    @property
    def highest(self) -> float:  # type: ignore[override]
        return self.base.highest

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return self.delta + (1 - self.delta) * self.base.infinite

    @property
    def spacing(self) -> float | None:  # type: ignore[override]
        return self.base.spacing

    def survival(self, loss: ArrayLike) -> Pair:
        above = self.base.survival(loss)
        return Pair(self.delta + (1 - self.delta) * above.p, (1 - self.delta) * above.q)

    def cumulative(self, loss: ArrayLike) -> Pair:
        below = self.base.cumulative(loss)
        return Pair((1 - self.delta) * below.p, (1 - self.delta) * below.q)
