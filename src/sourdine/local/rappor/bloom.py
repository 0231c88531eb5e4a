"""Bloom filters of words: which bits a word sets in each cohort, as Google's client sets them."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MOST_BITS = 256  # a position is one byte of a digest
MOST_HASHES = 16  # and a digest has so many


def positions(word: bytes, cohort: int, bits: int, hashes: int) -> list[int]:
    """The bits of a word in a cohort: byte i of MD5(cohort in 4 bytes, most significant first || word) mod k.

    Two of them may be the same. MD5 only spreads words over bits here; it protects nothing.

    >>> positions(b"abc", 0, 16, 2)
    [6, 13]
    """
    digest = hashlib.md5(cohort.to_bytes(4, "big") + word, usedforsecurity=False).digest()
    return [byte % bits for byte in digest[:hashes]]


def position_table(words: Sequence[bytes], bits: int, hashes: int, cohorts: int) -> NDArray[np.int64]:
    """Positions of every word in every cohort, by hash: an array of words x cohorts x hashes."""
    table = [[positions(word, cohort, bits, hashes) for cohort in range(cohorts)] for word in words]
    return np.array(table, np.int64).reshape(len(words), cohorts, hashes)


def packed_filters(table: NDArray[np.int64], bits: int) -> NDArray[np.uint8]:
    """The filters of a table of positions, eight bits to a byte, the first bit highest."""
    rows = np.zeros((*table.shape[:-1], bits), np.bool_)
    np.put_along_axis(rows, table, True, axis=-1)
    return np.packbits(rows, axis=-1)


def as_word(value: object) -> bytes:
    """The bytes of a value: text as UTF-8, whatever is in it."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
