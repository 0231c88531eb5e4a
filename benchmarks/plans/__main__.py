"""The command line: `python -m benchmarks.plans [--pairs N] [--engine NAME] [--json PATH]`."""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import reduce
from itertools import repeat
from multiprocessing import get_context
from operator import add
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.finding import verdict
from benchmarks.plans.counting import Row, replay_kind
from sourdine.audit.plans.engines import ENGINES
from tests.faults import FAULTS
from tests.random_plans import KINDS

_QUICK = 200
_ASKED = {"duckdb": 10_000, "polars": 200, "spark": 20}  # pairs of each kind of query
_OTHERS = 30


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pairs")
    parser.add_argument("--pairs", type=int, default=_ASKED["duckdb"], help="of each kind, on DuckDB")
    parser.add_argument("--engine", action="append", choices=list(ENGINES), help="once for each; all of them")
    parser.add_argument("--kind", action="append", choices=KINDS, help="a kind of query; all of them")
    parser.add_argument("--no-faults", action="store_true", help="leave out the planted faults")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every figure here")
    options = parser.parse_args()
    console = Console()
    most = _QUICK if options.quick else options.pairs
    kinds = options.kind or KINDS
    rows: dict[str, list[Row]] = {}
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for name in options.engine or ENGINES:
            if why := ENGINES[name].lacks:
                console.print(f"{name} is left out, since {why}.")
                continue
            pairs = most if name == "duckdb" else min(most // 10, _ASKED.get(name, _OTHERS))
            counted = pool.map(replay_kind, kinds, repeat(name), repeat(pairs))
            rows[name] = list(track(counted, f"kinds of queries on {name}", len(kinds), console=console))
            _show(console, name, rows[name])
    faults = [] if options.no_faults else FAULTS
    caught = [not fault.examined().good for fault in track(faults, "planted faults", console=console)]
    violations = 0
    for name, each in rows.items():
        found = sum(row.violations for row in each)
        violations += found
        least, told = min(row.pairs for row in each), f"of each of {len(each)} kinds of query on {name}"
        verdict(console, not found, f"{found} violations in {least:,} pairs or more {told}")
    if faults:
        verdict(console, all(caught), f"{sum(caught)} of {len(FAULTS)} planted faults caught")
    if options.json:
        held: dict[str, object] = {name: [asdict(row) for row in each] for name, each in rows.items()}
        options.json.write_text(
            json.dumps({**held, "caught": sum(caught), "of": len(faults)}, indent=2) + "\n"
        )
    sys.exit(0 if not violations and all(caught) else 1)


def _show(console: Console, name: str, rows: list[Row]) -> None:
    shown = Table(name, "plans", "pairs", "moved", "farthest", "violations", "pairs a second")
    for each in (*rows, reduce(add, rows, Row("all"))):
        figures = (each.plans, f"{each.pairs:,}", f"{each.moved:,}", f"{each.ratio:.2f}", each.violations)
        shown.add_row(each.name, *map(str, figures), f"{each.pairs / each.seconds:.0f}")
    console.print(shown)


if __name__ == "__main__":
    main()
