"""A series and a correlated run of training, audited at their claims, and with faults put in on purpose."""

from rich.console import Console

from benchmarks.finding import verdict
from sourdine.audit.lower_bound import FALSE_ALARM
from sourdine.audit.plans import audit_series
from sourdine.audit.training import audit_correlated
from sourdine.learning import BLT, Banded, TrainingPlan
from sourdine.tables.specification import Specification
from sourdine.testing import SeededBits
from tests.mutants.series import mutants

_CANARIES = 4000
_RUNS = {"fixed order, buffered": BLT(), "parts with coins, banded": Banded(bands=4)}


def audits(
    specification: Specification, console: Console, *, pairs: int, samples: int
) -> dict[str, float | int]:
    """What a unit moves of what is paid for, the mutants caught, and epsilons that canaries show."""
    bits = SeededBits(1)
    found = audit_series(specification.series_plan(), pairs=pairs, bits=bits)
    verdict(console, found.passed, f"audit of a series: a unit moves {found.worst:.3f} of what is paid for")
    herd = list(mutants())
    alarm = FALSE_ALARM / len(herd)
    caught = sum(
        one.examine(samples=samples, false_alarm=alarm, bits=bits).caught_by is not None for one in herd
    )
    verdict(console, caught == len(herd), f"{caught} of {len(herd)} broken series are caught")
    measures: dict[str, float | int] = {"moved": found.worst, "caught": caught}
    for name, correlation in _RUNS.items():
        wanted = TrainingPlan(
            epsilon=3,
            delta=1e-5,
            epochs=3,
            batch_size=_CANARIES // 8,
            size=_CANARIES,
            correlation=correlation,
        )
        told = audit_correlated(wanted, bits=bits)
        text = (
            f"training, {name}: canaries show {told.audited:.2f} of a claimed epsilon of {told.claimed:.2f}"
        )
        verdict(console, not told.refuted, text)
        measures[name] = told.audited
    return measures
