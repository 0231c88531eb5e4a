"""Choices of made-up things from a source of bits: the same seed, the same choices."""

from collections.abc import Sequence
from typing import TypeVar

from sourdine.core.bits import Bits

T = TypeVar("T")
_BLOCK = 1 << 10


class Dice:
    """Choices that are near enough to even for made-up tables; none of them protects anybody.

    >>> from sourdine.testing import SeededBits
    >>> Dice(SeededBits(1)).shuffled("abc")
    ['a', 'c', 'b']
    """

    def __init__(self, bits: Bits) -> None:
        self._bits = bits
        self._words: list[int] = []

    def below(self, size: int) -> int:
        """A whole number from 0 up to and without a size."""
        if not self._words:
            self._words = self._bits.words(_BLOCK).tolist()
        return self._words.pop() % size

    def one_in(self, many: int) -> bool:
        """True about once in so many times."""
        return self.below(many) == 0

    def one(self, things: Sequence[T]) -> T:
        """One of some things."""
        return things[self.below(len(things))]

    def some(self, things: Sequence[T], most: int) -> list[T]:
        """Up to so many different things, in any order."""
        return self.shuffled(things)[: self.below(min(most, len(things)) + 1)]

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """The same things in another order."""
        found = list(things)
        for last in range(len(found) - 1, 0, -1):
            other = self.below(last + 1)
            found[last], found[other] = found[other], found[last]
        return found
