"""Renyi moments of the law of a loss: log E_P[e^{(a-1) L}] at every order a, never understated.

A law stands for every mechanism that it was stated for, and what is returned bounds the moment of each of
them. Laws with a closed form have one here. Any other law with a highest loss is first moved to a few
thousand points by chords, which can only raise its moments; a law without a highest loss and without a closed
form gets infinity.
"""

import math
from functools import singledispatch

import numpy as np

from sourdine.accounting.joint import Worst, points
from sourdine.accounting.rdp import sampled_gaussian
from sourdine.accounting.subsampling.allocation import AllocatedLaw, allocation_moments
from sourdine.accounting.subsampling.fixed_size import FixedSizeLaw
from sourdine.accounting.subsampling.mixture import MixtureLaw
from sourdine.accounting.subsampling.mixture_moments import mixture_moments
from sourdine.accounting.subsampling.poisson import PoissonAdd, PoissonRemove
from sourdine.accounting.subsampling.truncated import EitherLaw
from sourdine.core.composed import ComposedDistribution, above
from sourdine.core.distributions import (
    AtomLaw,
    DiscreteGaussianLaw,
    Floats,
    GaussianLaw,
    LossDistribution,
    RhoLaw,
)
from sourdine.core.lazy import gammaln, logsumexp

_POINTS = 3000
_ROUNDING = 2.0**-46
_MOST_ORDER = 1 << 14  # binomial sums up to this order


@singledispatch
def log_moments(law: LossDistribution, orders: Floats) -> Floats:
    """Upper bounds on log E_P[e^{(a-1) L}] for these orders above 1."""
    if not math.isfinite(law.highest) or law.infinite > 0:
        return np.full(len(orders), math.inf)
    losses = points(law, law.highest, _POINTS)
    masses, beyond = above(law, losses)
    masses[-1] += beyond  # nothing lies beyond; rounding may say so
    return _of_atoms(losses, masses, orders)


@log_moments.register
def _(law: AtomLaw, orders: Floats) -> Floats:
    if law.infinite > 0:
        return np.full(len(orders), math.inf)
    losses, masses = law.atoms
    return _of_atoms(losses, masses.p, orders)


@log_moments.register
def _(law: GaussianLaw, orders: Floats) -> Floats:
    """a (a-1) mu^2/2 (Mironov 2017, proposition 7)."""
    return _concentrated(law.mu**2 / 2, orders)


@log_moments.register
def _(law: DiscreteGaussianLaw, orders: Floats) -> Floats:
    """No more than in the continuous case (Canonne, Kamath, Steinke 2020)."""
    return _concentrated(law.units**2 / (2 * law.variance), orders)


@log_moments.register
def _(law: RhoLaw, orders: Floats) -> Floats:
    """a (a-1) rho: the curve of every mechanism that this law stands for."""
    return _concentrated(law.rho, orders)


@log_moments.register
def _(law: PoissonRemove, orders: Floats) -> Floats:
    """E_Q[(1 - q + q e^L)^a]; a Gaussian has its own quadrature."""
    if isinstance(law.base, GaussianLaw):
        return sampled_gaussian.log_moments(law.base.mu, law.rate, orders)
    if math.isfinite(law.highest):
        return log_moments.dispatch(LossDistribution)(law, orders)
    return _sampled(law.base, law.rate, orders)


@log_moments.register
def _(law: PoissonAdd, orders: Floats) -> Floats:
    """For a Gaussian no more than when removing (Mironov, Talwar, Zhang 2019)."""
    if isinstance(law.base, GaussianLaw):
        return sampled_gaussian.log_moments(law.base.mu, law.rate, orders)
    return log_moments.dispatch(LossDistribution)(law, orders)


