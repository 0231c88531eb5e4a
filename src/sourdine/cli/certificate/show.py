"""`sourdine certificate show`: a verdict on a release in plain words, for whoever must answer for it."""

from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.certificate.verify import (
    WRONG,
    LedgerFile,
    PublicKeys,
    ReleasePath,
    read_keys,
)
from sourdine.cli.shared import show as output
from sourdine.cli.shared.parse import AsJson
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.accounting.certificate import Verification
    from sourdine.audit.plans import PlanAudit
    from sourdine.tables import ReleasePlan

_MOST_PAIRS = 10**5


def show(
    path: ReleasePath,
    *,
    ledger: LedgerFile = None,
    key: PublicKeys = None,
    html: Annotated[Path | None, typer.Option(help="Keep it as a page, to print and sign.")] = None,
    pairs: Annotated[
        int, typer.Option(help="Pairs of made-up tables to audit the plan with; 0 for none.")
    ] = 100,
    as_json: AsJson = False,
) -> None:
    """A verdict on a release in plain words: green, yellow or red, and why.

    It tells what was published, about whom, at what price, what is left, what is assumed, what epsilon means
    for one person, and which checks were made with which results. Green is for a release of which everything
    was checked: give the ledger and a public key. Red has exit code 1. No data is read, and nothing is spent.

    Examples: sourdine certificate show people-release ·
    sourdine certificate show people-release --ledger people.ledger --key office.pub --html verdict.html
    """
    from sourdine.accounting.certificate import verify_release
    from sourdine.report.verdict import Light, judge, verdict_page

    many = check.integer("certificate show", "pairs", pairs, 0, _MOST_PAIRS)
    output.check_page(html)
    verification = verify_release(path, ledger=ledger, keys=read_keys(key))
    if html is not None:
        _refuse_inside(html, verification)

    def audit(plan: "ReleasePlan", engine: str) -> "PlanAudit":
        from sourdine.audit.plans import audit_plan

        return audit_plan(
            plan,
            pairs=many,
            engines=[engine],
            watch=lambda stretches: output.progress("auditing the plan", stretches),
        )

    verdict = judge(verification, audit=audit if many else None)
    if html is not None:
        output.keep(verdict_page(verdict, verification).html(), html)
    if as_json:
        output.document({**verdict.to_json(), "page": None if html is None else str(html)})
    else:
        output.lines(verdict.text(get_terminal_size((100, 24)).columns))
        if html is not None:
            output.line()
            output.line(f"Wrote {html}. Open it in a browser, and print it to sign it.")
    raise typer.Exit(WRONG if verdict.light is Light.RED else 0)


def _refuse_inside(html: Path, verification: "Verification") -> None:
    """Keep a release as it is: a page among its files would count as added."""
    folder = verification.place.resolve().parent
    if verification.files.same and html.resolve().is_relative_to(folder):
        raise InvalidParameter(
            f"The certificate covers every file of {verification.place.parent}, so that a page in it would "
            f"count as added. Put it elsewhere, such as --html {html.name}."
        )
