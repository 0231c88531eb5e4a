"""A rehearsal before anybody is asked: made-up people, their reports, and how well those are read."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.estimate import Estimate
from sourdine.local.oracle import FrequencyOracle

LAWS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "zipf": lambda rank: rank**-1.1,
    "geometric": lambda rank: 0.9**rank,
    "exponential": lambda rank: np.asarray(np.exp(-rank / 20)),
    "uniform": np.ones_like,
}
Watch = Callable[[range], Iterable[int]]
_CHUNK = 1 << 15


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What an oracle made of people whose answers are known."""

    oracle: FrequencyOracle
    people: int
    truth: NDArray[np.float64]
    estimate: Estimate
    client_seconds: float
    server_seconds: float

    @property
    def error(self) -> float:
        """The root of the mean squared error of the shares."""
        return float(np.sqrt(np.mean((self.estimate.value - self.truth) ** 2)))

    @property
    def forecast(self) -> float:
        """What the formula for the variance says that error is on average."""
        return float(np.sqrt(np.mean(self.oracle.variance(self.truth, self.people))))

    @property
    def coverage(self) -> float:
        """The share of intervals that hold the truth."""
        covers = (self.estimate.lower <= self.truth) & (self.truth <= self.estimate.upper)
        return float(np.mean(covers))


def population(law: str, categories: int, people: int) -> NDArray[np.int64]:
    """How many made-up people have each answer, as close to a law as whole people can be."""
    if law not in LAWS:
        raise check.fail("population", "law", f"be one of {', '.join(LAWS)}", law)
    weights = LAWS[law](np.arange(1, categories + 1, dtype=np.float64))
    ideal = people * weights / weights.sum()
    counts: NDArray[np.int64] = np.floor(ideal).astype(np.int64)
    rest = np.argsort(counts - ideal, kind="stable")[: people - counts.sum()]
    counts[rest] += 1
    return counts


def rehearse(
    oracle: FrequencyOracle,
    counts: NDArray[np.int64],
    *,
    confidence: float = 0.95,
    bits: Bits = SYSTEM,
    watch: Watch = lambda chunks: chunks,
) -> Rehearsal:
    """Reports of so many people a category, counted and read; nobody's data is in it."""
    people = check.integer("rehearse", "people", int(counts.sum()), 1, 1 << 40)
    answers = np.repeat(np.arange(len(counts)), counts)
    client = server = 0.0
    total = oracle.tally(oracle.unpack(np.zeros((0, oracle.width), np.uint8)))
    for start in watch(range(0, people, _CHUNK)):
        begun = time.perf_counter()
        reports = oracle.sample(answers[start : start + _CHUNK], bits)
        sent = time.perf_counter()
        total += oracle.tally(reports)
        client, server = client + sent - begun, server + time.perf_counter() - sent
    begun = time.perf_counter()
    estimate = oracle.estimate(total, confidence)
    return Rehearsal(
        oracle=oracle,
        people=people,
        truth=counts / people,
        estimate=estimate,
        client_seconds=client,
        server_seconds=server + time.perf_counter() - begun,
    )
