"""The page of a specification: nine steps, of which each says what is done and what is left."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted
from sourdine.studio.code import code_of
from sourdine.studio.desk import Desk, Sheet
from sourdine.studio.draft import place_of, pointer_of
from sourdine.studio.publish import release_step, result_step, synthetic_step
from sourdine.studio.review import STEPS, shown
from sourdine.studio.steps import (
    at_epsilon,
    budget_step,
    check_step,
    columns_step,
    epsilon_at,
    forecast_view,
    noise_view,
    people_step,
    questions_step,
    table_step,
)

if TYPE_CHECKING:
    from jinja2 import Environment

TITLES = {
    "table": "Table",
    "people": "People",
    "columns": "Columns",
    "questions": "Questions",
    "budget": "Budget",
    "check": "Check",
    "release": "Release",
    "result": "Result",
    "synthetic": "Synthetic table",
}
_MOST_ROWS = 60  # of a dry run
_VIEWS = {
    "table": table_step,
    "people": people_step,
    "columns": columns_step,
    "questions": questions_step,
    "budget": budget_step,
    "check": check_step,
    "release": release_step,
    "result": result_step,
    "synthetic": synthetic_step,
}


def render_start(desk: Desk, base: str) -> str:
    """The first page: which table, or which specification to go on with."""
    return _render("start.html", base=base, folder=desk.folder, title="Choose a table")


def render_sheet(desk: Desk, sheet: Sheet, base: str) -> str:
    """The whole page of a specification."""
    return _render("sheet.html", base=base, title=sheet.name, **_content(desk, sheet))


def render_steps(desk: Desk, sheet: Sheet, base: str) -> str:
    """The steps alone, for a page that is open."""
    return _render("steps.html", base=base, **_content(desk, sheet))


def render_error(words: str, base: str) -> str:
    """A page that says why there is no other."""
    return _render("error.html", base=base, title="Not here", words=words)


def render_forecast(sheet: Sheet, position: float) -> tuple[str, float]:
    """The errors at a place of the slider, and the epsilon of that."""
    epsilon = epsilon_at(position)
    return _render("forecast.html", view=forecast_view(at_epsilon(sheet, epsilon))), epsilon


def render_noise(sheet: Sheet, position: float, place: int) -> str:
    """Noise on a made-up table, at a place of the slider."""
    return _render("noise.html", **noise_view(at_epsilon(sheet, epsilon_at(position)), place))


def render_dry_run(sheet: Sheet) -> str:
    """The answers of a made-up table."""
    from sourdine.report.finding import named_rows
    from sourdine.tables import rehearse

    if sheet.review.specification is None:
        raise InvalidParameter("Fill in the steps before this one first.")
    rows = list(named_rows(rehearse(sheet.review.specification.plan()).values))
    return _render("dry_run.html", rows=rows[:_MOST_ROWS], more=max(0, len(rows) - _MOST_ROWS))


def render_code(sheet: Sheet, step: str) -> str:
    """What a step says, as code."""
    if step not in STEPS:
        raise InvalidParameter("The page asked for a step that it has not. Reload it.")
    return _render("code.html", forms=code_of(step, sheet))


def _content(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    views = {step: view(desk, sheet) for step, view in _VIEWS.items()}
    return {
        "sheet": sheet,
        "review": sheet.review,
        "held": lambda at: sheet.at(place_of(at)),
        "steps": [(step, TITLES[step], *_state(step, sheet, views)) for step in STEPS],
        "views": views,
    }


def _state(step: str, sheet: Sheet, views: Mapping[str, Any]) -> tuple[str, str]:
    """How far a step is, in words, and as a kind: done, left, or to be looked at."""
    if left := sheet.review.left(step):
        return left, "left"
    if step in ("table", "people", "columns", "questions"):
        return "done", "done"
    if step == "synthetic":
        made = len(views["synthetic"]["made"])
        return (counted(made, "table"), "done") if made else ("if you like", "waits")
    if sheet.review.specification is None:
        return "waits", "waits"
    if step == "budget":
        return views["budget"]["words"], "done"
    if step == "check":
        return ("exact counts shown" if views["check"]["checked"] else "if you like"), "waits"
    released = views["result"]["releases"]
    if step == "release":
        job = views["release"]["job"]
        if job is not None and job.running:
            return "under way", "left"
        return ("released", "done") if released else ("not yet", "left")
    return (counted(len(released), "release"), "done") if released else ("nothing yet", "waits")


def _render(template: str, **content: object) -> str:
    return _templates().get_template(template).render(**content)


@lru_cache(maxsize=4096)
def _id(pointer: str) -> str:
    """What tells an element from others, by the place that it shows."""
    return quote(pointer.replace("/", "_")).replace("%", ".")


@cache
def _templates() -> "Environment":
    """The templates; every text in them is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("sourdine.studio", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["shown"] = shown
    templates.filters["pair"] = lambda key: (key, key)
    templates.globals.update(pointer=pointer_of, terms=TERMS, id_of=_id)
    return templates


TERMS: Mapping[str, str] = {
    "privacy unit": "Whom the guarantee protects: one person, with all records that person has.",
    "contribution bounds": "How much of one unit counts at most, so that nobody can move an answer far.",
    "epsilon": "How much the release may tell about one unit: odds change by a factor of at most e^epsilon.",
    "delta": "The chance that the guarantee of epsilon does not hold; far below 1 in the number of units.",
    "ledger": "The file that keeps what was ever spent on these people, and refuses what is too much.",
    "bounds": "Values outside are moved to the nearer bound, so that one person cannot move a sum far.",
    "keys": "The values that may be published as groups; others count as unknown.",
    "neighbours": "What the guarantee compares: a unit there or not, or one that holds other things.",
    "mock table": "A made-up table with the declared columns. It holds nothing of the real one.",
    "certificate": "A signed statement of what was released, what it cost, and which files belong to it.",
}
