"""Sums of products of whole rows: what least squares, logistic regression and principal components read.

A row x of whole numbers at most R = 2^fineness long, with a target t of at most R, adds the products x_i x_j
of its upper triangle and the products x_i t. Off-diagonal products are counted 7 times and all others 5
times, so that the triangle moves by at most 5 R^2 in L2: 25 sum x_i^4 + 49 sum_{i<j} x_i^2 x_j^2 <= 25 (sum
x_i^2)^2, as 49 is below 2 x 25. That gives each product of two columns the noise of 5/7 of one that is
counted once.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.distance import Distance, Neighbours, root_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.estimators.rows import AT_ONCE, Floats, RowRule
from sourdine.mechanisms.gaussian import MOST_SIGMA, Gaussian

FINEST, COARSEST = 12, 3  # logarithms of how many steps the length of a row has
DIAGONAL, BESIDE = 5, 7
_DIGITS = 10**4  # noise is rounded up to this, so that people can write it down


@dataclass(frozen=True, kw_only=True)
class ConstantRule:
    """Rows with one more number, a constant, so that a model has an intercept and records are counted.

    All together is at most 1 long: the features take `share` of it, the constant the rest.
    """

    rule: RowRule
    share: float

    @classmethod
    def beside(cls, rule: RowRule) -> "ConstantRule":
        """A constant as large as one of the columns where each has bounds; else a quarter of the length."""
        part = 1 / 16 if rule.bounds is None or rule.norm is not None else 1 / (rule.width + 1)
        return cls(rule=rule, share=math.sqrt(1 - part))

    @property
    def width(self) -> int:
        """With the constant."""
        return self.rule.width + 1

    @property
    def constant(self) -> float:
        """The constant, of a length of 1."""
        return math.sqrt(1 - self.share**2)

    def whole(self, values: ArrayLike, unit: int) -> Floats:
        """Whole rows at most `unit` long, which is checked once more, exactly: what is not becomes 0."""
        features = self.rule.whole(values, self.share * unit)
        constant = np.full((len(features), 1), math.floor(self.constant * unit))
        rows = np.concatenate([features, constant], axis=1)
        fits = np.square(rows).sum(axis=1) <= unit**2
        return np.where(fits[:, None], rows, 0.0)

    def scaled(self, values: ArrayLike) -> Floats:
        """The rows of a model that is used."""
        features = self.rule.scaled(values) * self.share
        return np.concatenate([features, np.full((len(features), 1), self.constant)], axis=1)


def row_distance(square: int, coordinates: int | None, neighbours: Neighbours) -> Distance:
    """How far a row of this squared length moves a sum; twice as far when it is replaced."""
    far = 1 if neighbours is Neighbours.ADD_REMOVE else 4
    return Distance.l2(square=square * far, coordinates=coordinates, neighbours=neighbours)


def blocks(*arrays: NDArray[np.generic]) -> Iterator[tuple[NDArray[np.generic], ...]]:
    """Arrays of the same length, a piece at a time."""
    for start in range(0, len(arrays[0]), AT_ONCE):
        yield tuple(array[start : start + AT_ONCE] for array in arrays)


@dataclass(frozen=True, kw_only=True)
class ProductSums:
    """The sums of products of rows, and of rows and `targets` targets, and how far one row moves them.

    Targets of a row are at most 1 long together. `weight` is how much they count beside the products of
    columns.

    >>> ProductSums(width=3, targets=1, fineness=4).distance().amount
    Fraction(3276800, 1)
    """

    width: int
    targets: int = 0
    fineness: int = FINEST

    @property
    def unit(self) -> int:
        """The steps in a length of 1."""
        return 1 << self.fineness

    @property
    def triangle(self) -> int:
        """How many products of columns there are."""
        return self.width * (self.width + 1) // 2

    def distance(self, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Distance:
        """How far one row moves the sums when it is added or removed; twice as far when it is replaced."""
        square = DIAGONAL**2 * self.unit**4 * (2 if self.targets else 1)
        return row_distance(square, self.triangle + self.width * self.targets, neighbours)

    def weights(self) -> NDArray[np.int64]:
        """How often each of the sums counts."""
        first, second = np.triu_indices(self.width)
        triangle = np.where(first == second, DIAGONAL, BESIDE)
        return np.concatenate([triangle, np.full(self.width * self.targets, DIAGONAL)])

    def add(self, sums: "SumsOfProducts", rows: Floats, targets: Floats) -> None:
        """A block of whole rows and their whole targets, both of at most `unit`."""
        sums.products += rows.T @ rows  # whole numbers below 2^53: exact in any order
        sums.by_target += rows.T @ targets

    def start(self) -> "SumsOfProducts":
        """Nothing summed yet."""
        return SumsOfProducts(np.zeros((self.width, self.width)), np.zeros((self.width, self.targets)))

    def line(self, sums: "SumsOfProducts") -> NDArray[np.int64]:
        """The sums as one line of whole numbers, as often as each counts."""
        triangle = sums.products[np.triu_indices(self.width)]
        return np.concatenate([triangle, sums.by_target.ravel()]).astype(np.int64) * self.weights()

    def read(self, noisy: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The matrix and the columns that noisy sums stand for, of rows of length 1."""
        numbers = noisy / self.weights() / self.unit**2
        half = np.zeros((self.width, self.width))
        half[np.triu_indices(self.width)] = numbers[: self.triangle]
        return half + np.triu(half, 1).T, numbers[self.triangle :].reshape(self.width, self.targets)


