"""Homogeneity: a class in which all have the same illness tells it (Machanavajjhala et al. 2007)."""

from fractions import Fraction
from itertools import pairwise

import numpy as np

from sourdine.anonymity import Cells, Demand, Generalised, cells_of, classes_of, generalise
from sourdine.audit.attacks.attack import Arm, Attack, AttackChart, AttackResult, ChartPoint, Outcome, percent
from sourdine.audit.attacks.targets import (
    HIERARCHIES,
    OUTBREAK,
    QUASI,
    SECRET,
    Patients,
    draw_patients,
    relation,
)
from sourdine.core.random.bits import Bits

PATIENTS = 12_000
K, L = 5, 2
_SUPPRESS = Fraction(1, 10)


def run(bits: Bits) -> AttackResult:
    """Look up everybody who has the illness: how many are in classes where all have it?"""
    patients = draw_patients(PATIENTS, bits)
    plain, diverse = (publish(patients, Demand(k=K, l=Fraction(l))) for l in (1, L))  # noqa: E741
    points = []
    for series, table in ((Arm.UNPROTECTED, plain), (Arm.PROTECTED, diverse)):
        sizes, known = certain_by_size(table)
        points += [ChartPoint(series, words, share) for words, share in zip(sizes, known, strict=True)]
    hits, tries = certain(plain)
    safe, left = certain(diverse)
    return AttackResult(
        name=ATTACK.name,
        attacked=f"A table of {PATIENTS:,} patients in which everybody is like at least {K - 1} others in "
        f"date of birth, sex and postcode. {OUTBREAK.capitalize()} has broken out in some towns.",
        goal=f"patients with {OUTBREAK} of whom it is certain",
        unprotected=Outcome(target=f"{K}-anonymous table", hits=hits, tries=tries),
        protected=Outcome(target=f"the same, {L}-diverse", hits=safe, tries=left),
        chance=0.0,
        guess="nothing is certain without the table",
        limit=0.0,
        why=f"every class has {L} illnesses",
        finding=f"Nobody is found, and {percent(hits / tries)} of the ill are known all the same",
        lesson="k-anonymity hides which record is yours, not what all records like yours have in common. "
        "Diversity stops certainty; near certainty is left, which the attack 'skewness' uses.",
        charts=(
            AttackChart(
                finding="Small classes agree most often, and large ones do too where an illness gathers",
                across=f"patients with {OUTBREAK} of whom it is certain",
                up="patients in the class",
                points=tuple(points),
            ),
        ),
    )


def publish(patients: Patients, demand: Demand) -> Generalised:
    """The patients in a table that satisfies a demand; at most one in ten is left out."""
    return generalise(
        relation(patients.columns),
        demand,
        quasi=QUASI,
        sensitive=[SECRET],
        hierarchies=HIERARCHIES,
        suppress=_SUPPRESS,
    )


def cells_with(table: Generalised) -> Cells:
    """The classes that hold the illness, with how many in each have it."""
    records = table.records
    column = records.column(SECRET)
    cells = cells_of(classes_of(records), column, records.counts)
    ill = cells.value == column.labels.index(OUTBREAK)
    return Cells(cells.place[ill], cells.value[ill], cells.count[ill], cells.known, cells.totals)


def certain(table: Generalised) -> tuple[int, int]:
    """How many patients with the illness are in classes where all have it, and how many there are."""
    cells = cells_with(table)
    return int(cells.count[cells.share == 1].sum()), int(cells.count.sum())


def certain_by_size(table: Generalised) -> tuple[tuple[str, ...], list[float]]:
    """The same as a share, by the size of the class."""
    cells = cells_with(table)
    edges = (K, 10, 15, 20, int(cells.known.max()) + 1)
    names = ("5 to 9", "10 to 14", "15 to 19", "20 and more")
    size = cells.known[cells.place]
    shares = []
    for low, high in pairwise(edges):
        inside = (size >= low) & (size < high)
        whole = cells.count[inside].sum()
        shares.append(float(cells.count[inside & (cells.share == 1)].sum() / np.maximum(whole, 1)))
    return names, shares


ATTACK = Attack(name="homogeneity", title="a class in which all share a secret gives it away", run=run)
