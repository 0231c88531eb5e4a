"""Large tables: a million rows with 30 columns, and 100 columns of 10 values. Time and memory of each."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sourdine as sd
from benchmarks.peers import ROOT

CASES = {"a million rows, 30 columns": (10**6, 30, 12), "a million rows, 100 columns": (10**6, 100, 10)}


def run(rows: int, columns: int, values: int) -> dict[str, float]:
    """One synthetic table of columns that each follow the one before."""
    dice = np.random.default_rng(1)
    data: dict[str, Any] = {}
    last = dice.integers(0, values, rows)
    for place in range(columns):
        last = np.where(dice.random(rows) < 0.7, last, dice.integers(0, values, rows))
        data[f"c{place}"] = last.astype(np.int16)
    declared = {name: {"type": "integer", "lower": 0, "upper": values - 1} for name in data}
    people = sd.Table(pl.DataFrame(data), unit="person", columns=declared, size=rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "l"
        sd.Ledger.create(ledger, epsilon=1, delta=1e-6, unit="person").close()
        plan = people.synthetic_plan(epsilon=1, delta=1e-6)
        started = time.perf_counter()
        release = people.synthesize(epsilon=1, delta=1e-6, ledger=ledger)
        seconds = time.perf_counter() - started
        release.values.write(Path(folder) / "rows.parquet")
    chain = {(f"c{place}", f"c{place + 1}") for place in range(columns - 1)}
    edges = set(release.model.edges(release.model.parts[0]))
    return {
        "seconds": seconds,
        "forecast": plan.seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "data": before,
        "forecast memory": plan.bytes / 2**20,
        "true edges": len(chain & edges) / len(chain),
    }


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(run(*CASES[sys.argv[1]])))
        return
    for name in CASES:
        words = [sys.executable, "-m", "benchmarks.synthetic.large", name]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
        told = json.loads(done.stdout.strip().splitlines()[-1])
        print(
            f"{name}: {told['seconds']:.1f} s (forecast {told['forecast']:.1f}), "
            f"{told['memory']:.0f} MB (forecast {told['forecast memory']:.0f}, {told['data']:.0f} before), "
            f"{told['true edges']:.0%} of the true edges"
        )


if __name__ == "__main__":
    main()
