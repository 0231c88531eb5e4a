"""Gaussian noise on a random number of units of one group, and on a unit that is replaced by another.

With each of k units in the batch with probability q, the sum moves by the number drawn: the pair is a
mixture of normal laws. Whichever way the units pull, the pair of all pulling one way is the worst, and under
replacement that of the old ones pulling one way and the new ones the opposite
(docs/guarantees/sampling_amplification.md).
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sourdine.accounting.accountant import exactly
from sourdine.accounting.subsampling.poisson import poisson
from sourdine.accounting.transforms import group as grouped
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import Floats, GaussianLaw, LossDistribution, Pair, float_above
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.lazy import ndtr
from sourdine.core.loss import PrivacyLoss

MOST = 100  # units of a group
_SIDE = 40.0  # deviations beyond which no float holds a normal tail
_NODES = 6001
_TURNS = 4
_LEAST = 1e-300  # of a weight


@dataclass(frozen=True)
class Mixture:
    """A mixture of normal laws of deviation 1."""

    weights: tuple[float, ...]
    means: tuple[float, ...]

    def log_ratio(self, z: Floats) -> Floats:
        """The logarithm of its density over that of the standard normal law."""
        means = np.array(self.means)
        exponents = np.multiply.outer(z, means) - means**2 / 2
        weights = np.array(self.weights)
        near = np.expm1(np.minimum(exponents, 30.0)) @ weights
        terms = self._terms(z)
        top = terms.max(axis=-1)
        large = top + np.log(np.exp(terms - top[..., None]).sum(axis=-1))
        small = (exponents.max(axis=-1) < 30.0) & (near > -0.5)
        logs: Floats = np.where(small, np.log1p(np.maximum(near, -0.5)), large)
        return logs

    def slope(self, z: Floats) -> Floats:
        """Its derivative: the mean of the means at z."""
        terms = self._terms(z)
        shares = np.exp(terms - terms.max(axis=-1, keepdims=True))
        slopes: Floats = (shares @ np.array(self.means)) / shares.sum(axis=-1)
        return slopes

    def _terms(self, z: Floats) -> Floats:
        """The logarithms of its parts' densities over that one; a weight may be 0."""
        means = np.array(self.means)
        with np.errstate(divide="ignore"):
            terms: Floats = np.multiply.outer(z, means) - means**2 / 2 + np.log(self.weights)
        return terms

    def above(self, z: Floats) -> Floats:
        """The mass above z."""
        masses: Floats = ndtr(np.subtract.outer(-z, -np.array(self.means))) @ np.array(self.weights)
        return masses

    def below(self, z: Floats) -> Floats:
        """The mass below z."""
        masses: Floats = ndtr(np.subtract.outer(z, np.array(self.means))) @ np.array(self.weights)
        return masses

    @property
    def alone(self) -> float:
        """The weight of the mean 0, or 1 where that is all there is."""
        return self.weights[0] if any(self.means) else 1.0


@dataclass(frozen=True)
class MixtureLaw(LossDistribution):
    """A mixture of normal laws with no mean below 0 against one with none above: the loss rises with z."""

    p: Mixture
    q: Mixture

    @property
    def unsampled(self) -> LossDistribution:
        """All of them drawn on both sides."""
        return GaussianLaw(math.nextafter(max(self.p.means) - min(self.q.means), math.inf))

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return -math.inf if any(self.q.means) or not self.p.alone else math.log(self.p.alone)

    @property
    def highest(self) -> float:  # type: ignore[override]
        return math.inf if any(self.p.means) or not self.q.alone else -math.log(self.q.alone)

    def survival(self, loss: ArrayLike) -> Pair:
        whole, none, z = self._at(loss)
        p, q = self.p.above(z), self.q.above(z)
        return Pair(*(np.where(none, 0.0, np.where(whole, 1.0, side)) for side in (p, q)))

    def cumulative(self, loss: ArrayLike) -> Pair:
        whole, none, z = self._at(loss)
        p, q = self.p.below(z), self.q.below(z)
        return Pair(*(np.where(none, 1.0, np.where(whole, 0.0, side)) for side in (p, q)))

    def loss_at(self, z: Floats) -> Floats:
        """The loss of an outcome."""
        return self.p.log_ratio(z) - self.q.log_ratio(z)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        z = np.linspace(min(self.q.means) - _SIDE, max(self.p.means) + _SIDE, _NODES)
        return z, np.maximum.accumulate(self.loss_at(z))

    def _at(self, loss: ArrayLike) -> tuple[np.ndarray, np.ndarray, Floats]:
        """Where all lies above, where nothing does, and the outcome of this loss elsewhere: by Newton's steps
        within a cell of a table."""
        values = np.asarray(loss, float)
        nodes, losses = self._table
        cell = np.clip(np.searchsorted(losses, values), 1, len(nodes) - 1)
        low, high = nodes[cell - 1], nodes[cell]
        z = np.clip(np.interp(values, losses, nodes), low, high)
        target = np.clip(values, losses[0], losses[-1])
        for _ in range(_TURNS):
            slope = np.maximum(self.p.slope(z) - self.q.slope(z), 1e-300)
            z = np.clip(z - (self.loss_at(z) - target) / slope, low, high)
        return values <= self.lowest, values >= self.highest, z


