"""`sourdine ledger allow`, `request`, `approve` and `decline`: shares of one budget for several people."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.ledger.options import EPSILON, MU, RHO, Author, Where
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, number, one_line

if TYPE_CHECKING:
    from sourdine.accounting.ledger import Allowances, LedgerAllowance

Name = Annotated[str, typer.Argument(help="The name of the allowance.")]
Line = Annotated[int, typer.Argument(help="The line of the request, as `ledger status` lists it.")]
Epsilon = Annotated[str | None, typer.Option(help="How much, as an epsilon.")]
Rho = Annotated[str | None, typer.Option(help="Or as a rho.")]
Divergence = Annotated[str | None, typer.Option(help="Or as a Renyi divergence.")]
Mu = Annotated[str | None, typer.Option(help="Or as a mu.")]


def allow(
    path: Where,
    name: Name,
    *,
    epsilon: Epsilon = None,
    rho: Rho = None,
    divergence: Divergence = None,
    mu: Mu = None,
    period: Annotated[
        str | None, typer.Option(help="A period with its own limit: day, week, month or year.")
    ] = None,
    period_limit: Annotated[str | None, typer.Option(help="The limit of each such period.")] = None,
    to: Annotated[
        list[str] | None,
        typer.Option("--to", help="Who may spend from it; everybody, if left out. Repeat it."),
    ] = None,
    keeper: Annotated[
        list[str] | None, typer.Option(help="Who else may allow and approve from now on. Repeat it.")
    ] = None,
    author: Author = None,
    as_json: AsJson = False,
) -> None:
    """Give somebody a named share of the budget, with a cap of its own, or change it.

    From the first allowance on, every charge takes from one: from that which `sourdine --allowance NAME`
    names, or from the only one that its author has. Who makes the first is the ledger's keeper.

    Examples: sourdine ledger allow survey.ledger growth --epsilon 0.5 --to ana --to ben ·
    sourdine ledger allow survey.ledger weekly --epsilon 2 --period week --period-limit 0.1
    """
    from sourdine.accounting.ledger import Ledger

    amounts = _amounts("ledger allow", epsilon, rho, divergence, mu)
    if period_limit is not None:
        number("ledger allow", "period-limit", period_limit, *RHO)
    with Ledger.open(path) as ledger:
        allowance = ledger.allow(
            one_line("ledger allow", "name", name),
            **amounts,
            period=period,
            period_limit=period_limit,
            authors=[one_line("ledger allow", "to", each) for each in to or ()],
            keepers=[one_line("ledger allow", "keeper", each) for each in keeper or ()],
            author=author,
        )
    _tell(allowance, as_json)


def request(
    path: Where,
    name: Name,
    *,
    purpose: Annotated[str, typer.Option(help="What it is for, so that a keeper can decide.")],
    epsilon: Epsilon = None,
    rho: Rho = None,
    divergence: Divergence = None,
    mu: Mu = None,
    author: Author = None,
    as_json: AsJson = False,
) -> None:
    """Ask for more for an allowance. It waits until a keeper of another name decides.

    Example: sourdine ledger request survey.ledger growth --epsilon 0.2 --purpose "a table by region"
    """
    from sourdine.accounting.ledger import Ledger

    amounts = _amounts("ledger request", epsilon, rho, divergence, mu)
    with Ledger.open(path) as ledger:
        line = ledger.request(
            name, purpose=one_line("ledger request", "purpose", purpose), author=author, **amounts
        )
    if as_json:
        show.document({"line": line, "allowance": name})
        return
    show.line(f"The request is line {line}. A keeper grants it with: sourdine ledger approve LEDGER {line}")


def approve(path: Where, line: Line, *, author: Author = None, as_json: AsJson = False) -> None:
    """Grant a request that somebody else has made: the cap of its allowance grows.

    Example: sourdine ledger approve survey.ledger 7
    """
    from sourdine.accounting.ledger import Ledger

    with Ledger.open(path) as ledger:
        _tell(ledger.approve(line, author=author), as_json)


def decline(path: Where, line: Line, *, author: Author = None, as_json: AsJson = False) -> None:
    """Do not grant a request, or take back your own.

    Example: sourdine ledger decline survey.ledger 7
    """
    from sourdine.accounting.ledger import Ledger

    with Ledger.open(path) as ledger:
        ledger.decline(line, author=author)
    if as_json:
        show.document({"line": line})
        return
    show.line(f"The request of line {line} is declined.")


def _amounts(
    owner: str, epsilon: str | None, rho: str | None, divergence: str | None, mu: str | None
) -> dict[str, str]:
    texts = {"epsilon": epsilon, "rho": rho, "divergence": divergence, "mu": mu}
    ranges: dict[str, tuple[Fraction, Fraction | int]] = {
        "epsilon": EPSILON,
        "rho": RHO,
        "divergence": RHO,
        "mu": MU,
    }
    amounts = {name: text for name, text in texts.items() if text is not None}
    for name, text in amounts.items():
        number(owner, name, text, *ranges[name])
    return amounts


def _tell(allowance: "LedgerAllowance", as_json: bool) -> None:
    if as_json:
        show.document(plain_allowance(allowance))
    else:
        show.line(f"{show.one_line(allowance.name)}: {words(allowance)}")


def words(allowance: "LedgerAllowance") -> str:
    """Where an allowance stands, for people."""
    from datetime import UTC, datetime

    from sourdine.accounting.ledger.numbers import room

    who = ", ".join(map(show.one_line, allowance.authors)) or "everybody"
    text = f"{room(allowance.left)} of {room(allowance.cap)} left"
    if allowance.period is not None and allowance.period_limit is not None:
        left = allowance.left_at(datetime.now(UTC))
        text += f", in this {allowance.period} {room(left)} of {room(allowance.period_limit)}"
    return f"{text}, for {who}"


def lines(allowances: "Allowances") -> list[str]:
    """Where all allowances stand, what waits, and who decides."""
    from sourdine.accounting.ledger.numbers import readable

    texts = [f"{show.one_line(each.name)}: {words(each)}" for each in allowances.each]
    texts += [
        f"line {each.line} asks for {readable(each.amount)} more for {show.one_line(each.allowance)}, "
        f"by {show.one_line(each.author)}"
        for each in allowances.requests
    ]
    if allowances.keepers:
        texts.append(f"kept by {', '.join(map(show.one_line, allowances.keepers))}")
    return texts


def plain_allowance(allowance: "LedgerAllowance") -> dict[str, object]:
    """An allowance as JSON."""
    from sourdine.core.serialization import encoded

    return encoded(allowance) | {"left": str(allowance.left)}
