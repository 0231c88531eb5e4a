"""What a theorem says: as it was published, and as it can be proven."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Stated(Generic[T]):
    """The same statement twice."""

    published: T
    corrected: T


@dataclass(frozen=True)
class Tail:
    """An answer is farther than `distance` from its aim with at most this probability."""

    distance: float
    probability: float
