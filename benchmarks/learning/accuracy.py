"""What training reaches on MNIST, by the defaults and by what may be added to them: hours of processor time.

`python -m benchmarks.learning.accuracy FOLDER [--epochs N] [--only TEXT] [--repeats N] [--csv PATH]`. Each
run is one call of `sourdine train fit`, and is told as soon as it is over; a run whose line is in the CSV
file is not repeated.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_FIELDS = ("run", "epsilon", "accuracy", "deviation", "wanted", "processor minutes", "minutes")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One call of the command line, and the accuracy that it must reach, if any."""

    name: str
    options: tuple[str, ...]
    wanted: float | None = None


_CNN = ("--model", "cnn", "--epsilon", "3", "--epochs", "15", "--batch-size", "1024", "--learning-rate", "1")
_MOVED = ("--augment", "shift=2,rotate=10", "--copies")
RUNS = (
    Run(name="defaults, epsilon 1", options=("--epsilon", "1"), wanted=98.26),
    Run(name="defaults, epsilon 3", options=("--epsilon", "3"), wanted=98.63),
    Run(name="defaults, epsilon 3, exact", options=("--epsilon", "3", "--exact")),
    Run(name="CNN, epsilon 3", options=_CNN),
    Run(name="CNN, epsilon 3, 1 changed version", options=(*_CNN, *_MOVED, "1")),
    Run(name="CNN, epsilon 3, 4 changed versions", options=(*_CNN, *_MOVED, "4")),
    Run(name="CNN, epsilon 3, 8 changed versions", options=(*_CNN, *_MOVED, "8")),
    Run(name="CNN, epsilon 3, correlated noise", options=(*_CNN, "--correlation", "banded")),
    Run(name="CNN, epsilon 3, exact", options=(*_CNN, "--exact")),
)


def trained(run: Run, data: Path, work: Path, *, epochs: int | None, repeats: int) -> dict[str, object]:
    """What a run came to, in percent and minutes."""
    options = list(run.options)
    if epochs is not None:
        if "--epochs" in options:
            del options[options.index("--epochs") : options.index("--epochs") + 2]
        options += ["--epochs", str(epochs)]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "sourdine", "train", "fit", str(data), *options, "--json"]
    command += ["--repeats", str(repeats), "-o", str(work / run.name)]
    if "cnn" not in options:
        command += ["--cache", str(work)]  # the features, once for all runs
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = json.loads(done.stdout)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "run": run.name,
        "epsilon": told["epsilon"]["upper"],
        "accuracy": round(100 * told["mean"], 2),
        "deviation": "" if told["deviation"] is None else round(100 * told["deviation"], 2),
        "wanted": "" if run.wanted is None else run.wanted,
        "processor minutes": round(worked / 60, 1),
        "minutes": round((time.perf_counter() - start) / 60, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--epochs", type=int, help="of every run, to try the command")
    parser.add_argument("--only", default="", help="runs whose names have this text")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--csv", type=Path, default=Path("accuracy.csv"))
    asked = parser.parse_args()
    over = []
    if asked.csv.exists():
        with asked.csv.open(newline="") as file:
            over = [line["run"] for line in csv.DictReader(file)]
    else:
        asked.csv.write_text(",".join(_FIELDS) + "\n")
    left = [run for run in RUNS if asked.only in run.name and run.name not in over]
    with tempfile.TemporaryDirectory() as work:
        for number, run in enumerate(left, start=1):
            print(f"{number} of {len(left)}: {run.name} ...", flush=True)
            line = trained(run, asked.data, Path(work), epochs=asked.epochs, repeats=asked.repeats)
            with asked.csv.open("a", newline="") as file:
                csv.DictWriter(file, _FIELDS).writerow(line)
            words = (f"{name} {value}" for name, value in line.items() if value != "")
            print("  " + ", ".join(words), flush=True)


if __name__ == "__main__":
    main()
