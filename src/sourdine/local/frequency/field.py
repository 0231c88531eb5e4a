"""Finite fields of a few hundred elements, and vectors over them, by arrays.

The field of g = p^r elements is written as 0 .. g-1: the base-p digits of a number are the coefficients of a
polynomial in x, modulo the first x^r - c (c taken in the order of numbers) of which x generates every
element but 0. Devices and collectors that follow this rule have the same field. A vector is a number too,
its digits in base g being the coordinates. Sums of counts over all characters of a group are taken at once,
one digit after the other.
"""

from functools import lru_cache, reduce
from itertools import count
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


MOST_ORDER = 512
_TABLE = 1 << 20  # entries of the largest table of products
Ints = NDArray[np.int64]


def prime_of(order: int) -> int | None:
    """The prime that a number is a power of, or None.

    >>> [order for order in range(2, 20) if prime_of(order)]
    [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19]
    """
    prime = next((d for d in range(2, order + 1) if order % d == 0), None)
    while prime and order % prime == 0:
        order //= prime
    return prime if order == 1 else None


ORDERS = tuple(order for order in range(2, MOST_ORDER + 1) if prime_of(order))
"""The orders of the fields that there are."""


class Field:
    """The field of a prime power of elements: its sums, products, negatives and inverses as tables."""

    def __init__(self, order: int) -> None:
        prime = prime_of(order)
        if prime is None:
            raise ValueError("a field has a prime power of elements")
        self.order, self.prime = order, prime
        self.degree = next(r for r in count(1) if prime**r == order)
        places = prime ** np.arange(self.degree)
        digits = np.arange(order)[:, None] // places % prime
        self.plus: Ints = (digits[:, None] + digits) % prime @ places
        self._sums = self.plus.reshape(-1)
        self.minus: Ints = -digits % prime @ places
        powers = self._powers(digits, places)
        logs = np.zeros(order, np.int64)
        logs[powers] = np.arange(order - 1)
        self.times: Ints = powers[(logs[:, None] + logs) % (order - 1)]
        self.times[0] = self.times[:, 0] = 0
        self.inverse: Ints = powers[-logs % (order - 1)]
        self.dual: Ints = self._traces()[self.times[:, places]] @ places

    def add(self, one: Ints, other: Ints) -> Ints:
        """Sums, element by element."""
        sums: Ints = self._sums[one.astype(np.int64, copy=False) * self.order + other]
        return sums

    def _powers(self, digits: Ints, places: Ints) -> Ints:
        """x^0, x^1, ..., x^{g-2}, for the first c whose x^r = c makes them all different."""
        for c in range(1, self.order):
            multiples = (np.arange(self.prime)[:, None] * digits[c] % self.prime @ places).tolist()
            powers = [1]
            while len(powers) < self.order - 1:
                high, low = divmod(powers[-1], int(places[-1]))
                powers.append(int(self.plus[low * self.prime, multiples[high]]))
            if len(set(powers)) == self.order - 1:
                return np.array(powers)
        raise AssertionError("every finite field has a generator")

    def _traces(self) -> Ints:
        """x + x^p + x^{p^2} + ..., a whole number modulo p, for every element x."""
        power = total = np.arange(self.order)
        for _ in range(1, self.degree):
            base = power
            for _ in range(1, self.prime):
                power = self.times[power, base]
            total = self.plus[total, power]
        return total


class Vectors:
    """The vectors of so many coordinates over a field, handled a block of coordinates at a time."""

    def __init__(self, field: Field, length: int) -> None:
        self.field, self.length = field, length
        g, block = field.order, 1
        while block < length and g ** (2 * block + 2) <= _TABLE:
            block += 1
        self._step, self._blocks = g**block, -(-length // block)
        dots = field.times
        for _ in range(1, block):
            longer = field.plus[dots[:, None, :, None], field.times[None, :, None, :]]
            dots = longer.reshape(g * len(dots), -1)
        self._dots = dots.astype(np.uint16).reshape(-1)
        self._scaled = _digitwise(field.times, block)
        self._dual = _digitwise(field.dual, block)

    def dot(self, one: Ints, other: Ints) -> Ints:
        """The dot product of each vector with the other beside it."""
        pairs = zip(self._parts(one), self._parts(other), strict=True)
        parts = (self._dots[a * self._step + b] for a, b in pairs)
        dots: Ints = reduce(self.field.add, parts).astype(np.int64, copy=False)
        return dots

    def scaled(self, factor: Ints | int, vectors: Ints) -> Ints:
        """Vectors times elements of the field."""
        begin = factor * self._step
        return self._whole([self._scaled[begin + part] for part in self._parts(vectors)])

    def duals(self, vectors: Ints) -> Ints:
        """Where a transform has the sums of a vector's character: <dual, x> is the trace of <vector, x>."""
        return self._whole([self._dual[part] for part in self._parts(vectors)])

    def on_hyperplanes(self, counts: Ints, vectors: Ints) -> Ints:
        """For each vector x, the sum of counts[y] over all vectors y with <x, y> = 0.

        That is the mean, over the elements c of the field, of the sums over y of counts[y] times the
        character e^{2 pi i tr(c <x, y>)/p}: one transform gives them all. It is exact for p = 2, and else
        rounded to the whole number that it is, for as many reports as there will ever be (10^12).
        """
        spectrum = characters(counts, self.field.prime)
        total = np.full(vectors.shape, spectrum[0].real)
        for factor in range(1, self.field.order):
            total += spectrum[self.duals(self.scaled(factor, vectors))].real
        return np.rint(total / self.field.order).astype(np.int64)

    def _parts(self, vectors: Ints) -> list[Ints]:
        parts = []
        for _ in range(1, self._blocks):
            rest = vectors // self._step
            parts.append(vectors - rest * self._step)
            vectors = rest
        return [*parts, vectors]

    def _whole(self, parts: list[Ints]) -> Ints:
        return reduce(lambda high, low: high * self._step + low, reversed(parts))


def _digitwise(table: Ints, block: int) -> Ints:
    """What a map of elements (or each row of several) makes of blocks of coordinates, flat."""
    out = rows = table.reshape(-1, table.shape[-1])
    for _ in range(1, block):
        out = (out[:, :, None] * table.shape[-1] + rows[:, None, :]).reshape(len(rows), -1)
    return out.reshape(-1)


@lru_cache(maxsize=32)
def vectors(order: int, length: int) -> Vectors:
    """The vectors of so many coordinates over the field of so many elements."""
    return Vectors(_field(order), length)


@lru_cache(maxsize=32)
def _field(order: int) -> Field:
    return Field(order)