@dataclass
class SumsOfProducts:
    """Sums while they are taken."""

    products: Floats
    by_target: Floats


@dataclass(frozen=True, kw_only=True)
class NoisyProducts:
    """What was released: a matrix, columns, and the deviation of the noise on the diagonal of the matrix."""

    matrix: Floats
    columns: Floats
    noise: float

    @property
    def beside(self) -> float:
        """The deviation of the noise off the diagonal."""
        return self.noise * DIAGONAL / BESIDE

    def solved(self, ridge: float) -> tuple[Floats, bool]:
        """What the equations say as far as the noise lets them, and whether it had to be stopped somewhere.

        Noise moves an eigenvalue by about its deviation times the root of the width; what lies below `ridge`
        times that is raised to it.
        """
        values, vectors = np.linalg.eigh(self.matrix)
        floor = ridge * self.beside * math.sqrt(len(values))
        held = np.maximum(values, floor)
        return vectors @ ((vectors.T @ self.columns) / held[:, None]), bool((values < floor).any())


def finest(
    owner: str, width: int, targets: int, rho: Fraction, neighbours: Neighbours
) -> tuple[ProductSums, Gaussian]:
    """The finest sums whose noise at this price can still be drawn, and that noise."""
    for fineness in range(FINEST, COARSEST - 1, -1):
        moments = ProductSums(width=width, targets=targets, fineness=fineness)
        sigma = deviation(moments.distance(neighbours), rho, moments.unit**2)
        if sigma <= MOST_SIGMA:
            return moments, Gaussian(sigma=sigma)
    raise _too_small(owner)


def finest_unit(
    owner: str, moved: Callable[[int], Distance], rho: Fraction, most: int, power: int = 1
) -> tuple[int, Gaussian]:
    """The finest steps, `most` or a part of it, whose noise at this price can still be drawn, and that noise.

    A row moves sums in steps of 1/unit^power by `moved(unit)`.
    """
    unit = most
    while unit >= 1 << COARSEST:
        sigma = deviation(moved(unit), rho, unit**power)
        if sigma <= MOST_SIGMA:
            return unit, Gaussian(sigma=sigma)
        unit >>= 1
    raise _too_small(owner)


def _too_small(owner: str) -> InvalidParameter:
    return InvalidParameter(
        f"The epsilon of {owner} leaves so much noise that it cannot be drawn. Take a larger epsilon."
    )


def deviation(distance: Distance, rho: Fraction, unit: int) -> Fraction:
    """The least deviation at this price, rounded up to a fraction of the unit that people can write down."""
    needed = root_above(distance.amount / (2 * rho)) / unit
    return max(Fraction(math.ceil(needed * _DIGITS), _DIGITS) * unit, Fraction(1, 10))


def draw(moments: ProductSums, mechanism: Gaussian, sums: SumsOfProducts, bits: Bits) -> NoisyProducts:
    """The sums with their noise."""
    matrix, columns = moments.read(mechanism.sample(moments.line(sums), bits))
    noise = float(mechanism.sigma) / DIAGONAL / moments.unit**2
    return NoisyProducts(matrix=matrix, columns=columns, noise=noise)
