"""Audit of a synthetic table: with and without one outlying record, how surely does what comes out tell?

Everything is made up. The same code measures and draws as for real tables. An audit can refute a claim, never
prove it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.spend import block_loss
from sourdine.audit.lower_bound import FALSE_ALARM, AnswerSplit, LowerBound, bound_of_loss
from sourdine.audit.outcomes import Tally, count_codes
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.tables.privacy import Privacy
from sourdine.tables.synthetic import SyntheticBlock, SyntheticPlan
from sourdine.tables.synthetic.measure import Codes, PartMeasurement
from sourdine.tables.synthetic.synthesis import measure_one, model_of

LEAST_RUNS, MOST_RUNS = 1000, 10**6
_OTHERS = 200  # records that are alike
_STEPS = 8  # of the statistic to one deviation of its noise


@dataclass(frozen=True, kw_only=True)
class SyntheticAudit:
    """What an audit found: a lower bound by the noisy tables, and one by the rows that were drawn alone."""

    tables: LowerBound
    rows: LowerBound

    @property
    def passed(self) -> bool:
        """Whether nothing that was answers contradicts the claim."""
        return not (self.tables.exceeded or self.rows.exceeded)


def example_plan(
    epsilon: Fraction | float = 1, delta: float = 1e-3, *, neighbours: Neighbours = Neighbours.ADD_REMOVE
) -> SyntheticPlan:
    """A plan of four small columns, for audits."""
    keys = {"type": "category", "keys": ["a", "b", "c"], "missing": "a"}
    return SyntheticPlan(
        schema=Schema.read(dict.fromkeys(("first", "second", "third", "fourth"), keys)),
        privacy=Privacy(epsilon=epsilon, delta=delta),
        unit=PrivacyUnit("person"),
        neighbours=neighbours,
        block=SyntheticBlock(),
    )


def audit_synthetic(
    plan: SyntheticPlan | None = None,
    *,
    runs: int = 4000,
    false_alarm: float = FALSE_ALARM,
    bits: Bits = SYSTEM,
) -> SyntheticAudit:
    """Make tables with and without a canary, a record whose cells nobody else has, and tell them apart.

    The statistic of the tables is the sum of the canary's cells over all that were measured, each by the
    inverse of its variance, which is the best for Gaussian noise. That of the rows is how often the canary's
    values occur in them. Where units are replaced, the canary takes the place of a usual record.
    """
    audited = example_plan() if plan is None else plan
    many = check.integer("audit_synthetic", "runs", runs, LEAST_RUNS, MOST_RUNS)
    sizes = [column.size for column in audited.columns]
    canary = [size - 1 for size in sizes]
    usual = _OTHERS - (audited.neighbours is Neighbours.REPLACE)
    inputs = [_records([0] * len(sizes), _OTHERS), _records([0] * len(sizes), usual, canary)]
    parts = (many // 4, many // 4, many - 2 * (many // 4))
    by_tables: list[tuple[Tally, ...]] = []
    by_rows: list[tuple[Tally, ...]] = []
    for count in parts:
        answers = [[_outcome(audited, codes, canary, bits) for _ in range(count)] for codes in inputs]
        for place, into in enumerate((by_tables, by_rows)):
            into.append(
                tuple(count_codes(np.array([pair[place] for pair in each], np.int64)) for each in answers)
            )
    loss, alarm = (
        block_loss(audited.spends),
        float(check.inside("an audit", "false_alarm", false_alarm, 0, 1)),
    )
    delta = float(audited.privacy.delta or 0)
    tables, rows = (
        replace(
            bound_of_loss(loss, AnswerSplit(parts, tuple(each)), delta=delta, false_alarm=alarm / 2),
            claimed=float(audited.privacy.epsilon),  # as the ledger converts rho, which no law undercuts
        )
        for each in (by_tables, by_rows)
    )
    return SyntheticAudit(tables=tables, rows=rows)


def _records(cells: Sequence[int], count: int, canary: Sequence[int] = ()) -> list[Codes]:
    """Records that are all alike, and perhaps one that is not."""
    columns: list[Codes] = []
    for place, cell in enumerate(cells):
        alike: NDArray[np.uint8] = np.full(count, cell, np.uint8)
        columns.append(np.append(alike, np.uint8(canary[place])) if canary else alike)
    return columns


def _outcome(
    plan: SyntheticPlan, codes: Sequence[Codes], canary: Sequence[int], bits: Bits
) -> tuple[int, int]:
    """Both statistics of one synthetic table."""
    measured = measure_one(plan, codes, bits)
    table = model_of(plan, [measured]).draw(_OTHERS, bits=bits)
    alike = np.ones(_OTHERS, np.bool_)
    for column, cell in zip(plan.columns, canary, strict=True):
        alike &= table.cells[column.name] == cell
    return _evidence(plan, measured, canary), int(alike.sum())


def _evidence(plan: SyntheticPlan, measured: PartMeasurement, canary: Sequence[int]) -> int:
    """The canary's cells, by inverse variances, in steps of a fraction of a deviation."""
    of_columns = [1 / float(each.sigma) ** 2 for each in plan.noise.columns]
    of_pairs = 1 / float(plan.noise.pairs.sigma) ** 2
    counts = (int(each[cell]) for each, cell in zip(measured.columns, canary, strict=True))
    total = sum(weight * count for weight, count in zip(of_columns, counts, strict=True))
    for (one, other), table in zip(measured.edges, measured.tables, strict=True):
        places = (measured.cells[one][canary[one]], measured.cells[other][canary[other]])
        total += of_pairs * float(table[places])
    spread = math.sqrt(sum(of_columns) + of_pairs * len(measured.edges))
    return round(_STEPS * total / spread)
