"""`sourdine plan`: what a release would be worth and cost, before anything is read or spent."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli import show
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.tables import Answers, Plan, Specification

SpecFile = Annotated[Path, typer.Argument(help="The specification, a TOML file.")]
MOST_ROWS = 40


def plan(
    spec: SpecFile,
    *,
    target: Annotated[
        str | None, typer.Option(help="QUERY=ERROR: find the least epsilon for this error of a query.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Also answer from a made-up table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Forecast the error of every answer, and what the release costs. No data is read, nothing is spent.

    Examples: sourdine plan people.toml · sourdine plan people.toml --target 'income=500' ·
    sourdine plan people.toml --dry-run
    """
    from sourdine.tables import Specification, epsilon_for, rehearse

    held = Specification.load(spec)
    made = held.plan()
    if target is not None:
        made = epsilon_for(made, *_target(target))
    cost = _cost(held, made)
    twin = rehearse(made).values if dry_run else None
    if as_json:
        show.document(_plain(made, cost, twin))
        return
    _print_plan(made, target)
    show.say(cost.words)
    if cost.advice:
        print(cost.advice)  # in one line, since it holds a command
    if target is not None:
        show.say(f"To release at it, write epsilon = {float(made.privacy.epsilon):g} in {spec}.")
    if twin is not None:
        print()
        show.say(
            "MADE UP: the answers below come from a synthetic table that was drawn from the declarations "
            "alone, with values spread evenly. They show the shape of a release, and say nothing about your "
            "data."
        )
        print_answers(twin, "A release writes them all.")
        print("MADE UP, as said above.")


def print_answers(answers: "Answers", rest: str) -> None:
    """Every value with its interval, as far as a terminal should show them."""
    from sourdine.report.finding import named_rows

    count = sum(len(answer.keys) for answer in answers.each)
    shown = [tuple(map(show.one_line, row)) for row in islice(named_rows(answers), MOST_ROWS)]
    ends = ("value", "at least", "at most")
    show.table(("query", "statistic", "group", *ends, "measure"), shown, numbers=ends)
    if count > MOST_ROWS:
        print(f"{MOST_ROWS} of {count:,} rows. {rest}")


def _target(text: str) -> tuple[str, float]:
    from sourdine.cli.number import number

    name, equals, error = text.rpartition("=")
    if not equals or not name.strip():
        raise InvalidParameter(
            "A target names a query and an error, joined by '='. Write it like --target 'income=500'."
        )
    return name.strip(), float(number("plan", "target", error.strip(), Fraction(1, 10**12), 10**15))


@dataclass(frozen=True, kw_only=True)
class _Cost:
    """What a plan costs, and what its ledger has for it; without a ledger there is advice instead."""

    words: str
    advice: str = ""
    currency: str | None = None
    price: Fraction | None = None
    left: Fraction | None = None

    @property
    def after(self) -> Fraction | None:
        """What would be left; None if the ledger would refuse, or is not there."""
        if self.price is None or self.left is None or self.price > self.left:
            return None
        return self.left - self.price

    def plain(self) -> dict[str, str | None]:
        """The cost for machines."""
        numbers = {"price": self.price, "left": self.left, "left_after": self.after}
        return {"currency": self.currency} | {k: None if v is None else str(v) for k, v in numbers.items()}


def _cost(held: "Specification", made: "Plan") -> _Cost:
    """What the ledger says to a plan. It may be made later, so none is no mistake here."""
    from sourdine.accounting.ledger.receipt import readable
    from sourdine.tables.release import check_ledger

    path = held.ledger_path
    if path is None or not path.exists():
        try:
            held.open_ledger()
        except InvalidParameter as problem:
            return _Cost(
                words=f"It costs {made.privacy.words} for each {made.unit.name}.", advice=str(problem)
            )
    with held.open_ledger() as ledger:
        check_ledger(made, ledger)
        price, status = ledger.price(*made.spends), ledger.status()
    left, until = status.left, ""
    if status.period_limit is not None and status.period_spent is not None:
        left = min(left, status.period_limit - status.period_spent)
        until = f" for {status.period}"
    cost = _Cost(words="", currency=status.currency, price=price, left=left)
    then = "would refuse it" if cost.after is None else f"{readable(cost.after)} after it"
    words = (
        f"It costs {status.currency} {readable(price)} for each {made.unit.name}. The ledger {path} has "
        f"{readable(left)} left{until}, and {then}."
    )
    return replace(cost, words=words)


def _print_plan(made: "Plan", target: str | None) -> None:
    from sourdine.tables import forecasts

    found = f" reaches {show.one_line(target)}" if target is not None else ""
    print(f"A plan at {made.privacy.words}{found}. Nothing was read or spent.")
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
            for each in forecasts(made)
        ],
        numbers=("share",),
    )
    show.say(
        f"Errors hold {100 * made.confidence:g} % of the time and are about noise alone, not about clamping "
        "or sampling. Aggregates of one query with the same noise share one measurement, paid once."
    )


def _plain(made: "Plan", cost: _Cost, twin: "Answers | None") -> dict[str, object]:
    import json

    from sourdine.tables import forecasts

    rows = [
        {
            "query": each.query,
            "statistic": each.statistic,
            "noise": each.noise,
            "share": str(each.share),
            "error": each.error,
            "measure": each.measure,
            "note": each.note,
        }
        for each in forecasts(made)
    ]
    found: dict[str, object] = {
        "epsilon": str(made.privacy.epsilon),
        "delta": made.privacy.delta,
        "unit": made.unit.name,
        "neighbours": str(made.neighbours),
        "confidence": made.confidence,
        "forecasts": rows,
        "ledger": cost.plain(),
    }
    return found if twin is None else found | {"made_up": json.loads(twin.json())}
