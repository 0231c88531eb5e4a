"""MST (McKenna, Miklau, Sheldon 2021) on mbi: `python -m benchmarks.synthetic.with_mbi QUESTION`.

Written anew on mbi's estimation, as its authors describe the mechanism: thirds of rho for columns, for
the choice of a tree, and for pairs, with float Gaussians. Rare cells are joined, and come back evenly.
"""

import itertools
import json
import math
import resource
import sys
import time

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

from mbi import Dataset, Domain, LinearMeasurement, estimation  # noqa: E402

from benchmarks.synthetic.adult import DELTA, NAMES, SIZES, cells  # noqa: E402


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP implies (epsilon, delta), by rho + 2 sqrt(rho ln(1/delta))."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def main() -> None:
    question = json.loads(sys.argv[1])
    real, _ = cells("train")
    dice = np.random.default_rng()
    started, before = time.perf_counter(), time.process_time()
    rho, columns = rho_of(question["epsilon"], DELTA), len(NAMES)
    sigma = math.sqrt(columns / (2 * rho / 3))
    joined, sizes, logs, spread = [], [], [], []
    for place, (name, size) in enumerate(zip(NAMES, SIZES, strict=True)):
        noisy = np.bincount(real[:, place], minlength=size) + dice.normal(0, sigma, size)
        hidden = noisy < 3 * sigma
        cell = (
            np.arange(size) if hidden.sum() < 2 else np.where(hidden, (~hidden).sum(), np.cumsum(~hidden) - 1)
        )
        weights = np.bincount(cell)
        joined.append(cell[real[:, place]])
        sizes.append(len(weights))
        spread.append([np.flatnonzero(cell == each) for each in range(len(weights))])
        values = np.bincount(cell, noisy)
        logs.append(LinearMeasurement(values, (name,), stddev=float(sigma * math.sqrt(weights.max()))))
    domain = Domain(NAMES, sizes)
    data = Dataset(dict(zip(NAMES, joined, strict=True)), domain)
    pairs = choose(data, logs, math.sqrt(8 * rho / 3 / (columns - 1)), dice)
    sigma = math.sqrt((columns - 1) / (2 * rho / 3))
    for pair in pairs:
        counts = np.asarray(data.project(pair).datavector())
        logs.append(LinearMeasurement(counts + dice.normal(0, sigma, counts.size), pair, stddev=sigma))
    model = estimation.MirrorDescent().estimate(domain, logs, iters=question["iterations"] or 1000)
    rows = model.synthetic_data()
    drawn = np.stack([np.asarray(rows.data[name]) for name in NAMES], axis=1)
    fine = [
        np.array([dice.choice(spread[place][cell]) for cell in drawn[:, place]]) for place in range(columns)
    ]
    seconds, processor = time.perf_counter() - started, time.process_time() - before
    np.save(question["path"], np.stack(fine, axis=1))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "processor": processor, "memory": memory}))


def choose(
    data: Dataset, logs: list[LinearMeasurement], epsilon: float, dice: np.random.Generator
) -> list[tuple[str, str]]:
    """A spanning tree by the exponential mechanism on the L1 distance from independence."""
    model = estimation.MirrorDescent().estimate(data.domain, logs, iters=300)
    scores = {}
    for pair in itertools.combinations(NAMES, 2):
        exact = np.asarray(data.project(pair).datavector())
        scores[pair] = float(np.abs(exact - np.asarray(model.project(pair).datavector())).sum())
    piece, chosen = {name: name for name in NAMES}, []
    for _ in range(len(NAMES) - 1):
        apart = [pair for pair in scores if piece[pair[0]] != piece[pair[1]]]
        weights = np.array([epsilon / 2 * scores[pair] for pair in apart])
        chances = np.exp(weights - weights.max())
        one, other = apart[dice.choice(len(apart), p=chances / chances.sum())]
        chosen.append((one, other))
        old = piece[other]
        piece = {name: piece[one] if each == old else each for name, each in piece.items()}
    return chosen


if __name__ == "__main__":
    main()
