"""Real numbers as balls that surely hold them, at whatever precision is asked.

Arb balls (python-flint) round outwards in every operation, so a comparison that holds for the whole ball
holds for the number. The precision is a global of the library: one lock keeps threads apart. Tails of
discrete noise are such balls too.
"""

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx, fmpq, fmpz

_LOCK = threading.RLock()


def _renew() -> None:
    """A child made while another thread held the lock would wait for ever."""
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.RLock()


os.register_at_fork(after_in_child=_renew)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Balls made inside the block carry `bits` bits."""
    with _LOCK:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def ball(number: Fraction | int) -> arb:
    """A ball around a rational."""
    return arb(fmpq(number.numerator, number.denominator))


def exponential(number: Fraction | int) -> arb:
    """A ball around e to a rational power."""
    return ball(number).exp()


def up_to(bound: arb) -> arb:
    """The ball of everything between 0 and a bound."""
    return arb(0).union(bound)


def floor_scaled(number: arb, bits: int) -> tuple[int, int]:
    """Whole numbers that bracket floor(number * 2^bits)."""
    scaled = number * _power(bits)
    whole = scaled.floor().unique_fmpz()
    if whole is not None:  # nearly always; and in half the time
        return int(whole), int(whole)
    return _floor(scaled.lower()), _floor(scaled.upper())


@lru_cache(maxsize=64)
def _power(bits: int) -> arb:
    """2^bits, without a radius."""
    return arb(fmpz(1) << bits)


def _floor(point: arb) -> int:
    """The floor of a ball without radius."""
    whole = point.floor().unique_fmpz()
    if whole is None:
        raise ArithmeticError("The floor of a ball with a radius is not one number.")
    return int(whole)


def above(number: arb) -> float:
    """The number as a float, rounded up."""
    return math.nextafter(float(number.upper()), math.inf)


def below(number: arb) -> float:
    """The number as a float, rounded down."""
    return math.nextafter(float(number.lower()), -math.inf)


_BITS = 128
_SUMMED = 64  # up to this sigma a tail is summed; above, the normal tail bounds it closely


def laplace_tail(scale: Fraction, start: int) -> arb:
    """P[noise >= start] of discrete Laplace noise: a^start/(1 + a), a = e^{-1/scale}; 1 from 0 downwards."""
    if start <= 0:
        return arb(1)
    with precision(_BITS):
        return exponential(-start / scale) / (1 + exponential(-1 / scale))


def gaussian_tail(variance: Fraction, start: int) -> arb:
    """At least P[noise >= start] of discrete Gaussian noise; 1 from 0 downwards.

    The masses are summed up to where a geometric series bounds the rest. For a large sigma each is at
    most e^{1/(8 variance)} times the normal mass of its unit interval (docs/guarantees/gaussian.md).
    """
    if start <= 0:
        return arb(1)
    with precision(_BITS):
        if variance > _SUMMED**2:
            place = ball(Fraction(2 * start - 1, 2)) / (2 * ball(variance)).sqrt()
            return exponential(1 / (8 * variance)) * place.erfc() / 2
        last = start + 16 * (math.isqrt(math.floor(variance)) + 1)
        tail = sum((_mass(variance, k) for k in range(start, last)), arb(0))
        rest = _mass(variance, last) / (1 - exponential(-(2 * last + 1) / (2 * variance)))
        reach = 16 * (math.isqrt(math.floor(variance)) + 1)
        whole = 1 + 2 * sum((_mass(variance, k) for k in range(1, reach)), arb(0))  # what is left out is safe
        return (tail + rest) / whole


def _mass(variance: Fraction, k: int) -> arb:
    return exponential(-Fraction(k * k) / (2 * variance))


def any_of(chance: arb, count: int) -> arb:
    """1 - (1 - chance)^count: that at least one of so many independent events happens."""
    with precision(_BITS):
        return arb(1) if chance >= 1 else -(count * (-chance).log1p()).expm1()
