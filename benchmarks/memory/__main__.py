"""The command line: `python -m benchmarks.memory [--quick] [--only NAME] [--json PATH]`."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.memory.cases import CASES, Case
from sourdine.learning.memory.dry_run import memory_of
from sourdine.learning.memory.model import Stage

MOST = 0.10
Result = dict[str, Any]


def compare(case: Case, *, private: bool, quick: bool) -> list[Result]:
    """The forecast from dry runs here, beside the allocator's word in a fresh process at each batch."""
    start = time.perf_counter()
    memory = memory_of(case.make(), case.batch(1), private=private)
    seconds = time.perf_counter() - start
    dry = memory.most[Stage.AGAIN].points[-1][0]
    results = []
    for batch in case.batches[:-1] if quick else case.batches:
        command = [sys.executable, "-m", "benchmarks.memory.measured", case.name, str(batch)]
        command.append("private" if private else "plain")
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        results.append(
            {
                "case": case.name,
                "private": private,
                "largest_dry": dry,
                "seconds": seconds,
                "batch": batch,
                "forecast": memory.peak(batch),
                "measured": told["alone"],
                "error": memory.peak(batch) / told["alone"] - 1,
                "error_in_parts": memory.peak(batch, parts=True) / told["parts"] - 1,
            }
        )
    return results


def show(results: list[Result], console: Console) -> None:
    """One table, and whether the target is met."""
    table = Table(title="peak of tensors, forecast and measured")
    table.add_column("model")
    table.add_column("private")
    columns = ("dry runs up to", "batch", "forecast, MB", "measured, MB", "off, %", "in parts, %", "fit, s")
    for name in columns:
        table.add_column(name, justify="right")
    for each in results:
        table.add_row(
            each["case"],
            "yes" if each["private"] else "no",
            str(each["largest_dry"]),
            str(each["batch"]),
            f"{each['forecast'] / 1e6:,.2f}",
            f"{each['measured'] / 1e6:,.2f}",
            f"{100 * each['error']:+.1f}",
            f"{100 * each['error_in_parts']:+.1f}",
            f"{each['seconds']:.1f}",
        )
    console.print(table)
    worst = max(max(abs(each["error"]), abs(each["error_in_parts"])) for each in results)
    met = "met" if worst <= MOST else "missed"
    console.print(f"{met}: off by {100 * worst:.1f} % at most (at most {100 * MOST:g})")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the largest batches")
    parser.add_argument("--only", metavar="NAME", help="models whose name holds this")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    console = Console(width=None if sys.stdout.isatty() else 130)
    results: list[Result] = []
    for case in CASES:
        if options.only is None or options.only in case.name:
            for private in (True, False):
                with console.status(case.name):
                    results += compare(case, private=private, quick=options.quick)
    show(results, console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
