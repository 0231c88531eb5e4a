"""The command line: `python -m benchmarks.plans [--pairs N] [--json PATH]`."""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from sourdine.audit.plans import audit_plan
from sourdine.audit.plans.engines import ENGINES
from sourdine.audit.plans.faults import FAULTS
from sourdine.audit.plans.random_plans import KINDS, random_plan

_EACH = 500  # pairs of one random plan
_OTHERS = 1000  # pairs of all kinds on each other engine


@dataclass
class Row:
    """What was seen of one kind of query, or of one engine."""

    name: str
    plans: int = 0
    pairs: int = 0
    moved: int = 0
    ratio: float = 0.0
    violations: int = 0
    seconds: float = 0.0


def replay(row: Row, kind: str, seed: int, pairs: int, engine: str) -> None:
    """One random plan on one engine, added to a row."""
    start = time.perf_counter()
    found = audit_plan(random_plan(kind, seed), pairs=pairs, engines=[engine], seed=1000 * seed)
    row.seconds += time.perf_counter() - start
    held = [each for each in found.lines if each.line.measurement.query.name == kind]
    row.plans += 1
    row.pairs += min(each.pairs for each in held)
    row.moved += max(each.moved for each in held)
    row.ratio = max(row.ratio, *(each.ratio for each in held))
    row.violations += len(found.violations)
    for violation in found.violations[:3]:
        print(f"{kind}, plan {seed}: {violation.words}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000, help="pairs of each kind of query, on DuckDB")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every figure here")
    options = parser.parse_args()
    console = Console()
    kinds = {kind: Row(kind) for kind in KINDS}
    for kind, row in track(list(kinds.items()), "kinds of queries", console=console):
        while row.pairs < options.pairs:
            replay(row, kind, row.plans, min(_EACH, max(options.pairs - row.pairs, 20)), "duckdb")
    engines = {name: Row(name) for name, each in ENGINES.items() if name != "duckdb" and not each.lacks}
    for name, row in track(list(engines.items()), "other engines", console=console):
        for seed, kind in enumerate(KINDS):
            replay(row, kind, seed, max(1, min(_OTHERS, options.pairs) // len(KINDS)), name)
    caught = [not fault.examined().good for fault in track(FAULTS, "planted faults", console=console)]
    for title, rows in (("query", kinds), ("engine", engines)):
        shown = Table(title, "plans", "pairs", "moved", "farthest", "violations", "pairs a second")
        for each in rows.values():
            rate = f"{each.pairs / each.seconds:.0f}"
            figures = (each.plans, f"{each.pairs:,}", f"{each.moved:,}", f"{each.ratio:.2f}", each.violations)
            shown.add_row(each.name, *map(str, figures), rate)
        console.print(shown)
    violations = sum(each.violations for each in (*kinds.values(), *engines.values()))
    console.print(f"{violations} violations; {sum(caught)} of {len(FAULTS)} planted faults caught.")
    if options.json:
        held = {"kinds": [asdict(each) for each in kinds.values()], "caught": sum(caught), "of": len(FAULTS)}
        held["engines"] = [asdict(each) for each in engines.values()]
        options.json.write_text(json.dumps(held, indent=2) + "\n")
    sys.exit(0 if not violations and all(caught) else 1)


if __name__ == "__main__":
    main()
