"""What a mechanism is: a frozen description that samples, states its loss and forecasts its error."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.distance import Distance, Norm
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.serialization import Named


class Mechanism(Named):
    """A randomised function of private values; subclasses are frozen, keyword-only dataclasses."""

    _key: ClassVar[str] = "mechanism"
    norm: ClassVar[Norm]

    @abstractmethod
    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """The private answer for these values: arrays in, arrays out."""

    @abstractmethod
    def loss(self, distance: Distance) -> PrivacyLoss:
        """The privacy loss when inputs of neighbours are at most this far apart."""

    @abstractmethod
    def error(self, confidence: float = 0.95) -> float:
        """What the error stays within, with this confidence; known before anything is spent."""

    @classmethod
    @abstractmethod
    def examples(cls) -> "Iterator[Example]":
        """Neighbouring inputs that show the mechanism at its claim, for the contract and the audit."""

    def require(self, distance: Distance) -> None:
        """Refuse a distance measured in another norm than this mechanism's."""
        if distance.norm is not self.norm:
            name = type(self).__name__
            raise UnsupportedLoss(
                f"{name} measures changes in {self.norm}, and this distance is in {distance.norm}. "
                f"A loss computed from it would be wrong. State the distance in {self.norm}."
            )


def one_integer(answers: NDArray[Any]) -> NDArray[np.int64]:
    """The code of an answer that is a single integer already."""
    return answers.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Example:
    """A mechanism at two neighbouring inputs: what the contract tests and the audit run on.

    `code` turns each answer into one integer, so that laws can be compared cell by cell. `draw` makes many
    independent answers for one input where `sample` would take long; it may fix randomness that is the same
    for both inputs, given which the claim holds too.
    """

    mechanism: Mechanism
    value: ArrayLike
    neighbour: ArrayLike
    distance: Distance
    code: Callable[[NDArray[Any]], NDArray[np.int64]] = one_integer
    draw: Callable[[ArrayLike, int, Bits], NDArray[Any]] | None = None

    def outcomes(self, value: ArrayLike, count: int, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        """The codes of `count` independent answers for one input."""
        if self.draw is not None:
            return self.code(self.draw(value, count, bits))
        repeated = np.broadcast_to(np.asarray(value), (count, *np.shape(value)))
        return self.code(self.mechanism.sample(repeated, bits))
