"""The last step, for those who like: a synthetic table, rows like the real ones and of nobody."""

from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.numbers import readable, remaining
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.outbox import CERTIFICATE
from sourdine.frames.columns import Category, Flag
from sourdine.studio.desk import Desk, Sheet
from sourdine.studio.jobs import Job, JobState
from sourdine.studio.payments import LedgerPayment, check_again, payments_for, without_release
from sourdine.studio.steps.check import ledger_is_there
from sourdine.studio.steps.result import release_view
from sourdine.tables import Specification
from sourdine.tables.payment import check_ledger
from sourdine.tables.synthetic.plan import SyntheticPlan
from sourdine.tables.synthetic.synthesis import LIMITS, PURPOSE

OF_TABLE, TABLE = "-synthetic", "synthetic.csv"
_BEFORE = ("table", "people", "columns", "budget", "release")  # steps that it needs; it asks no questions
_MOST = 20


@dataclass(frozen=True)
class SyntheticBalance:
    """What a ledger has, what the table takes, and what is left then; or why it refuses."""

    left: str = ""
    price: str = ""
    after: str = ""
    currency: str = ""
    refusal: str = ""
    lost: tuple[LedgerPayment, ...] = ()


def synthetic_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """What it would measure, need and cost, and those that were made."""
    job = desk.jobs.newest(sheet.name)
    schema = sheet.review.schema
    columns = {} if schema is None else schema.base.columns
    view: dict[str, Any] = {
        "ready": False,
        "trouble": "",
        "limits": LIMITS,
        "targets": [name for name, each in columns.items() if isinstance(each, Category | Flag)],
        "job": job if job is not None and job.name.endswith(f"/{TABLE}") else None,
        "into": place_of(desk, sheet),
        "made": made(desk, sheet),
        "balance": None,
        "plan": None,
    }
    if any(sheet.review.left(step) for step in _BEFORE):
        return view
    try:
        specification = asked_for(sheet)
    except SourdineError as problem:
        return {**view, "trouble": str(problem)}
    plan = specification.synthetic_plan()
    view |= {
        "ready": True,
        "plan": plan,
        "words": plan.privacy.words,
        "mebibytes": f"{plan.bytes / 2**20:,.0f}",
    }
    if ledger_is_there(specification):
        view["balance"] = _balance(desk, sheet, specification, plan)
    return view


def asked_for(sheet: Sheet) -> Specification:
    """The specification of the synthetic table alone, whatever questions there are beside it."""
    blocks = {name: each for name, each in sheet.file.blocks.items() if name not in ("queries", "series")}
    return Specification.read({**blocks, "synthetic": blocks.get("synthetic", {})}, sheet.file.path.parent)


def place_of(desk: Desk, sheet: Sheet) -> str:
    """The folder that the next table goes into."""
    return desk.folder.free(f"{sheet.stem}{OF_TABLE}", "")


def made(desk: Desk, sheet: Sheet) -> list[Any]:
    """The synthetic tables that lie beside a specification, the newest first."""
    found = [
        (place.stat().st_mtime, place)
        for place in _folders(desk, sheet)
        if (place / CERTIFICATE).is_file() and place.resolve().is_relative_to(desk.folder.root)
    ]
    return [release_view(desk, place, newest=False) for _, place in sorted(found, reverse=True)[:_MOST]]


def _folders(desk: Desk, sheet: Sheet) -> list[Path]:
    stem = desk.folder.root / f"{sheet.stem}{OF_TABLE}"
    return list(stem.parent.glob(f"{escape(stem.name)}*"))


def _balance(desk: Desk, sheet: Sheet, specification: Specification, plan: SyntheticPlan) -> SyntheticBalance:
    try:
        with specification.open_ledger() as ledger:
            lost = tuple(lost_synthesis_payments(desk, sheet, ledger))
            check_ledger(plan, ledger)
            price, status = ledger.price(*plan.spends), ledger.status()
    except SourdineError as problem:
        return SyntheticBalance(refusal=str(problem))
    enough = price <= status.left
    return SyntheticBalance(
        left=remaining(status.left, status.limit),
        price=readable(price),
        after=remaining(status.left - price, status.limit) if enough else "",
        currency=status.currency,
        refusal="" if enough else "The ledger has less left than this takes. Nothing was spent.",
        lost=lost,
    )


def lost_synthesis_payments(desk: Desk, sheet: Sheet, ledger: Ledger) -> list[LedgerPayment]:
    """What paid for a synthetic table, and no folder here holds it."""
    paid = payments_for(ledger, PURPOSE)
    lost = without_release(paid, _folders(desk, sheet)) if paid else []
    return without_release(lost, map(desk.folder.inside, desk.folder.releases())) if lost else []


def begin_synthesis(
    desk: Desk, sheet: Sheet, into: str, version: str, *, sure: bool, again: object = None
) -> None:
    """Pay for a synthetic table and write it, once for each folder, whoever asks how often."""
    if version != sheet.file.version or any(sheet.review.left(step) for step in _BEFORE):
        raise InvalidParameter("The specification is not whole, or was changed. Nothing was paid.")
    specification = asked_for(sheet)
    if not sure:
        raise InvalidParameter("Confirm first that this payment cannot be undone. Nothing was paid.")
    if not into.startswith(f"{sheet.stem}{OF_TABLE}") or "/" in into.removeprefix(sheet.stem):
        raise InvalidParameter("The page named a folder that it has not. Reload it. Nothing was paid.")
    place, name = desk.folder.inside(into), f"{into}/{TABLE}"
    begun = desk.jobs.of(sheet.name, name)
    if begun is None and place.exists():
        raise InvalidParameter(f"{into} is there already, so it was paid for. Nothing was paid again.")
    if begun is None or begun.state is JobState.FAILED:
        sheet.check_reach(specification)
        if desk.jobs.running(sheet.name) is None:
            with specification.open_ledger() as ledger:
                check_again(lost_synthesis_payments(desk, sheet, ledger), again, "a synthetic table")

    def work(job: Job) -> None:
        desk.synthesize(specification, place, job.watch)

    desk.jobs.begin(sheet.name, name, work)
