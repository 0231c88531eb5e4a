"""The sixth step: does the data fit what is declared? Privately for a price, or exactly and marked."""

from typing import Any

from sourdine.studio.desk import Desk, Sheet
from sourdine.studio.jobs import Job
from sourdine.tables import Specification
from sourdine.tables.forecast import quality_forecast, smallest_seen
from sourdine.tables.quality.exact import NOTICE, OUTSIDE, exact_quality, mark_checked
from sourdine.tables.query import columns_of

EXACT = "exact counts"


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
        "seen": None,
    }
    if specification is not None and specification.is_there:
        plan = specification.plan()
        view["forecast"] = quality_forecast(plan)
        view["seen"] = smallest_seen(plan)
    return view


def count_exactly(desk: Desk, sheet: Sheet) -> None:
    """Mark the specification as checked, then count in the server; the page shows it when it is done."""

    def work(job: Job) -> None:
        specification = Specification.load(sheet.file.path)
        plan, source = specification.plan(), specification.open()
        mark_checked(sheet.file.path)  # before anything is shown
        desk.exact[sheet.name] = exact_quality(
            source, columns_of(plan.queries, plan.schema), specification.unit
        )

    desk.exact.pop(sheet.name, None)
    desk.jobs.forget(sheet.name, EXACT)
    desk.jobs.begin(sheet.name, EXACT, work)
