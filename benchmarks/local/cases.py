"""Who is asked, what, and how many; peers read it too, so it imports nothing of ours."""

import math

import numpy as np

from benchmarks.peers import Environment

SIZES, EPSILON, PEOPLE = (16, 128, 1000), 1.0, 1_000_000
CATEGORIES = SIZES[-1]  # of which errors and the times of collectors are told
SHARED = ("kary", "symmetric unary", "optimal unary", "local hashing", "subset", "hadamard")
FEWER = {  # values that slow peers report on, extrapolated and said so
    "kary": 200_000,
    "symmetric unary": 10_000,
    "optimal unary": 10_000,
    "local hashing": 5_000,
    "subset": 10_000,
    "hadamard": 20_000,
}
OURS = Environment(name="sourdine")
PEERS = Environment(
    name="local",
    requirements=(
        "pure-ldp==1.2.0",
        "multi-freq-ldpy==0.2.5",
        "xxhash==3.8.2",  # version 4 no longer takes texts, which both hand to it
        "scikit-learn==1.9.1",
        "statsmodels==0.15.0",
        "matplotlib==3.11.2",
        "seaborn==0.13.2",
        "bitstring==5.0.0",
        "numpy==2.4.6",
        "numba==0.68.1",
        "scipy==1.17.1",
    ),
)


def answers(people: int, categories: int) -> np.ndarray:
    """Made-up answers by Zipf's law with exponent 1.1, in an order that is the same for everybody."""
    weights = np.arange(1, categories + 1) ** -1.1
    sums = np.cumsum(weights / weights.sum())
    steps = (np.arange(people) * (math.sqrt(5) - 1) / 2) % 1  # evenly spread, without a generator
    return np.minimum(np.searchsorted(sums, steps), categories - 1)


def truth(people: int, categories: int) -> np.ndarray:
    """The shares of those answers."""
    shares: np.ndarray = np.bincount(answers(people, categories), minlength=categories) / people
    return shares
