"""Sourdine's joint deciles, and numpy's sort of the same array as the limit."""

import time

import numpy as np

from benchmarks.peers import Answer, Question, serve, versions
from sourdine.tables.quantiles import quantiles

DECILES = [i / 10 for i in range(1, 10)]
_HELD: dict[int, np.ndarray] = {}


def values(size: int) -> np.ndarray:
    """The same made-up values for everybody."""
    if size not in _HELD:
        _HELD.clear()
        _HELD[size] = np.random.default_rng(1).uniform(0.0, 1.0, size)  # public, made up
    return _HELD[size]


def answer(question: Question) -> Answer:
    """Seconds of nine deciles, or of a sort."""
    held = values(question["size"])
    start = time.perf_counter()
    if question["task"] == "sort":
        np.sort(held)
    else:
        quantiles(held, levels=DECILES, bounds=(0.0, 1.0), epsilon=1.0, method=question["task"])
    return {"seconds": time.perf_counter() - start, "version": versions("numpy")["numpy"]}


if __name__ == "__main__":
    serve(answer)
