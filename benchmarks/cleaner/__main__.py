"""The command line: `python -m benchmarks.cleaner [--quick] [--json PATH]`."""

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.cleaner.cases import DIFFPRIVLIB, OURS
from benchmarks.finding import verdict
from benchmarks.peers import Worker

ROWS = 1_000_000
PEER_ROWS = {0.1: 100, 1.0: 1_000, 10.0: 2_000}  # extrapolated to the same number of rows, and said so
METHODS = ("staircase", "laplace")
TARGET, AT = 100.0, 1.0


def best(worker: Worker, method: str, epsilon: float, rows: int, rounds: int) -> float:
    """The quickest of several answers, after one to warm up."""
    question = {"method": method, "epsilon": epsilon, "rows": rows}
    return min([float(worker.ask(question)["seconds"]) for _ in range(rounds + 1)][1:])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cleaner", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one epsilon")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    rows, rounds = (ROWS // 10, 1) if options.quick else (ROWS, 3)
    epsilons = [AT] if options.quick else list(PEER_ROWS)
    console = Console()
    results: list[dict[str, Any]] = []
    DIFFPRIVLIB.prepare()
    with (
        console.status("measuring"),
        OURS.start("benchmarks.cleaner.with_sourdine") as ours,
        DIFFPRIVLIB.start("benchmarks.cleaner.with_diffprivlib") as peer,
    ):
        for epsilon in epsilons:
            for method in (*METHODS, "unbiased"):
                mine = best(ours, method, epsilon, rows, rounds)
                held: dict[str, Any] = {"method": method, "epsilon": epsilon, "rows": rows, "ours": mine}
                if method in METHODS:
                    fewer = PEER_ROWS[epsilon]
                    seconds = best(peer, method, epsilon, fewer, rounds)
                    held |= {"peer": seconds, "at": fewer, "extrapolated": seconds * rows / fewer}
                results.append(held)
    show(results, console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def show(results: list[dict[str, Any]], console: Console) -> None:
    """Seconds of processor time of both, and the ratio."""
    rows = results[0]["rows"]
    shown = Table(title=f"{rows:,} rows of the Pima columns (8 numbers, 1 outcome), epsilon of a column")
    for name in (
        "noise",
        "epsilon",
        "sourdine, s",
        "value by value, s (extrapolated from)",
        "times as quick",
    ):
        shown.add_column(name, justify="left" if name == "noise" else "right")
    for held in results:
        if "peer" in held:
            theirs = f"{held['extrapolated']:,.0f} ({held['peer']:.2f} s for {held['at']:,} rows)"
            ratio = f"{held['extrapolated'] / held['ours']:,.0f}"
        else:
            theirs, ratio = "no such thing", ""
        shown.add_row(held["method"], f"{held['epsilon']:g}", f"{held['ours']:.2f}", theirs, ratio)
    console.print(shown)
    for held in results:
        if "peer" in held and held["epsilon"] == AT:
            ratio = held["extrapolated"] / held["ours"]
            verdict(
                console,
                ratio >= TARGET,
                f"{ratio:,.0f} times as quick as the loop with {held['method']} noise at epsilon "
                f"{AT:g} a column (target {TARGET:g})",
            )


if __name__ == "__main__":
    main()
