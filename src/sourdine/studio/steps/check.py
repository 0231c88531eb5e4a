"""The sixth step: does the data fit what is declared? Privately for a price, or exactly and marked."""

from fractions import Fraction
from pathlib import Path
from typing import Any

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.numbers import readable
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.studio.desk import Desk, PrivateCounts, Sheet
from sourdine.studio.jobs import Job, JobState
from sourdine.studio.payments import LedgerPayment, check_again, payments_for
from sourdine.tables import Specification
from sourdine.tables.forecast import quality_forecast
from sourdine.tables.quality.exact import NOTICE, OUTSIDE, exact_quality
from sourdine.tables.quality.private import told_rows
from sourdine.tables.quality_release import PURPOSE, QualityPlan, release_quality
from sourdine.tables.query import columns_of

EXACT, PRIVATE = "exact counts", "private counts"
_SMALL = Fraction(1, 10)


def check_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """What the private counts would see, and the exact ones if somebody asked for them."""
    specification = sheet.review.specification
    job = desk.jobs.of(sheet.name, EXACT)
    exact = desk.exact.get(sheet.name)
    view: dict[str, Any] = {
        "ready": specification is not None,
        "quality": sheet.file.blocks.get("privacy", {}).get("quality", True),
        "checked": sheet.file.blocks.get("table", {}).get("checked", False) is True,
        "notice": NOTICE,
        "outside": OUTSIDE,
        "counting": job is not None and job.running,
        "trouble": job.words if job is not None else "",
        "exact": None if exact is None else list(exact.lines())[:-1],
        "forecast": None,
        "told": desk.told.get(sheet.name),
        "private": desk.jobs.of(sheet.name, f"{PRIVATE} of {sheet.file.version}"),
        "there": False,
        "lost": [],
    }
    if specification is not None and specification.is_there:
        plan = specification.plan()
        view["forecast"], view["sized"] = quality_forecast(plan), plan.size is not None
        view["there"] = ledger_is_there(specification)
        view["small"] = QualityPlan(plan=plan, epsilon=_SMALL)
        if view["there"]:
            try:
                with specification.open_ledger() as ledger:
                    view["lost"] = lost_counts(desk, sheet, ledger)[-1:]
            except SourdineError:
                view["there"] = False
    return view


def ledger_is_there(specification: Specification) -> bool:
    """Whether there is something that can pay."""
    path = specification.ledger_path
    return path is not None and (not isinstance(path, Path) or path.exists())


def count_privately(desk: Desk, sheet: Sheet, epsilon: Fraction, *, again: object = None) -> None:
    """Pay for private counts, once for a version of the specification, and keep them for the page.

    Where the ledger paid for such counts and the page does not show them, `again` must name the line.
    """
    specification = sheet.review.specification
    if specification is None:
        raise InvalidParameter("Fill in the steps before this one first.")
    name = f"{PRIVATE} of {sheet.file.version}"
    quality = QualityPlan(plan=specification.plan(), epsilon=epsilon)
    begun = desk.jobs.of(sheet.name, name)
    if begun is None or begun.state is JobState.FAILED:
        sheet.check_reach(specification)
        if desk.jobs.running(sheet.name) is None:
            with specification.open_ledger() as ledger:
                check_again(lost_counts(desk, sheet, ledger), again, "private counts")

    def work(job: Job) -> None:
        with specification.open_ledger() as ledger:
            counts, receipt = release_quality(quality, specification.open(), ledger)
        value, low, high = counts.records
        desk.told[sheet.name] = PrivateCounts(
            rows=tuple(told_rows(counts)),
            warnings=counts.warnings,
            words=f"About {value:,.0f} records were read (between {low:,.0f} and {high:,.0f}). Paid "
            f"{receipt.currency} {readable(receipt.price)}, line {receipt.number} of the ledger.",
        )

    desk.jobs.begin(sheet.name, name, work)


def lost_counts(desk: Desk, sheet: Sheet, ledger: Ledger) -> list[LedgerPayment]:
    """What paid for private counts, if the page has none to show."""
    return [] if sheet.name in desk.told else payments_for(ledger, PURPOSE)


def count_exactly(desk: Desk, sheet: Sheet) -> None:
    """Mark the specification as checked, then count in the server; the page shows it when it is done."""
    specification = sheet.review.specification
    if specification is None:
        raise InvalidParameter("Fill in the steps before this one first.")
    sheet.check_reach(specification)

    def work(job: Job) -> None:
        plan, source = specification.plan(), specification.open()
        desk.mark(sheet.file.path)  # before anything is shown
        desk.exact[sheet.name] = exact_quality(
            source, columns_of(plan.queries, plan.schema), specification.unit
        )

    desk.exact.pop(sheet.name, None)
    desk.jobs.forget(sheet.name, EXACT)
    desk.jobs.begin(sheet.name, EXACT, work)
