"""The only source of randomness: uniform 64-bit words.

Every sampler takes its words from a `Bits`. The one used by default stretches entropy of the operating
system with AES-256 in counter mode under a fresh key for every call. It keeps no state at all, so nothing
can be reused after a fork, shared between threads or read later to take the noise away again.
"""

import os
from collections.abc import Callable
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sourdine.core.threads import in_blocks

ZEROS = bytes(1 << 20)
_DIRECT = 512  # below this many bytes, asking the system directly is quicker than keying a cipher


class Bits(Protocol):
    """A source of independent uniform 64-bit words."""

    @property
    def secure(self) -> bool:
        """Whether nobody can predict or repeat the words."""
        ...

    def words(self, count: int, /) -> NDArray[np.uint64]:
        """The next `count` words."""
        ...


class SystemBits:
    """Entropy of the operating system, stretched by AES-256-CTR under a fresh key a call.

    >>> SystemBits().words(3).shape
    (3,)
    """

    secure = True

    def words(self, count: int, /) -> NDArray[np.uint64]:
        size = 8 * count
        if size <= _DIRECT:
            return np.frombuffer(bytearray(os.urandom(size)), dtype=np.uint64)  # which its owner may change
        return keystream(os.urandom(32), size).view(np.uint64)


def keystream(key: bytes, size: int, counter: int = 0) -> NDArray[np.uint8]:
    """The first `size` bytes of AES-256-CTR under a key, from a block counter on."""
    cipher = Cipher(algorithms.AES(key), modes.CTR(counter.to_bytes(16, "big"))).encryptor()
    out = np.empty(size + 15, dtype=np.uint8)  # update_into wants room for one block less a byte
    view = memoryview(out)  # type: ignore[arg-type]
    for start in range(0, size, len(ZEROS)):
        step = min(len(ZEROS), size - start)
        cipher.update_into(memoryview(ZEROS)[:step], view[start:])
    return out[:size]


SYSTEM = SystemBits()


def sixteens(bits: Bits, count: int) -> NDArray[np.uint16]:
    """`count` uniform 16-bit words."""
    return bits.words(-(-count // 4)).view(np.uint16)[:count]


def coins(bits: Bits, count: int) -> NDArray[np.bool_]:
    """`count` fair coins."""
    return np.unpackbits(bits.words(-(-count // 64)).view(np.uint8), count=count).view(np.bool_)


# Large draws in blocks of their own bits, by several threads.
#
# Every block has a key of its own, taken in order from the source, and stretches it as the system's source
# does. So an answer depends on the source and on how much is drawn, never on how many threads draw it.


BLOCK = 1 << 19  # draws of one block: with fewer, threads wait for each other more than they save
_KEY = 4  # words
_SPARE = 15  # bytes: the cipher wants room for one block less a byte


class Branch:
    """AES-256 in counter mode under one key, for one block of one call."""

    def __init__(self, key: bytes, secure: bool) -> None:
        self.secure = secure
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int, /) -> NDArray[np.uint64]:
        return self.fill(room(count))

    def fill(self, out: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """The next words, in a `room` that is used again: memory that is new for every chunk costs more than
        the words themselves."""
        size = len(out) - _SPARE
        view = memoryview(out)  # type: ignore[arg-type]
        for start in range(0, size, len(ZEROS)):
            step = min(len(ZEROS), size - start)
            self._cipher.update_into(memoryview(ZEROS)[:step], view[start:])
        return out[:size].view(np.uint64)


def room(count: int) -> NDArray[np.uint8]:
    """Memory for so many words of a branch."""
    return np.empty(8 * count + _SPARE, dtype=np.uint8)


def branches(bits: Bits, count: int) -> list[Branch]:
    """So many sources, independent of each other and of what `bits` gives afterwards."""
    keys = bits.words(_KEY * count).reshape(count, _KEY)
    return [Branch(key.tobytes(), bits.secure) for key in keys]


def in_branches(
    draw: Callable[[slice, Branch], object], count: int, bits: Bits, block: int | None = None
) -> None:
    """Have `draw` fill every block of so many places from a branch of its own.

    >>> from sourdine.testing import SeededBits
    >>> in_branches(lambda part, bits: print(part), 5, SeededBits(1))
    slice(0, 5, None)
    """
    size = block or BLOCK
    sources = branches(bits, -(-count // size))
    in_blocks(lambda part: draw(part, sources[part.start // size]), count, size)
