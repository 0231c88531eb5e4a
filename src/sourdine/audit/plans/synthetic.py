"""Audit of a synthetic table's plan: made-up neighbours, read by its declarations on a real engine.

Does a unit move the counts of a column or a pair, or the score of a pair, farther than the plan pays for?
What is compared is what the noise is added to. Nobody's records are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.audit.plans.cells import Dice
from sourdine.core.distance import Neighbours
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.schema import Category, Column, Flag, Integer, Real
from sourdine.frames.source import open_source
from sourdine.frames.times import Date, Datetime
from sourdine.tables.synthetic import SyntheticPlan
from sourdine.tables.synthetic.measure import FINENESS, Codes, count_cells, pair_tables, score
from sourdine.tables.synthetic.synthesis import codes_by_part
from sourdine.testing import SeededBits

_OTHERS = 10  # units beside the one that is watched
Record = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SyntheticMovement:
    """How far a unit moved counts and scores at most, as a share of what is paid for; above 1 is too far."""

    pairs: int
    counts: float
    scores: float

    @property
    def passed(self) -> bool:
        """Whether no pair of neighbours was farther apart than is paid for."""
        return max(self.counts, self.scores) <= 1


def audit_synthetic_plan(plan: SyntheticPlan, *, pairs: int = 200, bits: Bits = SYSTEM) -> SyntheticMovement:
    """Read so many pairs of made-up neighbours, and measure how far apart they are, over all parts together.

    Counts are compared in squared L2, with what one of the plan's tables pays for. For scores a choice costs
    the square of what moved it, so those of all parts add up in squares.
    """
    dice, counts, scores = Dice(bits), 0.0, 0.0
    paid = 2 if plan.neighbours is Neighbours.REPLACE else 1
    for _ in range(pairs):
        one, other = _neighbours(plan, dice)
        seed = dice.below(1 << 30)  # the same secret for both: which record of a unit counts depends on it
        here, there = (_codes(plan, each, seed) for each in (one, other))
        sizes = [column.size for column in plan.columns]
        squares = [0.0] * len(sizes)
        moved: dict[tuple[int, int], tuple[float, float]] = {}
        for ours, theirs in zip(here, there, strict=True):
            for column, size in enumerate(sizes):
                change = count_cells([ours[column]], [size]) - count_cells([theirs[column]], [size])
                squares[column] += float((change**2).sum())
            both = zip(pair_tables(ours, sizes), pair_tables(theirs, sizes), strict=True)
            for (pair, table), (_, neighbour) in both:
                expected = _model(table.shape, dice)
                step = (score(table, expected) - score(neighbour, expected)) / (FINENESS * paid)
                before = moved.get(pair, (0.0, 0.0))
                moved[pair] = (before[0] + float(((table - neighbour) ** 2).sum()), before[1] + step**2)
        counts = max(
            [counts, *(each / paid for each in squares), *(each[0] / paid for each in moved.values())]
        )
        scores = max([scores, *(each[1] for each in moved.values())])
    return SyntheticMovement(pairs=pairs, counts=counts, scores=scores)


def _model(shape: tuple[int, ...], dice: Dice) -> NDArray[np.float64]:
    """Any expectation, which is public: off the grid, and around small counts."""
    return np.array([dice.below(1000) / 333 for _ in range(int(np.prod(shape)))]).reshape(shape)


def _neighbours(plan: SyntheticPlan, dice: Dice) -> tuple[list[Record], list[Record]]:
    """The same records of others, with the records of a unit and without; or with another in its place."""
    others = [record for unit in range(_OTHERS) for record in _records(plan, dice, f"other {unit}")]
    watched = _records(plan, dice, "watched")
    if plan.neighbours is Neighbours.REPLACE:
        return others + watched, others + _records(plan, dice, "newcomer")
    return others + watched, others


def _records(plan: SyntheticPlan, dice: Dice, unit: str) -> list[Record]:
    """The records of one unit: one, or several where a column tells units apart."""
    many = 1 if plan.unit.column is None else 1 + dice.below(4)
    whose = {} if plan.unit.column is None else {plan.unit.column: unit}
    return [
        {name: _cell(column, dice) for name, column in plan.schema.base.columns.items()} | whose
        for _ in range(many)
    ]


def _cell(column: Column, dice: Dice) -> str | None:
    """A value as text: within what is declared, at its ends, beyond, missing, or no value at all."""
    if dice.one_in(5):
        return dice.one([None, "", "nan", "1e400", "-1e400", "something else", "a\x00", "\r"])
    match column:
        case Category():
            return str(dice.one(list(column.keys)))
        case Flag():
            return dice.one(["true", "false"])
        case Integer() | Real():
            return str(dice.one([column.lower, column.upper, column.lower - 1, column.upper + 1]))
        case Date() | Datetime():
            return dice.one([column.first, column.last]).isoformat(
                *([" "] if isinstance(column, Datetime) else [])
            )
    return "text"


def _codes(plan: SyntheticPlan, records: Sequence[Mapping[str, Any]], seed: int) -> list[list[Codes]]:
    """The cells of the records by part, as a synthesis reads them."""
    import pyarrow as pa

    names = list(plan.schema.base.columns)
    if plan.unit.column is not None and plan.unit.column not in names:
        names.append(plan.unit.column)
    columns = {name: pa.array([record[name] for record in records], pa.string()) for name in names}
    others = [] if plan.unit.column is None else [plan.unit.column]
    source = open_source(pa.table(columns), plan.schema, others)
    return codes_by_part(plan, source, SeededBits(seed))
