"""The command line: `python -m benchmarks.quantiles [--quick] [--only accuracy|speed] [--json PATH]`."""

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import better, verdict
from benchmarks.peers import Worker
from benchmarks.quantiles import accuracy
from benchmarks.tables.cases import DIFFPRIVLIB, OURS

SIZE = 10_000_000
SLOW = {"diffprivlib": 1_000_000, "plain joint": 2_000}  # peers on fewer values, extrapolated and said so
GROWTH: dict[str, Callable[[int], float]] = {
    "diffprivlib": lambda n: n * math.log(n),
    "plain joint": lambda n: float(n) ** 2,
}
GROUPED = {"median": ("duckdb", "smooth", "tree"), "deciles": ("duckdb", "joint", "recursive", "tree")}
TARGET, PEERS = 2.0, 10.0


def best(worker: Worker, task: str, size: int, rounds: int, **more: str) -> float:
    """The quickest of several answers, after one to warm up; with no round, that one alone."""
    question = {"task": task, "size": size, **more}
    found = [float(worker.ask(question)["seconds"]) for _ in range(rounds + 1)]
    return min(found[1:] or found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quantiles", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the values, fewer sizes")
    parser.add_argument("--only", choices=("accuracy", "speed"), help="one of the two alone")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    console = Console(width=170)  # no word or number of its twelve columns is cut
    results: dict[str, Any] = {}
    if options.only != "accuracy":
        results = speed(options.quick, console)
        show(results, console)
    if options.only != "speed":
        many = accuracy.RELEASES // 2 if options.quick else accuracy.RELEASES
        with console.status("measuring errors"):
            results["accuracy"] = accuracy.run(many)
        accuracy.show(results["accuracy"], many, console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def speed(quick: bool, console: Console) -> dict[str, Any]:
    """Seconds of all that is compared."""
    size = SIZE // 10 if quick else SIZE
    sizes = [10_000, 100_000, 1_000_000] if quick else [10**k for k in range(4, 9)]
    results: dict[str, Any] = {"size": size, "growth": {}, "groups": {}}
    DIFFPRIVLIB.prepare()
    with (
        console.status("measuring"),
        OURS.start("benchmarks.quantiles.with_sourdine") as ours,
        DIFFPRIVLIB.start("benchmarks.quantiles.with_diffprivlib") as peers,
    ):
        for task in ("sort", "joint", "recursive", "smooth", "monotone histogram"):
            results[task] = best(ours, task, size, 5)
        results["sort"] = min(results["sort"], best(ours, "sort", size, 5))
        for task, fewer in SLOW.items():
            seconds = best(peers, task, fewer, 1)
            grown = seconds * GROWTH[task](size) / GROWTH[task](fewer)
            results[task] = {"seconds": seconds, "at": fewer, "extrapolated": grown}
        with OURS.start("benchmarks.quantiles.with_groups") as groups:
            for levels, tasks in GROUPED.items():
                for task in tasks:
                    results["groups"][f"{levels}, {task}"] = best(groups, task, size // 10, 0, levels=levels)
        for many in sizes:
            results["growth"][many] = [best(ours, task, many, 1) for task in ("sort", "joint")]
    return results


def show(results: dict[str, Any], console: Console) -> None:
    """Ratios to the sort and to the peers, then the cost against the number of values."""
    limit, ours = results["sort"], results["joint"]
    shown = Table(title=f"Nine deciles of {results['size']:,} doubles at epsilon 1")
    for name in ("who", "seconds", "times numpy's sort"):
        shown.add_column(name, justify="left" if name == "who" else "right")
    for task in ("sort", "joint", "recursive", "smooth", "monotone histogram"):
        shown.add_row(task, f"{results[task]:.3f}", f"{results[task] / limit:.2f}")
    for task in SLOW:
        held = results[task]
        who = f"{task} ({held['seconds']:.2f} s for {held['at']:,}, extrapolated)"
        shown.add_row(who, f"{held['extrapolated']:.4g}", f"{held['extrapolated'] / limit:.4g}")
    console.print(shown)
    growth = Table(title="Cost against the number of values")
    for name in ("values", "sort", "joint", "times the sort"):
        growth.add_column(name, justify="right")
    for many, (sort, joint) in results["growth"].items():
        growth.add_row(f"{many:,}", f"{sort:.4f}", f"{joint:.4f}", f"{joint / sort:.2f}")
    console.print(growth)
    grouped = Table(title=f"By 1,000 groups, {results['size'] // 10:,} records; duckdb is without privacy")
    for name in ("quantiles, by", "seconds", "times duckdb"):
        grouped.add_column(name, justify="left" if name == "quantiles, by" else "right")
    for name, seconds in results["groups"].items():
        plain = results["groups"][f"{name.split(',')[0]}, duckdb"]
        grouped.add_row(name, f"{seconds:.2f}", f"{seconds / plain:.1f}")
    console.print(grouped)
    verdict(console, ours <= TARGET * limit, f"{ours / limit:.2f} times numpy's sort (target {TARGET:g})")
    for task in SLOW:
        ratio = results[task]["extrapolated"] / ours
        verdict(console, ratio >= PEERS, f"{ratio:.3g} times as quick as {task} (target {PEERS:g})")
    for name, seconds in results["groups"].items():
        levels, who = name.split(", ")
        if who != "duckdb":
            plain = seconds / results["groups"][f"{levels}, duckdb"]
            better(console, f"1,000 groups, {levels} by {who}: {plain:.0f} times DuckDB without privacy")


if __name__ == "__main__":
    main()
