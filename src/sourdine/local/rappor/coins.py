"""The two responses of RAPPOR to each bit of a filter, and what they reveal, once or again and again.

The permanent response turns a bit over with probability f/2. The instantaneous one reports a 1 with
probability q where the permanent bit is 1 and p where it is 0. Two values differ in at most 2h bits of their
filters, h each way, and bits are drawn independently: so all there is to know is the law of one bit.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb
from scipy.special import gammaln, xlog1py, xlogy

from sourdine.accounting.together import together
from sourdine.core.certified import above, ball, precision
from sourdine.core.distance import Neighbours
from sourdine.core.laws import AtomLaw, Floats
from sourdine.core.loss import Loss
from sourdine.mechanisms.response import Channel

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

    def loss(self, ones: int, changed: int, neighbours: Neighbours) -> Loss:
        """The loss of one report, when so many people's values change.

        For one, with a ~ Bin(h, q*) ones among the bits of the first value and b ~ Bin(h, p*) among those of
        the second, the loss is (a - b) epsilon/h.
        """
        epsilon, rho = self.epsilon(ones), self.rho(ones)
        if changed != 1:
            return Loss.pure(changed * epsilon, neighbours=neighbours, rho=changed * rho)
        one, zero = (_binomials(ones, float(share)) for share in (self.one, self.zero))
        p, q = np.convolve(one, zero[::-1]), np.convolve(zero, one[::-1])
        law = AtomLaw(np.arange(-ones, ones + 1) * (epsilon / ones), p, q)
        return Loss.symmetric(law, neighbours=neighbours, epsilon=epsilon, rho=rho)

    def loss_after(self, ones: int, reports: int) -> Loss:
        """The loss of so many reports on one value that all go through one permanent response."""
        epsilon, rho = self.epsilon(1, reports), self.rho(1, reports)
        if reports > _MOST_REPORTS:
            pair = Loss.pure(epsilon, neighbours=Neighbours.REPLACE, rho=rho)
        else:
            law = self._pair_law(reports)
            pair = Loss.symmetric(law, neighbours=Neighbours.REPLACE, epsilon=epsilon, rho=rho)
        return together([(pair, ones)])

    def _pair_law(self, reports: int) -> AtomLaw:
        """A bit that only the first value sets, with one that only the second sets: their numbers of ones."""
        set_, unset = self.ones_law(True, reports), self.ones_law(False, reports)
        return AtomLaw.between(np.outer(set_, unset).ravel(), np.outer(unset, set_).ravel())

    def ones_law(self, is_set: bool, reports: int) -> Floats:
        """How many of n reports have a 1 at a bit: a mixture over the permanent response."""
        kept = 1 - float(self.flip)
        high = kept if is_set else 1 - kept
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
        kept, flip = ball(1 - self.flip), ball(self.flip)
        return ((kept + flip * x) / (flip + kept * x) * (kept + flip * y) / (flip + kept * y)).log()


def _binomials(trials: int, share: float) -> Floats:
    """The masses of a binomial law, each with its own relative accuracy."""
    k = np.arange(trials + 1.0)
    choose = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
    return np.exp(choose + xlogy(k, share) + xlog1py(trials - k, -share))
