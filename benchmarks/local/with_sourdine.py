"""Sourdine's oracles: seconds of the devices and of the collector, and the error.

`least` is how long it takes one thread to draw as many random bytes as packed reports have, and to write the
reports once: nearly all of those bytes are needed. `bits` is how long it takes to draw the random bits alone
that no way to make these reports can do without: their entropy.
"""

import math
import time

import numpy as np

from benchmarks.local.cases import EPSILON, answers, truth
from benchmarks.peers import Answer, Question, serve, versions
from sourdine.core.random.bits import SYSTEM
from sourdine.local.choose import frequency_oracle
from sourdine.local.consistency import non_negative
from sourdine.local.frequency.subset import SubsetSelection
from sourdine.local.frequency.supports import BitwiseOracle
from sourdine.local.oracle import CodeReports, FrequencyOracle


def entropy(oracle: FrequencyOracle) -> float:
    """Bits of a report on average, given the truth."""
    p, q = oracle.channel
    if isinstance(oracle, SubsetSelection):
        k, size = oracle.categories, oracle.size
        sets = math.log2(math.comb(k - 1, size - 1)), math.log2(math.comb(k - 1, size))
        return coin(p) + p * sets[0] + (1 - p) * sets[1]
    if isinstance(oracle, BitwiseOracle):
        return coin(p) + (oracle.categories - 1) * coin(q)
    favoured = oracle.favours[0].each  # of all codes, as a share
    codes = oracle.codes if isinstance(oracle, CodeReports) else oracle.categories
    return coin(p) + p * math.log2(codes * favoured) + (1 - p) * math.log2(codes * (1 - favoured))


def coin(p: float) -> float:
    """The entropy of a coin, in bits."""
    return -p * math.log2(p) - (1 - p) * math.log2(1 - p)


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
    needed = math.ceil(people * entropy(oracle) / 64)
    began = time.perf_counter()
    SYSTEM.words(needed)
    bits = time.perf_counter() - began
    return {
        "least": least,
        "bits": bits,
        "client": sent - start,
        "server": read - sent,
        "error": float(np.sqrt(np.mean((found - shares) ** 2))),
        "shaped": float(np.sqrt(np.mean((shaped / shaped.sum() - shares) ** 2))),
        "version": versions("numpy")["numpy"],
    }


if __name__ == "__main__":
    serve(answer)
