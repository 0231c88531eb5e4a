"""`sourdine ledger`: make a budget, see what is left, and what was spent on what."""

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.budget.options import DELTA
from sourdine.cli.ledger import allowances, places
from sourdine.cli.ledger.options import EPSILON, MU, ORDER, RHO, SELECTION_DELTA, Where, option_of
from sourdine.cli.ledger.spends import read_blocks
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, finite, number, one_line
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, plain

if TYPE_CHECKING:
    from sourdine.accounting.ledger import Entry, Ledger, Status
    from sourdine.accounting.spend import Spend

app = typer.Typer(no_args_is_help=False)
for verb in (
    allowances.allow,
    allowances.request,
    allowances.approve,
    allowances.decline,
    places.backup,
    places.copy,
    places.grant,
    places.upgrade,
):
    app.command()(verb)


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
    delta: Annotated[
        str | None,
        typer.Option("--delta", "-d", help="With it the budget is kept in rho, or as --composition says."),
    ] = None,
    rho: Annotated[str | None, typer.Option(help="The whole budget, as a rho.")] = None,
    order: Annotated[str | None, typer.Option(help="Keep it in Renyi divergence of this order.")] = None,
    divergence: Annotated[str | None, typer.Option(help="The whole budget, with --order.")] = None,
    mu: Annotated[str | None, typer.Option(help="The whole budget, as a mu of Gaussian privacy.")] = None,
    composition: Annotated[
        str | None, typer.Option(help="How epsilons with a delta add up: zcdp, basic or renyi.")
    ] = None,
    unlimited: Annotated[
        bool, typer.Option("--unlimited", help="No limit: only count what is lost, at --delta.")
    ] = False,
    selection_delta: Annotated[
        str | None, typer.Option(help="The part of delta that is kept for choosing keys privately.")
    ] = None,
    unit: Annotated[str, typer.Option(help="Whom the guarantee protects.")] = "person",
    neighbours: Annotated[str, typer.Option(help="add-remove, replace or zero-out.")] = "add-remove",
    period: Annotated[
        str | None, typer.Option(help="A period with its own limit: day, week, month or year.")
    ] = None,
    period_limit: Annotated[str | None, typer.Option(help="The limit of each such period.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the ledger of a data set. Its terms never change.

    Examples: sourdine ledger create survey.ledger --epsilon 1 ·
    sourdine ledger create survey.ledger --epsilon 3 --delta 1e-6 --period month --period-limit 0.01 ·
    sourdine ledger create survey.ledger --epsilon 3 --delta 1e-6 --selection-delta 5e-7 ·
    sourdine ledger create training.ledger --epsilon 3 --delta 1e-5 --composition basic ·
    sourdine ledger create survey.ledger --mu 0.5 --delta 1e-6
    """
    from sourdine.accounting.explain.words import doubts
    from sourdine.accounting.ledger import Ledger
    from sourdine.accounting.ledger.making import make_terms

    ranges: dict[str, tuple[str | None, tuple[Fraction, Fraction | int]]] = {
        "delta": (delta, DELTA),
        "selection_delta": (selection_delta, SELECTION_DELTA),
        "epsilon": (epsilon, EPSILON),
        "rho": (rho, RHO),
        "divergence": (divergence, RHO),
        "mu": (mu, MU),
        "order": (order, ORDER),
        "period-limit": (period_limit, RHO),
    }
    for name, (text, (least, most)) in ranges.items():
        if text is not None:
            number("ledger create", name, text, least, most)
    terms = make_terms(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        order=order,
        divergence=divergence,
        mu=mu,
        composition=composition,
        unlimited=unlimited,
        selection_delta=selection_delta,
        unit=one_line("ledger create", "unit", unit),
        neighbours=neighbours,
        period=period,
        period_limit=period_limit,
        owner="ledger create",
        say=option_of,
    )
    status = Ledger.create(path, terms).status()
    _print_status(status, as_json)
    for question in () if unlimited else doubts(status.epsilon_limit, status.delta):
        show.warn(question)


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
    allowance: Annotated[str | None, typer.Option(help="Only what concerns this allowance.")] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Also draw it as a page.")] = None,
    as_json: AsJson = False,
) -> None:
    """List every charge, replayed and checked against the chain.

    Examples: sourdine ledger history survey.ledger · sourdine ledger history survey.ledger --html
    spending.html · sourdine ledger history survey.ledger --allowance growth
    """
    from sourdine.accounting.ledger import Ledger

    show.check_page(page)
    opened = Ledger.open(path)
    entries = opened.history()
    if allowance is not None:
        entries = _about(opened, entries, allowance)
    if page is not None:
        from sourdine.report.pages.ledger import more_like_last, spending_page

        more = more_like_last(opened, entries)
        show.keep(spending_page(opened.terms, opened.status(), entries, more=more).html(), page)
    if as_json:
        show.document({"entries": [_plain_entry(entry, opened) for entry in entries]})
    elif entries:
        _print_history(opened, entries)
    else:
        show.line("No charge yet.")
    if page is not None and not as_json:
        show.line(f"Drawn in {page}.")


def _about(opened: "Ledger", entries: "list[Entry]", allowance: str) -> "list[Entry]":
    """Charges to an allowance, and the rules about it."""
    if allowance not in opened.allowances.by_name:
        names = ", ".join(opened.allowances.by_name) or "none"
        raise InvalidParameter(f"The ledger has no allowance '{allowance}'. It has {names}.")
    about = {entry.number: getattr(entry.rule, "name", None) for entry in entries if entry.rule is not None}
    return [
        entry
        for entry in entries
        if allowance in (entry.allowance, about.get(entry.number), about.get(getattr(entry.rule, "line", 0)))
    ]


def _print_history(opened: "Ledger", entries: "list[Entry]") -> None:
    from sourdine.accounting.ledger.receipt import foreign_lines

    selects = opened.terms.selection_delta is not None
    status = opened.status()
    shares = bool(status.allowances.each)
    charges = sum(entry.rule is None for entry in entries)
    rows = [
        (
            str(entry.number),
            f"{entry.time:%Y-%m-%d %H:%M}",
            show.one_line(entry.author),
            *((show.one_line(entry.allowance or ""),) if shares else ()),
            show.one_line(entry.purpose if entry.rule is None else f"{entry.rule.words()}: {entry.purpose}"),
            _readable(entry.price),
            _readable(entry.total),
            *((_readable(entry.delta),) if selects else ()),
        )
        for entry in entries
    ]
    symbol = opened.terms.budget.symbol
    share = ("allowance",) if shares else ()
    small = ("delta",) if selects else ()
    columns = ("line", "time (UTC)", "author", *share, "purpose", symbol, "total", *small)
    show.table(columns, rows, numbers=("line", symbol, "total", "delta"))
    show.line(
        f"{counted(charges, 'charge')} replayed to {symbol} {_readable(status.spent)}; the chain is whole."
    )
    if words := foreign_lines(entries):
        show.say(words)


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

    show.check_place(output)
    show.refuse_existing([output], "Name another file with -o.")
    opened = Ledger.open(path)
    entries = [_plain_entry(entry, opened) for entry in opened.history()]
    whole = {"terms": json.loads(opened.terms.to_json()), "entries": entries}
    if output is None:
        show.document(whole)
        return
    if output.suffix == ".csv":
        _write_csv(output, entries)
    else:
        show.keep(json.dumps(whole, indent=2) + "\n", output)
    show.line(f"Wrote {counted(len(entries), 'charge')} to {output}.")


@app.command()
def forecast(
    path: Where,
    *,
    spends: Annotated[
        Path | None, typer.Option(help="A whole export, or a JSON list of spends as one holds them.")
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
    from sourdine.accounting.ledger.budget import UNLIMITED

    opened = Ledger.open(path)
    blocks = _blocks(spends, epsilon, rho, opened.terms.neighbours)
    price, status = sum(opened.price(*block) for block in blocks), opened.status()
    delta = sum(opened.delta(*block) for block in blocks)
    if price == 0:
        raise InvalidParameter("Such a release costs nothing, so any number of them fits.")
    ever = int(status.left // price)
    if delta and status.selection_delta is not None and status.selection_delta_spent is not None:
        ever = min(ever, int((status.selection_delta - status.selection_delta_spent) // delta))
    if status.limit == UNLIMITED and not delta and status.period_limit is None:
        endless = {"price": str(price), "currency": status.currency, "delta": "0", "fits": None}
        if as_json:
            show.document(endless | {"limited_by": None, "fits_budget": None})
        else:
            cost = f"One such release costs {status.currency} {_readable(price)}."
            show.line(f"{cost} The ledger has no limit: any number fits, and what they lose adds up.")
        return
    fits = ever
    if status.period_limit is not None and status.period_spent is not None:
        fits = min(ever, int((status.period_limit - status.period_spent) // price))
    if as_json:
        limits = "period" if fits < ever else "budget"
        answer = {"price": str(price), "currency": status.currency, "delta": str(delta), "fits": fits}
        show.document(answer | {"limited_by": limits, "fits_budget": ever})
        return
    also = f" and delta {_readable(delta)}" if delta else ""
    more = "1 more fits" if fits == 1 else f"{fits:,} more fit"
    sentence = f"One such release costs {status.currency} {_readable(price)}{also}. {more}"
    if fits < ever:
        period = opened.terms.period
        sentence += f" into this {period} ({status.period}). The {period} is what limits: "
        sentence += f"the whole budget has room for {ever:,}"
    show.line(f"{sentence}.")


def _blocks(
    spends: Path | None, epsilon: str | None, rho: str | None, relation: object
) -> "list[list[Spend]]":
    """The charges that one such release would make."""
    from sourdine.accounting.spend import Spend
    from sourdine.core.distance import Distance, Neighbours
    from sourdine.mechanisms import Gaussian, Geometric

    assert isinstance(relation, Neighbours)
    if [spends is not None, epsilon is not None, rho is not None].count(True) != 1:
        raise InvalidParameter("Give one of --spends, --epsilon and --rho: what a release would use.")
    if epsilon is not None:
        scale = 1 / number("ledger forecast", "epsilon", epsilon, *EPSILON)
        return [[Spend(mechanism=Geometric(scale=scale), distance=Distance.l1(1, neighbours=relation))]]
    if rho is not None:
        exact = number("ledger forecast", "rho", rho, Fraction(1, 10**12), 10)
        noise = Gaussian(sigma=Fraction(1000))
        square = exact * 2 * noise.sigma**2
        return [[Spend(mechanism=noise, distance=Distance.l2(square=square, neighbours=relation))]]
    assert spends is not None
    return read_blocks(spends)


def _print_status(status: "Status", as_json: bool) -> None:
    from sourdine.accounting.ledger.numbers import remaining

    if as_json:
        fields = {field.name: getattr(status, field.name) for field in dataclasses.fields(status)}
        plainly = {name: str(v) if isinstance(v, Fraction) else v for name, v in fields.items()}
        plainly["allowances"] = status.allowances.to_json()
        plainly["shares"] = [str(share) for share in status.shares]
        ends = {"epsilon_limit": finite(status.epsilon_limit), "epsilon": finite(status.epsilon)}
        show.document(plainly | ends)
        return
    used = 100 * float(status.spent / status.limit)
    at = f" at delta {plain(status.delta)}" if status.delta is not None else ""
    pure = status.currency == "epsilon"  # which needs no second word for itself
    limit, spent = (
        at if pure else f", that is epsilon {epsilon:.4g}{at}"
        for epsilon in (status.epsilon_limit, status.epsilon)
    )
    share = f" ({used:.0f} %)"
    if status.epsilon_limit == math.inf:
        limit, share = ": what is lost is counted, and bounded at all times at once", ""
    lines = {
        "Protects": f"each {show.one_line(status.unit)} ({status.neighbours} neighbours)",
        "Budget": f"{status.currency} {_room(status.limit)}{_root(status)}{limit}",
        "Spent": f"{_readable(status.spent)}{share} in {counted(status.blocks, 'charge')}{spent}",
        "Left": remaining(status.left, status.limit),
    }
    if status.period is not None and status.period_limit is not None and status.period_spent is not None:
        rest = status.period_limit - status.period_spent
        lines["This period"] = f"{status.period}: {_room(rest)} of {_room(status.period_limit)} left"
    if status.selection_delta is not None and status.selection_delta_spent is not None:
        rest = status.selection_delta - status.selection_delta_spent
        lines["For keys"] = f"delta {_room(rest)} of {_room(status.selection_delta)} left"
    if status.is_backup:
        lines["Backup"] = "this file pays for nothing; there may be later charges in the ledger itself"
    for name, text in lines.items():
        show.line(f"{name:<13}{text}")
    for index, text in enumerate(allowances.lines(status.allowances)):
        show.line(f"{'' if index else 'Allowances':<13}{text}")


def _root(status: "Status") -> str:
    """The mu whose square is counted, where one is."""
    return f", a mu of {float(status.limit) ** 0.5:.6g}" if status.currency == "mu^2" else ""


def _plain_entry(entry: "Entry", ledger: "Ledger") -> dict[str, object]:
    selection = {"delta": str(entry.delta), "delta_total": str(entry.delta_total)}
    return (selection if ledger.terms.selection_delta is not None else {}) | {
        "number": entry.number,
        "time": entry.time.isoformat(),
        "author": entry.author,
        "purpose": entry.purpose,
        "price": str(entry.price),
        "total": str(entry.total),
        "period": entry.period,
        "fingerprint": entry.fingerprint,
        "allowance": entry.allowance,
        "rule": None if entry.rule is None else entry.rule.to_json(),
        "spends": [spend.to_json() for spend in entry.spends],
        "not_of_this_package": list(entry.foreign),
    }


def _write_csv(output: Path, entries: list[dict[str, object]]) -> None:
    """The charges as a table; what people wrote begins with an apostrophe where it looks like a formula."""
    from sourdine.core.text import csv_text, inert

    names = ["number", "time", "author", "purpose", "price", "total", "period", "fingerprint", "spends"]
    names += [name for name in ("delta", "delta_total") if entries and name in entries[0]]
    names += ["not_of_this_package"]
    lists = ("spends", "not_of_this_package")
    cells = [entry | {name: json.dumps(entry[name]) for name in lists} for entry in entries]
    rows = [[inert(each[name]) for name in names] for each in cells]
    show.keep(csv_text([names, *rows], end="\r\n"), output)


def _readable(number: Fraction) -> str:
    from sourdine.accounting.ledger.numbers import readable

    return readable(number)


def _room(number: Fraction) -> str:
    from sourdine.accounting.ledger.numbers import room

    return room(number)
