"""The command line: `python -m benchmarks.estimators [--quick] [--json PATH]`."""

import argparse
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.estimators.cases import DATA, DIFFPRIVLIB, EPSILONS, INTERPRET, OURS
from benchmarks.finding import verdict
from benchmarks.peers import Worker

RUNS = 10
BEST = {  # the best of the prototypes that were measured before this was built: accuracy and deviation
    "adult": {0.1: (0.835, 0.007), 0.5: (0.853, 0.002), 1.0: (0.857, 0.001), 3.0: (0.858, 0.001)},
    "pima": {0.1: (0.637, 0.026), 0.5: (0.705, 0.033), 1.0: (0.737, 0.031), 3.0: (0.748, 0.027)},
}
Result = dict[str, Any]


def cases(peer: str, data: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The models of a library for a table, and what it is asked besides."""
    if peer == "sourdine":
        yield from ((f"{name}", {"model": name}) for name in ("least squares", "logistic", "naive Bayes"))
    elif peer == "diffprivlib":
        yield "logistic, numbers", {"model": "logistic", "one_hot": False}
        if data == "adult":
            yield "logistic, one-hot", {"model": "logistic", "one_hot": True}
        yield "naive Bayes, numbers", {"model": "naive Bayes", "one_hot": False}
        yield "forest, numbers", {"model": "forest", "one_hot": False}
    else:
        yield "boosting", {"model": "boosting"}


def measure(worker: Worker, peer: str, runs: int) -> list[Result]:
    """Every model of a library, at every epsilon."""
    jobs = [(data, epsilon, *case) for data in BEST for epsilon in EPSILONS for case in cases(peer, data)]
    found = []
    for data, epsilon, name, question in track(jobs, description=peer, console=Console(stderr=True)):
        asked = {"data": data, "epsilon": epsilon, **question}
        answers = [worker.ask(asked | {"run": run}) for run in range(runs)]
        found.append(
            {"data": data, "epsilon": epsilon, "library": peer, "model": name}
            | {what: [each[what] for each in answers] for what in ("accuracy", "auc", "seconds")}
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimators", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two runs")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    console = Console()
    if not (DATA / "adult").is_dir():
        parser.exit(1, f"The tables are not in {DATA}. Set DATA to a folder with adult and pima.\n")
    results: list[Result] = []
    for peer, environment, module in (
        ("sourdine", OURS, "with_sourdine"),
        ("diffprivlib", DIFFPRIVLIB, "with_diffprivlib"),
        ("interpret", INTERPRET, "with_interpret"),
    ):
        environment.prepare()
        with environment.start(f"benchmarks.estimators.{module}") as worker:
            results += measure(worker, peer, 2 if options.quick else RUNS)
    show(results, console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def show(results: list[Result], console: Console) -> None:
    """Tables of accuracy and of AUC for each data set, then who is ahead at each epsilon."""
    for data in BEST:
        for what, title in (("accuracy", "accuracy"), ("auc", "area under the ROC curve")):
            shown = Table(title=f"{data}: {title} on test rows, mean (deviation), by epsilon")
            for name in ("library", "model", *(f"{epsilon:g}" for epsilon in EPSILONS), "seconds"):
                shown.add_column(name, no_wrap=True)
            rows = dict.fromkeys((each["library"], each["model"]) for each in results if each["data"] == data)
            for library, model in rows:
                held = [
                    each
                    for each in results
                    if (each["data"], each["library"], each["model"]) == (data, library, model)
                ]
                cells = [f"{mean(each[what]):.3f} ({deviation(each[what]):.3f})" for each in held]
                shown.add_row(library, model, *cells, f"{mean(held[-1]['seconds']):.2f}")
            console.print(shown)
    for data, known in BEST.items():
        for epsilon, (anchor, spread) in known.items():
            here = [each for each in results if each["data"] == data and each["epsilon"] == epsilon]
            for what in ("accuracy", "auc"):
                ours = max(mean(each[what]) for each in here if each["library"] == "sourdine")
                theirs = max(
                    (mean(each[what]) for each in here if each["library"] != "sourdine"), default=0.0
                )
                text = f"{data}, epsilon {epsilon:g}: {what} {ours:.3f}, the best peer {theirs:.3f}"
                verdict(console, ours > theirs, text)
                if what == "accuracy":
                    verdict(
                        console,
                        ours >= anchor - spread,
                        f"{text.partition(',')[0]}, epsilon {epsilon:g}: "
                        f"accuracy {ours:.3f} (at least {anchor - spread:.3f})",
                    )


def mean(values: list[float]) -> float:
    """Of several runs."""
    return statistics.fmean(values)


def deviation(values: list[float]) -> float:
    """Of several runs."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()
