"""The command line: `python -m benchmarks.synthetic [--quick] [--json PATH]`, or with `--large`."""

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.finding import verdict
from benchmarks.peers import ROOT, Environment
from benchmarks.synthetic.adult import DATA, EPSILONS, area, cells, distances

OURS = Environment(name="sourdine")
SMARTNOISE = Environment(name="smartnoise", requirements=("smartnoise-synth==1.0.8", "setuptools<81"))
MBI = Environment(name="mbi", requirements=("mbi==2.0.0",))
LIMIT = 600  # seconds of processor time that each run is allowed
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


def ask(environment: Environment, module: str, question: dict[str, Any]) -> tuple[Any, Result]:
    """The rows of one run in a process of its own, with what they took; None where it did not end in time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        words = [str(environment.python), "-m", f"benchmarks.synthetic.{module}"]
        words.append(json.dumps({**question, "path": str(path)}))
        try:
            done = subprocess.run(
                words, cwd=ROOT, capture_output=True, text=True, check=True, preexec_fn=_limit
            )
        except subprocess.CalledProcessError as problem:
            if problem.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                return None, {"seconds": None, "processor": None, "memory": None}
            raise RuntimeError(f"{module} failed:\n{problem.stderr[-2000:]}") from None
        return np.load(path), json.loads(done.stdout.strip().splitlines()[-1])


def _limit() -> None:
    """Processor time, which other programs of the machine do not take from anybody."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))


def measure(epsilon: float, method: tuple[str, Environment, str, dict[str, Any]], runs: int) -> Result:
    """All runs of a method at an epsilon."""
    name, environment, module, question = method
    real, _ = cells("train")
    test, _ = cells("test")
    dice = np.random.default_rng(0)
    apart = distances(real, np.stack([dice.permutation(column) for column in real.T], axis=1), 2)
    results: list[Result] = []
    for _ in range(runs):
        rows, took = ask(environment, module, {**question, "epsilon": epsilon})
        if rows is None:
            results.append({**took, "two": None, "three": None, "auc": None, "worse": None})
            break
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
    parser.add_argument("--large", action="store_true", help="large tables instead: time and memory")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    console = Console(width=140)
    if options.large:
        subprocess.run([sys.executable, "-m", "benchmarks.synthetic.large"], cwd=ROOT, check=True)
        return
    if not (DATA / "adult").is_dir():
        parser.exit(1, f"The table is not in {DATA}. Set DATA to a folder with adult.\n")
    results = []
    for method in METHODS:
        ours = method[1] is OURS
        if (options.quick and not ours) or (options.only and not method[0].startswith(options.only)):
            continue
        method[1].prepare()
        for epsilon in EPSILONS:
            results.append(measure(epsilon, method, RUNS if ours and not options.quick else 1))
            console.print(f"{method[0]} at {epsilon:g}: {results[-1]['runs']}", style="dim")
    show(results, console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


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
            two, _, auc, _, _, seconds, _ = (np.mean(column) for column in _columns(each))
            most = max(_columns(each)[3])
            met = bool(two <= bounds[0] and auc >= bounds[1] and most <= 5 and seconds < 2)
            verdict(
                console,
                met,
                f"{each['method']} at epsilon {each['epsilon']:g}: two-way {two:.4f} of {bounds[0]}, AUC "
                f"{auc:.3f} of {bounds[1]}, {most} pairs worse than independent (at most 5), "
                f"{seconds:.2f} s of processor time (under 2 s)",
            )


def _columns(result: Result) -> list[list[Any]]:
    names = ("two", "three", "auc", "worse", "seconds", "processor", "memory")
    return [[run[name] for run in result["runs"]] for name in names]


def _mean(values: list[Any]) -> str:
    return "not in 10 min" if values[0] is None else f"{np.mean(values):.4g}"


if __name__ == "__main__":
    main()
