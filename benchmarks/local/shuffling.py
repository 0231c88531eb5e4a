"""What a shuffle hides, by oracle: `python -m benchmarks.local.shuffling [--quick]`.

The epsilon of one report among many, by clones (which only know the report's own epsilon) and by the privacy
blanket with each oracle's own shares, with the bracket's lower end: the exact epsilon of one pair of crowds.
"""

import argparse

from rich.console import Console
from rich.table import Table

from benchmarks.finding import verdict
from sourdine.accounting import shuffle_model
from sourdine.local.choose import FREQUENCY, frequency_oracle
from sourdine.local.shuffle import amplified

CATEGORIES, DELTA = 1000, 1e-6
EPSILONS, PEOPLE = (1.0, 2.0, 4.0), (1000, 10_000, 100_000, 1_000_000)
TARGET = ("local-hashing", 4.0, 10_000, 0.285)


def report(console: Console, quick: bool = False) -> None:
    """Every oracle, then the target."""
    shown = Table(title=f"One report among many: epsilon at delta {DELTA:g}, {CATEGORIES:,} categories")
    for name in ("oracle", "epsilon", "people", "clones", "blanket", "at least", "clones/blanket"):
        shown.add_column(name, justify="left" if name == "oracle" else "right")
    name, epsilon, people, most = TARGET
    for each in FREQUENCY:
        for local in EPSILONS:
            oracle, _ = frequency_oracle(each, epsilon=local, categories=CATEGORIES)
            for count in PEOPLE[: 2 if quick else None]:
                clones, found = shuffle_model(local, count, DELTA), amplified(oracle, count, DELTA)
                row = (
                    f"{clones:.4f}",
                    f"{found.upper:.4f}",
                    f"{found.lower:.4f}",
                    f"{clones / found.upper:.2f}",
                )
                shown.add_row(each, f"{local:g}", f"{count:,}", *row)
                if (each, local, count) == (name, epsilon, people):
                    reached = found.upper
    console.print(shown)
    told = f"{name}, epsilon {epsilon:g}, {people:,} people: {reached:.4f} shuffled (target {most:g})"
    verdict(console, reached <= most, told)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local.shuffling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 people")
    report(Console(width=118), parser.parse_args().quick)


if __name__ == "__main__":
    main()
