"""The only source of randomness: uniform 64-bit words.

Every sampler takes its words from a `Bits`. The one used by default stretches entropy of the operating
system with AES-256 in counter mode under a fresh key for every call. It keeps no state at all, so nothing
can be reused after a fork, shared between threads or read later to take the noise away again.
"""

import os
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

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
