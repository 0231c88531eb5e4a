"""Linkage: names come back from a list that shares a few harmless columns (Sweeney 2002)."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity import Coded, Demand, Generalised, generalise
from sourdine.audit.attacks.attack import Arm, Attack, AttackChart, AttackResult, ChartPoint, Outcome, percent
from sourdine.audit.attacks.targets import HIERARCHIES, QUASI, SECRET, Texts, draw_patients, relation
from sourdine.core.random.bits import Bits

PATIENTS, PEOPLE = 12_000, 60_000
K = 5
KNOWN: Mapping[str, Mapping[str, int]] = {  # how many characters of each column are known
    "sex, postcode": {"sex": 1, "postcode": 5},
    "sex, date of birth": {"sex": 1, "born": 10},
    "sex, postcode, year of birth": {"sex": 1, "postcode": 5, "born": 4},
    "sex, postcode, month of birth": {"sex": 1, "postcode": 5, "born": 7},
    "sex, postcode, date of birth": {"sex": 1, "postcode": 5, "born": 10},
}


def run(bits: Bits) -> AttackResult:
    """Name every record of a hospital's table, whose names were taken out, by a list of all inhabitants."""
    people = draw_patients(PEOPLE, bits).columns
    patients = {name: column[:PATIENTS] for name, column in people.items()}
    steps = {}
    for words, known in KNOWN.items():
        whole = [people[name].astype(f"U{length}") for name, length in known.items()]
        steps[words] = _named(whole, [column[:PATIENTS] for column in whole], np.arange(PATIENTS), bits)
    table = generalise(
        relation({**patients, "person": np.arange(PATIENTS)}),
        Demand(k=K),
        quasi=QUASI,
        sensitive=[SECRET],
        others=["person"],
        hierarchies=HIERARCHIES,
        suppress=Fraction(1, 20),
    )
    # whoever holds the list makes it as coarse as the table is, and so loses nothing
    coarse = [coarsened(people[name], name, table) for name in QUASI]
    columns = table.columns()
    people_left = np.array(columns["person"], np.int64)
    hidden = _named(coarse, [np.array(columns[name], np.str_) for name in QUASI], people_left, bits)
    whole_key = list(KNOWN)[-1]
    matches = steps[whole_key]
    return AttackResult(
        name=ATTACK.name,
        attacked=f"A table of {PATIENTS:,} patients without their names, and a public list of all "
        f"{PEOPLE:,} inhabitants with name, sex, postcode and date of birth.",
        goal="records given their right name",
        unprotected=Outcome(target="table without names", hits=matches, tries=PATIENTS),
        protected=Outcome(target=f"the same, {K}-anonymous", hits=hidden, tries=len(people_left)),
        chance=1 / PEOPLE,
        guess=f"any of {PEOPLE:,} inhabitants",
        limit=1 / K,
        why=f"at least {K} patients are alike",
        finding=f"Sex, postcode and date of birth name {percent(matches / PATIENTS)} of the patients",
        lesson="Taking out names protects nobody: a few harmless columns together are a name. Making them "
        "coarser stops this attack and not the next ones (homogeneity, skewness); an answer with noise has "
        "no records to link at all.",
        charts=(
            AttackChart(
                finding="A date of birth makes the difference: with postcode and sex, hardly anybody "
                "shares it",
                across="records given their right name",
                up="what both tables hold",
                points=(
                    *(
                        ChartPoint(Arm.UNPROTECTED, words, hits / PATIENTS, PATIENTS)
                        for words, hits in steps.items()
                    ),
                    ChartPoint(
                        Arm.PROTECTED, f"the same, {K}-anonymous", hidden / len(people_left), len(people_left)
                    ),
                ),
                note="Where several inhabitants fit, one of them is taken at random.",
            ),
        ),
    )


def coarsened(column: Texts, name: str, table: Generalised) -> Texts:
    """A column at the level that a table was made coarser to."""
    assert table.levels is not None
    labels, codes = np.unique(column, return_inverse=True)
    ladder = HIERARCHIES[name].ladder(Coded(name, tuple(labels.tolist()), codes))
    return np.array(ladder.label(table.levels[name]), np.str_)[codes]


def _named(people: Sequence[Texts], table: Sequence[Texts], who: NDArray[np.int64], bits: Bits) -> int:
    """How many records get their right name, if each gets that of somebody who fits, at random."""
    codes = _numbered([np.concatenate(pair) for pair in zip(people, table, strict=True)])
    listed, targets = codes[: len(people[0])], codes[len(people[0]) :]
    order = np.argsort(listed, kind="stable")
    first, last = (np.searchsorted(listed[order], targets, side) for side in ("left", "right"))
    turn = (bits.words(len(targets)) >> np.uint64(11)) * 2.0**-53
    picked = order[first + np.floor(turn * (last - first)).astype(np.int64)]
    return int(np.count_nonzero(picked == who))


def _numbered(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """A number for each tuple, the same for equal ones."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, codes = np.unique(column, return_inverse=True)
        numbers = np.unique(numbers * len(values) + codes, return_inverse=True)[1]
    return numbers


ATTACK = Attack(name="linkage", title="names come back from a list that shares harmless columns", run=run)
