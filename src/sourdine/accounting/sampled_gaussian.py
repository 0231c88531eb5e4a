"""Renyi moments of Gaussian noise on a Poisson sample, at any order.

With z standard normal, w = mu z - mu^2/2 and rate q, the moment of order a is
A(a) = E[(1 - q + q e^w)^a] (Mironov, Talwar, Zhang 2019, section 3.3). It bounds both directions (theorem 5
there).
"""

import numpy as np
from scipy.special import gammaln, logsumexp

from sourdine.core.laws import Floats

_MOST_FRACTIONAL = 64.0
_SIDE = 11.0  # standard deviations beyond the outermost peak
_ULP = 2.0**-52


def log_moments(mu: float, rate: float, orders: Floats) -> Floats:
    """Upper bounds on log A(a), good to about 1e-12 of their size, or of A.

    Whole orders above 64 are binomial sums; other orders above 64 lie on a chord between whole ones, which is
    above since log A is convex; the rest is quadrature.
    """
    found = np.empty(len(orders))
    small = orders <= _MOST_FRACTIONAL
    found[small] = _quadrature(mu, rate, orders[small])
    for i in np.flatnonzero(~small):
        low = np.floor(orders[i])
        share = orders[i] - low
        found[i] = _binomial_sum(mu, rate, int(low))
        if share > 0:
            found[i] += share * (_binomial_sum(mu, rate, int(low) + 1) - found[i])
    return np.maximum(found, 0.0)


def _quadrature(mu: float, rate: float, orders: Floats) -> Floats:
    """The trapezoidal rule on the whole line, with its error added.

    Off the real line by d < pi/mu the integrand stays analytic and is at most e^{d^2/2} times its value on
    the line, as |1 - q + q e^{w + it}| <= 1 - q + q e^w. So the rule with step h errs by less than
    2 e^{d^2/2}/(e^{2 pi d/h} - 1) of A (Trefethen and Weideman 2014, theorem 5.1). Beyond -T and a mu + T the
    integrand falls at least as fast as e^{-T x}, and its ends bound what is left out.
    """
    if not len(orders):
        return np.empty(0)
    strip = min(0.999 * np.pi / mu, 9.0)
    step = 2 * np.pi * strip / (38.0 + strip**2 / 2)  # the error is about 2 e^-38
    points = np.arange(-_SIDE, orders.max() * mu + _SIDE + step, step)
    base = np.logaddexp(np.log1p(-rate), np.log(rate) + mu * points - mu**2 / 2)
    exponents = np.outer(orders, base) - points**2 / 2
    inside = points <= (orders * mu + _SIDE + step)[:, None]
    exponents = np.where(inside, exponents, -np.inf)
    total = logsumexp(exponents, axis=1) + np.log(step / np.sqrt(2 * np.pi))
    last = inside.sum(axis=1) - 1
    ends = np.logaddexp(exponents[:, 0], exponents[np.arange(len(orders)), last])
    total = np.logaddexp(total, ends - np.log(_SIDE * np.sqrt(2 * np.pi)))
    return total + _rounding(np.abs(exponents).max(where=inside, axis=1, initial=1.0))


def _binomial_sum(mu: float, rate: float, order: int) -> float:
    """log of the sum over k of C(a, k) (1-q)^{a-k} q^k e^{k(k-1) mu^2/2}."""
    k = np.arange(order + 1)
    choose = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    terms = choose + (order - k) * np.log1p(-rate) + k * np.log(rate) + k * (k - 1) * (mu**2 / 2)
    largest = gammaln(order + 1) + np.abs(terms).max()
    return float(logsumexp(terms) + _rounding(largest))


def _rounding(largest: Floats) -> Floats:
    """How far sums of exponentials err, whose exponents are computed from terms of this size."""
    return 16 * _ULP * (64 + largest)
