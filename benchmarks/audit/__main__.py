"""The command line: `python -m benchmarks.audit [--quick] [--json PATH]`."""

import argparse
import json
import math
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import binom, norm

from benchmarks.audit.cases import ALARM, CANARIES, DELTA, SHIFTS, scores
from benchmarks.finding import verdict
from benchmarks.peers import Environment, Worker
from sourdine.audit import bound_from_scores, largest_bound
from sourdine.audit.one_run import epsilon_of_mu

# without what they depend on, of which the bounds need no more than this
PEER = Environment(
    name="jax_privacy",
    requirements=(
        "--no-deps",
        "jax-privacy==2.0.0",
        "dp-accounting==0.6.0",
        "numpy==2.4.6",
        "scipy==1.17.1",
        "absl-py==2.5.1",
        "attrs==23.2.0",
        "dm-tree==0.1.10",
        "mpmath==1.4.1",
        "wrapt==2.5.2",
    ),
)
MEDIANS = (2000, 4000, 20_000)


def measure(canaries: int, mu: float, seeds: int, peer: Worker) -> dict[str, Any]:
    """Both libraries on the same scores, seed by seed."""
    ours, theirs, seconds = [], [], [0.0, 0.0]
    for seed in range(1, seeds + 1):
        values, included = scores(seed, canaries, mu)
        start = perf_counter()
        ours.append(bound_from_scores(values, included, delta=DELTA, confidence=1 - ALARM).epsilon)
        seconds[0] += perf_counter() - start
        other = peer.ask({"seed": seed, "canaries": canaries, "mu": mu})
        theirs.append(other["f-DP"])
        seconds[1] += other["seconds"]
    return {
        "canaries": canaries,
        "mu": mu,
        "true": epsilon_of_mu(mu, DELTA),
        "most": largest_bound(canaries, delta=DELTA, confidence=1 - ALARM),
        "ours": ours,
        "theirs": theirs,
        "seconds": [each / seeds for each in seconds],
    }


def show(rows: list[dict[str, Any]], console: Console) -> None:
    table = Table(title=f"Lower bounds on epsilon from one run, delta {DELTA:g}, {100 * (1 - ALARM):g} %")
    for name in ("canaries", "mu", "true", "most", "Sourdine", "jax_privacy", "median", "median", "seconds"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            f"{row['canaries']:,}",
            f"{row['mu']:g}",
            f"{row['true']:.2f}",
            f"{row['most']:.2f}",
            f"{row['ours'][0]:.2f}",
            f"{row['theirs'][0]:.2f}",
            f"{np.median(row['ours']):.2f}",
            f"{np.median(row['theirs']):.2f}",
            f"{row['seconds'][0]:.2f}, {row['seconds'][1]:.2f}",
        )
    console.print(table)
    for row in rows:
        pairs = zip(row["ours"], row["theirs"], strict=True)
        wins = sum(mine >= other for mine, other in pairs)
        verdict(
            console,
            wins == len(row["ours"]),
            f"{row['canaries']:,} canaries, mu {row['mu']:g}: at least jax_privacy's bound on {wins} of "
            f"{len(row['ours'])} scores",
        )


def false_alarms(runs: int) -> list[dict[str, Any]]:
    """Runs at exactly the level that is claimed, of which one in twenty may be accused."""
    rows = []
    for mu in (0.5, 1.0, 2.0):
        level, accused = epsilon_of_mu(mu, DELTA), 0
        for seed in range(runs):
            values, included = scores(seed, 1000, mu)
            accused += bound_from_scores(values, included, delta=DELTA).epsilon > level
        rows.append({"run": f"Gaussian, mu {mu:g}", "accused": accused, "runs": runs})
    random = np.random.default_rng(1)
    for epsilon in (0.5, 1.0, 3.0):
        share = 1 / (1 + math.exp(-epsilon))
        levels = {"approximate": epsilon, "gaussian": epsilon_of_mu(2 * norm.ppf(share), DELTA)}
        for hypothesis, level in levels.items():
            accused = 0
            for _ in range(runs):
                included = random.random(1000) < 0.5
                values = np.where(random.random(1000) < share, included, ~included)
                stated: dict[str, Any] = {"delta": DELTA, "hypothesis": hypothesis}
                accused += bound_from_scores(values, included, **stated).epsilon > level
            name = f"randomized response, epsilon {epsilon:g}, {hypothesis}"
            rows.append({"run": name, "accused": accused, "runs": runs})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer scores, fewer runs")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all numbers here")
    options = parser.parse_args()
    console = Console()
    PEER.prepare()
    with PEER.start("benchmarks.audit.with_jax_privacy") as peer:
        console.print(f"jax_privacy {peer.ask({'task': 'versions'})['jax-privacy']}")
        rows = [
            measure(canaries, mu, 2 if options.quick else 10, peer) for canaries in CANARIES for mu in SHIFTS
        ]
    show(rows, console)
    medians = {}
    for mu in SHIFTS:
        medians[mu] = [
            float(
                np.median(
                    [
                        bound_from_scores(*scores(seed, canaries, mu), delta=DELTA).epsilon
                        for seed in range(20)
                    ]
                )
            )
            for canaries in MEDIANS
        ]
        shown = ", ".join(f"{each:.2f}" for each in medians[mu])
        verdict(console, medians[mu] == sorted(medians[mu]), f"mu {mu:g}: medians of 20 runs {shown}")
    alarms = false_alarms(100 if options.quick else 500)
    table = Table(title="Runs at the level that is claimed, accused at 95 % confidence")
    for name in ("run", "accused", "of"):
        table.add_column(name, justify="right")
    for row in alarms:
        table.add_row(row["run"], str(row["accused"]), str(row["runs"]))
    console.print(table)
    allowed = binom.isf(1e-6, alarms[0]["runs"], ALARM)
    verdict(
        console,
        all(row["accused"] <= allowed for row in alarms),
        f"no run is accused more often than in {100 * ALARM:g} of 100, up to chance",
    )
    if options.json:
        options.json.write_text(json.dumps({"bounds": rows, "medians": medians, "alarms": alarms}, indent=1))


if __name__ == "__main__":
    main()
