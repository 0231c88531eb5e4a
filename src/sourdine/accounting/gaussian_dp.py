"""Gaussian differential privacy: the least mu whose Gaussian dominates a loss, certified, or none.

A loss is mu-GDP if telling its two laws apart is at no error rate easier than telling N(0, 1) from N(mu, 1)
(Dong, Roth, Su 2022). For a loss with atoms it is enough to compare at the corners of its
trade-off function, since that of the Gaussian is convex: docs/guarantees/gaussian_dp.md.
"""

import math
from fractions import Fraction

import numpy as np

from sourdine.accounting.accountant import Bracket
from sourdine.core import check
from sourdine.core.composed import ComposedDistribution
from sourdine.core.distributions import (
    AtomLaw,
    DiscreteGaussianLaw,
    Floats,
    GaussianLaw,
    GeometricLaw,
    LossDistribution,
    float_above,
)
from sourdine.core.lazy import log_ndtr, ndtri_exp
from sourdine.core.loss import PrivacyLoss

_MASS = 1e-9  # how far masses may be off, relative; they are off by less than 1e-12
_MARGIN = 1e-9  # of a mu, relative
_REACH = 100  # deviations of discrete Gaussian noise up to which every corner is looked at
_BEYOND = (math.log(_REACH) + 3) / _REACH**2 / (1 - (math.log(_REACH) + 3) / _REACH**2)
_WIDEST = 1 << 12  # a sigma above which there would be too many corners
_MOST_ATOMS = 1 << 20
_LINE = 1e-4  # an epsilon below which mu is taken from the line above it, which is more by 1e-9 at most
_MISSING = 1e-11  # of a law under Q: more than rounding can lose
_QUANTILES = 1e-10  # what two normal quantiles of 100 deviations or less may be off


def dominating_square(loss: PrivacyLoss) -> Fraction | float:
    """The square of a mu that dominates a loss at every epsilon; infinite where none is proven.

    It is exact for continuous Gaussian noise, and for other losses above the least by about a relative 1e-9
    (discrete Gaussian noise: 1e-3). A loss that may tell everything, with whatever chance, has none.

    >>> from sourdine.core.distance import Neighbours
    >>> law = GaussianLaw(0.5)
    >>> dominating_square(PrivacyLoss.symmetric(law, neighbours=Neighbours.ADD_REMOVE, rho=Fraction(1, 8)))
    Fraction(1, 4)
    """
    laws = [loss.remove] if loss.add is loss.remove else [loss.remove, loss.add]
    if loss.delta or any(law.infinite for law in laws):
        return math.inf
    if all(isinstance(law, GaussianLaw) for law in laws):
        return max(_gaussian(law, loss.rho) for law in laws if isinstance(law, GaussianLaw))
    mu = max(_of_law(law) for law in laws)
    if loss.epsilon != math.inf:
        mu = min(mu, mu_of_epsilon(float_above(loss.epsilon)))
    return math.inf if mu == math.inf else float_above(Fraction(mu) ** 2)


def mu_of_epsilon(epsilon: Fraction | float) -> float:
    """The least mu such that every epsilon-DP mechanism is mu-GDP, rounded up.

    It is 2 Phi^-1(e^epsilon/(1 + e^epsilon)): randomized response dominates, and has one corner.

    >>> round(mu_of_epsilon(1), 4)
    1.232
    """
    exact = float_above(check.number("mu_of_epsilon", "epsilon", epsilon))
    if not 0 <= exact < math.inf:
        raise check.fail("mu_of_epsilon", "epsilon", "be at least 0 and finite", epsilon)
    if exact < _LINE:  # a half and a small number have lost the digits of the small one
        return math.nextafter(math.sqrt(math.pi / 2) * exact * (1 + _MARGIN), math.inf) if exact else 0.0
    return -2 * float(ndtri_exp(-np.logaddexp(0.0, exact))) * (1 + _MARGIN)


def _gaussian(law: GaussianLaw, rho: Fraction | float) -> Fraction:
    """mu^2 itself, which is 2 rho where that is known: mu was rounded up to a float."""
    square = Fraction(law.mu) ** 2
    exact = 2 * Fraction(rho) if math.isfinite(rho) else square
    return exact if abs(exact - square) <= square * Fraction(1, 10**12) else square


