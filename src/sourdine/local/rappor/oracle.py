"""What the variants of RAPPOR share: filters of bits, two responses to each bit, and what those reveal."""

import math
from abc import abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.pld.accountant import PLD
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Norm
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.core.random.bits import Bits
from sourdine.local.oracle import Oracle
from sourdine.local.rappor.responses import Coins, Rows, instantaneous, permanent, trimmed
from sourdine.mechanisms.randomized_response import Channel

MOST_REPORTS = 1 << 40
_CHUNK = 1 << 15  # filters answered at once, so that they stay in the cache


LEAST_SHARE = Fraction(1, 1 << 20)


class RapporOracle(Oracle):
    """Oracles that answer every bit of a filter by a permanent and perhaps an instantaneous response.

    `sample` takes each value as that of a device of its own, which reports once: what a simulation needs.
    A device that reports again must keep its permanent response, as `Device` does.
    """

    norm: ClassVar[Norm] = Norm.HAMMING

    @property
    @abstractmethod
    def coins(self) -> Coins:
        """f, p and q."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many bits a filter has."""

    @property
    @abstractmethod
    def ones(self) -> int:
        """How many bits a value sets at most: two values differ in twice as many."""

    @property
    @abstractmethod
    def groups(self) -> int:
        """How many cohorts there are, each with its own filters."""

    @abstractmethod
    def filter(self, value: object, cohort: int) -> Rows:
        """The packed filter of a value in a cohort."""

    @abstractmethod
    def with_cohorts(self, rows: Rows, cohorts: NDArray[np.int64]) -> Rows:
        """Packed reports from packed filters' answers and their cohorts."""

    @property
    def channel(self) -> Channel:
        """How often a bit is reported as 1 when set and when not: q* and p*."""
        return self.coins.channel

    @property
    def epsilon_one(self) -> float:
        """What one report reveals: h ln(q*(1-p*)/(p*(1-q*))) (Erlingsson et al. 2014)."""
        return self.coins.epsilon(self.ones)

    @property
    def epsilon_infinity(self) -> float:
        """What endlessly many reports on one value reveal: 2h ln((1-f/2)/(f/2)).

        It is infinite at f = 0. A device that reports on c different values reveals up to c times as much.
        """
        return self.coins.epsilon(self.ones, None)

    def epsilon_after(self, reports: int, delta: float = 0.0) -> float:
        """What so many reports of one device on one value reveal to whoever sees them all."""
        count = check.integer(f"{type(self).__name__}.epsilon_after", "reports", reports, 1, MOST_REPORTS)
        if delta == 0:
            return self.coins.epsilon(self.ones, count)
        accountant = PLD()
        return accountant.epsilon(accountant.lift(self.loss_after(count)), delta).upper

    def loss(self, distance: Distance) -> PrivacyLoss:
        """The loss of one report."""
        self.require(distance)
        return self.coins.loss(self.ones, math.floor(distance.amount), distance.neighbours)

    def loss_after(self, reports: int) -> PrivacyLoss:
        """The loss of so many reports of one device on one value, when that value is replaced."""
        count = check.integer(f"{type(self).__name__}.loss_after", "reports", reports, 1, MOST_REPORTS)
        return self.coins.loss_after(self.ones, count)

    @property
    def spend(self) -> Spend:
        """What one report costs.

        Reports of one device on one value share a permanent response, so they do not compose as independent
        ones do. In pure epsilon n of these spends do cover n reports; in other currencies nothing is proven,
        and `lifetime_spend` is the one to charge.
        """
        return Spend(mechanism=self, distance=Distance.hamming())

    @property
    def lifetime_spend(self) -> Spend:
        """What all reports of a device on one value cost, however many: its permanent response, once."""
        if self.coins.f == 0:
            raise UnsupportedLoss(
                f"{type(self).__name__} has no permanent response at f = 0, and so no limit on its reports. "
                "Choose an f above 0, or charge every report."
            )
        return Spend(mechanism=self.once(), distance=Distance.hamming())

    @abstractmethod
    def once(self) -> "RapporOracle":
        """The permanent response alone, as an oracle."""

    def error(self, confidence: float = 0.95, reports: int = 1) -> float:
        """The half-width of an interval around the estimated share of filters with one bit set."""
        owner = f"{type(self).__name__}.error"
        level = check.confidence(owner, confidence)
        return self.channel.half_width(level, check.integer(owner, "reports", reports, 1, 1 << 62))

    def respond(self, filters: Rows, bits: Bits) -> Rows:
        """Both responses to packed filters, each that of a device of its own."""
        out = np.empty_like(filters)
        for start in range(0, len(filters), _CHUNK):
            part = slice(start, start + _CHUNK)
            response = permanent(filters[part], self.coins, bits)
            out[part] = instantaneous(response, self.coins, bits)
        return trimmed(out, self.size)


def check_flip(oracle: RapporOracle) -> None:
    """Refuse a share of bits turned over for ever that is none."""
    owner = type(oracle).__name__
    f = check.between(owner, "f", oracle.f, LEAST_SHARE, 1 - LEAST_SHARE)  # type: ignore[attr-defined]
    object.__setattr__(oracle, "f", f)


def check_coins(oracle: RapporOracle) -> None:
    """Refuse shares of bits turned over that are none, or answers that do not tell bits apart."""
    owner = type(oracle).__name__
    coins = {
        name: check.between(owner, name, getattr(oracle, name), least, 1 - LEAST_SHARE)
        for name, least in (("f", Fraction(0)), ("p", LEAST_SHARE), ("q", LEAST_SHARE))
    }
    for name, value in coins.items():
        object.__setattr__(oracle, name, value)
    if coins["q"] - coins["p"] < LEAST_SHARE:
        raise check.fail(owner, "q", f"be above p, which is {coins['p']}", coins["q"])
