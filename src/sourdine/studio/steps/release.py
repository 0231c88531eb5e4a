"""The seventh step: what pays, what is left, and the release itself, which cannot be undone."""

from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.numbers import readable, remaining
from sourdine.core import disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import plain
from sourdine.core.outbox import CERTIFICATE
from sourdine.studio.desk import Desk, Sheet
from sourdine.studio.jobs import Job, JobState
from sourdine.studio.payments import LedgerPayment, check_again, payments_for, without_release
from sourdine.studio.values import read_number
from sourdine.tables import ReleasePlan, Specification
from sourdine.tables.release import check_release
from sourdine.tables.table import described

OF_RELEASE = "-release"


@dataclass(frozen=True)
class ReleaseBalance:
    """What a ledger has, what the release takes, and what is left then; or why it refuses."""

    left: str = ""
    price: str = ""
    after: str = ""
    currency: str = ""
    unit: str = ""
    refusal: str = ""
    lost: tuple[LedgerPayment, ...] = ()


def release_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The ledger, the price, and where the release goes; or how far it is."""
    specification = sheet.review.specification
    ledger = sheet.file.blocks.get("privacy", {}).get("ledger") or ""
    job = desk.jobs.newest(sheet.name)
    releasing = job if job is not None and job.name.endswith("/") else None
    view: dict[str, Any] = {
        "ready": specification is not None,
        "ledger": str(ledger),
        "ledgers": [*desk.folder.ledgers(), *desk.folder.elsewhere],
        "there": False,
        "balance": None,
        "job": releasing,
        "into": target_of(desk, sheet),
        "whole": _waiting(desk, sheet),
        "quality": sheet.file.blocks.get("privacy", {}).get("quality", True),
        "listed": ledger in desk.folder.ledgers(),
    }
    if specification is None:
        return view
    plan = specification.plan()
    path = specification.ledger_path
    view["there"] = path is not None and (not isinstance(path, Path) or path.exists())
    view["words"] = plan.privacy.words
    view["questions"] = len(plan.queries)
    view["terms"] = ledger_terms(specification, plan)
    view["balance"] = _balance(desk, sheet, specification, plan) if view["there"] else None
    return view


def target_of(desk: Desk, sheet: Sheet) -> str:
    """The folder that the next release goes into."""
    return desk.folder.free(f"{sheet.stem}{OF_RELEASE}", "")


def _waiting(desk: Desk, sheet: Sheet) -> list[str]:
    """Releases that were written whole and then cut off before their folder appeared."""
    stem = desk.folder.root / f"{sheet.stem}{OF_RELEASE}"
    places = stem.parent.glob(f".{escape(stem.name)}*{disk.UNFINISHED}/*/{CERTIFICATE}")
    return sorted(desk.folder.name_of(place.parent) for place in places)


def ledger_terms(specification: Specification, plan: ReleasePlan) -> dict[str, object]:
    """What a ledger must be made with to pay for this, beside its epsilon."""
    privacy = specification.privacy
    terms: dict[str, object] = {"unit": privacy.unit, "neighbours": privacy.neighbours}
    if plan.privacy.squared and privacy.delta:
        terms["delta"] = plain(privacy.delta)
    if plan.privacy.selection_delta:
        terms["selection_delta"] = plain(plan.privacy.selection_delta)
    return terms


def _balance(desk: Desk, sheet: Sheet, specification: Specification, plan: ReleasePlan) -> ReleaseBalance:
    try:
        with specification.open_ledger() as ledger:
            price, status = ledger.price(*plan.spends), ledger.status()
            lost = lost_release_payments(desk, sheet, ledger, plan)
            refusal = ""
            try:
                check_release(plan, ledger=ledger)
            except SourdineError as problem:
                refusal = str(problem)
    except SourdineError as problem:
        return ReleaseBalance(refusal=str(problem))
    return ReleaseBalance(
        left=remaining(status.left, status.limit),
        price=readable(price),
        after="" if refusal else remaining(status.left - price, status.limit),
        currency=status.currency,
        unit=plan.unit.name,
        refusal=refusal,
        lost=tuple(lost),
    )


def lost_release_payments(desk: Desk, sheet: Sheet, ledger: Ledger, plan: ReleasePlan) -> list[LedgerPayment]:
    """What paid for these questions, and no folder here holds the release."""
    paid = payments_for(ledger, described(plan.queries))
    stem = desk.folder.root / f"{sheet.stem}{OF_RELEASE}"
    lost = without_release(paid, stem.parent.glob(f"{escape(stem.name)}*")) if paid else []
    return without_release(lost, map(desk.folder.inside, desk.folder.releases())) if lost else []


def make_ledger(sheet: Sheet, typed: str) -> None:
    """A new ledger by the name that the specification has for it, with a budget for all releases."""
    specification = sheet.review.specification
    if specification is None:
        raise InvalidParameter("Fill in the steps before this one first.")
    path = specification.ledger_path
    if not isinstance(path, Path):
        raise InvalidParameter("Name a file for the ledger, such as people.ledger.")
    sheet.check_reach(specification)
    epsilon = read_number(typed.strip())
    if isinstance(epsilon, str):
        raise InvalidParameter("The budget must be a number, such as 3.")
    terms = {name: str(each) for name, each in ledger_terms(specification, specification.plan()).items()}
    with Ledger.create(path, epsilon=epsilon, **terms):  # type: ignore[arg-type]
        pass


def begin_release(
    desk: Desk, sheet: Sheet, into: str, version: str, *, sure: bool, again: object = None
) -> None:
    """Pay and publish, once for each folder, whoever asks how often.

    What was confirmed is released, whatever is changed meanwhile. Where the same questions were paid for and
    nothing of that lies in the folder, `again` must name the line that paid.
    """
    specification = sheet.review.specification
    if specification is None or version != sheet.file.version:
        raise InvalidParameter("The specification is not whole, or was changed. Nothing was paid.")
    if not sure:
        raise InvalidParameter("Confirm first that this release cannot be undone. Nothing was paid.")
    if not into.startswith(f"{sheet.stem}{OF_RELEASE}") or "/" in into.removeprefix(sheet.stem):
        raise InvalidParameter("The page named a folder that it has not. Reload it. Nothing was paid.")
    place = desk.folder.inside(into)
    name = f"{into}/"
    begun = desk.jobs.of(sheet.name, name)
    if begun is None and place.exists():
        raise InvalidParameter(f"{into} is there already, so it was paid for. Nothing was paid again.")
    if begun is None or begun.state is JobState.FAILED:
        sheet.check_reach(specification)
        if desk.jobs.running(sheet.name) is None:
            with specification.open_ledger() as ledger:
                check_again(
                    lost_release_payments(desk, sheet, ledger, specification.plan()), again, "this release"
                )

    def work(job: Job) -> None:
        desk.publish(specification, place, job.watch)

    desk.jobs.begin(sheet.name, name, work)
