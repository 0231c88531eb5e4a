"""How far methods are off from a sample's deciles, on average over fresh samples."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sourdine.core.bits import Bits
from sourdine.frames.ranks import SortedPlaces
from sourdine.tables.quantiles import QuantileMethod
from sourdine.tables.quantiles.choice import Allowance, named
from sourdine.tables.quantiles.estimate import Grid

Floats = NDArray[np.float64]

LEVELS = tuple(Fraction(i, 10) for i in range(1, 10))
DECILES = tuple(float(level) for level in LEVELS)

# names as people read them, and those of the room; the source's two first
METHODS = {"histogram": "histogram", "inverse sensitivity": "inverse", "joint": "joint"}


@dataclass(frozen=True)
class Law:
    """Values are drawn by a quantile function; the bounds are declared, never taken from values."""

    bounds: tuple[float, float]
    quantile: Callable[[Floats], Floats]

    def sample(self, size: int, bits: Bits) -> Floats:
        """So many values, in rising order."""
        return np.sort(self.quantile(uniform(size, bits)))

    @property
    def grid(self) -> Grid:
        """The places of answers: 2^20 steps between the bounds."""
        return Grid.declared(self.bounds, None, 1 << 20)


def uniform(size: int, bits: Bits) -> Floats:
    """So many values between 0 and 1, neither of them included."""
    whole: Floats = (bits.words(size) >> np.uint64(11)).astype(np.float64)
    return (whole + 0.5) * 2.0**-53


UNIFORM = Law((0.0, 1.0), lambda share: share)
NORMAL = Law((-6.0, 6.0), lambda share: np.asarray(ndtri(share), np.float64))


def true_deciles(ordered: Floats) -> Floats:
    """The value of rank ceil(i n / 10), for each decile."""
    ranks = np.array([-(-i * len(ordered) // 10) for i in range(1, 10)])
    found: Floats = ordered[ranks - 1]
    return found


def method_for(name: str, places: int, epsilon: float, size: int) -> QuantileMethod:
    """The method under a name that people read, for nine deciles that share epsilon."""
    exact = Fraction(str(epsilon))
    return named(METHODS[name], at=DECILES, places=places, allowance=Allowance(budget=exact), size=size)


def rmse(method: QuantileMethod, ordered: Floats, grid: Grid, count: int, bits: Bits) -> Floats:
    """The root mean squared error over the nine deciles, of so many answers, unsorted as in the source."""
    places = method.draw(SortedPlaces(np.sort(grid.place(ordered))), count, bits)
    missed: Floats = np.sqrt(((grid.value(places) - true_deciles(ordered)) ** 2).mean(axis=-1))
    return missed


def mean_rmse(name: str, law: Law, size: int, epsilon: float, *, samples: int, bits: Bits) -> float:
    """The mean over fresh samples, one answer each."""
    grid = law.grid
    method = method_for(name, grid.places, epsilon, size)
    found = [float(rmse(method, law.sample(size, bits), grid, 1, bits)[0]) for _ in range(samples)]
    return float(np.mean(found))


def fit_power(sizes: Floats, errors: Floats) -> tuple[float, float]:
    """c and a of c n^-a, by least squares on logarithms.

    >>> c, a = fit_power(np.array([10.0, 100.0]), np.array([1.0, 0.1]))
    >>> round(c, 6), round(a, 6)
    (10.0, 1.0)
    """
    slope, offset = np.polyfit(np.log(sizes), np.log(errors), 1)
    return float(np.exp(offset)), float(-slope)