def _of_law(law: LossDistribution) -> float:
    if isinstance(
        law, ComposedDistribution
    ):  # shifts of independent answers are one of their Euclidean length
        return math.sqrt(sum(count * _of_law(part) ** 2 for part, count in law.parts)) * (1 + _MARGIN)
    if isinstance(law, DiscreteGaussianLaw):
        return _discrete(law)
    if isinstance(law, GaussianLaw):
        return law.mu
    if isinstance(law, AtomLaw):
        cuts = np.unique(law.atoms[0])[:-1]
    elif (
        isinstance(law, GeometricLaw) and law.units < _MOST_ATOMS
    ):  # between the atoms, where rounding is safe
        cuts = (2 * np.arange(law.units) - law.units + 1) / law.scale
    else:
        return math.inf
    if float(law.survival(-math.inf).q) < 1 - _MISSING:  # Q has mass where P has none: seen, it tells all
        return math.inf
    above, below = law.survival(cuts), law.cumulative(cuts)
    if np.any(above.q <= 0) or np.any(below.p <= 0):
        return math.inf
    reach = float((_quantile(above.p, below.p) - _quantile(above.q, below.q)).max(initial=0.0))
    return reach * (1 + _MARGIN) + _QUANTILES if reach < math.inf else math.inf


def _quantile(above: Floats, below: Floats) -> Floats:
    """The normal quantile of a chance, by its smaller side."""
    less = np.minimum(above, below)
    quantiles: Floats = np.where(above < below, 1.0, -1.0) * ndtri_exp(np.log(less))
    return quantiles


def _discrete(law: DiscreteGaussianLaw) -> float:
    """Corners up to many deviations, one by one; what lies beyond has a proven bound."""
    sigma = math.sqrt(law.variance)
    if sigma > _WIDEST or law.units > _MOST_ATOMS:
        return math.inf
    last = math.ceil(_REACH * sigma) + 1
    far = last + law.units + math.ceil(sigma) + 64  # what is beyond weighs less than e^-60 of what is last
    down = -np.arange(far + 1, dtype=float)  # the places 0, -1, ...
    logs = -(down**2) / (2 * law.variance)
    tails = np.logaddexp.accumulate(logs[::-1])[
        ::-1
    ]  # log of the sum from a place down, but for what is beyond
    whole = np.logaddexp(tails[0], tails[1])
    below_zero = ndtri_exp(tails - whole)  # quantiles of P[Y <= 0], P[Y <= -1], ...
    places = np.arange(-last, last + law.units + 1)

    def quantile(at: np.ndarray) -> Floats:
        """Of P[Y <= at]; by symmetry it is minus that of P[Y <= -at - 1] above 0."""
        low = below_zero[np.where(at < 0, -at, np.minimum(at + 1, far))]
        quantiles: Floats = np.where(at < 0, low, -low)
        return quantiles

    reach = quantile(places) - quantile(places - law.units)
    least = law.units / sigma
    return max(float(reach.max()), least * (1 + _BEYOND)) * (1 + _MARGIN) + _QUANTILES


def gdp_epsilon(square: Fraction, delta: float) -> float:
    """The epsilon at a delta of whatever is mu-GDP, from mu^2, rounded up.

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018, theorem 8; Dong,
    Roth, Su 2022, corollary 2.13).

    >>> round(gdp_epsilon(Fraction(1), 1e-5), 4)
    4.3772
    """
    return gdp_bracket(square, delta).upper


def gdp_bracket(square: Fraction, delta: float) -> Bracket:
    """The same from both sides: the epsilon of the Gaussian itself.

    >>> round(gdp_bracket(Fraction(1), 1e-5).upper, 6)
    4.377178
    """
    exact = check.rational("gdp_epsilon", "square", square)
    share = float(check.inside("gdp_epsilon", "delta", delta, 0, 1))
    if exact < 0:
        raise check.fail("gdp_epsilon", "square", "be at least 0", float(exact))
    if exact == 0:
        return Bracket(0.0, 0.0)
    mu, allowed = math.sqrt(float_above(exact)), math.log(share)
    if mu > _HOPELESS:
        return Bracket(0.0, math.inf)
    lower = _crossing(mu * (1 - _MARGIN), allowed, -1)[0]
    return Bracket(lower, _crossing(mu * (1 + _MARGIN), allowed, 1)[1])


def _crossing(mu: float, allowed: float, sign: int) -> tuple[float, float]:
    """Epsilons just below and just above where log delta of a Gaussian falls to what is allowed.

    What floats may err is added to log delta, or with the other sign taken from it.
    """

    def fits(epsilon: float) -> bool:
        """In logarithms, whose difference is off by a share of their size."""
        first = float(log_ndtr(mu / 2 - epsilon / mu))
        if first == -math.inf:
            return True
        second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
        remainder = -math.expm1(min(second - first, 0.0)) + sign * 1e-13 * (1 + epsilon - first)
        return remainder <= 0 or first + math.log(remainder) + sign * _MASS <= allowed

    if fits(0.0):
        return 0.0, 0.0
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(-2 * allowed) + 1
    while not fits(high):
        low, high = high, 2 * high
        if high > _HOPELESS**2:
            return low, math.inf
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return low, high


_HOPELESS = 1e6
