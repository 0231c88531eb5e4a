"""By which order to tilt a sum of losses: a guess that moves its bulk to where delta is decided.

Nothing rests on the guess but how wide a bracket is, and how long it takes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sourdine.accounting.pld.convolution import reach
from sourdine.core.distributions import Floats

_SPARE = math.log(200)
_SHARES = np.array([1.0, 0.94, 0.88, 0.82, 0.74, 0.65, 0.55])
_RATES = np.geomspace(1.0, 10.0, 6)  # times one over the deviation of the tilted sum
_SIGNED = np.concatenate([_RATES, -_RATES])
_COARSE = np.linspace(0.0, 1.0, 25)
_FINE = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True)
class Look:
    """A rough law of a loss, masses at points, and how often it is paid."""

    losses: Floats
    masses: Floats
    count: int

    @cached_property
    def logs(self) -> Floats:
        """The logarithms of the masses, far below any that counts where there is none."""
        logs: Floats = np.log(np.maximum(self.masses, 1e-320))
        return logs


class Tilt(NamedTuple):
    """An order to tilt by, the order that decides delta, for which answers a window must do, and about how
    large epsilon is.

    Without `spare` it must hold nearly all of the tilted sum. With it, it need only do where tilted mass,
    weighed by e^{-order r} at a distance r above the mean, comes to e^-spare at least.
    """

    order: float
    deciding: float
    spare: float | None = None
    epsilon: float = math.inf

    def widened(self) -> "Tilt":
        """The same with a window that does everywhere."""
        return self._replace(spare=None)


def tilt_for(looks: list[Look], delta: float) -> Tilt:
    """The order of the least Renyi bound on epsilon, and the best one to tilt by.

    A smaller order than the best has lighter upper tails, hence a shorter window, and leaves digits enough as
    long as its bound on delta is not above the best one by more than _SPARE.
    """
    log_delta = math.log(delta)
    best = _least(looks, lambda orders, logs: (log_gains(orders) + logs - log_delta) / orders)
    orders = best * _SHARES
    logs, means, deviations = _moments(looks, orders)
    gains = log_gains(orders) + logs - log_delta
    sharp = gains - orders * (gains[0] / orders[0]) <= _SPARE
    sharp[0] = True
    orders, logs, means, deviations = orders[sharp], logs[sharp], means[sharp], deviations[sharp]
    spare = np.maximum(logs - orders * means - log_delta, 0.0)
    rates = _SIGNED / np.maximum(deviations, 1e-9 / best)[:, None]
    moved = log_moments(looks, (orders[:, None] + rates).ravel()).reshape(rates.shape)
    moved -= logs[:, None] + rates * means[:, None]
    half = len(_RATES)
    up, down = reach(rates[:, :half], moved[:, :half], moved[:, half:], orders, spare)
    chosen = int(np.argmin(up + down))
    return Tilt(float(orders[chosen]), best, float(spare[chosen]), float(gains[0] / best))


def tilt_at(looks: list[Look], epsilon: float) -> Tilt:
    """The order of the least Renyi bound on delta at an epsilon: around it the sum decides delta."""
    order = _least(looks, lambda orders, logs: log_gains(orders) + logs - orders * epsilon)
    return Tilt(order, order)


def log_gains(orders: Floats) -> Floats:
    """What a Renyi bound on log delta has beside the moment (Canonne, Kamath, Steinke 2020, prop. 12)."""
    gains: Floats = orders * np.log(orders / (1 + orders)) - np.log1p(orders)
    return gains


def _least(looks: list[Look], bounds: Callable[[Floats, Floats], Floats]) -> float:
    """Where a function of the order and its moment is least: on a grid, then on a finer one.

    The orders that matter go with one over the spread of the sum, but for a sum near its highest value.
    """
    spread = max(float(_moments(looks, np.zeros(1))[2][0]), 1e-100)
    low, high = math.log(1e-2 / max(spread, 1.0)), math.log(max(3e3, 100.0 / spread))
    for shares in (_COARSE, _FINE):
        places = low + (high - low) * shares
        orders = np.exp(places)
        best = int(np.argmin(bounds(orders, log_moments(looks, orders))))
        low, high = float(places[max(best - 1, 0)]), float(places[min(best + 1, len(places) - 1)])
    return float(orders[best])


def log_moments(looks: list[Look], orders: Floats) -> Floats:
    """log E e^{order S} of the sum at each order."""
    return _moments(looks, orders, logs_only=True)[0]


def _moments(looks: list[Look], orders: Floats, *, logs_only: bool = False) -> tuple[Floats, Floats, Floats]:
    """log E e^{order S} of the sum at each order, and the mean and deviation of the tilted sum."""
    logs, means, variances = np.zeros((3, len(orders)))
    for look in looks:
        losses, count = look.losses, look.count
        exponents = orders[:, None] * losses + look.logs
        top = exponents.max(axis=1)
        weights = np.exp(exponents - top[:, None])
        total = weights.sum(axis=1)
        logs += count * (np.log(total) + top)
        if not logs_only:
            mean = weights @ losses / total
            means += count * mean
            variances += count * (weights * (losses - mean[:, None]) ** 2).sum(axis=1) / total
    return logs, means, np.sqrt(variances)
