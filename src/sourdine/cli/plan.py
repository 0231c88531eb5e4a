"""`sourdine plan`: what a release would be worth and cost, before anything is read or spent."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.core.errors import BudgetExceeded, InvalidParameter, SourdineError
from sourdine.core.format import plain, written

if TYPE_CHECKING:
    from sourdine.tables import Answers, Forecast, ReleasePlan, Specification

SpecFile = Annotated[Path, typer.Argument(help="The specification, a TOML file.")]
MOST_ROWS = 40


def plan(
    spec: SpecFile,
    *,
    error: Annotated[
        str | None,
        typer.Option(
            help="QUERY=ERROR or QUERY:STATISTIC=ERROR: find the least epsilon for this error, in the "
            "measure of the answers; of a proportion, in percentage points."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Also answer from a made-up table.")] = False,
    as_json: AsJson = False,
) -> None:
    """Forecast the error of every answer, and what the release costs. No record is read, nothing is spent.

    Whatever a release would refuse is refused here: names and types of columns are compared with the table's,
    if it is there, and the ledger is asked whether it would pay. Public files are read.

    Examples: sourdine plan people.toml · sourdine plan people.toml --error 'income=500' ·
    sourdine plan people.toml --error 'income:mean of salary=500' · sourdine plan people.toml --dry-run
    """
    from sourdine.tables import Specification, rehearse
    from sourdine.tables.release import check_release

    specification = Specification.load(spec)
    release_plan = specification.plan()
    reached = ""
    if error is not None:
        release_plan, reached = _aimed(release_plan, error)
    source = specification.look()
    check_release(release_plan, source)
    cost = cost_of(specification, release_plan)
    twin = rehearse(release_plan).values if dry_run and cost.refusal is None else None
    if as_json:
        notes = {"table_seen": source is not None, "refusal": str(cost.refusal) if cost.refusal else None}
        show.document(plain_plan(release_plan, cost, twin) | notes)
    else:
        print_plan(release_plan, reached)
        print_cost(cost)
    if cost.refusal is not None:  # last, since the errors are worth knowing all the same
        raise cost.refusal
    if as_json:
        return
    if source is None:
        show.say(
            f"There is no {specification.places[0]} yet. A plan does without it, a release needs it. So the "
            "names and types of its columns were not looked at."
        )
    if error is not None:
        show.say(f"To release at it, write epsilon = {written(release_plan.privacy.epsilon)} in {spec}.")
    if twin is not None:
        show.line()
        show.say(
            "MADE UP: the answers below come from a synthetic table that was drawn from the declarations "
            "alone, with values spread evenly. They show the shape of a release, and say nothing about your "
            "data."
        )
        print_answers(twin, "A release writes them all.")
        show.line("MADE UP, as said above.")


def print_answers(answers: "Answers", rest: str) -> None:
    """Every value with its interval, as far as a terminal should show them."""
    from sourdine.report.finding import named_rows

    count = sum(len(answer.keys) for answer in answers.each)
    shown = [tuple(map(show.one_line, row)) for row in islice(named_rows(answers), MOST_ROWS)]
    ends = ("value", "lower", "upper")
    show.table(("query", "statistic", "group", *ends, "measure"), shown, numbers=ends)
    if count > MOST_ROWS:
        show.line(f"{MOST_ROWS} of {count:,} rows. {rest}")


def _aimed(plan: "ReleasePlan", text: str) -> "tuple[ReleasePlan, str]":
    """The plan that reaches a target, and what it reaches, in words."""
    from sourdine.cli.shared.parse import number
    from sourdine.tables.forecast import epsilon_for, largest_error

    name, equals, error = (part.strip() for part in text.rpartition("="))
    if not equals or not name:
        raise InvalidParameter(
            "--error names a query and the error wanted, joined by '='. Write it like "
            "--error 'income=500', or --error 'income:mean of salary=500' for one of its statistics."
        )
    query, statistic = _split(name, [each.name for each in plan.queries])
    target = float(number("plan", "error", error.removesuffix("%").strip(), Fraction(1, 10**12), 10**15))
    level = epsilon_for(plan, query, target, statistic)
    decides = largest_error(level, query, statistic)
    if error.endswith("%") and decides.measure != "percentage points":
        raise InvalidParameter(
            f"The error of the {decides.statistic} in '{query}' is counted in {decides.measure}, not in per "
            "cent. Leave out the %."
        )
    statistics = next(each.ask for each in plan.queries if each.name == query)
    alone = statistic is not None or len(statistics) == 1
    which = "" if alone else ", the largest of its errors"
    return level, (
        f" reaches an error of {_percent(target)} {decides.measure} for the {decides.statistic} in "
        f"'{query}'{which}"
    )


def _percent(error: float) -> str:
    return f"{error:,.0f}" if error >= 1000 and error.is_integer() else plain(error)


def _split(name: str, queries: list[str]) -> tuple[str, str | None]:
    """A query's name, and after a colon perhaps a statistic's; the name may have colons of its own."""
    for query in sorted(queries, key=len, reverse=True):
        if name == query:
            return query, None
        if name.startswith(f"{query}:"):
            return query, name.removeprefix(f"{query}:").strip()
    return name, None


@dataclass(frozen=True, kw_only=True)
class _Cost:
    """What a plan costs, and what its ledger has for it; without a ledger there is advice instead."""

    words: str
    advice: str = ""
    currency: str | None = None
    price: Fraction | None = None
    left: Fraction | None = None
    delta: Fraction | None = None
    selection_left: Fraction | None = None  # what there is of the selection delta
    refusal: SourdineError | None = None

    @property
    def after(self) -> Fraction | None:
        """What would be left; None if the ledger would refuse, or is not there."""
        if self.price is None or self.left is None or self.price > self.left or self.short:
            return None
        return self.left - self.price

    @property
    def short(self) -> bool:
        """Whether the selection delta does not suffice for choosing keys."""
        return self.delta is not None and self.selection_left is not None and self.delta > self.selection_left

    def plain(self) -> dict[str, str | None]:
        """The cost for machines."""
        numbers = {"price": self.price, "left": self.left, "left_after": self.after, "delta": self.delta}
        return {"currency": self.currency} | {k: None if v is None else str(v) for k, v in numbers.items()}


def cost_of(specification: "Specification", plan: "ReleasePlan") -> _Cost:
    """What the ledger says to a plan, a refusal too. It may be made later, so none is no mistake here."""
    from sourdine.accounting.ledger.numbers import readable, remaining, room
    from sourdine.tables.release import check_release

    path = specification.ledger_path
    if path is None or (isinstance(path, Path) and not path.exists()):
        try:
            specification.open_ledger(plan.privacy.epsilon)
        except InvalidParameter as problem:
            return _Cost(
                words=f"It costs {plan.guarantee.words} for each {plan.unit.name}.", advice=str(problem)
            )
    refusal: SourdineError | None = None
    try:
        with specification.open_ledger() as ledger:
            try:
                check_release(plan, ledger=ledger)
            except BudgetExceeded as problem:
                refusal = problem
            price, status = ledger.price(*plan.spends), ledger.status()
            small = ledger.delta(*plan.spends)
    except SourdineError as problem:
        return _Cost(words="", refusal=problem)
    left, until = status.left, ""
    if status.period_limit is not None and status.period_spent is not None:
        left = min(left, status.period_limit - status.period_spent)
        until = f" for {status.period}"
    selection_left = None
    if status.selection_delta is not None and status.selection_delta_spent is not None:
        selection_left = status.selection_delta - status.selection_delta_spent
    cost = _Cost(
        words="",
        currency=status.currency,
        price=price,
        left=left,
        delta=small,
        selection_left=selection_left,
        refusal=refusal,
    )
    also = ""
    if small and selection_left is not None:
        takes, there = readable(small), room(selection_left)
        also = f" Choosing keys takes {takes} of the {there} of its selection delta."
        if cost.short:
            also += " The selection delta does not suffice."
    then = "would refuse it" if cost.after is None else f"{remaining(cost.after, status.limit)} after it"
    words = (
        f"It costs {status.currency} {readable(price)} for each {plan.unit.name}. The ledger {path} has "
        f"{remaining(left, status.limit)} left{until}, and {then}.{also}"
    )
    return replace(cost, words=words)


def print_cost(cost: _Cost) -> None:
    """What it costs, and what a ledger says to that."""
    if cost.words:
        show.say(cost.words)
    if cost.advice:
        show.line(cost.advice)  # in one line, since it holds a command


def print_plan(plan: "ReleasePlan", reached: str = "") -> None:
    """The errors of every answer, and what was chosen for them."""
    from sourdine.tables import forecasts
    from sourdine.tables.forecast import advice, quality_forecast
    from sourdine.tables.quality import CHECKED_WORDS

    last = quality_forecast(plan)
    show.say(f"A plan at {plan.guarantee.words}{show.one_line(reached)}. No record was read, nothing spent.")
    show.table(
        ("query", "statistic", "noise", "share", "error", ""),
        [
            (
                each.query,
                each.statistic,
                each.noise,
                f"{100 * float(each.share):.3g} %",
                each.words,
                each.note,
            )
            for each in [*forecasts(plan), *([last] if last else [])]
        ],
        numbers=("share",),
    )
    show.say(
        f"Errors hold {100 * plan.confidence:g} % of the time and are about noise alone, not about clamping "
        "or sampling. Aggregates of one query with the same noise share one measurement, paid once."
    )
    for note in plan.caveats:
        show.say(f"{note[0].upper()}{note[1:]}{'' if note.endswith('.') else '.'}", mark="NOTE: ")
    for name, why in plan.picked.items():
        show.say(f"{name[0].upper()}{name[1:]}: {why}.", mark="NOTE: ")
    if words := advice(plan):
        show.say(words, mark="ADVICE: ")
    if plan.checked:
        show.say(f"{CHECKED_WORDS}.", mark="NOTE: ")
    if plan.warning:
        show.say(plan.warning, mark="WARNING: ")


def plain_plan(plan: "ReleasePlan", cost: _Cost, twin: "Answers | None") -> dict[str, object]:
    """A plan as JSON."""
    import json

    from sourdine.tables import forecasts
    from sourdine.tables.forecast import advice, quality_forecast, smallest_seen

    rows = [
        {"query": each.query, "statistic": each.statistic, **_plain_forecast(each)}
        for each in forecasts(plan)
    ]
    last = quality_forecast(plan)
    document: dict[str, object] = {
        "epsilon": str(plan.privacy.epsilon),
        "delta": plan.guarantee.delta,
        "unit": plan.unit.name,
        "neighbours": str(plan.neighbours),
        "confidence": plan.confidence,
        "warning": plan.warning or None,
        "quality": last
        and {**_plain_forecast(last), "smallest_share": smallest_seen(plan), "advice": advice(plan) or None},
        "checked": plan.checked,
        "forecasts": rows,
        "ledger": cost.plain(),
    }
    return document if twin is None else document | {"made_up": json.loads(twin.json())}


def _plain_forecast(each: "Forecast") -> dict[str, object]:
    return {
        "noise": each.noise,
        "share": str(each.share),
        "error": each.error,
        "measure": each.measure,
        "note": each.note,
    }
