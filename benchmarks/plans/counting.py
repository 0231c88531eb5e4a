"""Random plans replayed on pairs of neighbouring tables, in a process of their own."""

import sys
import time
from dataclasses import dataclass

from sourdine.audit.plans import audit_plan
from sourdine.audit.plans.engines import ENGINES
from tests.random_plans import random_plan
from tests.random_plans.columns import public_tables

_EACH = 500  # pairs of one random plan
_ALONE = 250  # of so many tables one is also asked on its own


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

    def __add__(self, other: "Row") -> "Row":
        return Row(
            name=self.name,
            plans=self.plans + other.plans,
            pairs=self.pairs + other.pairs,
            moved=self.moved + other.moved,
            ratio=max(self.ratio, other.ratio),
            violations=self.violations + other.violations,
            seconds=self.seconds + other.seconds,
        )


def replay(row: Row, kind: str, seed: int, pairs: int, engine: str) -> None:
    """One random plan on one engine, added to a row."""
    start = time.perf_counter()
    plan = random_plan(kind, seed)
    joins = public_tables(plan.schema)
    found = audit_plan(plan, joins=joins, pairs=pairs, engines=[engine], seed=1000 * seed, alone=_ALONE)
    row.seconds += time.perf_counter() - start
    held = [each for each in found.lines if each.line.measurement.scope.query == kind]
    row.plans += 1
    row.pairs += min(each.pairs for each in held)
    row.moved += max(each.moved for each in held)
    row.ratio = max(row.ratio, *(each.ratio for each in held))
    row.violations += len(found.violations)
    for violation in found.violations[:3]:
        print(f"{kind}, plan {seed}: {violation.words}", file=sys.stderr)


def replay_kind(kind: str, engine: str, pairs: int) -> Row:
    """So many pairs of one kind of query or more, over many random plans, on one engine."""
    row = Row(kind)
    while row.pairs < pairs:
        left = pairs - row.pairs
        # some steps are no pairs; and of few pairs too not all are of one plan, which may ask about nobody
        steps = min(_EACH, left + left // 2 + 5, pairs // 4 + 5)
        replay(row, kind, row.plans, steps if ENGINES[engine].together else 100 * steps, engine)
    told = f"{row.pairs:,} pairs, {row.violations} violations, farthest {row.ratio:.2f}, {row.seconds:.0f} s"
    print(f"{kind} on {engine}: {told}", file=sys.stderr, flush=True)  # a long run may be cut off
    return row
