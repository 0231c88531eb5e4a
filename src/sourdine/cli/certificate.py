"""`sourdine certificate`: check that a release was paid."""

from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli import show
from sourdine.core.errors import InvalidParameter

app = typer.Typer(no_args_is_help=False)


@app.callback(invoke_without_command=True)
def certificate(ctx: typer.Context) -> None:
    """Check the statement that goes with a release.

    Example: sourdine certificate verify release.json --ledger survey.ledger
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command()
def verify(
    path: Annotated[Path, typer.Argument(help="The certificate, a JSON file.")],
    *,
    ledger: Annotated[Path, typer.Option(help="The ledger that paid.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Confirm that the ledger holds this payment, untouched, for these very mechanisms.

    Example: sourdine certificate verify release.json --ledger survey.ledger
    """
    from sourdine.accounting.ledger import Ledger
    from sourdine.accounting.release import Certificate

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"The certificate {path} cannot be read. Check the path.") from None
    found = Certificate.from_json(text)
    unconfirmed = found.verify(Ledger.open(ledger))
    if as_json:
        show.document(
            {
                "verified": True,
                "number": found.number,
                "epsilon": found.epsilon,
                "delta": found.delta,
                "unconfirmed": list(unconfirmed),
            }
        )
        return
    at = f" at delta {found.delta:g}" if found.delta is not None else ""
    print(f"Paid: line {found.number} of the ledger, epsilon {found.epsilon:.4g}{at} for each {found.unit}.")
    if unconfirmed:
        print(f"Not recorded with the charge, so not confirmed by the ledger: {', '.join(unconfirmed)}.")
    if not found.secure:
        print("Its noise was seeded: the release protects nobody.")
