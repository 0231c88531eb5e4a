"""The source's loop: one value a call, drawn again until it lies within the bounds."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from diffprivlib import mechanisms

from benchmarks.cleaner.cases import COLUMNS, OUTCOME, values
from benchmarks.peers import Answer, Question, serve, versions


def staircase(epsilon: float, low: float, high: float) -> Callable[[float], float]:
    noise = mechanisms.Staircase(epsilon=epsilon, sensitivity=high - low)

    def clean(value: float) -> float:
        while True:
            drawn = float(noise.randomise(value))
            if low <= drawn <= high:
                return drawn

    return clean


def bounded_laplace(epsilon: float, low: float, high: float) -> Callable[[float], float]:
    noise = mechanisms.LaplaceBoundedDomain(epsilon=epsilon, sensitivity=high - low, lower=low, upper=high)
    return lambda value: float(noise.randomise(value))


def response(epsilon: float) -> Callable[[int], int]:
    """Randomized response as the source wrote it."""
    kept = math.exp(epsilon) / (1 + math.exp(epsilon))
    generator = np.random.RandomState(1)
    return lambda value: value if generator.rand() < kept else int(generator.choice([1 - value]))


KINDS: dict[str, Callable[[float, float, float], Callable[[float], float]]] = {
    "staircase": staircase,
    "laplace": bounded_laplace,
}


def answer(question: Question) -> Answer:
    """Seconds of processor time of cleaning all columns, value by value."""
    table, epsilon = values(question["rows"]), float(question["epsilon"])
    lists: dict[str, list[Any]] = {name: held.tolist() for name, held in table.items()}
    start = time.process_time()
    for name, (low, high, step) in COLUMNS.items():
        clean = KINDS[question["method"]](epsilon, low, high)
        made = [clean(value) for value in lists[name]]
        if step == 1:
            made = [round(value) for value in made]
    answers = response(epsilon)
    _ = [answers(value) for value in lists[OUTCOME]]
    return {"seconds": time.process_time() - start, "version": versions("diffprivlib")["diffprivlib"]}


if __name__ == "__main__":
    serve(answer)
