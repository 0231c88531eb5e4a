"""The two responses of RAPPOR to each bit of a filter, and what they reveal, once or again and again.

The permanent response turns a bit over with probability f/2. The instantaneous one reports a 1 with
probability q where the permanent bit is 1 and p where it is 0. Two values differ in at most 2h bits of their
filters, h each way, and bits are drawn independently: so all there is to know is the distribution of one bit,
and f, p and q follow from the epsilons that are wanted. Responses are drawn for many filters at once.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb
from numpy.typing import NDArray

from sourdine.accounting.joint import together
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import AtomLaw, Floats
from sourdine.core.interval_arithmetic import above, ball, precision
from sourdine.core.lazy import gammaln, xlog1py, xlogy
from sourdine.core.loss import PrivacyLoss
from sourdine.core.random import packed
from sourdine.core.random.bits import Bits
from sourdine.mechanisms.randomized_response import Channel

_MOST_REPORTS = 128  # up to here the law of all reports is listed; beyond, only its epsilon is used


@dataclass(frozen=True)
class Coins:
    """The probabilities f, p and q; p = 0 and q = 1 leave the instantaneous response out.

    >>> round(Coins(Fraction(1, 2), Fraction(1, 2), Fraction(3, 4)).epsilon(2), 3)
    1.074
    """

    f: Fraction
    p: Fraction = Fraction(0)
    q: Fraction = Fraction(1)

    @property
    def flip(self) -> Fraction:
        """How often the permanent response turns a bit over: f/2."""
        return self.f / 2

    @property
    def instantaneous(self) -> bool:
        """Whether there is a second response at all."""
        return self.p > 0 or self.q < 1

    @property
    def one(self) -> Fraction:
        """q*: how often a set bit is reported as 1."""
        return self.flip * (self.p + self.q) + (1 - self.f) * self.q

    @property
    def zero(self) -> Fraction:
        """p*: how often a bit that is not set is reported as 1."""
        return self.flip * (self.p + self.q) + (1 - self.f) * self.p

    @cached_property
    def channel(self) -> Channel:
        return Channel(float(self.one), float(self.zero))

    def epsilon(self, ones: int, reports: int | None = 1) -> float:
        """The pure epsilon of so many reports on one value, rounded up; of endlessly many for None.

        With a = 1 - f/2, b = f/2 and g(x) = (a + b x)/(b + a x), it is h ln(g((p/q)^n) g(((1-q)/(1-p))^n)):
        the worst is n ones at every bit of the first value and n zeros at every bit of the second. It grows
        from epsilon_1 towards epsilon_infinity = 2h ln(a/b), and never exceeds n epsilon_1.
        """
        with precision(192):
            total = self._log_odds(reports)
            return math.inf if total is None else above(total * ones)

    def rho(self, ones: int, reports: int | None = 1) -> float:
        """Zero-concentrated: the losses of one bit span v = epsilon/h, so 2h bits cost 2h v^2/8 at most."""
        with precision(192):
            total = self._log_odds(reports)
            return math.inf if total is None else above(total * total * ones / 4)

    def loss(self, ones: int, changed: int, neighbours: Neighbours) -> PrivacyLoss:
        """The loss of one report, when so many people's values change.

        For one, with a ~ Bin(h, q*) ones among the bits of the first value and b ~ Bin(h, p*) among those of
        the second, the loss is (a - b) epsilon/h.
        """
        epsilon, rho = self.epsilon(ones), self.rho(ones)
        if changed != 1:
            return PrivacyLoss.pure(changed * epsilon, neighbours=neighbours, rho=changed * rho)
        one, zero = (_binomials(ones, float(share)) for share in (self.one, self.zero))
        p, q = np.convolve(one, zero[::-1]), np.convolve(zero, one[::-1])
        law = AtomLaw(np.arange(-ones, ones + 1) * (epsilon / ones), p, q)
        return PrivacyLoss.symmetric(law, neighbours=neighbours, epsilon=epsilon, rho=rho)

    def loss_after(self, ones: int, reports: int) -> PrivacyLoss:
        """The loss of so many reports on one value that all go through one permanent response."""
        epsilon, rho = self.epsilon(1, reports), self.rho(1, reports)
        if reports > _MOST_REPORTS:
            pair = PrivacyLoss.pure(epsilon, neighbours=Neighbours.REPLACE, rho=rho)
        else:
            law = self._pair_law(reports)
            pair = PrivacyLoss.symmetric(law, neighbours=Neighbours.REPLACE, epsilon=epsilon, rho=rho)
        return together([(pair, ones)])

    def _pair_law(self, reports: int) -> AtomLaw:
        """A bit that only the first value sets, with one that only the second sets: their numbers of ones."""
        set_, unset = self.ones_law(True, reports), self.ones_law(False, reports)
        return AtomLaw.between(np.outer(set_, unset).ravel(), np.outer(unset, set_).ravel())

    def ones_law(self, is_set: bool, reports: int) -> Floats:
        """How many of n reports have a 1 at a bit: a mixture over the permanent response."""
        keep = 1 - float(self.flip)
        high = keep if is_set else 1 - keep
        likely, unlikely = (_binomials(reports, float(share)) for share in (self.q, self.p))
        return np.asarray(high * likely + (1 - high) * unlikely)

    def _log_odds(self, reports: int | None) -> arb | None:
        """ln(g(x) g(y)), or None where it is infinite."""
        if reports is None:
            x = y = arb(0)
        else:
            x, y = ball(self.p / self.q) ** reports, ball((1 - self.q) / (1 - self.p)) ** reports
        if self.f == 0 and (reports is None or self.p == 0 or self.q == 1):
            return None
        keep, flip = ball(1 - self.flip), ball(self.flip)
        return ((keep + flip * x) / (flip + keep * x) * (keep + flip * y) / (flip + keep * y)).log()


def _binomials(trials: int, share: float) -> Floats:
    """The masses of a binomial law, each with its own relative accuracy."""
    k = np.arange(trials + 1.0)
    choose = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
    return np.exp(choose + xlogy(k, share) + xlog1py(trials - k, -share))


Rows = NDArray[np.uint8]


def permanent(filters: Rows, coins: Coins, bits: Bits) -> Rows:
    """Each bit turned over with probability f/2: the law of 1, 0 or the truth with f/2, f/2 and 1 - f."""
    if coins.f == 0:
        return filters
    return filters ^ _draw(filters, coins.flip, bits)


def instantaneous(response: Rows, coins: Coins, bits: Bits) -> Rows:
    """A 1 with probability q where the permanent bit is 1, p where it is 0; both coins are always tossed."""
    if not coins.instantaneous:
        return response
    likely, unlikely = (_draw(response, share, bits) for share in (coins.q, coins.p))
    return (response & likely) | (~response & unlikely)


def trimmed(rows: Rows, size: int) -> Rows:
    """The rows with nothing beyond their last bit."""
    if spare := -size % 8:
        rows[..., -1] &= np.uint8(256 - (1 << spare))
    return rows


def _draw(rows: Rows, share: Fraction, bits: Bits) -> Rows:
    words = packed.bernoulli(share, -(-rows.size // 8), bits)
    return words.view(np.uint8)[: rows.size].reshape(rows.shape)


_FINE = 1 << 20  # steps of f
_FINER = 1 << 16  # steps of q
_COARSE = 1 << 8  # steps of p: few binary digits make quick coins
_MOST_EPSILON = 512


def solve_flip(owner: str, epsilon: Fraction | float, ones: int) -> Fraction:
    """The least f, in steps of 2^-20, that costs at most epsilon for ever: about 2/(1 + e^(epsilon/2h))."""
    hashes = check.integer(owner, "hashes", ones, 1, 16)
    target = check.positive(owner, "epsilon", epsilon, _MOST_EPSILON)
    steps = max(1, math.floor(_FINE * 2 / (1 + math.exp(float(target) / (2 * hashes)))) - 1)
    while steps < _FINE and Coins(Fraction(steps, _FINE)).epsilon(hashes) > target:
        steps += 1
    if steps == _FINE:
        raise check.fail(owner, "epsilon", "be larger: so little is not worth asking", epsilon)
    return Fraction(steps, _FINE)


def solve_coins(
    owner: str, epsilon: Fraction | float, epsilon_infinity: Fraction | float, ones: int
) -> Coins:
    """f from epsilon_infinity, and then the p and q with the least variance p*(1-p*)/(q*-p*)^2 at epsilon."""
    hashes = check.integer(owner, "hashes", ones, 1, 16)
    target = check.positive(owner, "epsilon", epsilon, _MOST_EPSILON)
    if epsilon_infinity == math.inf:
        f = Fraction(0)
    else:
        limit = check.positive(owner, "epsilon_infinity", epsilon_infinity, _MOST_EPSILON)
        if limit <= target:
            remedy = "One report cannot reveal more than all. For a single report, use a one-time variant."
            raise check.fail(owner, "epsilon_infinity", "be above epsilon", epsilon_infinity, remedy)
        f = solve_flip(owner, limit, hashes)
    p = Fraction(_best(float(f), float(target) / hashes), _COARSE)
    low, high = math.floor(p * _FINER), _FINER - 1
    while low < high:
        middle = (low + high + 1) // 2
        if Coins(f, p, Fraction(middle, _FINER)).epsilon(hashes) <= target:
            low = middle
        else:
            high = middle - 1
    q = Fraction(low, _FINER)
    if q <= p:
        raise check.fail(owner, "epsilon", "be larger: so little is not worth asking", epsilon)
    return Coins(f, p, q)


def _best(f: float, log_odds: float) -> int:
    """The numerator of the p with the least variance, each p with the largest q that it allows."""
    p = np.arange(1, _COARSE) / _COARSE
    low, high = p, np.ones_like(p)
    for _ in range(50):
        q = (low + high) / 2
        one, zero = f / 2 * (p + q) + (1 - f) * q, f / 2 * (p + q) + (1 - f) * p
        small = np.log(one / zero) + np.log((1 - zero) / np.maximum(1 - one, 1e-300)) <= log_odds
        low, high = np.where(small, q, low), np.where(small, high, q)
    one, zero = f / 2 * (p + low) + (1 - f) * low, f / 2 * (p + low) + (1 - f) * p
    return 1 + int(np.argmin(zero * (1 - zero) / np.maximum(one - zero, 1e-12) ** 2))
