"""Two exact laws on the same finite set of outcomes, as somebody states them."""

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.balls import above, ball, precision
from sourdine.core.distributions import AtomLaw, float_above
from sourdine.core.errors import InvalidParameter

Chances = Mapping[Hashable, Fraction | float] | Sequence[Fraction | float] | NDArray[np.float64]
"""Probabilities by outcome, or in the order of the outcomes; numbers as people write them, 0.3 as 3/10."""
MOST_OUTCOMES = 1 << 16
_MOST_BITS = 512  # of a denominator, so that files can hold it
_PRECISION = 192


class FiniteLaws(NamedTuple):
    """The chances of all outcomes under both laws, each adding up to exactly 1."""

    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]


class Ratios(NamedTuple):
    """What a pair loses: its laws in both orders, and bounds outside what tells everything.

    `epsilon` bounds every finite log-ratio, in either order; `delta` the chance, under either law, of an
    outcome that the other one lacks. `settled` is the same as `epsilon` once both are conditioned on outcomes
    that they share, which is what delta-approximate concentrated privacy is about.
    """

    forth: AtomLaw
    back: AtomLaw
    epsilon: float
    settled: float
    delta: Fraction


def finite_laws(owner: str, first: Chances, second: Chances) -> FiniteLaws:
    """Two laws as they are stated, or a refusal; an outcome that only one mapping names has no chance else.

    >>> finite_laws("demo", {"yes": 0.75, "no": 0.25}, {"no": 1}).second
    (Fraction(0, 1), Fraction(1, 1))
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        outcomes = dict.fromkeys([*first, *second])
        pair = FiniteLaws(
            *(tuple(_chance(owner, law.get(outcome, 0)) for outcome in outcomes) for law in (first, second))
        )
    elif isinstance(first, Mapping) or isinstance(second, Mapping):
        raise check.fail(owner, "second", "be a mapping or a sequence, like the first", type(second).__name__)
    else:
        pair = FiniteLaws(*(tuple(_chance(owner, chance) for chance in law) for law in (first, second)))
    if len(pair.first) != len(pair.second):
        remedy = "Give an outcome that one of them lacks a probability of 0, or give mappings by outcome."
        raise check.fail(owner, "second", "have as many outcomes as the first", len(pair.second), remedy)
    if not 1 <= len(pair.first) <= MOST_OUTCOMES:
        raise check.fail(owner, "first", f"have 1 to {MOST_OUTCOMES:,} outcomes", len(pair.first))
    for name, law in zip(FiniteLaws._fields, pair, strict=True):
        if (total := sum(law)) != 1:
            raise InvalidParameter(
                f"The probabilities of the {name} law of {owner} must add up to exactly 1. They add up to "
                f"{float(total):.17g}. Give fractions, such as Fraction(1, 3), where decimals end too soon."
            )
    return pair


def _chance(owner: str, chance: object) -> Fraction:
    exact = check.decimal(owner, "probability", chance)
    if not 0 <= exact <= 1 or exact.denominator.bit_length() > _MOST_BITS:
        must = f"lie between 0 and 1, with a denominator of {_MOST_BITS} bits at most"
        raise check.fail(owner, "probability", must, chance)
    return exact


def ratios(pair: FiniteLaws) -> Ratios:
    """What a pair loses; every log-ratio is computed in balls, and bounds are rounded up.

    >>> ratios(FiniteLaws((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))).delta
    Fraction(0, 1)
    """
    shared = [(p, q) for p, q in zip(*pair, strict=True) if p and q]
    only_first = sum((p for p, q in zip(*pair, strict=True) if not q), Fraction(0))
    only_second = sum((q for p, q in zip(*pair, strict=True) if not p), Fraction(0))
    factor = (1 - only_second) / (1 - only_first) if shared else Fraction(1)
    with precision(_PRECISION):
        losses = [float(ball(p / q).log()) for p, q in shared]
        epsilon, settled = (
            max((_log_above(max(p * f / q, q / (p * f))) for p, q in shared), default=0.0)
            for f in (Fraction(1), factor)
        )
    p, q = ([float(each[side]) for each in shared] for side in (0, 1))
    losses, p, q = losses or [0.0], p or [0.0], q or [0.0]
    return Ratios(
        AtomLaw(losses, p, q, float_above(only_first)),
        AtomLaw([-loss for loss in losses], q, p, float_above(only_second)),
        epsilon,
        settled,
        max(only_first, only_second),
    )


def _log_above(ratio: Fraction) -> float:
    """The logarithm of a ratio of 1 or more, rounded up; exactly 0 where it is."""
    return 0.0 if ratio == 1 else above(ball(ratio).log())
