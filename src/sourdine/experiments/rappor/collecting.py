"""Made-up people by the million, and what was read out of their reports."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.core.bits import Bits
from sourdine.experiments.registry import Settings
from sourdine.local.counts import Counts
from sourdine.local.rappor.decode import Decoding
from sourdine.local.rappor.filters import Filters
from sourdine.local.rappor.rappor import BloomOracle

Floats = NDArray[np.float64]
_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class Law:
    """Words with their shares of the people; words that nobody has may stand at the end."""

    words: tuple[str, ...]
    shares: Floats

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which words anybody has."""
        return self.shares > 0

    def draw(self, count: int, bits: Bits) -> NDArray[np.intp]:
        """The words of so many people, by their place in the list."""
        cuts = np.cumsum(self.shares[self.present])
        uniform = (bits.words(count) >> np.uint64(11)) * 2.0**-53
        return np.asarray(np.searchsorted(cuts[:-1], uniform * cuts[-1], side="right"), np.intp)


def collect(
    oracle: BloomOracle, law: Law, people: int, *, bits: Bits, settings: Settings, label: str
) -> Counts:
    """The counts of one report by everybody, each a device of its own."""
    filters = Filters.of(oracle, law.words[: int(law.present.sum())])
    total = oracle.tally(np.zeros((0, oracle.width), np.uint8))
    for start in settings.watch(label, range(0, people, _CHUNK)):
        codes = law.draw(min(_CHUNK, people - start), bits)
        total += oracle.tally(filters.reports(codes, bits))
    return total


@dataclass(frozen=True)
class Finds:
    """How many words were found, and how many of them nobody has."""

    found: int
    false: int

    @classmethod
    def among(cls, detected: NDArray[np.bool_], law: Law) -> "Finds":
        return cls(int(detected.sum()), int((detected & ~law.present).sum()))


def standing_words(decoding: Decoding, law: Law) -> list[str]:
    """What became of each candidate, in a word or two."""
    named = {(True, True): FOUND, (True, False): FALSE, (False, True): MISSED, (False, False): ABSENT}
    return [
        named[bool(seen), bool(there)] for seen, there in zip(decoding.detected, law.present, strict=True)
    ]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean of some runs, and two standard errors of it; none for a single run."""
    array = np.asarray(values, float)
    error = 2 * float(array.std(ddof=1)) / np.sqrt(len(array)) if len(array) > 1 else 0.0
    return float(array.mean()), float(error)


FOUND, MISSED, FALSE, ABSENT = "found", "missed", "found, but absent", "absent"
