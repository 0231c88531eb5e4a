"""The command line: `python -m benchmarks.learning [--quick] [--case TEXT] [--threads N] [--json PATH]`."""

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
            huge = case.huge and way == HOOKS
            if huge and turn > 1:
                continue  # it takes seconds a step
            steps = 1 if huge else case.steps
            question = {"case": case.name, "way": way, "steps": steps, "threads": threads}
            found[environment, way].append(workers[environment].ask(question))
    return [
        _summary(case, environment, way, answers, threads) for (environment, way), answers in found.items()
    ]


def _summary(
    case: Case, environment: Environment, way: str, answers: list[dict[str, Any]], threads: int
) -> Result:
    """The median step, and the peak of a process that does nothing else."""
    result: Result = {"case": case.name, "environment": environment.name, "way": way}
    if "refused" in answers[0]:
        return result | {"refused": answers[0]["refused"]}
    taken = [stages for answer in answers for stages in answer["seconds"]]
    alone = {"case": case.name, "way": way, "steps": 2, "threads": threads}
    return result | {
        "seconds": median(stages[-1] for stages in taken),
        "before_noise": median(stages[0] for stages in taken),
        "processor": median(answer["processor"] for answer in answers),
        "peak": environment.ask_once(MODULES[environment], alone)["peak"],
        "load": [answers[0]["load"], answers[-1]["load"]],
    }


def show(case: Case, results: list[Result], console: Console) -> None:
    """One table, and whether each target is met."""
    table = Table(title=case.name)
    table.add_column("step")
    for name in ("ms", "/ plain", "no noise", "/ plain", "cpu ms", "peak, GB"):
        table.add_column(name, justify="right")
    held = {(each["environment"], each["way"]): each for each in results}
    for each in results:
        table.add_row(NAMES[each["environment"], each["way"]], *_cells(each, held))
    console.print(table)
    for each in results:
        if "refused" in each:
            console.print(f"{NAMES[each['environment'], each['way']]}: {each['refused'][:200]}")
    ours, base = held[OURS.name, SOURDINE], held[OURS.name, PLAIN]["seconds"]
    ratio = ours["seconds"] / base
    better(console, f"{case.name}: a step without privacy takes {1 / ratio:.2f} of the time")
    if case.most is not None:
        told = f"{case.name}: {ratio:.2f} times a plain step, noise and all (at most {case.most:g})"
        verdict(console, ratio <= case.most, told)
    for way in (HOOKS, GHOST):
        if "refused" not in (peer := held[OPACUS.name, way]):
            times = peer["seconds"] / ours["seconds"]
            told = f"{case.name}: {times:.2f} times as quick as Opacus by {way} (above 1)"
            verdict(console, times > 1, told)
    if case.most_memory is not None:
        told = f"{case.name}: {ours['peak'] / 1e9:.2f} GB at the peak (below {case.most_memory / 1e9:g})"
        verdict(console, ours["peak"] < case.most_memory, told)


def _cells(each: Result, held: dict[tuple[str, str], Result]) -> list[str]:
    if "refused" in each:
        return ["refuses", "", "", "", "", ""]
    base = held[each["environment"], PLAIN]["seconds"]
    cells = [f"{1000 * each['seconds']:.1f}", f"{each['seconds'] / base:.2f}"]
    if each["way"] == SOURDINE:
        cells += [f"{1000 * each['before_noise']:.1f}", f"{each['before_noise'] / base:.2f}"]
    else:
        cells += ["", ""]
    return [*cells, f"{1000 * each['processor']:.1f}", f"{each['peak'] / 1e9:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="of torch; all processors unless told"
    )
    parser.add_argument("--case", default="", metavar="TEXT", help="only cases whose name has this in it")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    console = Console()
    results: list[Result] = []
    with console.status("making the environment of Opacus"):
        OPACUS.prepare()
    before = os.getloadavg()[0]
    for case in CASES:
        if options.case not in case.name:
            continue
        if not case.runs:
            needs = " ".join(case.task.needs)
            console.print(f"{case.name}: left out, since something is missing (pip install {needs})")
            continue
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
