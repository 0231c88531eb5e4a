"""Reconstruction: enough counts that are too accurate give a whole column away (Dinur, Nissim 2003).

Of n people with a secret bit each, counts over random subsets are answered with errors well below sqrt(n). A
linear program finds bits that fit the answers, and nearly all of them are right. Here it has the least sum
of distances, which no few wild answers mislead (Dwork, McSherry, Talwar 2007).
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.audit.attacks.attack import (
    Arm,
    Attack,
    AttackChart,
    AttackResult,
    ChartPoint,
    Outcome,
    own_result,
    percent,
)
from sourdine.audit.attacks.own_table import OwnTable
from sourdine.audit.attacks.targets import UNIT, answer, fresh_ledger, most_right, relation
from sourdine.core.random.bits import Bits, coins
from sourdine.mechanisms import Gaussian
from sourdine.tables import Table

PEOPLE, FEWER = 96, 48
PER_PERSON = 4  # counts
ROUNDED = 5  # to multiples of this
EPSILON = Fraction(1)
NOISES = (0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 2.0, 5.0)  # standard deviation over sqrt(n)
REPEATS = 2
REDRAWN = 8  # times that the noise of the release is drawn

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def run(bits: Bits) -> AttackResult:
    """Rebuild a secret column from rounded counts, from counts with more and more noise, and from ours."""
    points = []
    for size in (FEWER, PEOPLE):
        repeats = REPEATS * PEOPLE // size
        for noise in NOISES:
            hits = sum(_noisy(size, noise, bits) for _ in range(repeats))
            points.append(ChartPoint(f"{size} people", noise, hits / (repeats * size), repeats * size))
    secret, subsets = _draw(PEOPLE, bits)
    rounded = np.rint(subsets @ secret.astype(np.int64) / ROUNDED) * ROUNDED
    hits = _right(rebuild(subsets, rounded), secret)
    released = _release(secret, subsets, bits)
    ours = sum(_right(rebuild(subsets, each), secret) for each in released)
    spread = float(np.std(released - subsets @ secret.astype(np.int64))) / math.sqrt(PEOPLE)
    tries, limit = len(released) * PEOPLE, most_right(EPSILON)
    points.append(ChartPoint(Arm.PROTECTED, round(spread), ours / tries, tries))
    many = PER_PERSON * PEOPLE
    return AttackResult(
        name=ATTACK.name,
        attacked=f"{many} counts over random halves of {PEOPLE} people: how many of them have the secret "
        "bit? A linear program looks for the bits that fit the answers best.",
        goal="bits rebuilt rightly",
        unprotected=Outcome(target=f"counts rounded to multiples of {ROUNDED}", hits=hits, tries=PEOPLE),
        protected=Outcome(target=f"the same counts at epsilon {float(EPSILON):g}", hits=ours, tries=tries),
        chance=0.5,
        guess="a coin",
        limit=limit,
        why=f"epsilon {float(EPSILON):g} for all {many} counts",
        finding=f"Counts rounded to multiples of {ROUNDED} give {percent(hits / PEOPLE)} of a secret column "
        "away",
        lesson="Answers that are too many and too accurate are the table itself, whatever each of them "
        f"hides. A budget for all of them puts noise of {spread:.0f} √n on each, and the "
        "column stays unknown; whoever needs accurate answers has to ask fewer questions.",
        charts=(
            AttackChart(
                finding="Nearly all bits are rebuilt where the noise is small beside √n, whatever the number "
                "of people",
                across="standard deviation of the noise / √(number of people)",
                up="bits rebuilt rightly",
                points=(*points, *(ChartPoint(Arm.BLIND, noise, 0.5) for noise in (*NOISES, round(spread)))),
                log=True,
                note=f"{PER_PERSON} counts for each person, with Gaussian noise. The point on the right is "
                f"the release at epsilon {float(EPSILON):g}.",
            ),
        ),
    )


def run_on(own: OwnTable, bits: Bits) -> AttackResult:
    """The same with the secret of people in a table of one's own, as many as the linear program takes."""
    order = np.argsort(bits.words(len(own.secret)), kind="stable")
    secret = own.secret[order[:PEOPLE]]
    subsets = coins(bits, PER_PERSON * len(secret) ** 2).reshape(-1, len(secret))
    rounded = np.rint(subsets @ secret.astype(np.int64) / ROUNDED) * ROUNDED
    hits = _right(rebuild(subsets, rounded), secret)
    released = _release(secret, subsets, bits)
    ours = sum(_right(rebuild(subsets, each), secret) for each in released)
    return own_result(
        own,
        name=ATTACK.name,
        attacked=f"{len(subsets)} counts over random halves of {len(secret)} people of the table: of how "
        f"many is '{own.words}' true? A linear program looks for the bits that fit the answers best.",
        unprotected=Outcome(target=f"counts rounded to multiples of {ROUNDED}", hits=hits, tries=len(secret)),
        protected=Outcome(
            target=f"the same counts at epsilon {float(EPSILON):g}",
            hits=ours,
            tries=len(released) * len(secret),
        ),
        epsilon=EPSILON,
        lesson="So much of the column would be known from such counts. A budget for all of them together "
        "keeps it unknown.",
    )


