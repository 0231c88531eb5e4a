"""Averaging: fresh noise on the same question goes away, unless a ledger counts the answers."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.audit.attacks.attack import Arm, Attack, AttackChart, AttackResult, ChartPoint, Outcome, percent
from sourdine.audit.attacks.targets import UNIT, fresh_ledger, most_right, relation
from sourdine.core.errors import BudgetExceeded
from sourdine.core.mechanism import Mechanism
from sourdine.core.random.bits import Bits, coins
from sourdine.tables import Table

EACH, BUDGET = Fraction(1, 10), Fraction(1, 2)
ANSWERS = 10_000
TRIALS, MORE = 400, 4000  # of many answers, and of few
OTHERS = 120  # who are known to have the illness
COUNTED = (1, 2, 5, 10, 30, 100, 300, 1000, 3000, ANSWERS)


def run(bits: Bits) -> AttackResult:
    """Ask how many have an illness, again and again, knowing all but one of them."""
    table = Table(relation({"ill": np.ones(OTHERS, np.bool_)}), unit=UNIT, columns={"ill": {"type": "flag"}})
    query = {"name": "ill", "ask": ["count"], "where": [{"column": "ill", "keys": [True]}]}
    plan = table.plan(query, epsilon=EACH, quality=False)
    granted = 0
    with fresh_ledger(BUDGET) as ledger:
        try:
            while granted < ANSWERS:
                table.release(plan, ledger, purpose="the same question again", bits=bits)
                granted += 1
        except BudgetExceeded:
            pass  # the last answer
    mechanism = plan.lines[0].mechanism
    free = guessed(mechanism, COUNTED, TRIALS, bits)
    protected = guessed(mechanism, [each for each in COUNTED if each <= granted], MORE, bits)
    last = max(protected)
    limit = most_right(BUDGET)
    total = {count: protected.get(count, protected[last]) for count in COUNTED}
    return AttackResult(
        name=ATTACK.name,
        attacked=f"A count with noise of epsilon {float(EACH):g}, asked again and again. The attacker knows "
        "everybody who is counted but one person, and takes the mean of the answers.",
        goal="right guesses whether that person is counted",
        unprotected=Outcome(target=f"{ANSWERS:,} answers, no ledger", hits=free[ANSWERS], tries=TRIALS),
        protected=Outcome(
            target=f"ledger of epsilon {float(BUDGET):g}: {granted} answers", hits=protected[last], tries=MORE
        ),
        chance=0.5,
        guess="a coin",
        limit=limit,
        why=f"epsilon {float(BUDGET):g} in all",
        finding=f"{ANSWERS:,} noisy answers tell the truth about a person in "
        f"{percent(free[ANSWERS] / TRIALS)} of cases; a ledger stops after {granted}",
        lesson="Noise protects an answer, a ledger protects a person. What is spent adds up over answers, so "
        "somebody has to count, and to refuse before the noise is drawn.",
        charts=(
            AttackChart(
                finding=f"Without a ledger the guess gets ever better; with one it stays below "
                f"{percent(limit)}",
                across="times that the question is asked",
                up="right guesses",
                points=(
                    *(
                        ChartPoint(Arm.UNPROTECTED, count, hits / TRIALS, TRIALS)
                        for count, hits in free.items()
                    ),
                    *(ChartPoint(Arm.PROTECTED, count, hits / MORE, MORE) for count, hits in total.items()),
                    *(ChartPoint(Arm.MOST, count, limit) for count in COUNTED),
                ),
                log=True,
                note="A coin is right half of the time.",
            ),
        ),
    )


def guessed(mechanism: Mechanism, counts: Sequence[int], trials: int, bits: Bits) -> dict[int, int]:
    """In how many trials the mean of the first answers is on the right side of the middle."""
    there = coins(bits, trials)
    most = max(counts)
    answers = mechanism.sample(np.repeat(OTHERS + there.astype(np.int64), most), bits)
    sums: NDArray[np.int64] = np.cumsum(answers.reshape(trials, most), axis=1)
    middle = OTHERS + 0.5
    return {count: int(np.count_nonzero((sums[:, count - 1] > count * middle) == there)) for count in counts}


ATTACK = Attack(name="averaging", title="the same question again and again, until the noise is gone", run=run)
