"""What a mechanism is: a frozen description that samples, states its loss and forecasts its error."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance, Norm
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.fields import Json, decoded, encoded
from sourdine.core.loss import Loss

_NAME = re.compile(r"[a-z_]+(\.[a-z_]+)*\.[A-Z][A-Za-z0-9]*")


class Mechanism(ABC):
    """A randomised function of private values; subclasses are frozen, keyword-only dataclasses."""

    norm: ClassVar[Norm]

    @abstractmethod
    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """The private answer for these values: arrays in, arrays out."""

    @abstractmethod
    def loss(self, distance: Distance) -> Loss:
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

    def to_json(self) -> Json:
        """A description that `from_json` turns back into an equal mechanism."""
        cls = type(self)
        room = cls.__module__.removeprefix("sourdine.").rpartition(".")[0]
        return {"mechanism": f"{room}.{cls.__name__}"} | encoded(self)

    @classmethod
    def from_json(cls, description: Mapping[str, object]) -> Self:
        """The mechanism a description names; only classes of this package are ever looked up."""
        kind = _resolve(description.get("mechanism"))
        if not issubclass(kind, cls):
            raise InvalidParameter(f"The description is of a {kind.__name__}, not of a {cls.__name__}.")
        given = {name: value for name, value in description.items() if name != "mechanism"}
        return decoded(kind, given)


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


def _resolve(name: object) -> type[Any]:
    if isinstance(name, str) and _NAME.fullmatch(name):
        room, _, kind = name.rpartition(".")
        try:
            found = getattr(import_module(f"sourdine.{room}"), kind, None)
        except ImportError:
            found = None
        if isinstance(found, type) and issubclass(found, Mechanism):
            return found
    raise InvalidParameter(
        "A description of a mechanism must name one of this package, such as 'mechanisms.Laplace'."
    )
