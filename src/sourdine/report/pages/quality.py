"""The sections of a release's page that tell how well the data fits what was declared."""

from collections.abc import Iterator

from sourdine.core.format import counted
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.report.pages.page import Section
from sourdine.report.table import TextTable
from sourdine.tables.quality.private import ADVICE, DataQuality, told_rows


def misfit_section(quality: DataQuality | None) -> Iterator[Section]:
    """What did not fit and noise does not explain; nothing where there is no such thing."""
    if quality is not None and quality.warnings:
        yield Section(
            title="Not all records fit what was declared",
            paragraphs=(f"Read the answers with care. {ADVICE}",),
            points=quality.warnings,
        )


def quality_section(quality: DataQuality | None, unit: PrivacyUnit) -> Iterator[Section]:
    """How many records were read, and how many are in each cell of each column."""
    if quality is None:
        return
    value, low, high = quality.records
    whose = "" if unit.column is None else f" {_bounded(unit)}"
    rows = tuple(told_rows(quality))
    calm = (
        ""
        if quality.warnings
        else (
            " Taken together, none of them is beyond what noise and a usual share of misfits explain; a "
            "single interval may leave out the truth by chance."
        )
    )
    table = TextTable(
        name="quality",
        title="Records that did not fit",
        columns=("column", "what", "records", "lower", "upper", "share"),
        rows=rows,
        note=f"The share is of all records; the file of data quality has its interval too.{calm}",
    )
    yield Section(
        title="How well the data fits what was declared",
        paragraphs=(
            f"About {value:,.0f} records were read (between {low:,.0f} and {high:,.0f}).{whose} These counts "
            "are noisy like all others and part of what was paid. They are of the whole table, whichever "
            "records a query is about.",
        ),
        tables=(table,) if rows else (),
    )


def _bounded(unit: PrivacyUnit) -> str:
    many = counted(unit.max_rows, "record")
    does = "counts" if unit.max_rows == 1 else "count"
    return f"Of each {unit.name} at most {many} {does} here, and records without one do not."
