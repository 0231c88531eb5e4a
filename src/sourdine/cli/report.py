"""`sourdine report`: the page of a release, made again from what was published."""

from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli import show
from sourdine.cli.certificate import CERTIFICATE
from sourdine.cli.release import RECORD, REPORT
from sourdine.core.errors import InvalidParameter, LedgerError


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a release.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page. Without it: report.html in the folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make the report of a release again, from its answers and its certificate. Nothing is read or spent.

    Example: sourdine report people-release -o people.html
    """
    from sourdine.accounting.release import Certificate, digest
    from sourdine.report.release import release_page
    from sourdine.tables.record import Record

    place = folder / REPORT if output is None else output
    record = Record.from_json(_read(folder, RECORD))
    certificate = Certificate.from_json(_read(folder, CERTIFICATE))
    if certificate.digests.get(RECORD, digest(folder / RECORD)) != digest(folder / RECORD):
        raise LedgerError(
            f"{RECORD} in {folder} is not what was published with its certificate, so no page is drawn from "
            "it. Do not rely on its numbers; get the folder again from whoever published it."
        )
    show.check_page(place)
    page = release_page(record, certificate)
    show.keep(page.html(), place)
    if as_json:
        show.document({"report": str(place), "title": page.title})
    else:
        show.line(f"Wrote {place}.")


def _read(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(
            f"{folder} holds no {name} that can be read. Name the folder that 'sourdine release' wrote."
        ) from None
