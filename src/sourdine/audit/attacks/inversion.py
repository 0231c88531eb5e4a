"""Inversion: a model, asked with every possible secret, answers best with the true one.

Fredrikson, Lantz, Jha, Lin, Page, Ristenpart 2014.

Who knows of a patient what the model wants to know, except one secret, and the outcome, asks the model with
each value of the secret and takes the one whose answer is nearest to the outcome. A model that follows every
record gives the secrets of its own people away, even where the secret has nothing to do with the outcome.
What the secret truly does to the outcome tells on everybody, in the table or not, and no protection of
records hides it.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.audit.attacks.attack import Arm, Attack, AttackChart, AttackResult, ChartPoint, Outcome, percent
from sourdine.audit.attacks.targets import UNIT, fresh_ledger, most_right, relation
from sourdine.core.lazy import ndtr, ndtri
from sourdine.core.random.bits import Bits, coins
from sourdine.tables import Table
from sourdine.tables.mock import ADULT, OLDEST, REGIONS, SEXES, draw_register

PEOPLE = 1200
EPSILON = Fraction(
    1, 2
)  # for a record added or removed; with another secret it moves from one leaf to another
EFFECTS = (0.0, 0.5, 1.0, 2.0, 3.0)  # of the secret, in standard deviations of the dose
LOWER, UPPER = 0, 100  # mg a week, as declared
_DOSE, _SPREAD = 45.0, 9.0
_ANYBODY = "anybody, by what the secret does"

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Treated:
    """Patients: the leaf of what is known of each, the secret, and the outcome between declared bounds."""

    leaf: Codes
    leaves: int
    secret: Flags
    outcome: Floats


def run(bits: Bits) -> AttackResult:
    """Guess a genetic marker from a model of doses that has a leaf for every combination."""
    exact, private = {}, {}
    for effect in EFFECTS:
        people = _draw(effect, bits)
        exact[effect] = guess(exact_model(people), people, bits)
        private[effect] = guess(private_model(people, bits), people, bits)
    hits, ours, limit = exact[0.0], private[0.0], most_right(2 * EPSILON)
    return AttackResult(
        name=ATTACK.name,
        attacked=f"A model of doses: a decision tree with a leaf for each age, sex, region and genetic "
        f"marker of {PEOPLE:,} patients, and in it their mean dose. The attacker knows of a patient all but "
        "the marker, and the dose, and asks the model with both markers. The marker has nothing to do with "
        "the dose.",
        goal="right guesses of the marker",
        unprotected=Outcome(target="a tree of exact means", hits=hits, tries=PEOPLE),
        protected=Outcome(target=f"the same means at epsilon {float(EPSILON):g}", hits=ours, tries=PEOPLE),
        chance=0.5,
        guess="a coin",
        limit=limit,
        why=f"epsilon {float(EPSILON):g}, twice for a record that moves from leaf to leaf",
        finding=f"A model that follows every record gives {percent(hits / PEOPLE)} of its patients' markers "
        "away",
        lesson="What a model says about one patient alone is that patient's record. Private means say no "
        "more than epsilon allows. Where the marker does change the dose, whoever knows a dose can guess the "
        "marker of anybody, in the table or not: that is what was to be learnt, and differential privacy "
        "does not hide it.",
        charts=(
            AttackChart(
                finding="Records are protected; what the marker does to everybody's dose is not",
                across="effect of the marker / standard deviation of the dose",
                up="right guesses of the marker",
                points=(
                    *(ChartPoint(Arm.UNPROTECTED, at, each / PEOPLE, PEOPLE) for at, each in exact.items()),
                    *(ChartPoint(Arm.PROTECTED, at, each / PEOPLE, PEOPLE) for at, each in private.items()),
                    *(ChartPoint(_ANYBODY, at, float(ndtr(at / 2))) for at in EFFECTS),
                ),
                note="The third line needs no model and no table: it is the best guess of whoever knows the "
                "effect. A coin is right half of the time.",
            ),
        ),
    )


def exact_model(people: Treated) -> Floats:
    """The mean outcome in each leaf, for either secret; of all people where a leaf is empty."""
    place = 2 * people.leaf + people.secret
    counts = np.bincount(place, minlength=2 * people.leaves)
    sums = np.bincount(place, weights=people.outcome, minlength=2 * people.leaves)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), people.outcome.mean())
    return means.reshape(-1, 2)


def private_model(people: Treated, bits: Bits) -> Floats:
    """The same means as a release that a ledger paid for."""
    columns = {
        "leaf": {"type": "category", "keys": list(range(people.leaves))},
        "secret": {"type": "flag"},
        "outcome": {"type": "integer", "lower": LOWER, "upper": UPPER},
    }
    cells = {
        "leaf": people.leaf,
        "secret": people.secret,
        "outcome": people.outcome.astype(np.int64),
    }
    table = Table(relation(cells), unit=UNIT, columns=columns)
    query = {"name": "doses", "ask": [{"mean": "outcome"}], "by": ["leaf", "secret"]}
    plan = table.plan(query, epsilon=EPSILON, quality=False)
    with fresh_ledger(EPSILON) as ledger:
        released = table.release(plan, ledger, purpose="a model of doses", bits=bits)
    means = np.zeros((people.leaves, 2))
    for row in released.values.rows():
        named = dict(zip(released.values.columns, row, strict=True))
        leaf, secret = named["leaf"], named["secret"]
        assert isinstance(leaf, int)
        assert isinstance(secret, int)
        means[leaf, int(secret)] = named["value"]
    return means


def guess(model: Floats, people: Treated, bits: Bits) -> int:
    """How many secrets are those whose answer is nearest to the outcome; a coin where both are as near."""
    off = np.abs(model[people.leaf] - people.outcome[:, None])
    guesses = np.where(off[:, 0] == off[:, 1], coins(bits, len(off)), off[:, 1] < off[:, 0])
    return int(np.count_nonzero(guesses == people.secret))


def _draw(effect: float, bits: Bits) -> Treated:
    """Made-up patients, whose doses follow their ages, and a marker by its effect."""
    people = draw_register(PEOPLE, seed=int(bits.words(1)[0]))
    region = np.searchsorted(np.sort(REGIONS), people.region)
    leaf = ((people.age - ADULT) * 2 + (people.sex == "m")) * len(REGIONS) + region
    secret = coins(bits, PEOPLE)
    noise = ndtri(((bits.words(PEOPLE) >> np.uint64(11)) + np.uint64(1)) * 2.0**-53 * (1 - 2.0**-52))
    dose = _DOSE - (people.age - 50) / 5 + _SPREAD * (effect * (secret - 0.5) + noise)
    outcome = np.clip(np.rint(dose), LOWER, UPPER)
    leaves = (OLDEST + 1 - ADULT) * len(SEXES) * len(REGIONS)
    return Treated(leaf=leaf, leaves=leaves, secret=secret, outcome=outcome)


ATTACK = Attack(name="inversion", title="a secret that a model answers best with", run=run)