def rebuild(subsets: Flags, answers: Floats) -> Flags:
    """The bits whose counts are nearest to the answers, by the sum of distances."""
    from scipy.optimize import linprog

    many, people = subsets.shape
    counts, error = subsets.astype(float), np.eye(many)
    solution = linprog(
        np.concatenate([np.zeros(people), np.ones(many)]),
        A_ub=np.block([[counts, -error], [-counts, -error]]),
        b_ub=np.concatenate([answers, -answers]),
        bounds=[(0, 1)] * people + [(0, None)] * many,
        method="highs-ipm",
    )
    assert solution.x is not None  # large errors are allowed, so there always is a solution
    bits: Flags = solution.x[:people] > 0.5
    return bits


def _draw(people: int, bits: Bits) -> tuple[Flags, Flags]:
    """Secret bits, and who is in each of the counts."""
    many = PER_PERSON * people
    return coins(bits, people), coins(bits, many * people).reshape(many, people)


def _noisy(people: int, noise: float, bits: Bits) -> int:
    secret, subsets = _draw(people, bits)
    sigma = Fraction(noise * math.sqrt(people)).limit_denominator(1000)
    return _right(
        rebuild(subsets, Gaussian(sigma=sigma).sample(subsets @ secret.astype(np.int64), bits).astype(float)),
        secret,
    )


def _release(secret: Flags, subsets: Flags, bits: Bits) -> Floats:
    """The counts as a plan answers them that was paid from a ledger, a row for each drawing of its noise."""
    people = np.arange(len(secret))
    table = Table(
        relation({"place": people, "secret": secret}),
        unit=UNIT,
        columns={"place": {"type": "category", "keys": people.tolist()}, "secret": {"type": "flag"}},
    )
    queries = [
        {
            "name": f"count {number}",
            "ask": ["count"],
            "where": [
                {"column": "place", "keys": people[inside].tolist()},
                {"column": "secret", "keys": [True]},
            ],
        }
        for number, inside in enumerate(subsets)
    ]
    plan = table.plan(*queries, epsilon=EPSILON, quality=False)
    with fresh_ledger(EPSILON) as ledger:
        ledger.charge(*plan.spends, purpose="reconstruction", secure=bool(bits.secure))
    exact = np.repeat((subsets @ secret.astype(np.int64))[:, None], REDRAWN, axis=1)
    return answer(plan, exact, bits).T


def _right(guess: Flags, secret: Flags) -> int:
    return int(np.count_nonzero(guess == secret))


ATTACK = Attack(
    name="reconstruction",
    title="a secret column rebuilt from too accurate counts",
    run=run,
    run_on=run_on,
)
