"""Differencing: two harmless counts whose difference is one person (Denning, Denning, Schwartz 1979)."""

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
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits, coins
from sourdine.tables import Table
from sourdine.tables.mock import ADULT, OLDEST, REGIONS, SEXES, Register, draw_register

PEOPLE = 1500
LEAST = 10  # people that a question must be about
EPSILON = Fraction(1)
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
REPEATS = 20
COLUMNS = {
    "age": {"type": "integer", "lower": ADULT, "upper": OLDEST},
    "sex": {"type": "category", "keys": list(SEXES)},
    "region": {"type": "category", "keys": list(REGIONS)},
    "voted": {"type": "flag"},
}


def run(bits: Bits) -> AttackResult:
    """Ask twice about each person who is alone of an age: with them, and without them."""
    people = draw_register(PEOPLE, seed=int(bits.words(1)[0]))
    voted = coins(bits, PEOPLE)
    victims = single_out(people)
    counts = np.array([counted(people, voted, victims, later) for later in (0, 1)])
    truth = voted[victims]
    hits = int(np.count_nonzero((counts[0] - counts[1] == 1) == truth))
    table = Table(
        relation({"age": people.age, "sex": people.sex, "region": people.region, "voted": voted}),
        unit=UNIT,
        columns=COLUMNS,
    )
    pair = questions(people, int(victims[0]))
    plan = table.plan(*pair, epsilon=EPSILON, quality=False)
    with fresh_ledger(EPSILON) as ledger:  # one pair as anybody would ask it
        released = table.release(plan, ledger, purpose="a pair of counts", bits=bits).values
    figures = " and ".join(f"{released[str(each['name'])].at()[0]:.0f}" for each in pair)
    rates = {}
    for epsilon in EPSILONS:
        noisy = answer(table.plan(*pair, epsilon=epsilon, quality=False), np.tile(counts, REPEATS), bits)
        rates[epsilon] = int(np.count_nonzero((noisy[0] - noisy[1] > 0.5) == np.tile(truth, REPEATS)))
    tries, limit = REPEATS * len(victims), most_right(EPSILON)
    first = " and ".join(str(int(count)) for count in counts[:, 0])
    return AttackResult(
        name=ATTACK.name,
        attacked=f"Counts of votes in a register of {PEOPLE:,} people. Questions about fewer than {LEAST} "
        "people are refused. For each person who is alone of an age, a sex and a region, the attacker asks "
        "about those of that age and older, and about those who are older.",
        goal="right guesses how the person voted",
        unprotected=Outcome(target="exact counts", hits=hits, tries=len(victims)),
        protected=Outcome(
            target=f"counts at epsilon {float(EPSILON):g} together", hits=rates[1.0], tries=tries
        ),
        chance=0.5,
        guess="a coin",
        limit=limit,
        why=f"epsilon {float(EPSILON):g}",
        finding=f"Two allowed counts tell of {percent(hits / len(victims))} of {len(victims)} people how "
        "they voted",
        lesson="A rule about single questions cannot see what two of them say together. Noise makes every "
        f"difference uncertain, and the budget adds both questions up: where the exact counts are {first}, a "
        f"release says {figures}.",
        charts=(
            AttackChart(
                finding="The guess follows epsilon, and stays below what epsilon allows",
                across="epsilon of both counts together",
                up="right guesses",
                points=(
                    *(
                        ChartPoint(Arm.UNPROTECTED, each, hits / len(victims), len(victims))
                        for each in EPSILONS
                    ),
                    *(ChartPoint(Arm.PROTECTED, each, rate / tries, tries) for each, rate in rates.items()),
                    *(ChartPoint(Arm.MOST, each, most_right(each)) for each in EPSILONS),
                ),
                log=True,
                note=f"Each pair of counts was drawn {REPEATS} times. A coin is right half of the time.",
            ),
        ),
    )


def run_on(own: OwnTable, bits: Bits) -> AttackResult:
    """Ask about everybody, and about everybody but one, for each who is alone in what is known."""
    victims = own.single_out()
    if not victims.size or len(own.secret) <= LEAST:
        raise InvalidParameter(
            f"Nobody can be singled out: the table has {LEAST} records or fewer, or nobody is alone in what "
            "is known. Name more columns that an outsider may know with --known."
        )
    truth, total = own.secret[victims], int(own.secret.sum())
    counts = np.array([np.full(len(victims), total), total - truth])
    hits = int(np.count_nonzero((counts[0] - counts[1] == 1) == truth))
    columns = {"secret": own.secret, "other": np.ones(len(own.secret), np.bool_)}
    flags = {"secret": {"type": "flag"}, "other": {"type": "flag"}}
    is_true = {"column": "secret", "keys": [True]}
    queries: list[dict[str, object]] = [
        {"name": "all", "ask": ["count"], "where": [is_true]},
        {"name": "but one", "ask": ["count"], "where": [is_true, {"column": "other", "keys": [True]}]},
    ]
    plan = Table(relation(columns), unit=UNIT, columns=flags).plan(*queries, epsilon=EPSILON, quality=False)
    repeats = max(1, REPEATS * 100 // len(victims))
    noisy = answer(plan, np.tile(counts, repeats), bits)
    ours = int(np.count_nonzero((noisy[0] - noisy[1] > 0.5) == np.tile(truth, repeats)))
    return own_result(
        own,
        name=ATTACK.name,
        attacked=f"{len(victims):,} of {len(own.secret):,} people are alone in what is known. For each, the "
        f"attacker asks of how many '{own.words}' is true: of all, and of all but those who are like "
        "this one.",
        unprotected=Outcome(target="exact counts", hits=hits, tries=len(victims)),
        protected=Outcome(
            target=f"counts at epsilon {float(EPSILON):g} together", hits=ours, tries=repeats * len(victims)
        ),
        epsilon=EPSILON,
        lesson="Two exact counts tell the secret of whoever is alone in what others know. Noise makes every "
        "difference uncertain, and the budget adds both questions up.",
    )


def single_out(people: Register) -> NDArray[np.int64]:
    """The people who are alone of their age, sex and region, where enough are older for a question."""
    guesses = []
    for who in range(len(people.age)):
        alike = (people.sex == people.sex[who]) & (people.region == people.region[who])
        older = np.count_nonzero(alike & (people.age > people.age[who]))
        if older >= LEAST and np.count_nonzero(alike & (people.age == people.age[who])) == 1:
            guesses.append(who)
    return np.array(guesses, np.int64)


def counted(
    people: Register, voted: NDArray[np.bool_], victims: NDArray[np.int64], later: int
) -> NDArray[np.int64]:
    """For each of them, the votes of those as old, or `later` years older, and beyond."""
    return np.array(
        [
            np.count_nonzero(
                voted
                & (people.sex == people.sex[who])
                & (people.region == people.region[who])
                & (people.age >= people.age[who] + later)
            )
            for who in victims
        ],
        np.int64,
    )


def questions(people: Register, who: int) -> list[dict[str, object]]:
    """The two questions about one person."""
    shared: list[dict[str, object]] = [
        {"column": "voted", "keys": [True]},
        {"column": "sex", "keys": [str(people.sex[who])]},
        {"column": "region", "keys": [str(people.region[who])]},
    ]
    return [
        {
            "name": name,
            "ask": ["count"],
            "where": [*shared, {"column": "age", "at_least": int(people.age[who]) + later}],
        }
        for name, later in (("with", 0), ("without", 1))
    ]


ATTACK = Attack(
    name="differencing",
    title="two allowed counts whose difference is one person",
    run=run,
    run_on=run_on,
)
