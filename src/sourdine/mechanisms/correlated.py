"""Noise for the periods of a series, correlated over time: what is released are rows of Cx with noise.

C is a matrix of whole numbers (`sourdine.mechanisms.correlation`), each row of which reaches up to the period
at whose end it is released, and the noise of each row is independent and exact. So a row may be drawn when
its period is over, and data that react to earlier rows are covered (docs/guarantees/series.md).
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.distance import Distance, Neighbours, Norm, root_above
from sourdine.core.distributions import RhoLaw, float_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.mechanisms.correlation.dense import DenseMatrix
from sourdine.mechanisms.correlation.matrix import CorrelationMatrix
from sourdine.mechanisms.correlation.participation import MOST_PERIODS, Participation
from sourdine.mechanisms.correlation.roots import LevelMatrix, PowerMatrix
from sourdine.mechanisms.correlation.tree import TreeMatrix
from sourdine.mechanisms.gaussian import LEAST_SIGMA, MOST_SIGMA, gaussian_quantile
from sourdine.mechanisms.laplace import LEAST_SCALE, MOST_SCALE, laplace_quantile

MOST_LEVEL = 2048  # periods of a matrix that is held whole
MOST_DENSE = 512  # periods of one that is written entry by entry
MOST_RESOLUTION = 4096


class NoiseCorrelation(StrEnum):
    """How the noise of periods is correlated."""

    INDEPENDENT = "independent"
    POWER = "power"
    LEVEL = "level"
    TREE = "tree"
    DENSE = "dense"


@dataclass(frozen=True, kw_only=True)
class CorrelatedNoise(Mechanism):
    """Rows of a correlation matrix times the periods of a series, each with independent noise.

    The periods lie along the last axis of the values, and so do the rows of the answer. A distance is what
    one unit moves in *one* of the periods it may count in; where its total is `shared` by all periods, in all
    of them together.
    """

    periods: int
    correlation: NoiseCorrelation
    exponent: Fraction = Fraction(1, 2)
    resolution: int = 1024
    fan: int = 2
    triangle: tuple[int, ...] = ()
    times: int = 1
    separation: int = 1
    shared: bool = False
    granularity: Fraction | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        check.member(name, "correlation", self.correlation, NoiseCorrelation)
        most = {NoiseCorrelation.LEVEL: MOST_LEVEL, NoiseCorrelation.DENSE: MOST_DENSE}
        largest = most.get(self.correlation, MOST_PERIODS)
        check.keep(
            self,
            periods=check.integer(name, "periods", self.periods, 1, largest),
            exponent=check.between(name, "exponent", self.exponent, Fraction(1, 64), Fraction(1)),
            resolution=check.integer(name, "resolution", self.resolution, 1, MOST_RESOLUTION),
            fan=check.integer(name, "fan", self.fan, 2, MOST_PERIODS),
            times=check.integer(name, "times", self.times, 1, MOST_PERIODS),
            separation=check.integer(name, "separation", self.separation, 1, MOST_PERIODS),
            granularity=grid.step(name, self.granularity),
        )
        if not isinstance(self.shared, bool):
            raise check.fail(name, "shared", "be True or False", self.shared)
        Participation(self.times, self.separation, self.shared)
        self._check_triangle(name)

    def _check_triangle(self, name: str) -> None:
        entries = self.triangle
        if self.correlation is not NoiseCorrelation.DENSE:
            if entries:
                raise check.fail(name, "triangle", "be empty but for a dense correlation", len(entries))
            return
        size = self.periods * (self.periods + 1) // 2
        kinds = {type(each) for each in entries}
        if len(entries) != size or kinds != {int} or min(entries) < 0 or max(entries) > MOST_RESOLUTION:
            must = f"hold {size} whole numbers from 0 to {MOST_RESOLUTION}, row by row"
            raise check.fail(name, "triangle", must, len(entries))
        if any(entries[t * (t + 3) // 2] == 0 for t in range(self.periods)):
            raise InvalidParameter(
                f"The 'triangle' of {name} has a zero on its diagonal: that row would tell nothing. "
                "Every period must weigh something in its own row."
            )

    @classmethod
    def from_matrix(
        cls,
        matrix: CorrelationMatrix,
        participation: Participation,
        noise: Fraction | float,
        granularity: Fraction | None = None,
    ) -> Self:
        """The mechanism with this matrix, pattern of participation, and sigma or scale."""
        fields: dict[str, Any] = {"periods": matrix.periods, "granularity": granularity}
        fields |= {
            "times": participation.times,
            "separation": participation.separation,
            "shared": participation.shared,
        }
        if isinstance(matrix, PowerMatrix) and matrix.exponent == 0:
            fields |= {"correlation": NoiseCorrelation.INDEPENDENT}
        elif isinstance(matrix, PowerMatrix | LevelMatrix):
            kind = NoiseCorrelation.POWER if isinstance(matrix, PowerMatrix) else NoiseCorrelation.LEVEL
            fields |= {"correlation": kind, "exponent": matrix.exponent, "resolution": matrix.resolution}
        elif isinstance(matrix, TreeMatrix):
            fields |= {"correlation": NoiseCorrelation.TREE, "fan": matrix.fan}
        elif isinstance(matrix, DenseMatrix):
            fields |= {"correlation": NoiseCorrelation.DENSE, "triangle": matrix.triangle}
        else:
            raise check.fail(cls.__name__, "matrix", "be a matrix of this package", matrix)
        return cls(**fields, **cls._with_noise(noise))

    @classmethod
    @abstractmethod
    def _with_noise(cls, noise: Fraction | float) -> dict[str, Any]:
        """The parameter of the noise, by its name."""

    @property
    def participation(self) -> Participation:
        """How often one unit may count."""
        return Participation(self.times, self.separation, self.shared)

    @cached_property
    def matrix(self) -> CorrelationMatrix:
        """The whole numbers that periods are multiplied by."""
        match self.correlation:
            case NoiseCorrelation.INDEPENDENT:
                return PowerMatrix(self.periods, Fraction(0), 1)
            case NoiseCorrelation.POWER:
                return PowerMatrix(self.periods, self.exponent, self.resolution)
            case NoiseCorrelation.LEVEL:
                return LevelMatrix(self.periods, self.exponent, self.resolution)
            case NoiseCorrelation.TREE:
                return TreeMatrix(self.periods, self.fan)
            case NoiseCorrelation.DENSE:
                return DenseMatrix(self.periods, self.triangle)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """All rows of a whole series at once."""
        units = grid.to_units(type(self).__name__, values, self.granularity)
        if units.ndim == 0 or units.shape[-1] != self.periods:
            raise InvalidParameter(
                f"The values given to {type(self).__name__} must have {self.periods} periods along their "
                "last axis. Put 0 where nothing is known yet, or draw row by row."
            )
        rows = [self.matrix.correlate(units[..., :period]) for period in range(1, self.periods + 1)]
        return self._noisy(np.concatenate(rows, axis=-1), bits)

    def sample_rows(self, history: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """The rows that end with the last period of a history, which holds every period before it too.

        Their noise is independent of all other rows, so a series is drawn row by row as its periods end.
        Each row may be shown once: another draw for the same period is another release.
        """
        units = grid.to_units(type(self).__name__, history, self.granularity)
        if units.ndim == 0 or not 1 <= units.shape[-1] <= self.periods:
            raise InvalidParameter(
                f"A history given to {type(self).__name__} must have 1 to {self.periods} periods along "
                "its last axis. For periods beyond that, extend the series."
            )
        return self._noisy(self.matrix.correlate(units), bits)

    def _noisy(self, rows: NDArray[np.int64], bits: Bits) -> NDArray[Any]:
        noise = self._draw(rows.size, bits).reshape(rows.shape)
        return grid.from_units(grid.plus(rows, noise), self.granularity)

    @property
    @abstractmethod
    def unit_noise(self) -> Fraction:
        """The size of the noise of a row, in grid steps."""

    @abstractmethod
    def _draw(self, count: int, bits: Bits) -> NDArray[np.int64]:
        """So many independent noises, in steps."""

    def moved_steps(self, distance: Distance) -> Fraction:
        """What a unit moves in a period (in all, if it is shared), in steps; its square in L2.

        A total that is shared by several periods may be rounded in each, one step for each number.
        """
        self.require(distance)
        if self.granularity is None or not self.shared or distance.norm is not Norm.L2:
            return grid.distance_units(distance, self.granularity)
        grid.distance_units(distance, self.granularity)  # which refuses an unknown number of coordinates
        assert distance.coordinates is not None
        return (root_above(distance.amount) / self.granularity + distance.coordinates) ** 2


@dataclass(frozen=True, kw_only=True)
class CorrelatedGaussian(CorrelatedNoise):
    """Rows of Cx with discrete Gaussian noise.

    If one unit moves at most d in L2 in each of its periods, it costs rho = d^2 s^2 / (2 sigma^2), with s^2
    the exact greatest |Cu|^2 of the whole-number matrix for its pattern of participation, or a bound on it.

    >>> weekly = CorrelatedGaussian(sigma=2048, periods=52, correlation=NoiseCorrelation.POWER)
    >>> float(weekly.loss(Distance.l2(1)).rho)
    0.29027998447418213
    """

    name: ClassVar[str] = "correlated-gaussian/1"
    norm: ClassVar[Norm] = Norm.L2
    sigma: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep(self, sigma=check.positive("CorrelatedGaussian", "sigma", self.sigma))
        if not LEAST_SIGMA <= self.unit_noise <= MOST_SIGMA:
            remedy = "Change sigma or the granularity."
            must = "lie between 1/10 and 2^30 grid steps"
            raise check.fail("CorrelatedGaussian", "sigma", must, self.sigma, remedy)

    @classmethod
    def _with_noise(cls, noise: Fraction | float) -> dict[str, Any]:
        return {"sigma": noise}

    @property
    def unit_noise(self) -> Fraction:
        """Sigma in grid steps."""
        return self.sigma / (self.granularity or 1)

    def _draw(self, count: int, bits: Bits) -> NDArray[np.int64]:
        return exact.gaussian(self.unit_noise**2, count, bits)

    def loss(self, distance: Distance) -> PrivacyLoss:
        square = self.moved_steps(distance) * self.matrix.squared_length(self.participation)
        rho = square / (2 * self.unit_noise**2)
        return PrivacyLoss.symmetric(RhoLaw(float_above(rho)), neighbours=distance.neighbours, rho=rho)

    def error(self, confidence: float = 0.95) -> float:
        """Of one row; what is read off several is told by their coefficients."""
        confidence = check.confidence("CorrelatedGaussian.error", confidence)
        return grid.error_from_units(gaussian_quantile(self.unit_noise, confidence), self.granularity)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        power = cls(sigma=12, periods=4, correlation=NoiseCorrelation.POWER, resolution=4)
        once = replace(power, sigma=Fraction(20, 3), periods=3)
        twice = replace(power, times=2, separation=2)
        level = cls(sigma=9, periods=3, correlation=NoiseCorrelation.LEVEL, resolution=8)
        yield _example(once, [2, 0, 1], Distance.l2(1))
        yield _example(twice, [0, 5, 0, 5], Distance.l2(1))
        yield _example(level, [0, 0, 0], Distance.l2(1, neighbours=Neighbours.REPLACE))


@dataclass(frozen=True, kw_only=True)
class CorrelatedLaplace(CorrelatedNoise):
    """Rows of Cx with discrete Laplace noise.

    If one unit moves at most d in L1 in each of its periods, it costs epsilon = d s / scale, with s the exact
    greatest sum of |Cu| for its pattern of participation.

    >>> yearly = CorrelatedLaplace(scale=40, periods=52, correlation=NoiseCorrelation.TREE, fan=8)
    >>> yearly.loss(Distance.l1(1)).epsilon
    Fraction(1, 20)
    """

    name: ClassVar[str] = "correlated-laplace/1"
    norm: ClassVar[Norm] = Norm.L1
    scale: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep(self, scale=check.positive("CorrelatedLaplace", "scale", self.scale))
        if not LEAST_SCALE <= self.unit_noise <= MOST_SCALE:
            remedy = "Change the scale or the granularity."
            must = "lie between 2^-40 and 2^40 grid steps"
            raise check.fail("CorrelatedLaplace", "scale", must, self.scale, remedy)

    @classmethod
    def _with_noise(cls, noise: Fraction | float) -> dict[str, Any]:
        return {"scale": noise}

    @property
    def unit_noise(self) -> Fraction:
        """The scale in grid steps."""
        return self.scale / (self.granularity or 1)

    def _draw(self, count: int, bits: Bits) -> NDArray[np.int64]:
        return exact.laplace(self.unit_noise, count, bits)

    def loss(self, distance: Distance) -> PrivacyLoss:
        moved = self.moved_steps(distance) * self.matrix.length(self.participation)
        return PrivacyLoss.pure(moved / self.unit_noise, neighbours=distance.neighbours)

    def error(self, confidence: float = 0.95) -> float:
        """Of one row; what is read off several is told by their coefficients."""
        confidence = check.confidence("CorrelatedLaplace.error", confidence)
        return grid.error_from_units(laplace_quantile(self.unit_noise, confidence), self.granularity)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        tree = cls(scale=3, periods=4, correlation=NoiseCorrelation.TREE)
        dense = cls(
            scale=Fraction(5, 2), periods=2, correlation=NoiseCorrelation.DENSE, triangle=(2, 1, 2), times=2
        )
        yield _example(tree, [0, 0, 0, 0], Distance.l1(1))
        yield _example(dense, [0, 4], Distance.l1(1))


def _along_worst(mechanism: CorrelatedNoise) -> Callable[[NDArray[Any]], NDArray[np.int64]]:
    """Codes an answer by its sum along what a unit moves that counts as early and as often as it may.

    That is the direction in which neighbours differ, so it tells them apart best.
    """
    unit = worst_unit(mechanism)
    rows = [mechanism.matrix.correlate(unit[: period + 1]) for period in range(mechanism.periods)]
    direction = np.concatenate(rows)
    return lambda answers: np.asarray(answers, np.int64) @ direction


def worst_unit(mechanism: CorrelatedNoise) -> NDArray[np.int64]:
    """1 in the first periods that a unit may count in together, 0 elsewhere."""
    unit = np.zeros(mechanism.periods, np.int64)
    unit[: mechanism.times * mechanism.separation : mechanism.separation] = 1
    return unit


def _example(mechanism: CorrelatedNoise, start: list[int], distance: Distance) -> Example:
    """A unit that comes to a series in its worst periods."""
    neighbour = (np.array(start) + worst_unit(mechanism)).tolist()
    return Example(
        mechanism=mechanism,
        value=start,
        neighbour=neighbour,
        distance=distance,
        code=_along_worst(mechanism),
    )