def drawn_of(group: int, rate: float, shift: float) -> Mixture:
    """The sum of the shifts of those of a group that are drawn, under noise of deviation 1.

    >>> drawn_of(2, 0.25, -1.0).means
    (0.0, -1.0, -2.0)
    """
    from scipy.stats import binom  # takes half a second to import, and few need it

    counts = np.arange(group + 1)
    weights = binom.pmf(counts, group, rate)
    # what no float holds counts as more, where more are drawn than is usual: that is never the better pair,
    # and moments have them however rare they are
    weights = np.where(counts > group * rate + 1, np.maximum(weights, _LEAST), weights)
    return Mixture(tuple(weights.tolist()), tuple((shift * counts + 0.0).tolist()))


_STILL = Mixture((1.0,), (0.0,))


def poisson_group(loss: PrivacyLoss, sampling_rate: Fraction | float, group: int) -> PrivacyLoss:
    """The loss on a Poisson sample for up to `group` units that come or go together, from that of one alone.

    For Gaussian noise the pair is the mixture of Bin(group, q)(j) N(j mu, 1) against N(0, 1), q the
    sampling rate, the tightest (Ganesh 2024); for any other noise it is that of a group
    (`accounting.group`) on the sample, which is no less.

    >>> one = PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE)
    >>> round(float(poisson_group(one, 0.1, 2).profile(1.0)), 5)
    0.00383
    """
    exact = check.positive("poisson_group", "sampling_rate", sampling_rate, 1)
    group = check.integer("poisson_group", "group", group, 1, MOST)
    law = loss.remove
    alone = poisson(loss, exact)  # refuses neighbours that it does not hold for
    if group == 1 or not isinstance(law, GaussianLaw) or loss.add != law:
        return grouped(alone, group)
    if exact == 1:
        return PrivacyLoss.symmetric(
            GaussianLaw(law.mu * group), neighbours=loss.neighbours, rho=exactly(loss.rho) * group**2
        )
    share = float_above(exact)
    return replace(
        loss,
        remove=MixtureLaw(drawn_of(group, share, law.mu), _STILL),
        add=MixtureLaw(_STILL, drawn_of(group, share, -law.mu)),
        epsilon=math.inf,
        rho=math.inf,
    )


def poisson_replace(
    loss: PrivacyLoss, sampling_rate: Fraction | float, alone: Fraction | float, group: int = 1
) -> PrivacyLoss:
    """The loss on a Poisson sample for replacement neighbours, for Gaussian noise.

    `alone` is the share of the distance by which one record moves the input when it comes or goes: a half for
    a sum of records clipped to a norm, which a replacement moves by twice that norm. The pair is
    (1-q) N(0, 1) + q N(m, 1) against (1-q) N(0, 1) + q N(-m, 1), m = alone * mu, with q
    the sampling rate. Up to `group` records are replaced together.

    >>> one = PrivacyLoss.symmetric(GaussianLaw(2.0), neighbours=Neighbours.REPLACE)
    >>> round(float(poisson_replace(one, 0.1, Fraction(1, 2)).profile(1.0)), 5)
    0.00033
    """
    exact = check.positive("poisson_replace", "sampling_rate", sampling_rate, 1)
    share = check.positive("poisson_replace", "alone", alone, 1)
    group = check.integer("poisson_replace", "group", group, 1, MOST)
    law = loss.remove
    if loss.neighbours is not Neighbours.REPLACE:
        raise UnsupportedLoss(
            f"This is for replacement neighbours, and the loss is for {loss.neighbours}. Use poisson, or "
            "state the distance with neighbours=Neighbours.REPLACE."
        )
    if not isinstance(law, GaussianLaw) or loss.add != law:
        raise UnsupportedLoss(
            "On a Poisson sample the loss of a replaced record is known for continuous Gaussian noise only. "
            "State the distance for add-remove neighbours, or draw samples of fixed size."
        )
    part = float_above(exact)
    shift = float_above(share * Fraction(law.mu))
    if exact == 1:
        return PrivacyLoss.symmetric(
            GaussianLaw(law.mu * group), neighbours=loss.neighbours, rho=exactly(loss.rho) * group**2
        )
    both = MixtureLaw(drawn_of(group, part, shift), drawn_of(group, part, -shift))
    return PrivacyLoss.symmetric(both, neighbours=loss.neighbours)
