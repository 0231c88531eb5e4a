"""`sourdine ledger`: make a budget, see what is left, and what was spent on what."""

import json
from dataclasses import asdict
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sourdine.cli import show
from sourdine.cli.number import number
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.accounting.ledger import Budget, Entry, Status
    from sourdine.accounting.spend import Spend

app = typer.Typer(no_args_is_help=False)
_MOST = 1 << 20
E = TypeVar("E", bound=StrEnum)

Where = Annotated[Path, typer.Argument(help="The file of the ledger.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def ledger(ctx: typer.Context) -> None:
    """Keep a durable budget for one data set: paid before any noise is drawn, never refunded.

    Example: sourdine ledger create survey.ledger --epsilon 3 --delta 1e-6
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command()
def create(
    path: Where,
    *,
    epsilon: Annotated[str | None, typer.Option(help="The whole budget, as an epsilon.")] = None,
    delta: Annotated[str | None, typer.Option(help="With it the budget is kept in rho.")] = None,
    rho: Annotated[str | None, typer.Option(help="The whole budget, as a rho.")] = None,
    order: Annotated[str | None, typer.Option(help="Keep it in Renyi divergence of this order.")] = None,
    divergence: Annotated[str | None, typer.Option(help="The whole budget, with --order.")] = None,
    unit: Annotated[str, typer.Option(help="Whom the guarantee protects.")] = "person",
    neighbours: Annotated[str, typer.Option(help="add-remove, replace or zero-out.")] = "add-remove",
    each: Annotated[
        str | None, typer.Option(help="A stretch with a limit of its own: day, week, month, year.")
    ] = None,
    limit: Annotated[str | None, typer.Option(help="The limit of each such stretch.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the ledger of a data set. Its terms never change.

    Examples: sourdine ledger create survey.ledger --epsilon 1 ·
    sourdine ledger create survey.ledger --epsilon 3 --delta 1e-6 --each month --limit 0.01
    """
    from sourdine.accounting.ledger import Ledger, Period, Terms
    from sourdine.core.distance import Neighbours

    share = float(number("ledger create", "delta", delta, 0, 1)) if delta else None
    terms = Terms(
        budget=_budget(epsilon, share, rho, order, divergence),
        unit=unit,
        neighbours=_choice("neighbours", neighbours, Neighbours),
        delta=share,
        period=_choice("each", each, Period) if each else None,
        period_limit=number("ledger create", "limit", limit, 0, _MOST) if limit else None,
    )
    _print_status(Ledger.create(path, terms).status(), as_json)


@app.command()
def status(path: Where, *, as_json: AsJson = False) -> None:
    """Say what is spent, what is left, and what that means.

    Example: sourdine ledger status survey.ledger
    """
    from sourdine.accounting.ledger import Ledger

    _print_status(Ledger.open(path).status(), as_json)


@app.command()
def history(
    path: Where,
    *,
    page: Annotated[Path | None, typer.Option("--output", "-o", help="Also draw it as a page.")] = None,
    as_json: AsJson = False,
) -> None:
    """List every charge, replayed and checked against the chain.

    Examples: sourdine ledger history survey.ledger · sourdine ledger history survey.ledger -o spending.html
    """
    from sourdine.accounting.ledger import Ledger

    opened = Ledger.open(path)
    entries = opened.history()
    if page is not None:
        from sourdine.report.spending import spending_page

        page.write_text(spending_page(opened.terms, opened.status(), entries).html(), encoding="utf-8")
    if as_json:
        show.document({"entries": [_plain_entry(entry) for entry in entries]})
        return
    rows = [
        (
            str(entry.number),
            f"{entry.time:%Y-%m-%d %H:%M}",
            entry.author,
            entry.purpose,
            _readable(entry.price),
            _readable(entry.total),
        )
        for entry in entries
    ]
    symbol = opened.terms.budget.symbol
    columns = ("line", "time (UTC)", "author", "purpose", symbol, "total")
    show.table(columns, rows, numbers=("line", symbol, "total"))
    print(
        f"{len(entries)} charges replayed to {symbol} {_readable(opened.status().spent)}; the chain is whole."
    )
    if page is not None:
        print(f"Drawn in {page}.")


@app.command()
def export(
    path: Where,
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A .json or .csv file.")] = None,
) -> None:
    """Write every charge, with its spends, for other software.

    Example: sourdine ledger export survey.ledger -o spends.csv
    """
    from sourdine.accounting.ledger import Ledger

    opened = Ledger.open(path)
    entries = [_plain_entry(entry) for entry in opened.history()]
    if output is not None and output.suffix == ".csv":
        _write_csv(output, entries)
        return
    whole = {"terms": json.loads(opened.terms.to_json()), "entries": entries}
    if output is None:
        show.document(whole)
    else:
        output.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")


@app.command()
def forecast(
    path: Where,
    *,
    spends: Annotated[
        Path | None, typer.Option(help="A JSON list of spends, as an export holds them.")
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Or one release of this pure epsilon.")] = None,
    rho: Annotated[str | None, typer.Option(help="Or one Gaussian release of this rho.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say how many more such releases fit. Nothing is spent.

    Examples: sourdine ledger forecast survey.ledger --epsilon 0.1 ·
    sourdine ledger forecast survey.ledger --spends plan.json
    """
    from sourdine.accounting.ledger import Ledger

    opened = Ledger.open(path)
    block = _block(spends, epsilon, rho, opened.terms.neighbours)
    price, fits = opened.price(*block), opened.forecast(*block)
    symbol = opened.terms.budget.symbol
    if as_json:
        show.document({"price": str(price), "currency": symbol, "fits": fits})
        return
    print(f"One such release costs {symbol} {_readable(price)}. {fits:,} more fit.")


def _budget(
    epsilon: str | None, delta: float | None, rho: str | None, order: str | None, divergence: str | None
) -> "Budget":
    from sourdine.accounting.ledger import ConcentratedBudget, PureBudget, RenyiBudget

    if [epsilon is not None, rho is not None, divergence is not None].count(True) != 1:
        raise InvalidParameter(
            "A ledger needs one budget: --epsilon, --rho, or --order with --divergence. "
            "Write for example --epsilon 1, or --epsilon 3 --delta 1e-6."
        )
    if (order is None) != (divergence is None):
        raise InvalidParameter("--order and --divergence go together. Give both, or neither.")
    if epsilon is not None:
        limit = number("ledger create", "epsilon", epsilon, 0, _MOST)
        return PureBudget(limit=limit) if delta is None else ConcentratedBudget.within(limit, delta)
    if rho is not None:
        return ConcentratedBudget(limit=number("ledger create", "rho", rho, 0, _MOST))
    assert order is not None
    assert divergence is not None
    return RenyiBudget(
        limit=number("ledger create", "divergence", divergence, 0, _MOST),
        order=number("ledger create", "order", order, 1, 10_000),
    )


def _choice(name: str, value: str, kind: type[E]) -> E:
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(choice) for choice in kind)
        raise check.fail("ledger create", name, f"be one of {choices}", value) from None


def _block(spends: Path | None, epsilon: str | None, rho: str | None, relation: object) -> "list[Spend]":
    from sourdine.accounting.spend import Spend
    from sourdine.core.distance import Distance, Neighbours
    from sourdine.mechanisms import Gaussian, Geometric

    assert isinstance(relation, Neighbours)
    if [spends is not None, epsilon is not None, rho is not None].count(True) != 1:
        raise InvalidParameter("Give one of --spends, --epsilon and --rho: what a release would use.")
    if epsilon is not None:
        scale = 1 / number("ledger forecast", "epsilon", epsilon, Fraction(1, 10**9), 10**6)
        return [Spend(mechanism=Geometric(scale=scale), distance=Distance.l1(1, neighbours=relation))]
    if rho is not None:
        exact = number("ledger forecast", "rho", rho, Fraction(1, 10**12), 10)
        noise = Gaussian(sigma=Fraction(1000))
        square = exact * 2 * noise.sigma**2
        return [Spend(mechanism=noise, distance=Distance.l2(square=square, neighbours=relation))]
    assert spends is not None
    try:
        listed = json.loads(spends.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InvalidParameter(f"The file {spends} cannot be read as JSON. Check the path.") from None
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise InvalidParameter(f"The file {spends} must hold a JSON list of spends, as an export does.")
    return [Spend.from_json(item) for item in listed]


def _print_status(found: "Status", as_json: bool) -> None:
    if as_json:
        show.document({name: str(v) if isinstance(v, Fraction) else v for name, v in asdict(found).items()})
        return
    used = float(found.spent / found.limit)
    at = f" at delta {found.delta:g}" if found.delta is not None else ""
    lines = {
        "Protects": f"each {found.unit} ({found.neighbours} neighbours)",
        "Budget": f"{found.currency} {_readable(found.limit)}, that is epsilon {found.epsilon_limit:.4g}{at}",
        "Spent": f"{_readable(found.spent)} ({used:.0%}) in {found.blocks} charges, "
        f"that is epsilon {found.epsilon:.4g}{at}",
        "Left": _readable(found.left),
    }
    if found.period is not None and found.period_limit is not None and found.period_spent is not None:
        rest = found.period_limit - found.period_spent
        lines["This period"] = f"{found.period}: {_readable(rest)} of {_readable(found.period_limit)} left"
    for name, text in lines.items():
        print(f"{name:<13}{text}")


def _plain_entry(entry: "Entry") -> dict[str, object]:
    return {
        "number": entry.number,
        "time": entry.time.isoformat(),
        "author": entry.author,
        "purpose": entry.purpose,
        "price": str(entry.price),
        "total": str(entry.total),
        "period": entry.period,
        "fingerprint": entry.fingerprint,
        "spends": [spend.to_json() for spend in entry.spends],
    }


def _write_csv(output: Path, entries: list[dict[str, object]]) -> None:
    import csv

    with output.open("w", newline="", encoding="utf-8") as file:
        names = ("number", "time", "author", "purpose", "price", "total", "period", "fingerprint", "spends")
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(entry | {"spends": json.dumps(entry["spends"])} for entry in entries)


def _readable(number: Fraction) -> str:
    from sourdine.accounting.ledger.receipt import readable

    return readable(number)
