"""Renyi moments of Gaussian noise on a Poisson sample, at any order.

With z standard normal, w = mu z - mu^2/2 and rate q, the moment of order a is
A(a) = E[(1 - q + q e^w)^a] (Mironov, Talwar, Zhang 2019, section 3.3). It bounds both directions, as they
prove.
"""

from functools import lru_cache

import numpy as np

from sourdine.core.distributions import Floats
from sourdine.core.lazy import gammaln, logsumexp

_MOST_FRACTIONAL = 64.0
_SIDE = 11.0  # standard deviations beyond the outermost peak
_MOST_NODES = 1 << 16  # of a quadrature: with hardly any noise it would take terabytes
_ULP = 2.0**-52


def log_moments(mu: float, rate: float, orders: Floats) -> Floats:
    """Upper bounds on log A(a), above it by about 1e-14 times the larger of it and 1.

    Whole orders are binomial sums. Fractional ones up to 64 are quadratures; above, and where a quadrature
    would take too long, they lie on a chord between whole orders, which is no lower since log A is convex.
    """
    return _cached(mu, rate, tuple(orders.tolist())).copy()


@lru_cache(maxsize=64)
def _cached(mu: float, rate: float, key: tuple[float, ...]) -> Floats:
    orders = np.array(key)
    logs = np.zeros(len(orders))
    whole = orders == np.floor(orders)
    for low in 2.0 ** np.arange(6):  # orders of like size need like ranges
        some = ~whole & (orders > (low if low > 1 else 0)) & (orders <= 2 * low)
        if some.any():
            logs[some] = _quadrature(mu, rate, orders[some])
    rest = np.flatnonzero(whole | (orders > _MOST_FRACTIONAL) | np.isinf(logs))
    factorials = gammaln(np.arange(int(orders[rest].max(initial=1)) + 3))
    for i in rest:
        low, share = int(orders[i]), orders[i] % 1
        logs[i] = _binomial_sum(mu, rate, low, factorials)
        if share > 0:
            logs[i] += share * (_binomial_sum(mu, rate, low + 1, factorials) - logs[i])
    return np.maximum(logs, 0.0)


def _quadrature(mu: float, rate: float, orders: Floats) -> Floats:
    """The trapezoidal rule on the whole line, with its error added; infinity where it would take too long.

    Off the real line by d < pi/mu the integrand stays analytic and is at most e^{d^2/2} times its value on
    the line, as |1 - q + q e^{w + it}| <= 1 - q + q e^w. So the rule with step h errs by less than
    2 e^{d^2/2}/(e^{2 pi d/h} - 1) of A (Trefethen and Weideman 2014, theorem 5.1). Beyond -T and a mu + T the
    integrand falls at least as fast as e^{-T x}, and its ends bound what is left out.
    """
    strip = min(0.999 * np.pi / mu, 9.0)
    step = 2 * np.pi * strip / (38.0 + strip**2 / 2)
    error = 2 * np.exp(-38.0)
    if (orders.max() * mu + 2 * _SIDE) / step > _MOST_NODES:
        return np.full(len(orders), np.inf)
    points = np.arange(-_SIDE, orders.max() * mu + _SIDE + step, step)
    base = np.logaddexp(np.log1p(-rate), np.log(rate) + mu * points - mu**2 / 2)
    powers = np.outer(orders, base)
    exponents = powers - points**2 / 2
    ends = np.logaddexp(exponents[:, 0], exponents[:, -1]) - np.log(_SIDE * step)
    total = np.logaddexp(logsumexp(exponents, axis=1), ends)
    weights = np.exp(exponents - total[:, None])
    size = (weights * (np.abs(powers) + points**2)).sum(axis=1)
    logs: Floats = total + np.log(step / np.sqrt(2 * np.pi)) + error + _rounding(size)
    return logs


def _binomial_sum(mu: float, rate: float, order: int, factorials: Floats) -> float:
    """log of the sum over k of C(a, k) (1-q)^{a-k} q^k e^{k(k-1) mu^2/2}."""
    k = np.arange(order + 1)
    below = factorials[1 : order + 2]
    choose = factorials[order + 1] - below - below[::-1]
    terms = choose + (order - k) * np.log1p(-rate) + k * np.log(rate) + k * (k - 1) * (mu**2 / 2)
    top = terms.max()
    weights = np.exp(terms - top)
    total = weights.sum()
    parts = np.where(choose > 0, factorials[order + 1], 0.0) - k * np.log(rate)
    size = (weights * (np.abs(terms) + 2 * parts)).sum() / total
    return float(top + np.log(total) + _rounding(size))


def _rounding(size: Floats) -> Floats:
    """How far a sum of exponentials may err, relatively, whose exponents come from terms of this size."""
    rounding: Floats = 4 * _ULP * (8 + size)
    return rounding
