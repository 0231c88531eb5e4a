"""The seventh step: what pays, what is left, and the release itself, which cannot be undone."""

from dataclasses import dataclass
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import Any

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.numbers import readable, remaining
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.files import CERTIFICATE
from sourdine.core.format import plain
from sourdine.frames.schema import Category, Flag
from sourdine.report.crosstab import cross_table
from sourdine.report.pages.release import MOST_ROWS, fitting_crosstab
from sourdine.report.view import TextTable
from sourdine.studio.desk import (
    Desk,
    Job,
    JobState,
    LedgerPayment,
    Sheet,
    check_again,
    payments_for,
    without_release,
)
from sourdine.studio.folder import Folder
from sourdine.studio.reports import verdict_on
from sourdine.studio.review import read_number
from sourdine.studio.steps import ledger_is_there
from sourdine.tables import ReleasePlan, Specification
from sourdine.tables.crosstab import adds_up
from sourdine.tables.payment import check_ledger
from sourdine.tables.publication import Record
from sourdine.tables.release import check_release
from sourdine.tables.synthetic.plan import SyntheticPlan
from sourdine.tables.synthetic.synthesis import LIMITS, PURPOSE
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
    view["words"] = plan.guarantee.words
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
    if plan.guarantee.squared and privacy.delta:
        terms["delta"] = plain(privacy.delta)
    if plan.guarantee.selection_delta:
        terms["selection_delta"] = plain(plan.guarantee.selection_delta)
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


# The last step: the releases of a specification, with their reports, files and verdicts.


RECORD, REPORT = "release.json", "report.html"
_MOST = 20


@dataclass(frozen=True)
class ReleaseView:
    """A folder that was published, as the page shows it."""

    name: str
    files: tuple[str, ...]
    words: str
    when: str
    has_report: bool
    crosstabs: tuple[TextTable, ...] = ()
    verdict: str = ""
    light: str = ""  # of the verdict, as on its own page


def result_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The releases that lie beside a specification, the newest first."""
    stem = f"{sheet.stem}{OF_RELEASE}"
    parent = (desk.folder.root / stem).parent
    found = [
        (place.stat().st_mtime, place)
        for place in parent.glob(f"{escape(Path(stem).name)}*")
        if (place / CERTIFICATE).is_file() and place.resolve().is_relative_to(desk.folder.root)
    ]
    places = [place for _, place in sorted(found, reverse=True)[:_MOST]]
    return {
        "releases": [release_view(desk, place, newest=number == 0) for number, place in enumerate(places)]
    }


def release_view(desk: Desk, place: Path, *, newest: bool) -> ReleaseView:
    """A folder that was published, as the page shows it."""
    name = desk.folder.name_of(place)
    try:
        certificate = read_certificate(place)
    except SourdineError as problem:
        return ReleaseView(name, (), str(problem), "", False)
    files = tuple(
        each
        for each in (*sorted(certificate.digests), CERTIFICATE)
        if "/" not in each and (place / each).is_file()
    )
    verdict, light = _verdict(desk.folder, name, _stamps(desk.folder, place)) if newest else ("", "")
    at = "" if certificate.delta is None else f" and delta {certificate.delta:g}"
    return ReleaseView(
        name=name,
        files=files,
        words=f"epsilon {certificate.epsilon:.4g}{at} for each {certificate.unit}, line {certificate.number}",
        when=f"{certificate.time:%Y-%m-%d %H:%M} UTC",
        has_report=REPORT in files,
        crosstabs=_crosstabs(place) if newest else (),
        verdict=verdict,
        light=light,
    )


def _stamps(folder: Folder, place: Path) -> tuple[object, ...]:
    """What changes when a file of a release or a ledger does: no verdict outlives what it is about."""
    files = [*place.iterdir(), *(folder.root / name for name in folder.ledgers())]
    return tuple((str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in sorted(files))


@lru_cache(maxsize=8)
def _verdict(folder: Folder, name: str, stamps: tuple[object, ...]) -> tuple[str, str]:
    try:
        verdict, *_ = verdict_on(folder, name)
    except (SourdineError, OSError) as problem:
        return (str(problem) if isinstance(problem, SourdineError) else ""), ""
    return verdict.words, str(verdict.light)


def read_certificate(place: Path) -> Certificate:
    """The certificate of a folder."""
    try:
        return Certificate.from_json((place / CERTIFICATE).read_text(encoding="utf-8"))
    except (OSError, UnicodeError):
        raise InvalidParameter(f"{place.name} holds no certificate that can be read.") from None


def _crosstabs(place: Path) -> tuple[TextTable, ...]:
    """The answers that have keys of two columns, as rows and columns."""
    try:
        record = Record.from_json((place / RECORD).read_text(encoding="utf-8"))
    except (OSError, UnicodeError, SourdineError):
        return ()
    queries = record.specification.plan().queries
    found = [
        (answer, fitting_crosstab(answer, consistent=adds_up(queries, answer)))
        for answer in record.answers.each
    ]
    return tuple(
        cross_table(crosstab, MOST_ROWS, where="", title=f"{answer.query}: {crosstab.title}")
        for answer, crosstab in found
        if crosstab is not None
    )


# The last step, for those who like: a synthetic table, rows like the real ones and of nobody.


OF_TABLE, TABLE = "-synthetic", "synthetic.csv"
_BEFORE = ("table", "people", "columns", "budget", "release")  # steps that it needs; it asks no questions


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
        view["balance"] = _synthesis_balance(desk, sheet, specification, plan)
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


def _synthesis_balance(
    desk: Desk, sheet: Sheet, specification: Specification, plan: SyntheticPlan
) -> SyntheticBalance:
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
