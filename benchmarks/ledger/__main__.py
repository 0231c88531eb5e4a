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
from benchmarks.ledger.growth import with_lines, with_writers
from benchmarks.ledger.speed import measure


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the kills and of the lines")
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--stretches", type=int, default=10, help="of 500 spends each, for the speed")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    options = parser.parse_args()
    if options.quick:
        options.kills, options.stretches = options.kills // 10, 3
    console = Console()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        speed = measure(Path(folder), stretches=options.stretches, each=500)
        share = speed.ledger / speed.bare
        verdict(
            console,
            share >= 0.6,
            f"{share:.2f} of the rate of bare SQLite in turn with it, with the same journal and as durable "
            f"(target 0.6): {speed.ledger:,.0f} charges a second on one process, {speed.best:,.0f} in the "
            f"best stretch; bare {speed.bare:,.0f}",
        )
        _grow(console, Path(folder), (10**3, 10**4, 10**5) if options.quick else (10**3, 10**4, 10**5, 10**6))
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


def _grow(console: Console, folder: Path, sizes: tuple[int, ...]) -> None:
    rates = {writers: with_writers(folder, writers, 1000 // writers) for writers in (1, 2, 4, 8)}
    told = ", ".join(f"{rate:,.0f} with {writers}" for writers, rate in rates.items())
    console.print(f"charges a second by the number of writers: {told}", soft_wrap=True)
    for lines in sizes:
        long = with_lines(folder, lines, 200)
        targets = [("opened", long.opening, 0.1), ("a certificate verified", long.verifying, 2.0)]
        if long.history is not None:
            targets.append(("replayed", long.history, 5.0))
        verdict(
            console,
            all(seconds < target for _, seconds, target in targets),
            f"{lines:,} lines: {long.charges:,.0f} charges a second; "
            + ", ".join(f"{what} in {seconds:.3f} s (target {target})" for what, seconds, target in targets),
        )


if __name__ == "__main__":
    main()
