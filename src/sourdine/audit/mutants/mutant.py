"""What a mutant is: an honest claim on a broken sampler; and how one is caught."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.audit.law_test import same_law
from sourdine.audit.lower_bound import FALSE_ALARM, LowerBound, bound_epsilon
from sourdine.audit.outcomes import tally
from sourdine.core import check
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance
from sourdine.core.loss import Loss
from sourdine.core.mechanism import Example, Mechanism

Sampler = Callable[[NDArray[Any], Bits], NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Resampled(Mechanism):
    """A mechanism that keeps its claim and draws its answers otherwise."""

    claimed: Mechanism
    sampler: Sampler

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        return self.sampler(np.asarray(values), bits)

    def loss(self, distance: Distance) -> Loss:
        return self.claimed.loss(distance)

    def error(self, confidence: float = 0.95) -> float:
        return self.claimed.error(confidence)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        return iter(())


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A deliberately broken mechanism: the sampler is wrong, and the honest example's claim is carried on."""

    name: str
    fault: str
    honest: Example
    sampler: Sampler

    @property
    def broken(self) -> Example:
        """The example with its answers drawn wrongly."""
        wrong = Resampled(claimed=self.honest.mechanism, sampler=self.sampler)
        return replace(self.honest, mechanism=wrong)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How an examination ended; the laws are only compared when the audit has found nothing."""

    bound: LowerBound
    p_value: float | None
    false_alarm: float

    @property
    def caught_by(self) -> str | None:
        """What caught the mutant: "audit", "law test" or nothing."""
        if self.bound.exceeded:
            return "audit"
        return "law test" if self.p_value is not None and self.p_value < self.false_alarm / 2 else None


def examine(
    mutant: Mutant,
    *,
    samples: int = 10**6,
    false_alarm: float = FALSE_ALARM,
    bits: Bits = SYSTEM,
) -> Verdict:
    """Audit a mutant, then compare its law with the honest one on both neighbours.

    An honest sampler would be accused with a chance of at most `false_alarm`: half of it for the audit,
    half for the two comparisons.
    """
    false_alarm = float(check.inside("an audit", "false_alarm", false_alarm, 0, 1))
    broken, honest = mutant.broken, mutant.honest
    bound = bound_epsilon(broken, samples=samples, false_alarm=false_alarm / 2, bits=bits)
    if bound.exceeded:
        return Verdict(bound=bound, p_value=None, false_alarm=false_alarm)
    p_values = [
        same_law(tally(broken, value, samples, bits), tally(honest, value, samples, bits))
        for value in (honest.value, honest.neighbour)
    ]
    return Verdict(bound=bound, p_value=min(1.0, 2 * min(p_values)), false_alarm=false_alarm)
