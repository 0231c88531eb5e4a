"""The page of an attack: what was attacked, how often it succeeded, and what that teaches."""

from sourdine.audit.attacks import Chart, Found
from sourdine.audit.attacks.attack import BLIND, MOST, PROTECTED, UNPROTECTED, percent
from sourdine.report.attack_charts import draw_attack
from sourdine.report.page import Figure, Page, Section
from sourdine.report.table import Table

COLUMNS = ("case", "target", "success", "right", "of")


def attack_page(found: Found) -> Page:
    """Everything that an attack found, on one page."""
    figures = tuple(
        Figure(title=each.finding, chart=draw_attack(each), note=_note(each)) for each in found.charts
    )
    table = Table(
        name="success",
        title=f"Success: {found.goal}",
        columns=COLUMNS,
        rows=attack_rows(found),
        note="Everybody here is made up, and nothing of it is drawn from real tables.",
    )
    return Page(
        title=found.finding,
        lead=found.attacked,
        sections=(
            Section(title="How often it is right", tables=(table,), figures=figures),
            Section(title="What it teaches", paragraphs=(found.lesson,)),
        ),
    )


def attack_rows(found: Found) -> tuple[tuple[str, ...], ...]:
    """The figures in words: both targets, what the protection allows, and blind guessing."""
    measured = (
        (case, each.target, percent(each.success), f"{each.hits:,}", f"{each.tries:,}")
        for case, each in ((UNPROTECTED, found.unprotected), (PROTECTED, found.protected))
    )
    return (
        *measured,
        (MOST, found.why, percent(found.limit), "", ""),
        (BLIND, found.guess, percent(found.chance), "", ""),
    )


def _note(chart: Chart) -> str:
    """What is to be said below a chart, and what its intervals are."""
    counted = any(each.tries is not None for each in chart.points)
    return (
        f"{chart.note} Thin lines: intervals of 95 %, as of independent trials.".strip()
        if counted
        else chart.note
    )
