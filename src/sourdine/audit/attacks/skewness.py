"""Skewness: a diverse class may still leave little doubt (Li, Li, Venkatasubramanian 2007)."""

from fractions import Fraction

from sourdine.anonymity import Demand, Generalised
from sourdine.audit.attacks.attack import Arm, Attack, AttackChart, AttackResult, ChartPoint, Outcome, percent
from sourdine.audit.attacks.homogeneity import PATIENTS, K, L, cells_with, publish
from sourdine.audit.attacks.targets import OUTBREAK, draw_patients
from sourdine.core.random.bits import Bits

T = Fraction(1, 5)
HALF = 0.5
_STEPS = tuple(tenth / 20 for tenth in range(1, 21))


def run(bits: Bits) -> AttackResult:
    """Look up everybody who has the illness: of how many is it more likely than not?"""
    patients = draw_patients(PATIENTS, bits)
    diverse, close = (publish(patients, Demand(k=K, l=Fraction(L), t=t)) for t in (Fraction(1), T))
    hits, tries = believed(diverse, HALF)
    safe, left = believed(close, HALF)
    cells = cells_with(close)
    overall = float(cells.count.sum() / cells.size)
    limit = 1.0 if overall + T > HALF else 0.0
    points = [
        ChartPoint(series, step, hit / whole)
        for series, table in ((Arm.UNPROTECTED, diverse), (Arm.PROTECTED, close))
        for step in _STEPS
        for hit, whole in [believed(table, step)]
    ]
    return AttackResult(
        name=ATTACK.name,
        attacked=f"A table of {PATIENTS:,} patients that is {K}-anonymous and {L}-diverse: no class shares "
        f"one illness. {OUTBREAK.capitalize()} has broken out in some towns.",
        goal=f"patients with {OUTBREAK} of whom it is more likely than not",
        unprotected=Outcome(target=f"{L}-diverse table", hits=hits, tries=tries),
        protected=Outcome(target=f"the same, {float(T):g}-close", hits=safe, tries=left),
        chance=0.0,
        guess=f"{percent(overall)} of all patients have it",
        limit=limit,
        why=f"no class has more than {percent(overall)} + {percent(float(T))}",
        finding=f"Two illnesses in every class, and still {percent(hits / tries)} of the ill are found out",
        lesson="Diversity counts values and not how likely they are. Closeness bounds that, and what it "
        f"takes away is what the table was worth: it loses {percent(close.loss.ncp)} instead of "
        f"{percent(diverse.loss.ncp)} of its detail. Neither says anything once somebody knows more.",
        charts=(
            AttackChart(
                finding=f"Closeness keeps every belief below {percent(overall + float(T))}; diversity lets "
                "it come near certainty",
                across="belief that somebody has it, knowing the class",
                up="patients with the illness of whom at least that is believed",
                points=tuple(points),
            ),
        ),
    )


def believed(table: Generalised, least: float) -> tuple[int, int]:
    """How many of the ill are in classes of which so large a share is ill, and how many there are."""
    cells = cells_with(table)
    return int(cells.count[cells.share >= least].sum()), int(cells.count.sum())


ATTACK = Attack(name="skewness", title="a class in which nearly all share a secret leaves no doubt", run=run)
