"""Sourdine's oracles: seconds of the devices and of the collector, and the error.

`least` is how long it takes one thread to draw as many random bytes as packed reports have, and to write the
reports once: nearly all of those bytes are needed.
"""

import time

import numpy as np

from benchmarks.local.cases import EPSILON, answers, truth
from benchmarks.peers import Answer, Question, serve, versions
from sourdine.core.randomness.bits import SYSTEM
from sourdine.local.choose import frequency_oracle
from sourdine.local.consistency import non_negative


def answer(question: Question) -> Answer:
    """One oracle on so many people."""
    people, categories = int(question["people"]), int(question["categories"])
    name = question["oracle"].replace(" ", "-")
    oracle, _ = frequency_oracle(name, epsilon=EPSILON, categories=categories)
    values, shares = answers(people, categories), truth(people, categories)
    start = time.perf_counter()
    reports = oracle.sample(values)
    sent = time.perf_counter()
    found = oracle.estimate(oracle.tally(reports)).value
    read = time.perf_counter()
    shaped = non_negative(found)
    size = people * oracle.width
    began = time.perf_counter()
    SYSTEM.words(-(-size // 8))
    np.empty(reports.nbytes, np.uint8).fill(1)
    least = time.perf_counter() - began
    return {
        "least": least,
        "client": sent - start,
        "server": read - sent,
        "error": float(np.sqrt(np.mean((found - shares) ** 2))),
        "shaped": float(np.sqrt(np.mean((shaped / shaped.sum() - shares) ** 2))),
        "version": versions("numpy")["numpy"],
    }


if __name__ == "__main__":
    serve(answer)
