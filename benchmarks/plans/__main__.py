"""The command line: `python -m benchmarks.plans [--pairs N] [--json PATH]`."""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.finding import verdict
from benchmarks.plans.counting import replay_engine, replay_kind
from sourdine.audit.plans.engines import ENGINES
from sourdine.audit.plans.faults import FAULTS
from sourdine.audit.plans.random_plans import KINDS

_QUICK = 200
_OTHERS = 1000  # pairs of all kinds on each other engine


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pairs")
    parser.add_argument("--pairs", type=int, default=10_000, help="pairs of each kind of query, on DuckDB")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every figure here")
    options = parser.parse_args()
    console = Console()
    if options.quick:
        options.pairs = _QUICK
    others = [name for name, each in ENGINES.items() if name != "duckdb" and not each.lacks]
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=get_context("spawn")) as pool:
        counted = pool.map(replay_kind, KINDS, repeat(options.pairs))
        kinds = list(track(counted, "kinds of queries", len(KINDS), console=console))
        counted = pool.map(replay_engine, others, repeat(min(_OTHERS, options.pairs)))
        engines = list(track(counted, "other engines", len(others), console=console))
    caught = [not fault.examined().good for fault in track(FAULTS, "planted faults", console=console)]
    for title, rows in (("query", kinds), ("engine", engines)):
        shown = Table(title, "plans", "pairs", "moved", "farthest", "violations", "pairs a second")
        for each in rows:
            rate = f"{each.pairs / each.seconds:.0f}"
            figures = (each.plans, f"{each.pairs:,}", f"{each.moved:,}", f"{each.ratio:.2f}", each.violations)
            shown.add_row(each.name, *map(str, figures), rate)
        console.print(shown)
    violations = sum(each.violations for each in (*kinds, *engines))
    least = min(each.pairs for each in kinds)
    verdict(
        console, not violations, f"{violations} violations in {least:,} pairs or more of each kind of query"
    )
    verdict(console, all(caught), f"{sum(caught)} of {len(FAULTS)} planted faults caught")
    if options.json:
        held = {"kinds": [asdict(each) for each in kinds], "caught": sum(caught), "of": len(FAULTS)}
        held["engines"] = [asdict(each) for each in engines]
        options.json.write_text(json.dumps(held, indent=2) + "\n")
    sys.exit(0 if not violations and all(caught) else 1)


if __name__ == "__main__":
    main()
