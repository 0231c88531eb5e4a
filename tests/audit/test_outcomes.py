from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.audit import Tally, tally
from sourdine.audit.outcomes import align
from sourdine.core.distance import Distance
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.mechanisms import Laplace
from sourdine.testing import SeededBits


@dataclass(frozen=True, kw_only=True)
class Counted(Mechanism):
    """Answers its input, and remembers how many it was asked for at once."""

    asked: list[int] = field(default_factory=list)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        self.asked.append(len(np.asarray(values)))
        return np.asarray(values)

    def loss(self, distance: Distance) -> PrivacyLoss:
        return PrivacyLoss.pure(1)

    def error(self, confidence: float = 0.95) -> float:
        return 0.0

    @classmethod
    def examples(cls) -> Iterator[Example]:
        return iter(())


def test_every_outcome_is_counted_once() -> None:
    example = next(Laplace.examples())
    whole = tally(example, 0, 200_000, SeededBits(1))
    parts = SeededBits(1)
    drawn = [example.outcomes(0, size, parts) for size in (65_536, 65_536, 65_536, 3_392)]
    codes, counts = np.unique(np.concatenate(drawn), return_counts=True)
    assert np.array_equal(whole.codes, codes)
    assert np.array_equal(whole.counts, counts)
    assert whole.counts.sum() == 200_000


def test_outcomes_are_drawn_in_small_parts() -> None:
    counted = Counted()
    example = replace(next(Laplace.examples()), mechanism=counted)
    tally(example, 3, 300_000, SeededBits(1))
    assert sum(counted.asked) == 300_000
    assert max(counted.asked) <= 1 << 16


def test_align_fills_gaps_with_zero() -> None:
    rows = align(
        Tally(np.array([-3, 9]), np.array([1, 2])),
        Tally(np.array([0]), np.array([5])),
        Tally(np.array([9, 10]), np.array([7, 8])),
    )
    assert rows.tolist() == [[1, 0, 2, 0], [0, 5, 0, 0], [0, 0, 7, 8]]
