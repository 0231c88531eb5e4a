"""Real numbers as balls that surely hold them, at whatever precision is asked.

Arb balls (python-flint) round outwards in every operation, so a comparison that holds for the whole ball
holds for the number. The precision is a global of the library: one lock keeps threads apart.
"""

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

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
    scaled = number * arb(fmpz(1) << bits)
    return _floor(scaled.lower()), _floor(scaled.upper())


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
