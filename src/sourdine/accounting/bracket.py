"""An answer known to lie between two numbers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bracket:
    """Proven bounds on one number; `upper` is the claim.

    >>> Bracket(0.61, 0.62).width
    0.01
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """How much is left open."""
        return round(self.upper - self.lower, 15) if self.upper != self.lower else 0.0

    def __contains__(self, number: float) -> bool:
        return self.lower <= number <= self.upper
