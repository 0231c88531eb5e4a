"""The command line: `python -m benchmarks.anonymity [--quick] [--json PATH]`."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.anonymity import cases
from benchmarks.anonymity.odd import TRUTH
from benchmarks.finding import verdict
from benchmarks.peers import Worker

MEASURED, MADE, LOSS, MANY, TWELVE = 100.0, 10.0, 0.265, 20.0, 60.0  # targets
LARGE, HUGE = 300_000, 10_000_000


def best(worker: Worker, question: dict[str, Any], rounds: int) -> dict[str, Any]:
    """The quickest of several answers, after one to warm up if there are several."""
    answers = [worker.ask(question) for _ in range(rounds + (rounds > 1))]
    return min(answers[rounds > 1 :], key=lambda answer: float(answer["seconds"]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anonymity", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the small table alone")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    if not cases.SMALL.exists():
        sys.exit(f"The Adult files are not in {cases.ADULT}. Set ADULT to their folder.")
    console = Console()
    results: dict[str, Any] = {}
    for environment in (cases.PYCANON, cases.ANJANA):
        environment.prepare()
    tables = {"Adult, 30,162 rows": cases.SMALL}
    if not options.quick:
        tables["made from Adult, 300,000 rows"] = cases.resampled(LARGE)
    module = "benchmarks.anonymity.with_"
    with (
        console.status("measuring"),
        cases.OURS.start(f"{module}sourdine") as ours,
        cases.PYCANON.start(f"{module}pycanon") as pycanon,
        cases.ANJANA.start(f"{module}anjana") as anjana,
    ):
        for name, path in tables.items():
            measured = {"task": "measure", "path": str(path)}
            made = {"task": "generalise", "path": str(path)}
            results[name] = {
                "measure": {"pycanon": best(pycanon, measured, 1), "Sourdine": best(ours, measured, 5)},
                "generalise": {
                    "anjana": best(anjana, made, 1),
                    "Sourdine": best(ours, made, 3),
                    "Sourdine, halving": best(ours, {**made, "method": "mondrian"}, 1),
                    "Sourdine, l 2 and t 0.3 too": best(ours, {**made, "demand": {"l": 2, "t": "0.3"}}, 1),
                },
            }
        results["odd"] = {
            "truth": TRUTH,
            "pycanon": pycanon.ask({"task": "odd"}),
            "Sourdine": ours.ask({"task": "odd"}),
        }
        if not options.quick:
            results["many"] = best(ours, {"task": "many", "path": str(cases.many(HUGE))}, 1)
            results["twelve"] = best(ours, {"task": "twelve", "path": str(cases.with_twelve())}, 1)
    show(results, list(tables), console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def show(results: dict[str, Any], tables: list[str], console: Console) -> None:
    """Seconds and what came out, then a line for each target."""
    shown = Table(title="8 quasi-identifiers: k, l and t; then k = 5 with at most 5 % left out")
    for name in ("table", "task", "who", "seconds", "what came out"):
        shown.add_column(name, justify="right" if name == "seconds" else "left")
    for name in tables:
        for task, found in results[name].items():
            for who, answer in found.items():
                shown.add_row(name, task, who, f"{answer['seconds']:.3f}", _told(answer))
    console.print(shown)
    odd = Table(title="Where it is easy to go wrong")
    for name in ("case", "truth", "pycanon", "Sourdine"):
        odd.add_column(name)
    for case, truth in TRUTH.items():
        odd.add_row(case, truth, results["odd"]["pycanon"][case], results["odd"]["Sourdine"][case])
    console.print(odd)
    for name in tables:
        held = results[name]
        peer, own = held["measure"]["pycanon"], held["measure"]["Sourdine"]
        same = (peer["k"], peer["l"]) == (own["k"], own["l"]) and abs(peer["t"] - own["t"]) < 1e-9
        verdict(console, same, f"{name}: the same k, l and t as pycanon")
        ratio = peer["seconds"] / own["seconds"]
        verdict(
            console, ratio >= MEASURED, f"{name}: {ratio:.0f} times as quick as pycanon (target {MEASURED:g})"
        )
        peer, own = held["generalise"]["anjana"], held["generalise"]["Sourdine"]
        ratio = peer["seconds"] / own["seconds"]
        target = f" (target {MADE:g})" if name != tables[0] else ""
        good = ratio >= MADE or not target
        verdict(console, good, f"{name}: {ratio:.1f} times as quick as anjana{target}")
        verdict(
            console,
            own["ncp"] < peer["ncp"],
            f"{name}: NCP {own['ncp']:.4f} below anjana's {peer['ncp']:.4f}",
        )
    loss = results[tables[0]]["generalise"]["Sourdine"]["ncp"]
    verdict(console, loss <= LOSS, f"{tables[0]}: NCP {loss:.4f} (target {LOSS})")
    verdict(console, results["odd"]["Sourdine"] == TRUTH, "right where it is easy to go wrong")
    if "many" in results:
        seconds = results["many"]["seconds"]
        verdict(console, seconds < MANY, f"{HUGE:,} rows measured in {seconds:.1f} s (target {MANY:g})")
        seconds = results["twelve"]["seconds"]
        text = f"12 quasi-identifiers in {seconds:.1f} s (target {TWELVE:g}), {_told(results['twelve'])}"
        verdict(console, seconds < TWELVE, text)


def _told(answer: dict[str, Any]) -> str:
    if "ncp" not in answer:
        return f"k {answer['k']}, l {answer['l']}, t {answer['t']:.6f}"
    best_ = ", the best there is" if answer.get("proven") else ""
    return f"NCP {answer['ncp']:.4f}{best_}, {answer['suppressed']:,} left out"


if __name__ == "__main__":
    main()
