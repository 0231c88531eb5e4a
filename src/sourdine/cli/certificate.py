"""`sourdine certificate`: check that a release was paid, and that its files are those that were published."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.core.format import plain

if TYPE_CHECKING:
    from sourdine.accounting.release import Certificate

CERTIFICATE = "certificate.json"

app = typer.Typer(no_args_is_help=False)


@app.callback(invoke_without_command=True)
def certificate(ctx: typer.Context) -> None:
    """Check the statement that goes with a release.

    Example: sourdine certificate verify people-release --ledger people.ledger
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command()
def verify(
    path: Annotated[Path, typer.Argument(help="The folder of a release, or its certificate.json.")],
    *,
    ledger: Annotated[Path, typer.Option(help="The ledger that paid.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Confirm that the ledger holds this payment, untouched, for these very mechanisms.

    The files beside the certificate are compared with the digests in it. The ledger vouches for the payment
    alone: it never saw the numbers.

    Examples: sourdine certificate verify people-release --ledger people.ledger ·
    sourdine certificate verify certificate.json --ledger people.ledger
    """
    from sourdine.accounting.ledger import Ledger
    from sourdine.accounting.release import Certificate
    from sourdine.accounting.spend import foreign_words

    place = path / CERTIFICATE if path.is_dir() else path
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"The certificate {place} cannot be read. Check the path.") from None
    found = Certificate.from_json(text)
    unconfirmed = found.verify(Ledger.open(ledger))
    same, absent = _compare(found, place.parent)
    if as_json:
        show.document(
            {
                "verified": True,
                "number": found.number,
                "epsilon": found.epsilon,
                "delta": found.delta,
                "selection_delta": str(found.selection_delta),
                "unconfirmed": list(unconfirmed),
                "not_of_this_package": list(found.foreign),
                "files": same,
                "absent": absent,
            }
        )
        return
    at = f" at delta {plain(found.delta)}" if found.delta is not None else ""
    unit = show.one_line(found.unit)
    show.line(f"Paid: line {found.number} of the ledger, epsilon {found.epsilon:.4g}{at} for each {unit}.")
    if found.selection_delta:
        show.line(f"Of that delta, {float(found.selection_delta):.3g} went into choosing keys.")
    if found.foreign:
        show.say(foreign_words(found.foreign))
    if unconfirmed:
        show.line(f"Not recorded with the charge, so not confirmed by the ledger: {', '.join(unconfirmed)}.")
    if not found.secure:
        show.line("Its noise was seeded: the release protects nobody.")
    _print_files(found, same, absent)


def _compare(found: "Certificate", folder: Path) -> tuple[list[str], list[str]]:
    """The files that are as the certificate has them, and those that are not there; others are an error."""
    from sourdine.accounting.release import digest

    # a name with a folder in it would lead out of the release
    names = [name for name in found.digests if Path(name).name == name]
    absent = [name for name in names if not (folder / name).is_file()]
    there = [name for name in names if name not in absent]
    changed = [name for name in there if digest(folder / name) != found.digests[name]]
    if changed:
        listed = show.one_line(", ".join(changed))
        raise LedgerError(
            f"The payment is in the ledger, but {listed} in {folder} is not what was published with this "
            "certificate. Do not rely on it; get it again."
        )
    return there, absent


def _print_files(found: "Certificate", same: list[str], absent: list[str]) -> None:
    if same:
        show.line(f"As published with the certificate: {show.one_line(', '.join(same))}.")
    if absent:
        show.line(f"Not beside the certificate, so not compared: {show.one_line(', '.join(absent))}.")
    if not found.digests:
        show.line("The certificate names no files, so nothing ties any numbers to it.")
    show.say(
        "The ledger vouches for the payment, not for the numbers: that they are those which were paid for "
        "rests on the certificate, so get it from whoever published it."
    )
