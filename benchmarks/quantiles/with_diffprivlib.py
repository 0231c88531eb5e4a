"""diffprivlib's quantile, one decile after the other, and a plain joint exponential mechanism in numpy.

The plain joint mechanism is the published algorithm over all intervals between values, quadratic in their
number: nobody packages it, so it is written out here as it stands.
"""

import time

import numpy as np
from diffprivlib.tools import quantile
from scipy.special import logsumexp

from benchmarks.peers import Answer, Question, serve, versions

DECILES = [i / 10 for i in range(1, 10)]


def plain_joint(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Nine deciles at epsilon 1 under replacement, by a full forward and backward pass; not private as is."""
    size, rate = len(values), 0.25
    edges = np.concatenate([[0.0], np.sort(values), [1.0]])
    widths = np.log(np.maximum(np.diff(edges), 1e-300))
    ranks, step = np.arange(size + 1), size / 10
    move = np.where(
        ranks[:, None] >= ranks[None, :], -rate * np.abs(ranks[:, None] - ranks[None, :] - step), -np.inf
    )
    tables = [widths - rate * np.abs(ranks - step)]
    for _ in DECILES[1:]:
        tables.append(widths + logsumexp(move + tables[-1][None, :], axis=1))
    last = tables[-1] - rate * np.abs(size - ranks - step)
    out = np.empty(len(DECILES))
    for j in range(len(DECILES) - 1, -1, -1):
        chosen = int(np.argmax(last + generator.gumbel(size=last.size)))
        out[j] = generator.uniform(edges[chosen], edges[chosen + 1])
        if j:
            last = tables[j - 1] + move[chosen]
    return out


def answer(question: Question) -> Answer:
    """Seconds of nine deciles."""
    generator = np.random.default_rng(1)
    held: np.ndarray = generator.uniform(0.0, 1.0, int(question["size"]))
    start = time.perf_counter()
    if question["task"] == "plain joint":
        plain_joint(held, generator)
    else:
        quantile(held, DECILES, epsilon=1.0, bounds=(0.0, 1.0))
    return {"seconds": time.perf_counter() - start, "version": versions("diffprivlib")["diffprivlib"]}


if __name__ == "__main__":
    serve(answer)
