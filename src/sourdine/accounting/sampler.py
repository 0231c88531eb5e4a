"""How the units that a mechanism sees are drawn: part of what is spent, and never guessed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sourdine.accounting.fixed_size import fixed_size
from sourdine.accounting.sampling import poisson
from sourdine.accounting.shuffled import shuffled_epoch
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.fields import Json, decoded, encoded
from sourdine.core.loss import Loss


class Sampling(ABC):
    """A way to draw the units of one use of a mechanism; frozen, JSON both ways."""

    @abstractmethod
    def apply(self, loss: Loss) -> Loss:
        """The loss of one use, from the loss on the units drawn."""

    def to_json(self) -> Json:
        """A description that `from_json` turns back into an equal one."""
        return {"sampling": type(self).__name__} | encoded(self)

    @staticmethod
    def from_json(description: Mapping[str, object]) -> "Sampling":
        """The sampling that a description names."""
        kinds = {kind.__name__: kind for kind in (FixedSize, Poisson, Shuffled)}
        kind = kinds.get(str(description.get("sampling")))
        if kind is None:
            raise InvalidParameter(f"A sampling in a description must be one of {', '.join(kinds)}.")
        return decoded(kind, {name: value for name, value in description.items() if name != "sampling"})


@dataclass(frozen=True, kw_only=True)
class Poisson(Sampling):
    """Each unit comes in independently with the same probability: see `poisson`."""

    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check.positive("Poisson", "rate", self.rate, 1))

    def apply(self, loss: Loss) -> Loss:
        return poisson(loss, self.rate)


@dataclass(frozen=True, kw_only=True)
class FixedSize(Sampling):
    """So many units of so many, drawn afresh without replacement at each use: see `fixed_size`."""

    size: int
    of: int

    def __post_init__(self) -> None:
        check.integer("FixedSize", "of", self.of, 1, 2**62)
        check.integer("FixedSize", "size", self.size, 1, self.of)

    def apply(self, loss: Loss) -> Loss:
        return fixed_size(loss, self.size, self.of)


@dataclass(frozen=True, kw_only=True)
class Shuffled(Sampling):
    """All units, in shuffled batches; one use is one whole epoch: see `shuffled_epoch`."""

    batch: int
    of: int

    def __post_init__(self) -> None:
        check.integer("Shuffled", "of", self.of, 1, 2**62)
        check.integer("Shuffled", "batch", self.batch, 1, self.of)

    def apply(self, loss: Loss) -> Loss:
        return shuffled_epoch(loss)
