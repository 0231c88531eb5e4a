"""`sourdine demo`: a made-up register, a ledger, a release with its report, and a refusal."""

import shlex
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.plan import print_answers
from sourdine.cli.release import REPORT, plain, print_payment, publish
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.core.errors import BudgetExceeded, InvalidParameter

if TYPE_CHECKING:
    from sourdine.accounting.ledger import Ledger
    from sourdine.tables.publication import PublishedRelease

TABLE, SPEC, LEDGER, RELEASE = "register.csv", "register.toml", "register.ledger", "release"
_PEOPLE = 50_000
_MOST_FOLDERS = 1000
_SPECIFICATION = """\
# What is published about a made-up register of 50,000 people. All of it is declared beforehand.

[table]
source = "register.csv"
size = 50000  # for forecasts only

[privacy]
unit = "person"
ledger = "register.ledger"
epsilon = 1  # for all queries together

[columns.age]
type = "integer"
lower = 18
upper = 99

[columns.sex]
type = "category"
keys = ["f", "m"]

[columns.region]
type = "category"
keys = ["north", "east", "south", "west", "centre"]

[columns.salary]  # a year; empty for those who do not work, who are left out of its statistics
type = "real"
lower = 0.0
upper = 120000.0
granularity = 10.0

[columns.diagnosis]
type = "category"
keys = ["none", "hypertension", "diabetes", "asthma", "depression"]

[[queries]]
name = "people"
ask = ["count"]
by = ["region", "sex"]

[[queries]]
name = "earnings"
ask = [{ mean = "salary" }, { deviation = "salary" }]
by = ["sex"]
weight = 2  # more of the budget, so less noise; everybody is protected alike

[[queries]]
name = "deciles of earnings"
ask = [{ quantiles = "salary", levels = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9] }]
weight = 2

[[queries]]
name = "ages"
ask = [{ histogram = "age", edges = [18, 25, 35, 45, 55, 65, 75, 85, 99] }]

[[queries]]
name = "diagnoses"
ask = [{ contingency = ["diagnosis", "sex"] }]

[[queries]]
name = "old age"
ask = [{ proportion = "age", at_least = 65 }]
by = ["region"]
"""


def demo(
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder for it all; a number is added if it is taken."),
    ] = Path("sourdine-demo"),
    as_json: AsJson = False,
) -> None:
    """Make up a register of 50,000 people, publish six private statistics of it, and spend its budget.

    Example: sourdine demo -o sourdine-demo
    """
    from sourdine.tables.mock import draw_register

    place = _free(output)
    draw_register(_PEOPLE).write(place / TABLE)
    show.keep(_SPECIFICATION, place / SPEC)
    with _create(place / LEDGER):
        pass
    published = publish(place / SPEC, place / RELEASE)
    refusal = _again(place)
    if as_json:
        show.document({"folder": str(place), **plain(published), "again": refusal})
        return
    _print(place, published, refusal)


def _create(path: Path) -> "Ledger":
    from sourdine.accounting.ledger import Ledger, PureBudget, Terms
    from sourdine.core.distance import Neighbours

    terms = Terms(budget=PureBudget(limit=Fraction(1)), unit="person", neighbours=Neighbours.ADD_REMOVE)
    return Ledger.create(path, terms)


def _again(place: Path) -> str:
    """The same release once more: the budget is gone, so the ledger refuses it."""
    try:
        publish(place / SPEC, place / f"{RELEASE}-again")
    except BudgetExceeded as problem:
        return str(problem)
    return ""


def _free(folder: Path) -> Path:
    """The folder, or the first numbered one beside it that no other demonstration has taken."""
    for k in range(1, _MOST_FOLDERS):
        place = folder if k == 1 else folder.with_name(f"{folder.name}-{k}")
        if not place.exists() or (place.is_dir() and not any(place.iterdir())):
            show.check_folder(place)
            return place
        if not (place / SPEC).is_file():
            raise InvalidParameter(
                f"{place} is there already and holds something else. Name another with -o."
            )
    raise InvalidParameter(f"{folder} and its numbers are all taken. Name another with -o.")


def _print(place: Path, published: "PublishedRelease", refusal: str) -> None:
    show.line(f"A made-up register of {_PEOPLE:,} people: {place / TABLE}")
    show.line(f"What to publish about it, declared beforehand: {place / SPEC}")
    show.line(f"A ledger with a budget of epsilon 1 for each person: {place / LEDGER}")
    show.line()
    show.line("Six private statistics at epsilon 1, each with an interval for its noise:")
    print_answers(published.release.values, f"The rest is in {place / RELEASE}.")
    print_payment(published)
    show.line()
    show.line(f"Read the report in a browser: {(place / RELEASE / REPORT).resolve()}")
    show.line()
    show.line("The same release once more:")
    show.say(refusal, mark="  ")
    steps = {
        f"plan {_word(place / SPEC)}": (
            "the errors of this release, as told before it was paid; now the ledger would refuse it"
        ),
        f"plan {_word(place / SPEC)} --error people=50": "the least epsilon for an error of 50 people",
        f"ledger history {_word(place / LEDGER)}": "what was paid, and for what",
        f"certificate show {_word(place / RELEASE)} --ledger {_word(place / LEDGER)} --html verdict.html": (
            "whether it is safe, in plain words: a page to print and sign"
        ),
        f"certificate verify {_word(place / RELEASE)} --ledger {_word(place / LEDGER)}": (
            "that the release was paid, and its files are untouched"
        ),
        f"init {_word(place / TABLE)} -o mine.toml": "begin a specification of your own",
        "budget explain 1": "what epsilon 1 means",
    }
    show.line()
    show.line("Next:")
    for command, why in steps.items():
        show.line(f"  sourdine {command}")
        show.line(f"      {why}")


def _word(path: Path) -> str:
    return shlex.quote(str(path))