@log_moments.register
def _(law: FixedSizeLaw, orders: Floats) -> Floats:
    """Above 0 the law is that of a Poisson sample; what lies lower is exchanged on a grid.

    Moments are integrals of the profile with positive weights. Below 0 the profile of a mechanism is at most
    that of this law, and on a Poisson sample it is at least 1 - e^epsilon. Only where the law is the very law
    of the mechanism is more taken away: each bin's least moment at its two masses, p^a q^{1-a} (Jensen).
    """
    if math.isfinite(law.highest):
        return log_moments.dispatch(LossDistribution)(law, orders)
    whole = log_moments(law.higher, orders)
    losses = points(law, 0.0, _POINTS)
    masses, _ = above(law, losses)
    inside = np.exp(logsumexp(np.outer(orders - 1, losses), b=masses, axis=1))
    if _known(law.base):
        below = law.higher.cumulative(np.append(-math.inf, losses))
        p, q = np.diff(below.p), np.diff(below.q)
        full = (p > 0) & (q > 0)
        ratio = np.minimum(np.log(p[full] / q[full]), losses[full])
        away = np.exp(logsumexp(np.outer(orders - 1, ratio), b=p[full], axis=1))
    else:
        over = law.survival(0.0)
        away = 1 - orders * float(over.p) + (orders - 1) * float(over.q)
    more = np.maximum(inside - away, 0.0) + 1e-12 * orders
    logs: Floats = np.logaddexp(whole, np.log(more))
    return logs


@log_moments.register
def _(law: MixtureLaw, orders: Floats) -> Floats:
    """By quadrature, or part by part."""
    return mixture_moments(law, orders)


@log_moments.register
def _(law: EitherLaw, orders: Floats) -> Floats:
    """The mean of both."""
    with np.errstate(divide="ignore"):
        shares = np.log([1 - law.chance, law.chance])
    first, second = log_moments(law.first, orders), log_moments(law.second, orders)
    mean: Floats = np.logaddexp(shares[0] + first, shares[1] + second) + _ROUNDING
    return mean


@log_moments.register
def _(law: AllocatedLaw, orders: Floats) -> Floats:
    """A closed form when removing, atoms when adding."""
    return allocation_moments(law, orders)


@log_moments.register
def _(law: Worst, orders: Floats) -> Floats:
    """Each mechanism that the law stands for is one of its parts."""
    largest: Floats = np.max([log_moments(part, orders) for part in law.laws], axis=0)
    return largest


@log_moments.register
def _(law: ComposedDistribution, orders: Floats) -> Floats:
    """Moments of independent losses add up."""
    total: Floats = np.sum([count * log_moments(part, orders) for part, count in law.parts], axis=0)
    return total


def _known(law: LossDistribution) -> bool:
    """Whether a law is that of one mechanism, and not of all that it stands for."""
    return isinstance(law, GaussianLaw | DiscreteGaussianLaw)


def _concentrated(rho: float, orders: Floats) -> Floats:
    return orders * (orders - 1) * rho * (1 + 4 * 2.0**-52)


def _of_atoms(losses: Floats, masses: Floats, orders: Floats) -> Floats:
    exponents = np.outer(orders - 1, losses)
    size = np.abs(losses).max() * (orders - 1)
    logs: Floats = logsumexp(exponents, b=masses, axis=1) + _ROUNDING * (1 + size)
    return np.maximum(logs, 0.0)


def _sampled(base: LossDistribution, rate: float, orders: Floats) -> Floats:
    """The binomial sum over the base's own moments at whole orders, and chords between (Zhu and Wang 2019).

    The logarithm of a moment is convex in the order.
    """
    most = int(np.ceil(orders.max()))
    if most > _MOST_ORDER:
        rest = np.full(len(orders), math.inf)
        few = orders <= _MOST_ORDER
        if few.any():
            rest[few] = _sampled(base, rate, orders[few])
        return rest
    k = np.arange(most + 1)
    moments = np.concatenate([[0.0, 0.0], log_moments(base, k[2:].astype(float))])  # E_Q[e^{kL}]
    tops = np.unique(np.concatenate([np.floor(orders), np.ceil(orders)]).astype(int))
    known = np.zeros(most + 1)
    for a in tops[tops > 1]:
        part = k[: a + 1]
        choose = gammaln(a + 1) - gammaln(part + 1) - gammaln(a - part + 1)
        terms = choose + (a - part) * np.log1p(-rate) + part * np.log(rate) + moments[: a + 1]
        size = gammaln(a + 1) - a * np.log(rate) + np.abs(terms).max()
        known[a] = logsumexp(terms) + _ROUNDING * (1 + size)
    low, high = np.floor(orders).astype(int), np.ceil(orders).astype(int)
    share = orders - low
    logs: Floats = np.maximum(known[low] * (1 - share) + known[high] * share, 0.0)
    return logs
