"""What a mutant is: an honest claim on a broken sampler; and how one is caught."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.audit import Verdict, examine
from sourdine.audit.examination import SAMPLES
from sourdine.audit.lower_bound import FALSE_ALARM
from sourdine.core.distance import Distance
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random.bits import SYSTEM, Bits

Sampler = Callable[[NDArray[Any], Bits], NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Resampled(Mechanism):
    """A mechanism that keeps its claim and draws its answers otherwise."""

    claimed: Mechanism
    sampler: Sampler

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        return self.sampler(np.asarray(values), bits)

    def loss(self, distance: Distance) -> PrivacyLoss:
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
        return replace(self.honest, mechanism=wrong, draw=None)

    def examine(
        self, *, samples: int = SAMPLES, false_alarm: float = FALSE_ALARM, bits: Bits = SYSTEM
    ) -> Verdict:
        """Examine the broken example, with the law of the honest one to compare."""
        return examine(self.broken, honest=self.honest, samples=samples, false_alarm=false_alarm, bits=bits)
