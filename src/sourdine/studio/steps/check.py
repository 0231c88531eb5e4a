"""The sixth step: does the data fit what is declared? Privately for a price, or exactly and marked."""

from fractions import Fraction
from pathlib import Path
from typing import Any

from sourdine.accounting.ledger.numbers import readable
from sourdine.core.errors import InvalidParameter
from sourdine.studio.desk import Desk, PrivateCounts, Sheet
from sourdine.studio.jobs import Job
from sourdine.tables import Specification
from sourdine.tables.forecast import quality_forecast
from sourdine.tables.quality.exact import NOTICE, OUTSIDE, exact_quality
from sourdine.tables.quality.private import told_rows
from sourdine.tables.quality_release import QualityPlan, release_quality
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
    }
    if specification is not None and specification.is_there:
        plan = specification.plan()
        view["forecast"] = quality_forecast(plan)
        view["there"] = ledger_is_there(specification)
        view["small"] = QualityPlan(plan=plan, epsilon=_SMALL)
    return view


def ledger_is_there(specification: Specification) -> bool:
    """Whether there is something that can pay."""
    path = specification.ledger_path
    return path is not None and (not isinstance(path, Path) or path.exists())


def count_privately(desk: Desk, sheet: Sheet, epsilon: Fraction) -> None:
    """Pay for private counts, once for a version of the specification, and keep them for the page."""
    specification = sheet.review.specification
    if specification is None:
        raise InvalidParameter("Fill in the steps before this one first.")
    name = f"{PRIVATE} of {sheet.file.version}"
    quality = QualityPlan(plan=specification.plan(), epsilon=epsilon)

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


def count_exactly(desk: Desk, sheet: Sheet) -> None:
    """Mark the specification as checked, then count in the server; the page shows it when it is done."""

    def work(job: Job) -> None:
        specification = Specification.load(sheet.file.path)
        plan, source = specification.plan(), specification.open()
        desk.mark(sheet.file.path)  # before anything is shown
        desk.exact[sheet.name] = exact_quality(
            source, columns_of(plan.queries, plan.schema), specification.unit
        )

    desk.exact.pop(sheet.name, None)
    desk.jobs.forget(sheet.name, EXACT)
    desk.jobs.begin(sheet.name, EXACT, work)
