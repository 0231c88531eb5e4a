"""The command line: `python -m benchmarks.ledger [--kills N] [--processes N] [--stretches N]`."""

import argparse
import secrets
import tempfile
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.finding import verdict
from benchmarks.ledger.crash import torment
from benchmarks.ledger.speed import measure


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the kills, fewer spends")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--stretches", type=int, default=10, help="of 500 spends each, for the speed")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    options = parser.parse_args()
    if options.quick:
        options.kills, options.stretches = options.kills // 10, 3
    console = Console()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        speed = measure(Path(folder), stretches=options.stretches, each=500)
        verdict(
            console,
            speed.ledger >= 2000,
            f"{speed.ledger / speed.bare:.2f} of the rate of bare SQLite in turn with it: "
            f"{speed.ledger:,.0f} spends a second on one process (target 2,000), {speed.best:,.0f} in the "
            f"best stretch; bare {speed.bare:,.0f}",
        )
        with Progress(console=console) as bar:
            task = bar.add_task(f"killing writers, seed {options.seed}", total=options.kills)
            outcome = torment(
                Path(folder),
                processes=options.processes,
                kills=options.kills,
                limit=Fraction(10**6),
                seed=options.seed,
                progress=lambda done: bar.update(task, completed=done),
            )
    verdict(
        console,
        outcome.unrecorded == outcome.duplicates == outcome.overspent == 0,
        f"{outcome.kills} kills of {options.processes} writers: {outcome.acknowledged:,} releases allowed, "
        f"{outcome.recorded:,} lines, {outcome.unrecorded} unrecorded, {outcome.duplicates} counted twice, "
        f"overspent by {outcome.overspent}",
    )


if __name__ == "__main__":
    main()
