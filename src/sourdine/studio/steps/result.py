"""The last step: the releases of a specification, with their reports, files and verdicts."""

from dataclasses import dataclass
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import Any

from sourdine.accounting.certificate import Certificate
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.outbox import CERTIFICATE
from sourdine.report.pages.release import MOST_ROWS, fitting_crosstab
from sourdine.report.view import TextTable, cross_table
from sourdine.studio.desk import Desk, Sheet
from sourdine.studio.folder import Folder
from sourdine.studio.reports import verdict_on
from sourdine.studio.steps.release import OF_RELEASE
from sourdine.tables.crosstabs import adds_up
from sourdine.tables.record import Record

RECORD, REPORT = "release.json", "report.html"
_MOST = 20


@dataclass(frozen=True)
class ReleaseView:
    """A folder that was published, as the page shows it."""

    name: str
    files: tuple[str, ...]
    words: str
    when: str
    has_report: bool
    crosstabs: tuple[TextTable, ...] = ()
    verdict: str = ""
    light: str = ""  # of the verdict, as on its own page


def result_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The releases that lie beside a specification, the newest first."""
    stem = f"{sheet.stem}{OF_RELEASE}"
    parent = (desk.folder.root / stem).parent
    found = [
        (place.stat().st_mtime, place)
        for place in parent.glob(f"{escape(Path(stem).name)}*")
        if (place / CERTIFICATE).is_file() and place.resolve().is_relative_to(desk.folder.root)
    ]
    places = [place for _, place in sorted(found, reverse=True)[:_MOST]]
    return {
        "releases": [release_view(desk, place, newest=number == 0) for number, place in enumerate(places)]
    }


def release_view(desk: Desk, place: Path, *, newest: bool) -> ReleaseView:
    """A folder that was published, as the page shows it."""
    name = desk.folder.name_of(place)
    try:
        certificate = read_certificate(place)
    except SourdineError as problem:
        return ReleaseView(name, (), str(problem), "", False)
    files = tuple(
        each
        for each in (*sorted(certificate.digests), CERTIFICATE)
        if "/" not in each and (place / each).is_file()
    )
    verdict, light = _verdict(desk.folder, name, _stamps(desk.folder, place)) if newest else ("", "")
    at = "" if certificate.delta is None else f" and delta {certificate.delta:g}"
    return ReleaseView(
        name=name,
        files=files,
        words=f"epsilon {certificate.epsilon:.4g}{at} for each {certificate.unit}, line {certificate.number}",
        when=f"{certificate.time:%Y-%m-%d %H:%M} UTC",
        has_report=REPORT in files,
        crosstabs=_crosstabs(place) if newest else (),
        verdict=verdict,
        light=light,
    )


def _stamps(folder: Folder, place: Path) -> tuple[object, ...]:
    """What changes when a file of a release or a ledger does: no verdict outlives what it is about."""
    files = [*place.iterdir(), *(folder.root / name for name in folder.ledgers())]
    return tuple((str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in sorted(files))


@lru_cache(maxsize=8)
def _verdict(folder: Folder, name: str, stamps: tuple[object, ...]) -> tuple[str, str]:
    try:
        verdict, *_ = verdict_on(folder, name)
    except (SourdineError, OSError) as problem:
        return (str(problem) if isinstance(problem, SourdineError) else ""), ""
    return verdict.words, str(verdict.light)


def read_certificate(place: Path) -> Certificate:
    """The certificate of a folder."""
    try:
        return Certificate.from_json((place / CERTIFICATE).read_text(encoding="utf-8"))
    except (OSError, UnicodeError):
        raise InvalidParameter(f"{place.name} holds no certificate that can be read.") from None


def _crosstabs(place: Path) -> tuple[TextTable, ...]:
    """The answers that have keys of two columns, as rows and columns."""
    try:
        record = Record.from_json((place / RECORD).read_text(encoding="utf-8"))
    except (OSError, UnicodeError, SourdineError):
        return ()
    queries = record.specification.plan().queries
    found = [
        (answer, fitting_crosstab(answer, consistent=adds_up(queries, answer)))
        for answer in record.answers.each
    ]
    return tuple(
        cross_table(crosstab, MOST_ROWS, where="", title=f"{answer.query}: {crosstab.title}")
        for answer, crosstab in found
        if crosstab is not None
    )
