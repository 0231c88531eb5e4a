"""diffprivlib on numpy arrays: count, sum and mean, one key at a time, and its histogram."""

import time
import warnings

import numpy as np
from diffprivlib.tools import count_nonzero, histogram, mean
from diffprivlib.tools import sum as noisy_sum
from pyarrow import parquet

from benchmarks.peers import Answer, Question, serve, versions
from benchmarks.tables.cases import EDGES, EPSILON, KEYS, LOWER, UPPER

warnings.simplefilter("ignore")


def answer(question: Question) -> Answer:
    """Seconds of the two queries; the file is read into memory before the clock starts."""
    table = parquet.read_table(question["path"], columns=["k", "x"])
    keys, values = (table[name].to_numpy() for name in ("k", "x"))
    bounds = (LOWER, UPPER)
    start = time.perf_counter()
    for key in range(KEYS):
        held = values[keys == key]
        count_nonzero(np.ones(held.size), epsilon=EPSILON / 6)
        noisy_sum(held, epsilon=EPSILON / 6, bounds=bounds)
        mean(held, epsilon=EPSILON / 6, bounds=bounds)
    histogram(values, epsilon=EPSILON / 2, bins=len(EDGES) - 1, range=bounds)
    return {"seconds": time.perf_counter() - start, "version": versions("diffprivlib")["diffprivlib"]}


if __name__ == "__main__":
    serve(answer)
