"""Encode, shuffle, analyze: reports whose senders are forgotten on the way protect more than they do alone.

Devices encode: they make a private report and put it beside the blinded name of a crowd. A shuffler, which
is not the collector, forgets who sent what, puts the reports in a random order and leaves small crowds out.
The collector analyzes what is left (Bittau et al. 2017).
"""

import hashlib
import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.shuffling.blanket import blanket_model
from sourdine.accounting.shuffling.clones import shuffle_model
from sourdine.core import check
from sourdine.core.distributions import float_above
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.estimate import Estimate
from sourdine.local.oracle import Bytes, Oracle
from sourdine.local.rappor.rappor import BloomOracle

_NAME = 16  # bytes of a blinded name
_LEAST_KEY = 16


@dataclass(frozen=True, eq=False)
class Sealed:
    """What devices send to the shuffler: packed reports, each beside the blinded name of its crowd."""

    fingerprint: str
    crowds: Bytes
    rows: Bytes


@dataclass(frozen=True, kw_only=True)
class CrowdRule:
    """Which crowds pass. Those with fewer than `minimum` reports never do.

    With an `epsilon`, a random number of reports is taken out of each crowd before it is measured:
    max(0, shift + Z), Z being two-sided geometric of scale 1/epsilon and shift the least whole number with
    e^(-shift epsilon)/(1 + e^-epsilon) <= delta. Then how many reports of a crowd pass is (epsilon, delta)-DP
    for one person added or removed (docs/guarantees/shuffle.md). Without, the sizes of crowds are not
    protected at all.

    >>> CrowdRule(minimum=20, epsilon=1, delta=1e-6).shift
    14
    """

    minimum: int = 1
    epsilon: Fraction | None = None
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "minimum", check.integer("CrowdRule", "minimum", self.minimum, 1, 1 << 40))
        if (self.epsilon is None) != (self.delta is None):
            raise check.fail("CrowdRule", "delta", "be given with 'epsilon', or neither", self.delta)
        if self.epsilon is not None:
            low, high = Fraction(1, 1 << 10), Fraction(1 << 5)
            object.__setattr__(
                self, "epsilon", check.between("CrowdRule", "epsilon", self.epsilon, low, high)
            )
            tiny = Fraction(1, 10**15)
            object.__setattr__(
                self, "delta", check.between("CrowdRule", "delta", self.delta, tiny, Fraction(1, 2))
            )

    @property
    def shift(self) -> int:
        """How many reports are taken out of a crowd on average, or a little more; 0 without an epsilon."""
        if self.epsilon is None or self.delta is None:
            return 0
        rate = float(self.epsilon)
        log_tail = -math.log(self.delta) - math.log1p(math.exp(-rate))
        return max(0, math.ceil(log_tail / rate * (1 + 1e-12) + 1e-9))

    def passing(self, sizes: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        """How many reports of each crowd pass."""
        left = sizes
        if self.epsilon is not None:
            noise = exact.laplace(1 / self.epsilon, len(sizes), bits)
            left = sizes - np.maximum(0, self.shift + noise)
        return np.where(left >= self.minimum, left, 0)


EVERYONE = CrowdRule()


def encode(
    oracle: Oracle,
    values: ArrayLike,
    crowds: Sequence[str] | None = None,
    *,
    key: bytes = b"",
    bits: Bits = SYSTEM,
) -> Sealed:
    """Reports of values, each of a device of its own, sealed with the crowd it belongs to (one for all, if
    none is given).
    """
    return seal(oracle, oracle.pack(oracle.sample(values, bits)), crowds, key=key)


def seal(oracle: Oracle, rows: Bytes, crowds: Sequence[str] | None = None, *, key: bytes = b"") -> Sealed:
    """Packed reports beside the blinded names of their crowds: HMAC-SHA256 of the name under a key.

    The key is shared by all devices and kept from the shuffler, which then counts crowds without reading
    their names. Whoever has the key can try names out.
    """
    if crowds is None:
        return Sealed(oracle.fingerprint, np.zeros((len(rows), _NAME), np.uint8), rows)
    if len(key) < _LEAST_KEY:
        raise InvalidParameter(
            f"The 'key' of the crowds must be at least {_LEAST_KEY} bytes. Without one, anybody could guess "
            "the names of crowds. Share a random key among the devices."
        )
    if len(crowds) != len(rows):
        raise InvalidParameter(f"There are {len(rows)} reports and {len(crowds)} crowds. Name one a report.")
    blinded = {
        name: hmac.new(key, name.encode("utf-8", "surrogatepass"), hashlib.sha256) for name in set(crowds)
    }
    names = b"".join(blinded[name].digest()[:_NAME] for name in crowds)
    return Sealed(oracle.fingerprint, np.frombuffer(names, np.uint8).reshape(-1, _NAME), rows)


def shuffle(*batches: Sealed, rule: CrowdRule = EVERYONE, bits: Bits = SYSTEM) -> Bytes:
    """The reports that pass, without their crowds, in an order that is uniform over all orders."""
    if not batches:
        raise InvalidParameter("There is nothing to shuffle. Pass what devices have sealed.")
    if len({batch.fingerprint for batch in batches}) > 1:
        raise InvalidParameter(
            "Some of these reports were made with other parameters. In one order nobody could tell which. "
            "Shuffle them apart."
        )
    rows = np.concatenate([batch.rows for batch in batches])
    crowds = np.concatenate([batch.crowds for batch in batches])
    names, members = np.unique(crowds, axis=0, return_inverse=True)
    order = permutation(len(rows), bits)
    members = members.reshape(-1)[order]
    passing = rule.passing(np.bincount(members, minlength=len(names)), bits)
    return np.ascontiguousarray(rows[order[_places(members) < passing[members]]])


def analyze(oracle: Oracle, rows: Bytes, confidence: float = 0.95) -> Estimate:
    """What shuffled reports say; the order plays no part."""
    return oracle.estimate(oracle.tally(oracle.unpack(rows)), confidence)


def look_alike(oracle: Oracle, rows: Bytes) -> int:
    """Among how many reports each one hides: all of them, or those of the smallest cohort that has any.

    A cohort is part of a report and belongs to a device, so that reports of other cohorts hide nothing.
    """
    if not isinstance(oracle, BloomOracle):
        return len(rows)
    cohorts, _ = oracle.split(rows)
    sizes = np.bincount(cohorts, minlength=oracle.cohorts)
    return int(np.min(sizes[sizes > 0], initial=len(rows)))


def amplified_epsilon(oracle: Oracle, reports: int, delta: float) -> float:
    """The epsilon of one report among so many that look alike, at a delta, for one value replaced.

    It holds against whoever sees the shuffled reports only, if the shuffler is honest, and for one report a
    person, of whom as many must be honest too. The number of reports must not be secret.

    >>> from sourdine.local import GRR
    >>> round(amplified_epsilon(GRR(epsilon=4, categories=10), 1_000_000, 1e-6), 4)
    0.0319
    """
    return amplified(oracle, reports, delta).upper


def amplified(oracle: Oracle, reports: int, delta: float) -> Bracket:
    """The same between proven bounds, of which the upper one is the claim.

    For oracles of categories by the privacy blanket, with the shares of reports that two categories favour
    (Balle, Bell, Gascon, Nissim 2019; docs/guarantees/blanket.md); for all by clones (Feldman, McMillan,
    Talwar 2021). The lower bound is 0 where nothing is known but the reports' own epsilon.
    """
    local = float_above(oracle.spend.loss().epsilon)
    if not math.isfinite(local):
        raise UnsupportedLoss(
            f"{type(oracle).__name__} has no finite epsilon of its own, and a shuffle amplifies only what is "
            "private before it. Choose other parameters."
        )
    clones = shuffle_model(local, reports, delta)
    brackets = [blanket_model(kind, local, reports, delta) for kind in oracle.favours]
    if not brackets:
        return Bracket(0.0, clones)
    upper = min(clones, max(each.upper for each in brackets))
    return Bracket(min(upper, max(each.lower for each in brackets)), upper)


def permutation(count: int, bits: Bits) -> NDArray[np.int64]:
    """An order of so many things, uniform over all: that of random numbers, with digits until none tie."""
    digits = [bits.words(count)]
    while True:
        order = np.lexsort(digits)  # the last key leads; any one order of the keys is as good
        same = np.ones(max(0, count - 1), np.bool_)
        for words in digits:
            same &= words[order][1:] == words[order][:-1]
        if not same.any():
            return order.astype(np.int64)
        digits.insert(0, bits.words(count))


def _places(members: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each among the members of its own crowd, from 0 on."""
    order = np.argsort(members, kind="stable")
    sizes = np.bincount(members)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    out = np.empty(len(members), np.int64)
    out[order] = np.arange(len(members)) - starts
    return out
