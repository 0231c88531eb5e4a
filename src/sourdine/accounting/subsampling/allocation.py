"""Random allocation: each unit in one batch of every pass, drawn for itself, and anew each time.

This is not a shuffle, which fixes how large batches are: there, whoever knows where all others are knows
where the last one is. Here each unit chooses its batch whatever the others do, as balls fall into bins.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from sourdine.accounting.subsampling.allocation_sum import Atoms, mean_of_ratios
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import AtomLaw, Floats, GaussianLaw, LossDistribution, Pair
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.lazy import gammaln
from sourdine.core.loss import PrivacyLoss

CELLS = 1000
_SLACK = 1e-10  # sums of some thousand masses, in some twenty turns, err by 1e-11 at most
_MOST_ORDER = 128
MOST_BATCHES = 1 << 24
_LARGEST = 4.0  # a shift in deviations above which cells would be too wide to tell anything


class Direction(StrEnum):
    """Which of both data sets holds the unit: the first, or the other."""

    REMOVE = "remove"
    ADD = "add"


@dataclass(frozen=True)
class AllocatedLaw(LossDistribution):
    """One pass: the mean of t normal laws, each moved in one coordinate by mu, against the one in the
    middle."""

    mu: float
    batches: int
    direction: Direction

    @property
    def unsampled(self) -> LossDistribution:
        return GaussianLaw(self.mu)

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return self._upper.lowest

    @property
    def highest(self) -> float:  # type: ignore[override]
        return self._upper.highest

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return self._upper.infinite

    @property
    def least(self) -> LossDistribution:
        """A law that the true one is nowhere below."""
        return _law(self.mu, self.batches, self.direction, above=False)

    @property
    def _upper(self) -> LossDistribution:
        return _law(self.mu, self.batches, self.direction, above=True)

    def survival(self, loss: ArrayLike) -> Pair:
        return self._upper.survival(loss)

    def cumulative(self, loss: ArrayLike) -> Pair:
        return self._upper.cumulative(loss)


class _Dense(AtomLaw):
    """Atoms that stand for a continuous law: they have no common step worth looking for."""

    def __init__(self, losses: ArrayLike, p: ArrayLike, q: ArrayLike, infinite: float) -> None:
        super().__init__(losses, p, q, infinite)
        self.spacing = None


@lru_cache(maxsize=64)
def _law(mu: float, batches: int, direction: Direction, *, above: bool) -> LossDistribution:
    atoms = mean_of_ratios(mu, batches, CELLS, above=above)
    some = atoms.values > 0
    ratio, mass = atoms.values[some], atoms.masses[some]
    with_unit, without = ratio * mass, mass
    at_zero = float(atoms.masses[~some].sum())
    up, down = (1 + _SLACK, 1 - _SLACK) if above else (1 - _SLACK, 1 + _SLACK)
    if direction is Direction.REMOVE:
        return _Dense(np.log(ratio), with_unit * up, without * down, atoms.infinite * up)
    return _Dense(-np.log(ratio), without * up, with_unit * down, at_zero * up)


def random_allocation(loss: PrivacyLoss, batches: int) -> PrivacyLoss:
    """The loss of one pass in which each unit is in exactly one of so many batches, every one alike.

    For Gaussian noise, and add-remove or zero-out neighbours. The pair is the mean of N(mu e_i, I) over the
    batches i against N(0, I) (Chua et al. 2024; Feldman and Shenfeld 2025), whatever the gradients on the
    way.

    >>> one = PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE)
    >>> round(float(random_allocation(one, 10).profile(0.5)), 3)
    0.027
    """
    batches = check.integer("random_allocation", "batches", batches, 1, MOST_BATCHES)
    if loss.neighbours is Neighbours.REPLACE:
        raise UnsupportedLoss(
            "Random allocation is accounted for add-remove and zero-out neighbours, and this loss is for "
            "replacement. State the distance for one of those, or draw batches of fixed size."
        )
    law = loss.remove
    if not isinstance(law, GaussianLaw) or loss.add != law:
        raise UnsupportedLoss(
            "The loss of random allocation is known for continuous Gaussian noise only. Draw the batches by "
            "Poisson sampling."
        )
    if batches == 1 or law.mu > _LARGEST:  # with so little noise a pass costs as if no chance hid the batch
        return loss
    remove, add = (AllocatedLaw(law.mu, batches, each) for each in Direction)
    return replace(loss, remove=remove, add=add, epsilon=math.inf, rho=math.inf)


def allocation_moments(law: AllocatedLaw, orders: Floats) -> Floats:
    """Upper bounds on the logarithm of the Renyi moments at these orders above 1.

    Never above those of one batch without chance: the moment is convex in the pair.
    """
    alone = orders * (orders - 1) * law.mu**2 / 2 * (1 + 1e-15)
    return np.minimum(alone, (_removed if law.direction is Direction.REMOVE else _added)(law, orders))


def _removed(law: AllocatedLaw, orders: Floats) -> Floats:
    """At whole orders a, a!/t^a times the coefficient of x^a in (sum_j e^{j(j-1) mu^2/2} x^j/j!)^t, and
    chords between: the logarithm of a moment is convex in its order."""
    most = min(_MOST_ORDER, math.ceil(float(orders.max())))
    j = np.arange(most + 1)
    total = _power(j * (j - 1) * law.mu**2 / 2 - gammaln(j + 1), law.batches)
    whole = total + gammaln(j + 1) - j * math.log(law.batches)
    whole += 1e-13 * (64 + np.abs(total) + gammaln(j + 1) + j * math.log(law.batches))
    whole[:2] = 0.0
    low = np.minimum(np.floor(orders).astype(int), most)
    high = np.minimum(low + 1, most)
    share = orders - low
    return np.where(orders > most, np.inf, whole[low] + share * (whole[high] - whole[low]))


def _power(series: Floats, count: int) -> Floats:
    """The logarithms of the coefficients of a power of a series with positive ones."""
    if count == 1:
        return series
    half = _power(series, count // 2)
    twice = _product(half, half)
    return _product(twice, series) if count % 2 else twice


def _product(first: Floats, second: Floats) -> Floats:
    terms = np.full((len(first), len(first)), -np.inf)
    for n in range(len(first)):
        terms[n, : n + 1] = first[: n + 1] + second[n::-1]
    top = terms.max(axis=1)
    product: Floats = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    return product


def _added(law: AllocatedLaw, orders: Floats) -> Floats:
    """E W^{1-a}: above some point by atoms, below it by the geometric mean G, which is no larger than W.

    The tangent at the point goes on below it: so the function stays convex, and finite at 0. What it lacks
    there is at most E[G^{1-a}; W below the point], and that is at most the root of E[G^{2-2a}] times the
    chance of it (Cauchy and Schwarz); log G is normal.
    """
    atoms = mean_of_ratios(law.mu, law.batches, CELLS, above=True)
    points = _points(atoms)
    bounds = np.full(len(orders), np.inf)
    for i, point in enumerate(points[:-1]):
        chances = [_short(atoms, end) / (end - point) for end in points[i + 1 :]]
        bounds = np.minimum(bounds, _split(law, atoms, point, min(chances), orders))
    return bounds


def _points(atoms: Atoms) -> list[float]:
    """A few values with hardly any mass below, in order."""
    at = np.searchsorted(np.cumsum(atoms.masses), 10.0 ** -np.arange(58.0, 4.0, -4.0))
    return [float(value) for value in np.unique(atoms.values[np.clip(at, 1, len(atoms.values) - 1)])]


def _short(atoms: Atoms, end: float) -> float:
    """By how much W is short of an end, on average: over the gap to a point, the chance to lie below it."""
    return float(np.maximum(end - atoms.values, 0.0) @ atoms.masses) * (1 + 10 * _SLACK)


def _split(law: AllocatedLaw, atoms: Atoms, point: float, chance: float, orders: Floats) -> Floats:
    less, log_at = orders - 1, math.log(point)
    over = np.exp(
        -np.outer(less, np.log(np.maximum(atoms.values, point)) - log_at)
    )  # in units of point^{1-a}
    tangent = np.outer(less, np.maximum(1 - atoms.values / point, 0.0))
    inside = ((over + tangent) @ atoms.masses) * (1 + 10 * _SLACK)
    beyond = less * law.mu**2 / 2 + (less * law.mu) ** 2 / law.batches + math.log(max(chance, 1e-300)) / 2
    bound: Floats = np.logaddexp(np.log(inside) - less * log_at, beyond) + 1e-12 * (1 + less)
    return bound
