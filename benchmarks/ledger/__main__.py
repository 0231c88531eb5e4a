"""The command line: `python -m benchmarks.ledger [--kills N] [--processes N]`."""

import argparse
import secrets
import tempfile
from fractions import Fraction
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.progress import Progress

from benchmarks.ledger.crash import new_ledger, one_spend, torment


def spends_a_second(folder: Path, count: int) -> float:
    """Charges a second of one process, each on the disk before the next."""
    ledger, spend = new_ledger(folder / "speed.ledger", Fraction(10**6)), one_spend()
    ledger.charge(spend, purpose="warm-up")
    start = perf_counter()
    for _ in range(count):
        ledger.charge(spend, purpose="speed")
    return count / (perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        rate = spends_a_second(Path(folder), 5000)
        console.print(f"{rate:,.0f} spends a second on one process (target 2,000)")
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
    console.print(
        f"{outcome.kills} kills of {options.processes} writers: {outcome.acknowledged:,} releases allowed, "
        f"{outcome.recorded:,} lines, {outcome.unrecorded} unrecorded, {outcome.duplicates} counted twice, "
        f"overspent by {outcome.overspent}"
    )
    good = outcome.unrecorded == outcome.duplicates == outcome.overspent == 0 and rate >= 2000
    console.print("met" if good else "missed")


if __name__ == "__main__":
    main()
