"""How the units that a mechanism sees are drawn: part of what is spent, and never guessed."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sourdine.accounting.fixed_size import fixed_size
from sourdine.accounting.sampling import poisson
from sourdine.accounting.shuffled import shuffled_epoch
from sourdine.core import check
from sourdine.core.loss import Loss
from sourdine.core.registry import Named


class Sampling(Named):
    """A way to draw the units of one use of a mechanism; frozen, JSON both ways."""

    _key: ClassVar[str] = "sampling"

    @abstractmethod
    def apply(self, loss: Loss) -> Loss:
        """The loss of one use, from the loss on the units drawn."""


@dataclass(frozen=True, kw_only=True)
class Poisson(Sampling):
    """Each unit comes in independently with the same probability: see `poisson`."""

    name: ClassVar[str] = "poisson/1"
    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check.positive("Poisson", "rate", self.rate, 1))

    def apply(self, loss: Loss) -> Loss:
        return poisson(loss, self.rate)


@dataclass(frozen=True, kw_only=True)
class FixedSize(Sampling):
    """So many units of so many, drawn afresh without replacement at each use: see `fixed_size`."""

    name: ClassVar[str] = "fixed-size/1"
    size: int
    of: int

    def __post_init__(self) -> None:
        check.keep(self, of=check.integer("FixedSize", "of", self.of, 1, 2**62))
        check.keep(self, size=check.integer("FixedSize", "size", self.size, 1, self.of))

    def apply(self, loss: Loss) -> Loss:
        return fixed_size(loss, self.size, self.of)


@dataclass(frozen=True, kw_only=True)
class Shuffled(Sampling):
    """All units, in shuffled batches; one use is one whole epoch: see `shuffled_epoch`."""

    name: ClassVar[str] = "shuffled/1"
    batch: int
    of: int

    def __post_init__(self) -> None:
        check.keep(self, of=check.integer("Shuffled", "of", self.of, 1, 2**62))
        check.keep(self, batch=check.integer("Shuffled", "batch", self.batch, 1, self.of))

    def apply(self, loss: Loss) -> Loss:
        return shuffled_epoch(loss)
