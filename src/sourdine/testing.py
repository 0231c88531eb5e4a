"""Sources of bits for tests only: repeatable, and so never private."""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import keystream

_AHEAD = 1 << 12


class SeededBits:
    """The same words for the same seed; a release made with it protects nobody.

    >>> bool(SeededBits(1).words(1) == SeededBits(1).words(1))
    True
    """

    secure = False

    def __init__(self, seed: int) -> None:
        self._key = hashlib.sha256(f"sourdine.testing {seed}".encode()).digest()
        self._block = 0
        self._ahead, self._begin = np.empty(0, np.uint8), 0  # bytes from a block on: most requests are short

    def words(self, count: int, /) -> NDArray[np.uint64]:
        size = -(-8 * count // 16) * 16
        block, self._block = self._block, self._block + size // 16
        if size > _AHEAD:
            return keystream(self._key, size, block).view(np.uint64)[:count]
        start = 16 * (block - self._begin)
        if start + size > len(self._ahead):
            self._ahead, self._begin, start = keystream(self._key, _AHEAD, block), block, 0
        return self._ahead[start : start + size].view(np.uint64)[:count]


class ScriptedBits:
    """Hands out the words of a script first, and a seeded stream after; it forces rare paths in tests."""

    secure = False

    def __init__(self, script: Iterable[int], seed: int = 0) -> None:
        self._script = [int(word) for word in script]
        self._rest = SeededBits(seed)

    @property
    def left(self) -> int:
        """How many words of the script nobody has asked for yet."""
        return len(self._script)

    def words(self, count: int, /) -> NDArray[np.uint64]:
        head, self._script = self._script[:count], self._script[count:]
        return np.concatenate([np.array(head, dtype=np.uint64), self._rest.words(count - len(head))])
