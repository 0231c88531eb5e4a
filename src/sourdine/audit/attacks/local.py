"""Reports of a device with fresh noise every day give its answer away; a memo says the same every day."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.audit.attacks.attack import Arm, Attack, AttackChart, AttackResult, ChartPoint, Outcome, percent
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.local import GRR
from sourdine.local.memoization import rehearsed

PEOPLE, DAYS = 1000, 365
DAYS_SEEN = (1, 3, 7, 14, 30, 60, 120, 240, DAYS)
ORACLE = GRR(epsilon=Fraction(1), categories=10)


def run(bits: Bits) -> AttackResult:
    """Take for each person the answer that was reported most often."""
    truth = exact.uniform(ORACLE.categories, PEOPLE, bits)
    answers = np.tile(truth[:, None], DAYS)
    fresh = ORACLE.sample(answers.reshape(-1), bits).reshape(PEOPLE, DAYS)
    memo = rehearsed(ORACLE, answers, bits)
    right = {
        series: {days: count_right(reports[:, :days], truth, bits) for days in DAYS_SEEN}
        for series, reports in ((Arm.UNPROTECTED, fresh), (Arm.PROTECTED, memo))
    }
    odds = float(np.exp(float(ORACLE.epsilon)))
    limit = odds / (odds + ORACLE.categories - 1)
    hits = right[Arm.UNPROTECTED][DAYS]
    return AttackResult(
        name=ATTACK.name,
        attacked=f"{PEOPLE:,} devices asked every day for a year which of {ORACLE.categories} answers is "
        f"theirs. It never changes, and every report has epsilon {float(ORACLE.epsilon):g}.",
        goal="people whose answer is found",
        unprotected=Outcome(target="fresh noise every day", hits=hits, tries=PEOPLE),
        protected=Outcome(target="memo: one report for ever", hits=right[Arm.PROTECTED][DAYS], tries=PEOPLE),
        chance=1 / ORACLE.categories,
        guess=f"any of {ORACLE.categories} answers",
        limit=limit,
        why=f"one report of epsilon {float(ORACLE.epsilon):g}, whatever the days",
        finding=f"After a year of noisy reports, {percent(hits / PEOPLE)} of the answers are known",
        lesson="Fresh noise on the same answer costs epsilon every day. A memo gives the same answer the "
        "same report, so a year tells no more than a day. What it does not hide is that an answer changed.",
        charts=(
            AttackChart(
                finding="Fresh noise wears off within weeks; the memo tells no more than on the first day",
                across="days",
                up="people whose answer is found",
                points=(
                    *(
                        ChartPoint(s, days, hit / PEOPLE, PEOPLE)
                        for s, each in right.items()
                        for days, hit in each.items()
                    ),
                    *(ChartPoint(Arm.MOST, days, limit) for days in DAYS_SEEN),
                ),
                log=True,
                note=f"Whoever sees nothing is right in {percent(1 / ORACLE.categories)} of cases.",
            ),
        ),
    )


def count_right(reports: NDArray[np.int64], truth: NDArray[np.int64], bits: Bits) -> int:
    """How often the most frequent report is the truth; of equally frequent ones any is taken."""
    counts = np.stack([(reports == each).sum(axis=1) for each in range(ORACLE.categories)], axis=1)
    ties = (bits.words(counts.size) >> np.uint64(11)).reshape(counts.shape) * 2.0**-53
    return int(np.count_nonzero(np.argmax(counts + ties, axis=1) == truth))


ATTACK = Attack(name="local", title="the same local question every day, until the noise is gone", run=run)
