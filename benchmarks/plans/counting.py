"""Random plans replayed on pairs of neighbouring tables, in a process of their own."""

import sys
import time
from dataclasses import dataclass

from sourdine.audit.plans import audit_plan
from sourdine.audit.plans.random_plans import KINDS, random_plan

_EACH = 500  # pairs of one random plan


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
    held = [each for each in found.lines if each.line.measurement.scope.query == kind]
    row.plans += 1
    row.pairs += min(each.pairs for each in held)
    row.moved += max(each.moved for each in held)
    row.ratio = max(row.ratio, *(each.ratio for each in held))
    row.violations += len(found.violations)
    for violation in found.violations[:3]:
        print(f"{kind}, plan {seed}: {violation.words}", file=sys.stderr)


def replay_kind(kind: str, pairs: int) -> Row:
    """So many pairs of one kind of query, over many random plans, on DuckDB."""
    row = Row(kind)
    while row.pairs < pairs:
        replay(row, kind, row.plans, min(_EACH, max(pairs - row.pairs, 20)), "duckdb")
    return row


def replay_engine(name: str, pairs: int) -> Row:
    """So many pairs of all kinds of queries on another engine."""
    row = Row(name)
    for seed, kind in enumerate(KINDS):
        replay(row, kind, seed, max(1, pairs // len(KINDS)), name)
    return row
