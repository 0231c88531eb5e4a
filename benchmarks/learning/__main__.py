"""The command line: `python -m benchmarks.learning [--quick] [--threads N] [--json PATH]`."""

import argparse
import json
import os
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import better, verdict
from benchmarks.learning.cases import CASES, GHOST, HOOKS, OPACUS, OURS, PLAIN, SOURDINE, Case
from benchmarks.peers import Environment, Worker

MODULES = {OURS: "benchmarks.learning.with_sourdine", OPACUS: "benchmarks.learning.with_opacus"}
WAYS = ((OURS, PLAIN), (OURS, SOURDINE), (OPACUS, PLAIN), (OPACUS, GHOST), (OPACUS, HOOKS))
NAMES = {
    (OURS.name, PLAIN): "plain",
    (OURS.name, SOURDINE): "Sourdine",
    (OPACUS.name, PLAIN): "plain, with Opacus",
    (OPACUS.name, GHOST): "Opacus, ghost",
    (OPACUS.name, HOOKS): "Opacus, hooks",
}
Result = dict[str, Any]


def measure(case: Case, workers: dict[Environment, Worker], *, threads: int, quick: bool) -> list[Result]:
    """All ways in turn for several rounds, a few steps each; the median step counts."""
    found: dict[tuple[Environment, str], list[dict[str, Any]]] = {way: [] for way in WAYS}
    for turn in range(2 if quick else case.rounds):
        for environment, way in WAYS:
            huge = case.most_memory is not None and way == HOOKS
            if huge and turn > 1:
                continue  # it takes seconds a step
            steps = 1 if huge else case.steps
            question = {"case": case.name, "way": way, "steps": steps, "threads": threads}
            found[environment, way].append(workers[environment].ask(question))
    results = []
    for (environment, way), answers in found.items():
        taken = [stages for answer in answers for stages in answer["seconds"]]
        alone = {"case": case.name, "way": way, "steps": 2, "threads": threads}
        results.append(
            {
                "case": case.name,
                "environment": environment.name,
                "way": way,
                "seconds": median(stages[-1] for stages in taken),
                "before_noise": median(stages[0] for stages in taken),
                "processor": median(answer["processor"] for answer in answers),
                "peak": environment.ask_once(MODULES[environment], alone)["peak"],
                "load": [answers[0]["load"], answers[-1]["load"]],
            }
        )
    return results


def show(case: Case, results: list[Result], console: Console) -> None:
    """One table, and whether each target is met."""
    table = Table(title=case.name)
    table.add_column("step")
    for name in ("ms", "/ plain", "no noise", "/ plain", "cpu ms", "peak, GB"):
        table.add_column(name, justify="right")
    held = {(each["environment"], each["way"]): each for each in results}
    for each in results:
        base = held[each["environment"], PLAIN]["seconds"]
        cells = [f"{1000 * each['seconds']:.1f}", f"{each['seconds'] / base:.2f}"]
        if each["way"] == SOURDINE:
            cells += [f"{1000 * each['before_noise']:.1f}", f"{each['before_noise'] / base:.2f}"]
        else:
            cells += ["", ""]
        table.add_row(
            NAMES[each["environment"], each["way"]],
            *cells,
            f"{1000 * each['processor']:.1f}",
            f"{each['peak'] / 1e9:.2f}",
        )
    console.print(table)
    ours, base = held[OURS.name, SOURDINE], held[OURS.name, PLAIN]["seconds"]
    whole = ours["seconds"] / base
    better(console, f"{case.name}: a step without privacy takes {1 / whole:.2f} of the time")
    ratio = ours["seconds" if case.with_noise else "before_noise"] / base
    told = "the whole step" if case.with_noise else "before noise"
    verdict(
        console,
        ratio <= case.most,
        f"{case.name}: {ratio:.2f} times a plain step, {told} (at most {case.most:g})",
    )
    best = min(held[OPACUS.name, way]["seconds"] for way in (HOOKS, GHOST))
    verdict(
        console,
        ours["seconds"] < best,
        f"{case.name}: {best / ours['seconds']:.2f} times as quick as the better way of Opacus (above 1)",
    )
    if case.most_memory is not None:
        told = f"{case.name}: {ours['peak'] / 1e9:.2f} GB at the peak (below {case.most_memory / 1e9:g})"
        verdict(console, ours["peak"] < case.most_memory, told)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="of torch; all processors unless told"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    console = Console()
    results: list[Result] = []
    with console.status("making the environment of Opacus"):
        OPACUS.prepare()
    before = os.getloadavg()[0]
    for case in CASES:
        with (
            console.status(case.name),
            OURS.start(MODULES[OURS]) as ours,
            OPACUS.start(MODULES[OPACUS]) as peer,
        ):
            workers = {OURS: ours, OPACUS: peer}
            found = measure(case, workers, threads=options.threads, quick=options.quick)
        show(case, found, console)
        results += found
    after = os.getloadavg()[0]
    console.print(
        f"{options.threads} threads of torch; load of the machine {before:.1f} before, {after:.1f} after"
    )
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
