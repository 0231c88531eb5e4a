"""Draws as a textbook makes them: in floats, from a plain generator, and never for anything private.

They are a second opinion about the laws of the package, so they share no code with its exact samplers. A
float is off by about 1e-16 here, which no audit of less than 1e30 answers can see.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.random.bits import Bits

Dice = np.random.Generator
Ints = NDArray[np.int64]
_TAIL = 40.0  # e-folds: what lies beyond has a mass of e^-40
_LARGE = 1 << 12  # rounding adds 1/12 to a variance of 2^24


def dice_of(bits: Bits) -> Dice:
    """A plain generator, whose seed comes from these bits."""
    return np.random.default_rng([int(word) for word in bits.words(4)])


def pick(weights: ArrayLike, shape: int | tuple[int, ...], dice: Dice) -> Ints:
    """Indices drawn with these weights.

    >>> pick([0, 3, 0], 2, np.random.default_rng(1))
    array([1, 1])
    """
    edges = np.cumsum(np.asarray(weights, float))
    places = np.searchsorted(edges, dice.random(shape) * edges[-1], side="right")
    return np.asarray(np.minimum(places, len(edges) - 1), np.int64)


def laplace(scale: Fraction | float, shape: int | tuple[int, ...], dice: Dice) -> Ints:
    """The difference of two geometric variables."""
    stop = -float(np.expm1(-1 / float(scale)))
    numbers: Ints = dice.geometric(stop, shape) - dice.geometric(stop, shape)
    return numbers


def gaussian(sigma: Fraction | float, shape: int | tuple[int, ...], dice: Dice) -> Ints:
    """Whole numbers with weights of e^{-k^2 / (2 sigma^2)}; for a large sigma, a normal variable rounded."""
    if sigma > _LARGE:
        return np.rint(dice.normal(0.0, float(sigma), shape)).astype(np.int64)
    far = int(np.ceil(np.sqrt(2 * _TAIL) * float(sigma)))
    k = np.arange(-far, far + 1)
    return pick(np.exp(-((k / float(sigma)) ** 2) / 2), shape, dice) - far


def staircase(epsilon: Fraction, period: int, inner: int, shape: int | tuple[int, ...], dice: Dice) -> Ints:
    """Weights of 1 nearer than `inner`, and of e^{-j epsilon} on the j-th period beyond."""
    far = inner + period * int(np.ceil(_TAIL / float(epsilon)))
    steps = np.maximum(np.abs(np.arange(-far, far + 1)) - inner + period, 0) // period
    return pick(np.exp(-float(epsilon) * steps), shape, dice) - far
