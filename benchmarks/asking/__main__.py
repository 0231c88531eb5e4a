"""The command line: `python -m benchmarks.asking [--quick] [--runs N] [--json PATH]`."""

import argparse
import json
import math
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.asking import regression
from benchmarks.asking.cases import ADULT, Case, adult, panel
from benchmarks.finding import better, verdict
from tests.campaigns.release_intervals import Cover, covers

CONFIDENCE = 0.95
EPSILON, DELTA = 1.0, 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.asking", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few releases")
    parser.add_argument("--runs", type=int, default=1000, help="releases of each table")
    parser.add_argument("--no-peers", action="store_true", help="leave out diffprivlib")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every figure here")
    options = parser.parse_args()
    runs = 100 if options.quick else options.runs
    console = Console()
    cases = [panel()]
    if ADULT.exists():
        cases.append(adult())
    else:
        console.print(f"Adult is left out: it is not in {ADULT.parent}. Set ADULT to its folder.")
    # 94 %, less two standard errors of this many releases
    wanted = 0.94 - 2 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / runs)
    figures: list[dict[str, object]] = []
    least = 1.0
    for case in cases:
        for delta in (None, DELTA):
            found = covers(case, epsilon=EPSILON, delta=delta, runs=runs)
            _show(console, case, delta, found)
            least = min(least, *(each.least for each in found))
            figures += [
                {
                    "case": case.name,
                    "delta": delta,
                    "label": each.label,
                    "least": each.least,
                    "width": each.width,
                }
                for each in found
            ]
    told = (
        f"least coverage {least:.3f} of {len(figures)} intervals on {len(cases)} tables, {runs} releases each"
    )
    verdict(console, least >= wanted, f"{told} (95 % asked for, at least {wanted:.3f} wanted)")
    for case in cases:
        _beside(console, case, runs, not options.no_peers)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def _show(console: Console, case: Case, delta: float | None, found: list[Cover]) -> None:
    noise = "Laplace noise" if delta is None else f"Gaussian noise, delta {delta:g}"
    title = f"{case.name}: {case.table.num_rows:,} records, epsilon {EPSILON:g}, {noise}"
    shown = Table("answer", "groups", "least", "mean", "median width", "typical truth", "no end", title=title)
    for each in found:
        figures = (f"{each.least:.3f}", f"{each.mean:.3f}", f"{each.width:.3g}")
        typical = f"{np.median(np.abs(each.truth)):.3g}"
        shown.add_row(each.label, str(each.truth.size), *figures, typical, f"{each.unbounded:.1%}")
    console.print(shown)


def _beside(console: Console, case: Case, runs: int, peers: bool) -> None:
    true = regression.true_slope(case)
    slopes = {
        "Sourdine": regression.ours(case, EPSILON, runs),
        "noisy least squares": regression.noisy_least_squares(case, EPSILON, runs),
    }
    if peers:
        slopes["diffprivlib"], version = regression.diffprivlib(case, EPSILON, min(runs, 300))
        slopes[f"diffprivlib {version}"] = slopes.pop("diffprivlib")
    title = f"{case.name}: slope of {case.value} on {case.on}, {true:.4g}, at epsilon {EPSILON:g}"
    shown = Table("", "root mean square error", "median error", "relative", title=title)
    errors = {name: np.abs(held - true) for name, held in slopes.items()}
    for name, error in errors.items():
        middle = float(np.median(error))
        shown.add_row(name, f"{np.sqrt(np.mean(error**2)):.3g}", f"{middle:.3g}", f"{middle / abs(true):.2%}")
    console.print(shown)
    medians = {name: float(np.median(error)) for name, error in errors.items()}
    best = min((name for name in medians if name != "Sourdine"), key=lambda name: medians[name])
    ratio = medians[best] / medians["Sourdine"]
    told = f"median error of the slope on {case.name} 1/{ratio:.1f} of that of {best}"
    if ratio >= 1:
        verdict(console, True, told)
    else:
        better(console, f"{best} has {ratio:.2f} times the median error of a slope on {case.name}")


if __name__ == "__main__":
    main()
