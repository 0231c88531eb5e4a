"""How the units that a mechanism sees are drawn: part of what is spent, and never guessed."""

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from sourdine.accounting.shuffling.epochs import shuffled_epoch
from sourdine.accounting.subsampling.allocation import MOST_BATCHES, random_allocation
from sourdine.accounting.subsampling.fixed_size import fixed_size
from sourdine.accounting.subsampling.mixture import MOST, poisson_group, poisson_replace
from sourdine.accounting.subsampling.poisson import poisson
from sourdine.accounting.subsampling.truncated import truncated_poisson
from sourdine.core import check
from sourdine.core.loss import PrivacyLoss
from sourdine.core.serialization import Named, written


class Sampling(Named):
    """A way to draw the units of one use of a mechanism; frozen, JSON both ways."""

    _key: ClassVar[str] = "sampling"

    @abstractmethod
    def apply(self, loss: PrivacyLoss) -> PrivacyLoss:
        """The loss of one use, from the loss on the units drawn."""


@dataclass(frozen=True, kw_only=True)
class Poisson(Sampling):
    """Each unit comes in independently with the same probability: see `poisson`."""

    name: ClassVar[str] = "poisson/1"
    sampling_rate: Fraction = field(metadata=written("rate"))

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "sampling_rate", check.positive("Poisson", "sampling_rate", self.sampling_rate, 1)
        )

    def apply(self, loss: PrivacyLoss) -> PrivacyLoss:
        return poisson(loss, self.sampling_rate)


@dataclass(frozen=True, kw_only=True)
class PoissonGroup(Sampling):
    """The same for up to `group` units that come or go together; the distance is that of one:
    `poisson_group`."""

    name: ClassVar[str] = "poisson-group/1"
    sampling_rate: Fraction = field(metadata=written("rate"))
    group: int

    def __post_init__(self) -> None:
        check.keep(self, sampling_rate=check.positive("PoissonGroup", "sampling_rate", self.sampling_rate, 1))
        check.keep(self, group=check.integer("PoissonGroup", "group", self.group, 1, MOST))

    def apply(self, loss: PrivacyLoss) -> PrivacyLoss:
        return poisson_group(loss, self.sampling_rate, self.group)


@dataclass(frozen=True, kw_only=True)
class PoissonReplace(Sampling):
    """Poisson samples where one unit, or a group, is replaced; see `poisson_replace` for `alone`."""

    name: ClassVar[str] = "poisson-replace/1"
    sampling_rate: Fraction = field(metadata=written("rate"))
    alone: Fraction
    group: int = 1

    def __post_init__(self) -> None:
        check.keep(
            self, sampling_rate=check.positive("PoissonReplace", "sampling_rate", self.sampling_rate, 1)
        )
        check.keep(self, alone=check.positive("PoissonReplace", "alone", self.alone, 1))
        check.keep(self, group=check.integer("PoissonReplace", "group", self.group, 1, MOST))

    def apply(self, loss: PrivacyLoss) -> PrivacyLoss:
        return poisson_replace(loss, self.sampling_rate, self.alone, self.group)


@dataclass(frozen=True, kw_only=True)
class TruncatedPoisson(Sampling):
    """Each of `size` units comes in with probability batch_size/size; of more than `max_batch_size`, any so
    many are kept."""

    name: ClassVar[str] = "truncated-poisson/1"
    batch_size: int = field(metadata=written("batch"))
    size: int = field(metadata=written("of"))
    max_batch_size: int = field(metadata=written("most"))

    def __post_init__(self) -> None:
        owner = "TruncatedPoisson"
        check.keep(self, size=check.integer(owner, "size", self.size, 1, 2**50))
        check.keep(self, batch_size=check.integer(owner, "batch_size", self.batch_size, 1, self.size))
        largest = check.integer(owner, "max_batch_size", self.max_batch_size, self.batch_size, self.size)
        check.keep(self, max_batch_size=largest)

    def apply(self, loss: PrivacyLoss) -> PrivacyLoss:
        return truncated_poisson(loss, self.batch_size, self.size, self.max_batch_size)


@dataclass(frozen=True, kw_only=True)
class RandomAllocation(Sampling):
    """Each unit is in one of so many batches, drawn for itself; one use is one whole pass:
    `random_allocation`."""

    name: ClassVar[str] = "random-allocation/1"
    batches: int

    def __post_init__(self) -> None:
        check.keep(self, batches=check.integer("RandomAllocation", "batches", self.batches, 1, MOST_BATCHES))

    def apply(self, loss: PrivacyLoss) -> PrivacyLoss:
        return random_allocation(loss, self.batches)


@dataclass(frozen=True, kw_only=True)
class FixedSize(Sampling):
    """So many units of `size`, drawn afresh without replacement at each use: see `fixed_size`."""

    name: ClassVar[str] = "fixed-size/1"
    batch_size: int = field(metadata=written("size"))
    size: int = field(metadata=written("of"))

    def __post_init__(self) -> None:
        check.keep(self, size=check.integer("FixedSize", "size", self.size, 1, 2**62))
        check.keep(self, batch_size=check.integer("FixedSize", "batch_size", self.batch_size, 1, self.size))

    def apply(self, loss: PrivacyLoss) -> PrivacyLoss:
        return fixed_size(loss, self.batch_size, self.size)


@dataclass(frozen=True, kw_only=True)
class Shuffled(Sampling):
    """All units, in shuffled batches; one use is one whole epoch: see `shuffled_epoch`."""

    name: ClassVar[str] = "shuffled/1"
    batch_size: int = field(metadata=written("batch"))
    size: int = field(metadata=written("of"))

    def __post_init__(self) -> None:
        check.keep(self, size=check.integer("Shuffled", "size", self.size, 1, 2**62))
        check.keep(self, batch_size=check.integer("Shuffled", "batch_size", self.batch_size, 1, self.size))

    def apply(self, loss: PrivacyLoss) -> PrivacyLoss:
        return shuffled_epoch(loss)
