"""Membership in a synthetic table: rows that were only resampled tell who is in them."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.audit.attacks.attack import Arm, Attack, AttackChart, AttackResult, ChartPoint, Outcome, percent
from sourdine.audit.attacks.targets import most_right
from sourdine.audit.synthetic import example_plan
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits, coins
from sourdine.tables.synthetic import SyntheticPlan
from sourdine.tables.synthetic.synthesis import measure_one, model_of

OTHERS = 120
EPSILON, DELTA = Fraction(1, 2), 1e-6
_TRIES, _PROTECTED = 1000, 300
_RARE = 2  # the key of the person who is looked for, in every column


def run(bits: Bits) -> AttackResult:
    """Is a person with a rare combination of keys in the table? Look for the combination in its rows."""
    plan = example_plan(EPSILON, DELTA)
    open_hits = _hits(None, _TRIES, bits)
    safe_hits = _hits(plan, _PROTECTED, bits)
    unprotected = Outcome(target="resampled rows", hits=open_hits, tries=_TRIES)
    protected = Outcome(target="a synthetic table with a guarantee", hits=safe_hits, tries=_PROTECTED)
    limit = most_right(EPSILON) + DELTA
    return AttackResult(
        name=ATTACK.name,
        attacked=f"A table of {OTHERS} people and perhaps one more, whose combination of keys nobody else "
        "has. What is published are made-up rows: drawn again from the real ones, or from noisy tables of "
        "pairs.",
        goal="right guesses whether that person is in the table",
        unprotected=unprotected,
        protected=protected,
        chance=0.5,
        guess="a fair coin",
        limit=limit,
        why=f"epsilon {float(EPSILON):g}, delta {DELTA:g}",
        finding=f"{percent(unprotected.success)} right by looking into resampled rows, "
        f"{percent(protected.success)} where the rows come from noisy tables",
        lesson="That rows are synthetic protects nobody: what they were drawn from must be private. Rows "
        "from noisy tables tell about a person no more than epsilon allows, however they are drawn.",
        charts=(
            AttackChart(
                finding="Resampled rows tell who is in the table",
                across="right guesses",
                up="rows",
                points=(
                    ChartPoint(Arm.UNPROTECTED, unprotected.target, unprotected.success, _TRIES),
                    ChartPoint(Arm.PROTECTED, protected.target, protected.success, _PROTECTED),
                    ChartPoint(Arm.MOST, f"epsilon {float(EPSILON):g}, at most", limit),
                    ChartPoint(Arm.BLIND, "a fair coin", 0.5),
                ),
            ),
        ),
    )


def _hits(plan: SyntheticPlan | None, tries: int, bits: Bits) -> int:
    """How often the guess is right, over fresh tables with the person in half of them."""
    inside = coins(bits, tries)
    return sum(_is_there(_published(plan, bool(each), bits)) == bool(each) for each in inside)


def _published(plan: SyntheticPlan | None, inside: bool, bits: Bits) -> NDArray[np.int64]:
    """The rows that are published: four columns of keys."""
    others = exact.uniform(_RARE, 4 * OTHERS, bits).reshape(OTHERS, 4)  # nobody else has a rare key
    rows = np.concatenate([others, np.full((1, 4), _RARE)]) if inside else others
    if plan is None:
        return rows[exact.uniform(len(rows), len(rows), bits)]
    measured = measure_one(plan, [column.astype(np.uint8) for column in rows.T], bits)
    table = model_of(plan, [measured]).draw(OTHERS, bits=bits)
    return np.stack([table.cells[column.name] for column in plan.columns], axis=1)


def _is_there(rows: NDArray[np.int64]) -> bool:
    return bool((rows == _RARE).all(axis=1).any())


ATTACK = Attack(name="synthetic", title="rows that were only resampled tell who is in them", run=run)
