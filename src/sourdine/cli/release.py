"""`sourdine release`: pay, compute, publish. And `report`: its page, made again from what was published."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.plan import SpecFile, print_answers
from sourdine.cli.shared import show
from sourdine.cli.shared.app import Shared, rights
from sourdine.cli.shared.parse import AsJson
from sourdine.core import format as digits
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.core.files import CERTIFICATE

if TYPE_CHECKING:
    from sourdine.accounting.certificate import Certificate
    from sourdine.tables import Specification, TableRelease
    from sourdine.tables.publication import PublishedRelease
    from sourdine.tables.release import Watch

RECORD, REPORT = "release.json", "report.html"
_CSV = ("csv",)


def release(
    spec: SpecFile,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder. Without it: SPEC-release, here.")
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="csv, json, parquet or xlsx (for Excel); may be given several times."),
    ] = None,
    report: Annotated[bool, typer.Option(help="Whether to write report.html.")] = True,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Pay from the ledger, then publish noisy answers with a certificate and a report.

    Nothing is spent if anything in the specification, the table or the folder is wrong. The charge is on
    the disk before a record is read, and it stands whatever happens afterwards. All files appear at once, in
    a folder of their own, or none does.

    Examples: sourdine release people.toml -o published ·
    sourdine release people.toml --format csv --format parquet
    """
    folder = Path(f"{spec.stem}-release") if output is None else output
    with rights(shared):
        published = publish(spec, folder, formats=formats or _CSV, report=report)
    try:
        if as_json:
            show.document(plain(published))
            return
        print_answers(published.release.values, f"The rest is in {folder}.")
        print_quality(published.release)
        print_payment(published)
    except KeyboardInterrupt:
        show.warn(_whole(folder))
        raise


def publish(
    spec: "Path | Specification",
    folder: Path,
    *,
    formats: Sequence[str] = _CSV,
    report: bool = True,
    watch: "Watch" = lambda scans: show.progress("reading the table", scans),
) -> "PublishedRelease":
    """Carry out a specification: everything is checked, then paid, then computed, then written at once."""
    from sourdine.tables import Specification
    from sourdine.tables.publication import Publication, Record
    from sourdine.tables.release import release as carry_out
    from sourdine.tables.table import described

    specification = Specification.load(spec) if isinstance(spec, Path) else spec
    plan, source = specification.plan(), specification.open()
    publication = Publication(plan, formats=formats, report=report)
    outbox = publication.outbox(folder, show.warn)
    with specification.open_ledger() as ledger, outbox as box, _stopped(folder, specification.ledger_path):
        release = carry_out(plan, source, ledger, purpose=described(plan.queries), watch=watch)
        certificate = release.certificate(ledger, release.declared)
        published = publication.deliver(
            box,
            release,
            Record.of(specification, release),
            certificate,
            f"The release was paid: line {certificate.number} of the ledger. ",
        )
    if published.trouble is not None:
        show.warn(f"The release was paid and is in {folder}, without its page {REPORT}.")
        raise published.trouble
    return published


@contextlib.contextmanager
def _stopped(folder: Path, ledger: object) -> Iterator[None]:
    """Tell somebody who stops a release what became of it: it is whole, or it is not there."""
    try:
        yield
    except KeyboardInterrupt:
        if (folder / CERTIFICATE).is_file():  # the folder was empty, so it is of this release
            show.warn(_whole(folder))
        else:
            show.warn(
                "Stopped, and nothing is published. If it was paid already, that stays paid: sourdine ledger "
                f"history {quote(str(ledger))} shows the line."
            )
        raise


def _whole(folder: Path) -> str:
    return f"Stopped, but the release was paid and is whole in {folder}. Once more would pay once more."


def print_quality(release: "TableRelease") -> None:
    """How many records did not fit what was declared, and what noise does not explain."""
    from sourdine.tables.quality import ADVICE, told_rows

    if release.quality is None:
        return
    shown, quality = told_rows(release.quality), release.quality
    value, low, high = quality.records
    show.say(
        f"Data quality: about {value:,.0f} records were read (between {low:,.0f} and {high:,.0f})"
        + (". Of them did not fit what is declared:" if shown else ".")
    )
    if shown:
        ends = ("records", "lower", "upper", "share")
        show.table(("column", "what", *ends), [tuple(map(show.one_line, row)) for row in shown], numbers=ends)
    for each in quality.warnings:
        show.say(show.one_line(each), mark="WARNING: ")
    if quality.warnings:
        show.say(ADVICE)


def print_payment(published: "PublishedRelease") -> None:
    """What was paid, what is left, and where everything is."""
    from sourdine.accounting.ledger.numbers import left_words, readable

    certificate, receipt = published.certificate, published.release.receipt
    assert receipt is not None
    at = f" at delta {digits.plain(certificate.delta)}" if certificate.delta is not None else ""
    also = "" if certificate.currency == "epsilon" else f", that is epsilon {certificate.epsilon:.4g}{at},"
    show.line(
        f"Paid {certificate.currency} {readable(certificate.price)}{also} for each "
        f"{show.one_line(certificate.unit)}, line {certificate.number} of the ledger. "
        f"{left_words(certificate.left, receipt.limit)}"
    )
    for path in published.files:
        show.line(f"  {path}")


def plain(published: "PublishedRelease") -> dict[str, object]:
    """A release for machines."""
    certificate = published.certificate
    return {
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "unit": certificate.unit,
        "neighbours": certificate.neighbours,
        "currency": certificate.currency,
        "price": str(certificate.price),
        "left": str(certificate.left),
        "line": certificate.number,
        "files": [str(path) for path in published.files],
        **json.loads(published.release.values.json()),
        "quality": _quality(published.release),
    }


def _quality(release: "TableRelease") -> dict[str, object] | None:
    if release.quality is None:
        return None
    return {
        "rows": json.loads(release.quality.answers.json())["rows"],
        "warnings": list(release.quality.warnings),
    }


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a release.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--html", help="The page. Without it: report.html in the folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the report of a release again, from its answers and its certificate. Nothing is read or spent.

    In the folder itself no other page is put than the one that was published, which the certificate covers.

    Example: sourdine report people-release --html people.html
    """
    from sourdine.accounting.certificate import Certificate, digest
    from sourdine.report.pages.release import release_page
    from sourdine.tables.publication import Record

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
    content = page.html()
    if certificate.complete and place.resolve().parent == folder.resolve():
        _refuse_another(content, place, certificate)
    show.keep(content, place)
    if as_json:
        show.document({"report": str(place), "title": page.title})
    else:
        show.line(f"Wrote {place}.")


def _refuse_another(content: str, place: Path, certificate: "Certificate") -> None:
    """Keep a folder as its certificate has it: an added page, or another one, would break it."""
    from hashlib import sha256

    if certificate.digests.get(place.name) != sha256(content.encode("utf-8")).hexdigest():
        raise InvalidParameter(
            f"The certificate covers every file of {place.parent}, and this page would be another than the "
            "one that was published, if one was. Put it elsewhere: --html page.html."
        )


def _read(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(
            f"{folder} holds no {name} that can be read. Name the folder that 'sourdine release' wrote."
        ) from None
