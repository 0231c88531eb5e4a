"""Renyi moments of one mixture of normal laws against another, never understated.

With the ratios p and q of both densities to the standard normal one, the moment of order a is the integral of
p^a q^{1-a} under that density. Orders up to 64 are quadratures. Others have a closed form that is no less:
the moment is convex in both laws at once, so it is at most the mean of the moments of the parts that stand
opposite.
"""

import numpy as np

from sourdine.accounting.subsampling.mixture import MixtureLaw
from sourdine.core.distributions import Floats
from sourdine.core.lazy import logsumexp

_MOST_ORDER = 64.0
_SIDE = 11.0  # deviations beyond the outermost peak
_DIGITS = 38.0
_MOST_NODES = 200_000
_BLOCK = 4_000_000
_ULP = 2.0**-52


def mixture_moments(law: MixtureLaw, orders: Floats) -> Floats:
    """Upper bounds on the logarithm of the moments at these orders above 1."""
    bounds = _by_parts(law, orders)
    for low in 2.0 ** np.arange(6):  # orders of like size need like ranges
        some = np.flatnonzero((orders > (low if low > 1 else 0)) & (orders <= min(2 * low, _MOST_ORDER)))
        if len(some):
            bounds[some] = np.minimum(bounds[some], _quadrature(law, orders[some]))
    return np.maximum(bounds, 0.0)


def _by_parts(law: MixtureLaw, orders: Floats) -> Floats:
    """log of the sum over parts j of w_j e^{a (a-1) gap_j^2/2}."""
    weights = law.p.weights if len(law.p.weights) >= len(law.q.weights) else law.q.weights
    gaps = np.subtract(np.array(law.p.means), np.array(law.q.means))  # one of them may be 0 alone
    squares = np.multiply.outer(orders * (orders - 1) / 2, gaps**2)
    logs: Floats = logsumexp(squares, b=np.array(weights), axis=1) + 1e-13 * (1 + squares.max(axis=1))
    return logs


def _quadrature(law: MixtureLaw, orders: Floats) -> Floats:
    """The trapezoidal rule on the whole line, with its error added; infinity where it would take too long.

    Let A and B be the farthest means of both. Off the real line by y < pi/max(A, B) neither ratio has a
    zero; p is in modulus at most p on the line, and q at least cos(B y/2) q, as all its terms point within
    an angle of B y. So the rule with step h errs by less than 2 e^{d^2/2} cos(B d/2)^{1-a}/(e^{2 pi d/h} -
    1) of the moment (Trefethen and Weideman 2014, theorem 5.1). Beyond -T and a A + (a-1) B + T the
    integrand falls at least as fast as e^{-T x}, and its ends bound what is left out.
    """
    far_p, far_q = max(law.p.means), -min(law.q.means)
    most = float(orders.max())
    strip = min(0.9 * np.pi / max(far_p, far_q), 9.0)
    if far_q:
        strip = min(strip, 2 * np.sqrt(40.0 / most) / far_q)
    turned = -(most - 1) * np.log(np.cos(far_q * strip / 2))
    step = 2 * np.pi * strip / (_DIGITS + strip**2 / 2 + turned)
    end = most * far_p + (most - 1) * far_q + _SIDE
    if (end + _SIDE) / step > _MOST_NODES:
        return np.full(len(orders), np.inf)
    z = np.arange(-_SIDE, end + step, step)
    log_p, log_q = law.p.log_ratio(z), law.q.log_ratio(z)
    logs = np.empty(len(orders))
    rows = max(1, _BLOCK // len(z))
    for start in range(0, len(orders), rows):
        some = orders[start : start + rows]
        powers = np.outer(some, log_p) - np.outer(some - 1, log_q)
        size = np.outer(some, np.abs(log_p) + np.abs(log_q))
        exponents = powers - z**2 / 2
        ends = np.logaddexp(exponents[:, 0], exponents[:, -1]) - np.log(_SIDE * step)
        total = np.logaddexp(logsumexp(exponents, axis=1), ends)
        weights = np.exp(exponents - total[:, None])
        rounding = 4 * _ULP * (8 + len(law.p.means) + (weights * (size + z**2)).sum(axis=1))
        logs[start : start + rows] = (
            total + np.log(step / np.sqrt(2 * np.pi)) + 4 * np.exp(-_DIGITS) + rounding
        )
    return logs
