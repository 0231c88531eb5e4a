"""The mean of independent log-normal variables, from both sides in the convex order.

Where a unit is in one of t batches, the ratio of densities is a mean of t ratios, W = (X_1 + ... + X_t)/t.
What a pair costs is E f(W) for convex f: f(w) = (w - x)+ in one direction and (1 - x w)+ in the other.
Spreading mass to the two ends of a cell, its mean kept, raises every such number; drawing the mass of a cell
together at its mean lowers it. So sums are found on cells that fit them, twice as many terms at a time, by
products and sums of positive numbers: each mass keeps its digits, however small
(docs/guarantees/sampling_amplification.md).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sourdine.core.distributions import Floats
from sourdine.core.lazy import ndtr

_REACH = 11.0  # deviations of one term that are looked at closely
_BEND = 4.0  # deviations from the mean over which cells are about alike; farther out they widen
_ROWS = 100
_TINY = 1e-60  # masses that are not looked at any more


@dataclass(frozen=True)
class Atoms:
    """Values in order, their masses, and what mass at an infinite value would add to the mean."""

    values: Floats
    masses: Floats
    infinite: float = 0.0


@lru_cache(maxsize=64)
def mean_of_ratios(mu: float, terms: int, cells: int, *, above: bool) -> Atoms:
    """The mean of so many ratios e^{mu z - mu^2/2}, z standard normal, with every convex function no lower,
    or no higher, than it is.

    >>> atoms = mean_of_ratios(1.0, 2, 400, above=True)
    >>> 0 <= float((atoms.masses * atoms.values**2).sum()) - (1 + math.expm1(1) / 2) < 1e-3
    True
    """
    total = _sum(mu, terms, cells, above=above)
    return Atoms(total.values / terms, total.masses, total.infinite / terms)


def _sum(mu: float, terms: int, cells: int, *, above: bool) -> Atoms:
    if terms == 1:
        return _one(mu, cells, above=above)
    half = _sum(mu, terms // 2, cells, above=above)
    twice = _joined(half, half, _edges(mu, terms - terms % 2, cells), above=above)
    if terms % 2 == 0:
        return twice
    return _joined(twice, _one(mu, cells, above=above), _edges(mu, terms, cells), above=above)


def _edges(mu: float, terms: int, cells: int) -> Floats:
    """The ends of cells for a sum: 0, then dense around its mean, in deviations of its logarithm."""
    spread = math.sqrt(math.log1p(math.expm1(min(mu * mu, 600.0)) / terms))
    largest = mu * (_REACH + mu) - mu * mu / 2  # of one term, as a logarithm
    up = np.logaddexp(math.log(terms), largest + math.log1p(terms * 1e-9)) - math.log(terms) + _REACH * spread
    down = (_REACH + mu) * spread if terms > 1 else mu * _REACH + mu * mu / 2
    ends = np.arcsinh(np.array([-down, up]) / (_BEND * spread))
    logs = _BEND * spread * np.sinh(np.linspace(ends[0], ends[1], cells))
    return np.concatenate([[0.0], terms * np.exp(logs)])


def _one(mu: float, cells: int, *, above: bool) -> Atoms:
    """A single ratio: masses of cells, and their means, are differences of normal tails."""
    edges = _edges(mu, 1, cells)
    with np.errstate(divide="ignore"):
        z = (np.log(edges) + mu * mu / 2) / mu
    mass, first = _between(z), _between(z - mu)  # E[X; cell] is a mass, too: that of the other law
    if not above:
        mass, first = np.append(mass, ndtr(-z[-1])), np.append(first, ndtr(mu - z[-1]))
        full = mass > 1e-300
        return Atoms(first[full] / mass[full], mass[full])
    gap = np.diff(edges)
    high = np.clip((first - edges[:-1] * mass) / gap, 0.0, mass)  # less than all of it
    masses = np.append(mass - high, 0.0)
    masses[1:] += high
    masses[-1] += ndtr(-z[-1])
    return Atoms(edges, masses, float(ndtr(mu - z[-1])))


def _between(z: Floats) -> Floats:
    """The normal mass between neighbours, from the smaller tail."""
    over, under = ndtr(-z), ndtr(z)
    masses: Floats = np.where(z[:-1] > 0, over[:-1] - over[1:], under[1:] - under[:-1])
    return np.maximum(masses, 0.0)


def _joined(first: Atoms, second: Atoms, edges: Floats, *, above: bool) -> Atoms:
    """The sum of two independent ones, on new cells: of each, the mass and the mean are all that counts."""
    mass, over = np.zeros(len(edges)), np.zeros(len(edges))
    for start in range(0, len(first.values), _ROWS):
        some = slice(start, start + _ROWS)
        rest, times = (start, 2.0) if first is second else (0, 1.0)  # a pair of the same law is there twice
        weights = np.full(len(second.values) - rest, times)
        weights[: _ROWS if first is second else 0] = 1.0  # both of its orders lie within these rows
        sums = np.add.outer(first.values[some], second.values[rest:]).ravel()
        masses = np.multiply.outer(first.masses[some], weights * second.masses[rest:]).ravel()
        cell = np.searchsorted(edges, sums, side="right") - 1
        mass += np.bincount(cell, masses, minlength=len(edges))
        over += np.bincount(cell, masses * (sums - edges[cell]), minlength=len(edges))
    full = mass > _TINY
    if not above:
        return Atoms(edges[full] + over[full] / mass[full], mass[full])
    high = np.clip(over[:-1] / np.diff(edges), 0.0, mass[:-1])
    spread = mass.copy()
    spread[:-1] -= high
    spread[1:] += high
    heavy = spread > _TINY
    heavy[0] = True
    lost = spread[~heavy]  # to 0 and to infinity, which keeps the mean as well
    spread[0] += float(lost.sum())
    infinite = first.infinite + second.infinite + float(over[-1]) + float(lost @ edges[~heavy])
    return Atoms(edges[heavy], spread[heavy], infinite)
