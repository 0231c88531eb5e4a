"""What every library is asked, inside its own environment; only the standard library is imported here."""

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from time import perf_counter, perf_counter_ns
from typing import ClassVar

from benchmarks.peers import Answer, Question, serve, versions

WARM_UP = 1000


class Sampler(ABC):
    """A library as this benchmark sees it; `size` is the scale of a Laplace law, or sigma."""

    packages: ClassVar[tuple[str, ...]]

    @abstractmethod
    def many(self, mechanism: str, size: Fraction, count: int) -> Callable[[], object]:
        """A function that draws `count` noises on each call."""

    @abstractmethod
    def one(self, mechanism: str, size: Fraction) -> Callable[[], float]:
        """A function that adds noise to a single zero."""


def answer_for(sampler: Sampler) -> None:
    """Serves the three measures of this library."""

    def answer(question: Question) -> Answer:
        gc.collect()
        gc.disable()
        match question:
            case {"measure": "versions"}:
                return versions(*sampler.packages)
            case {"measure": "first", "mechanism": str(mechanism), "size": str(size)}:
                return {"seconds": _first(sampler, mechanism, Fraction(size))}
            case {"measure": "many", "mechanism": str(mechanism), "size": str(size), **rest}:
                draw = sampler.many(mechanism, Fraction(size), rest["count"])
                return {"seconds": [_seconds(draw) for _ in range(rest["repetitions"])]}
            case {"measure": "one", "mechanism": str(mechanism), "size": str(size), **rest}:
                return _singles(sampler.one(mechanism, Fraction(size)), rest["calls"])
        raise ValueError(f"Unknown question: {question}")

    serve(answer)


def _first(sampler: Sampler, mechanism: str, size: Fraction) -> float:
    start = perf_counter()
    draw = sampler.one(mechanism, size)
    draw()
    return perf_counter() - start


def _seconds(act: Callable[[], object]) -> float:
    start = perf_counter()
    act()
    return perf_counter() - start


def _singles(draw: Callable[[], float], calls: int) -> Answer:
    """The time and the noise of many single draws."""
    for _ in range(min(calls, WARM_UP)):
        draw()
    nanoseconds, noise = [0] * calls, [0.0] * calls
    for i in range(calls):
        start = perf_counter_ns()
        value = draw()
        nanoseconds[i] = perf_counter_ns() - start
        noise[i] = value
    return {"nanoseconds": nanoseconds, "noise": [float(value) for value in noise]}
