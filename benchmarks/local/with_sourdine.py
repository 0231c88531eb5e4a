"""Sourdine's oracles: seconds of the devices and of the collector, and the error."""

import time

import numpy as np

from benchmarks.local.cases import CATEGORIES, EPSILON, answers, truth
from benchmarks.peers import Answer, Question, serve, versions
from sourdine.local.choose import frequency_oracle
from sourdine.local.consistency import non_negative


def answer(question: Question) -> Answer:
    """One oracle on so many people."""
    people = int(question["people"])
    name = question["oracle"].replace(" ", "-")
    oracle, _ = frequency_oracle(name, epsilon=EPSILON, categories=CATEGORIES)
    values, shares = answers(people), truth(people)
    start = time.perf_counter()
    reports = oracle.sample(values)
    sent = time.perf_counter()
    found = oracle.estimate(oracle.tally(reports)).value
    read = time.perf_counter()
    shaped = non_negative(found)
    return {
        "client": sent - start,
        "server": read - sent,
        "error": float(np.sqrt(np.mean((found - shares) ** 2))),
        "shaped": float(np.sqrt(np.mean((shaped / shaped.sum() - shares) ** 2))),
        "version": versions("numpy")["numpy"],
    }


if __name__ == "__main__":
    serve(answer)
