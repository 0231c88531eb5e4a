"""A page of each kind, for tests that look at all of them in a browser."""

from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from sourdine.accounting.certificate import PublicKey, verify_release
from sourdine.accounting.explain import explain_training
from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.anonymity import Demand, Intervals, Records, generalise_records, measure_records
from sourdine.audit.attacks import AttackResult, Outcome
from sourdine.core.distance import Neighbours
from sourdine.learning.memory.lines import fits, jumps
from sourdine.learning.memory.table import grid
from sourdine.report import Page
from sourdine.report.pages import training as training_curves
from sourdine.report.pages.anonymity import cleaning_page, generalised_page, measure_page, utility_page
from sourdine.report.pages.ledger import explanation_page, spending_page
from sourdine.report.pages.release import release_page
from sourdine.report.pages.training import memory_page, sweep_page
from sourdine.report.pages.training_audit import attack_page, training_audit_page
from sourdine.report.verdict import judge, verdict_page
from tests.cli.certificate.release_case import build_signed
from tests.learning.memory.test_table import made as measured_memory
from tests.local.utility.test_measure import measured as measured_utility
from tests.report.pages import (
    test_anonymity,
    test_attack,
    test_cleaning,
    test_ledger,
    test_page,
    test_release,
    test_sweep,
    test_training_audit,
    test_training_curves,
)


def release(folder: Path) -> Page:
    return release_page(*test_release.made(folder))


def ledger(folder: Path) -> Page:
    terms = Terms(budget=PureBudget(limit=Fraction(1)), unit="person", neighbours=Neighbours.ADD_REMOVE)
    opened = Ledger.create(folder / "a.ledger", terms)
    entries = test_ledger.apart(opened, timedelta(days=9))
    return spending_page(opened.terms, opened.status(), entries)


def verdict(folder: Path) -> Page:
    case = build_signed(folder)
    verification = verify_release(case.folder, ledger=case.ledger, keys=[PublicKey.read(case.public)])
    return verdict_page(judge(verification), verification)


def red_verdict(folder: Path) -> Page:
    case = build_signed(folder)
    (case.folder / "answers.csv").unlink()
    verification = verify_release(case.folder, ledger=case.ledger)
    return verdict_page(judge(verification), verification)


def explanation(folder: Path) -> Page:
    return explanation_page(explain_training(test_training_curves.RUN, 1e-5))


def training(folder: Path) -> Page:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_curves, "_SLIDER_SHARES", (0.5, 1.0))
        patch.setattr(training_curves, "_NOISE_SHARES", (0.8, 1.0, 2.0))
        return training_curves.curves_page(test_training_curves.RUN, 1e-5)


def anonymity(folder: Path) -> Page:
    records = Records.read(test_anonymity.TABLE, quasi=["age", "sex"], sensitive=["ill"])
    return measure_page(measure_records(records, subsets=2), "people.csv")


def generalised(folder: Path) -> Page:
    records = Records.read(test_anonymity.TABLE, quasi=["age", "sex"], sensitive=["ill"])
    made = generalise_records(records, Demand(k=2), hierarchies={"age": Intervals(0, 100, (10, 50))})
    before, after = measure_records(records, subsets=2), measure_records(made.records)
    return generalised_page(made, before, after, "people.csv")


def attack(folder: Path) -> Page:
    result = AttackResult(
        name="toy",
        attacked="A toy with a key.",
        goal="toys opened",
        unprotected=Outcome(target="key in the lock", hits=99, tries=100),
        protected=Outcome(target="key at home", hits=1, tries=1000),
        chance=0.002,
        guess="any key",
        limit=0.01,
        why="a hundred keys",
        finding="Keys open toys",
        lesson="Take the key out.",
        charts=(test_attack.BARS, test_attack.LINES),
    )
    return attack_page(result)


def cleaning(folder: Path) -> Page:
    return cleaning_page("people.csv", test_cleaning.cleaned())


def utility(folder: Path) -> Page:
    return utility_page("wards.csv", measured_utility())


def memory(folder: Path) -> Page:
    rows = [measured_memory(case) for case in grid([8, 64], [4, 8, 15, 16, 17], [1, 2], side=64)]
    return memory_page(rows, fits(rows), jumps(fits(rows)))


def sweep(folder: Path) -> Page:
    return sweep_page(*test_sweep.made([1.0, 3.0], [1.0]), model="linear", cost=("It cost ten.",))


def training_audit(folder: Path) -> Page:
    return training_audit_page(test_training_audit.audit(1.0, 0.7), "A model was trained.")


def names(folder: Path) -> Page:
    return test_page.page()


COMMON: dict[str, Callable[[Path], Page]] = {each.__name__: each for each in (ledger, verdict)}
EXAMPLES: dict[str, Callable[[Path], Page]] = COMMON | {
    each.__name__: each
    for each in (
        release,
        explanation,
        red_verdict,
        training,
        anonymity,
        generalised,
        attack,
        cleaning,
        utility,
        memory,
        sweep,
        training_audit,
        names,
    )
}
