"""The command line: `python -m benchmarks.synthetic [--quick] [--json PATH]`, or with `--large`."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.finding import better, verdict
from benchmarks.peers import ROOT, Environment
from benchmarks.synthetic.adult import DATA, EPSILONS, area, cells, distances

OURS = Environment(name="sourdine")
SMARTNOISE = Environment(name="smartnoise", requirements=("smartnoise-synth==1.0.8", "setuptools<81"))
MBI = Environment(name="mbi", requirements=("mbi==2.0.0",))
ALLOWANCE = 300  # seconds for all runs of a method at an epsilon, so ten minutes for each method
RUNS = 5
METHODS: tuple[tuple[str, Environment, str, dict[str, Any]], ...] = (
    ("ours", OURS, "with_sourdine", {"method": "plain"}),
    ("ours, target", OURS, "with_sourdine", {"method": "target"}),
    ("independent columns", OURS, "with_sourdine", {"method": "independent"}),
    ("smartnoise-synth MST", SMARTNOISE, "with_smartnoise", {"iterations": 0}),
    ("smartnoise-synth MST, 300 iterations", SMARTNOISE, "with_smartnoise", {"iterations": 300}),
    ("MST on mbi, 300 iterations", MBI, "with_mbi", {"iterations": 300}),
)
BOUNDS = {  # two-way total variation at epsilon 1 and 3, and the area under the curve
    "ours": {1.0: (0.038, 0.83), 3.0: (0.036, 0.83)},
    "ours, target": {1.0: (0.032, 0.895), 3.0: (0.027, 0.895)},
}
Result = dict[str, Any]


def ask(environment: Environment, module: str, question: dict[str, Any], limit: float) -> tuple[Any, Result]:
    """The rows of one run in a process of its own, with what they took; None where it did not end in time."""
    with tempfile.TemporaryDirectory() as folder:
        path, told, errors = (Path(folder) / name for name in ("rows.npy", "told.txt", "errors.txt"))
        words = [str(environment.python), "-m", f"benchmarks.synthetic.{module}"]
        words.append(json.dumps({**question, "path": str(path)}))
        with told.open("w") as out, errors.open("w") as err:
            ended = _within(subprocess.Popen(words, cwd=ROOT, stdout=out, stderr=err), limit)
        if ended is None:
            return None, {"seconds": None, "processor": None, "memory": None}
        if ended:
            raise RuntimeError(f"{module} failed:\n{errors.read_text()[-2000:]}")
        return np.load(path), json.loads(told.read_text().strip().splitlines()[-1])


def _within(process: "subprocess.Popen[bytes]", limit: float) -> int | None:
    """How a process ended, or None once it has had the limit both by the clock and of processor time.

    Threads use up processor time faster than the clock goes, and a busy machine slower: whichever is more
    generous counts.
    """
    import psutil

    started, seen = time.perf_counter(), psutil.Process(process.pid)
    while process.poll() is None:
        try:
            used = sum(seen.cpu_times()[:2])
        except psutil.NoSuchProcess:
            break
        if used > limit and time.perf_counter() - started > limit:
            process.kill()
            process.wait()
            return None
        time.sleep(0.05)
    return process.wait()


def measure(epsilon: float, method: tuple[str, Environment, str, dict[str, Any]], runs: int) -> Result:
    """All runs of a method at an epsilon."""
    name, environment, module, question = method
    real, _ = cells("train")
    test, _ = cells("test")
    dice = np.random.default_rng(0)
    apart = distances(real, np.stack([dice.permutation(column) for column in real.T], axis=1), 2)
    results: list[Result] = []
    left = float(ALLOWANCE)
    for _ in range(runs):
        rows, took = ask(environment, module, {**question, "epsilon": epsilon}, left)
        if rows is None:
            if not results:
                results.append({**took, "two": None, "three": None, "auc": None, "worse": None})
            break
        left -= took["processor"]
        two = distances(real, rows, 2)
        results.append(
            {
                **took,
                "two": float(np.mean(list(two.values()))),
                "three": float(np.mean(list(distances(real, rows, 3).values()))),
                "auc": area(rows, test),
                "worse": sum(two[pair] > apart[pair] + 0.01 for pair in two),
            }
        )
    return {"method": name, "epsilon": epsilon, "runs": results}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthetic", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run of each, and no peers")
    parser.add_argument("--only", help="methods that begin so")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each")
    parser.add_argument("--large", action="store_true", help="large tables alone: time and memory")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    parser.add_argument("--resume", action="store_true", help="keep the measures that are in PATH already")
    options = parser.parse_args()
    console = Console(width=140)
    if options.large:
        large(console)
        return
    if not (DATA / "adult").is_dir():
        parser.exit(1, f"The table is not in {DATA}. Set DATA to a folder with adult.\n")
    results: list[Result] = []
    if options.resume and options.json and options.json.exists():
        results = json.loads(options.json.read_text())
    for method in METHODS:
        ours = method[1] is OURS
        if (options.quick and not ours) or (options.only and not method[0].startswith(options.only)):
            continue
        method[1].prepare()
        for epsilon in EPSILONS:
            if any((each["method"], each["epsilon"]) == (method[0], epsilon) for each in results):
                continue
            results.append(measure(epsilon, method, 1 if options.quick else options.runs))
            console.print(f"{method[0]} at {epsilon:g}: {results[-1]['runs']}", style="dim")
            if options.json:  # at once: a whole run takes an hour
                options.json.write_text(json.dumps(results, indent=2) + "\n")
    order = [name for name, *_ in METHODS]
    show(sorted(results, key=lambda each: order.index(each["method"])), console)
    if not (options.quick or options.only):
        large(console)


def large(console: Console) -> None:
    """Large tables, each in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.synthetic.large"]
    console.print(subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def show(results: list[Result], console: Console) -> None:
    """A line for each method and epsilon, and what was promised beside it."""
    table = Table(title="Adult, 13 columns, delta 1e-6: means over runs")
    for name in (
        "method",
        "epsilon",
        "runs",
        "two-way",
        "three-way",
        "AUC",
        "worse pairs",
        "seconds",
        "of processor",
        "MB",
    ):
        table.add_column(name)
    for each in results:
        table.add_row(
            each["method"], f"{each['epsilon']:g}", str(len(each["runs"])), *map(_mean, _columns(each))
        )
    console.print(table)
    for each in results:
        bounds = BOUNDS.get(each["method"], {}).get(each["epsilon"])
        if bounds is not None:
            two, _, auc, _, seconds, processor, _ = (np.mean(column) for column in _columns(each))
            most = max(_columns(each)[3])
            met = bool(two <= bounds[0] and auc >= bounds[1] and most <= 5 and seconds < 2)
            verdict(
                console,
                met,
                f"{each['method']} at epsilon {each['epsilon']:g}: two-way {two:.4f} of {bounds[0]}, AUC "
                f"{auc:.3f} of {bounds[1]}, {most} pairs worse than independent (at most 5), "
                f"{seconds:.2f} s by the clock, {processor:.2f} s of processor time (under 2 s by the clock)",
            )
    _better(results, console)


def _better(results: list[Result], console: Console) -> None:
    """Where a model learns more from a peer's rows than from ours without a target."""
    areas = {(each["method"], each["epsilon"]): _columns(each)[2] for each in results}
    for (method, epsilon), theirs in areas.items():
        ours = areas.get(("ours", epsilon))
        if "MST" not in method or ours is None or theirs[0] is None or np.mean(theirs) <= np.mean(ours):
            continue
        better(
            console,
            f"AUC at epsilon {epsilon:g}: {method} {np.mean(theirs):.3f} (runs: {len(theirs)}), ours "
            f"without a target {np.mean(ours):.3f} (single runs {min(ours):.3f} to {max(ours):.3f})",
        )


def _columns(result: Result) -> list[list[Any]]:
    names = ("two", "three", "auc", "worse", "seconds", "processor", "memory")
    return [[run[name] for run in result["runs"]] for name in names]


def _mean(values: list[Any]) -> str:
    return "not in 10 min" if values[0] is None else f"{np.mean(values):.4g}"


if __name__ == "__main__":
    main()
