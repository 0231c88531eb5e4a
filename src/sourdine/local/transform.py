"""Sums of counts over all characters of a group at once, one digit after the other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def walsh_hadamard(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Along the last axis, of length 2^d: sum_y counts[y] (-1)^<x, y> for every x, over the bits of x and y.

    >>> walsh_hadamard(np.array([1, 2, 3, 4])).tolist()
    [10, -2, -4, 0]
    """
    out = counts.astype(np.int64)
    step = 1
    while step < counts.shape[-1]:
        pairs = out.reshape(-1, 2, step)
        even, odd = pairs[:, 0], pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = even + odd, even - odd
        step *= 2
    return out


def characters(counts: NDArray[np.int64], prime: int) -> NDArray[Any]:
    """sum_y counts[y] e^{-2 pi i <x, y>/p} for every x, over the base-p digits of x and y.

    Whole numbers, without any rounding, for p = 2; complex floats otherwise.
    """
    if prime == 2:
        return walsh_hadamard(counts)
    out = counts.astype(np.complex128)
    step = 1
    while step < len(out):
        rows = out.reshape(-1, prime, step)
        rows[...] = np.fft.fft(rows, axis=1)
        step *= prime
    return out
