"""The command line: `python -m benchmarks.accounting [--quick] [--json PATH]`."""

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.accounting.cases import CASES, NARROW, SWEEPS, Case, Sweep
from benchmarks.finding import verdict
from benchmarks.peers import Environment, Worker

OURS = Environment(name="sourdine")
PEER = Environment(name="dp_accounting", requirements=("dp-accounting==0.6.0",))
TARGETS = {"epsilon": 50, "calibrate": 100}


def best(worker: Worker, question: dict[str, Any], repeats: int) -> dict[str, Any]:
    """The quickest of several answers, after one to warm up."""
    worker.ask(question)
    answers = [worker.ask(question) for _ in range(repeats)]
    return min(answers, key=lambda answer: float(answer["seconds"]))


def measure(case: Case, task: str, ours: Worker, peer: Worker, quick: bool) -> dict[str, Any]:
    """One task on one case, both libraries in turn."""
    mine = best(ours, case.question(task), 5 if quick else 15)
    slow = task == "calibrate"
    theirs = peer.ask(case.question(task)) if slow else best(peer, case.question(task), 2 if quick else 5)
    row = {"case": case.name, "task": task, "ours": mine, "peer": theirs, "truth": case.truth}
    if task == "epsilon":
        row["renyi"] = best(peer, case.question("renyi"), 2)
    return row


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """Ratios first."""
    table = Table(title="Private training: one epsilon with its bracket, one calibration to epsilon 3")
    for name in ("ratio", "case", "task", "Sourdine", "seconds", "dp_accounting PLD", "seconds", "Renyi"):
        table.add_column(name, justify="right")
    for row in rows:
        mine, theirs = row["ours"], row["peer"]
        ratio = theirs["seconds"] / mine["seconds"]
        if row["task"] == "epsilon":
            shown = f"[{mine['lower']:.5f}, {mine['upper']:.5f}]".replace("[", r"\[")
            other, renyi = f"{theirs['upper']:.5f}", f"{row['renyi']['upper']:.4f}"
        else:
            shown, other, renyi = f"{mine['noise']:.5f}", f"{theirs['noise']:.5f}", ""
        table.add_row(
            f"{ratio:.0f}x",
            row["case"],
            row["task"],
            shown,
            f"{mine['seconds']:.4f}",
            other,
            f"{theirs['seconds']:.3f}",
            renyi,
        )
    console.print(table)
    for task, target in TARGETS.items():
        held = [row["peer"]["seconds"] / row["ours"]["seconds"] for row in rows if row["task"] == task]
        told = f"{task}: at least {min(held):.0f} times as quick as dp_accounting's PLD (target {target})"
        verdict(console, min(held) >= target, told)


def measure_sweep(sweep: Sweep, ours: Worker, peer: Worker) -> dict[str, Any]:
    """Many settings at once, in a loop, and by a peer's loop, of which some are asked and the mean taken."""
    mine = ours.ask(sweep.question("sweep"))
    each = [float(peer.ask(question)["seconds"]) for question in sweep.sampled()]
    whole = sum(each) / len(each) * int(mine["settings"])
    return {"sweep": sweep.name, "ours": mine, "peer": whole, "asked": len(each)}


def show_sweeps(rows: list[dict[str, Any]], console: Console) -> None:
    """How many times as long a loop takes, ours and a peer's."""
    table = Table(title="A thousand settings: dpsgd_epsilons, and one after the other")
    for name in ("settings", "seconds", "loop", "ratio", "dp_accounting's loop", "ratio"):
        table.add_column(name, justify="right")
    for row in rows:
        mine = row["ours"]
        seconds = mine["seconds"]
        table.add_row(
            f"{mine['settings']:,} {row['sweep']}",
            f"{seconds:.2f}",
            f"{mine['loop']:.2f}",
            f"{mine['loop'] / seconds:.2f}x",
            f"{row['peer']:.0f}",
            f"{row['peer'] / seconds:.0f}x",
        )
    console.print(table)
    console.print(f"dp_accounting was asked {rows[0]['asked']} of each thousand, evenly spread.")
    verdict(
        console,
        all(row["ours"]["meet"] for row in rows),
        "every bracket of a sweep meets that of its setting",
    )


def show_narrow(rows: list[dict[str, Any]], console: Console) -> None:
    """Whether brackets are as narrow as asked, and what keeps those that are not."""
    table = Table(title="Brackets as narrow as asked")
    for name in ("case", "asked", "width", "bracket", "seconds", "why not"):
        table.add_column(name, justify="right")
    for row in rows:
        shown = f"[{row['lower']:.7g}, {row['upper']:.7g}]".replace("[", r"\[")
        wide = f"{row['upper'] - row['lower']:.2g}"
        table.add_row(row["case"], f"{row['asked']:.0e}", wide, shown, f"{row['seconds']:.2f}", row["why"])
    console.print(table)
    told = "every bracket is as narrow as asked, or says why not"
    verdict(console, all(row["upper"] - row["lower"] <= row["asked"] or row["why"] for row in rows), told)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accounting", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    console = Console()
    rows = []
    with console.status("making the environments") as status:
        PEER.prepare()
        with (
            OURS.start("benchmarks.accounting.with_sourdine") as ours,
            PEER.start("benchmarks.accounting.with_dp_accounting") as peer,
        ):
            for case in CASES:
                for task in ("epsilon", "calibrate"):
                    status.update(f"{case.name}: {task}")
                    rows.append(measure(case, task, ours, peer, options.quick))
            narrow = []
            for case in NARROW:
                status.update(case.name)
                found = ours.ask(case.question("epsilon")) | {"case": case.name, "asked": case.width}
                narrow.append({"why": ours.ask(case.question("why"))["why"]} | found)
            sweeps = []
            for sweep in SWEEPS:
                status.update(f"sweep: {sweep.name}")
                sweeps.append(measure_sweep(sweep, ours, peer))
    show(rows, console)
    show_sweeps(sweeps, console)
    show_narrow(narrow, console)
    if options.json:
        options.json.write_text(json.dumps(rows + sweeps, indent=2) + "\n")


if __name__ == "__main__":
    main()
