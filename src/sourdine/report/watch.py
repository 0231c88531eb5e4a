"""Long work tells how far it is to whoever looks."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Watch(Protocol):
    """Hands on the things one by one, and may show how many are left."""

    def __call__(self, label: str, things: Sequence[T], /) -> Iterable[T]: ...


def unwatched(label: str, things: Sequence[T]) -> Iterable[T]:
    """Nobody looks."""
    return things
