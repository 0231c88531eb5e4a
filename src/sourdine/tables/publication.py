"""A paid release as a folder of files: its answers, its record, its report and, last, its certificate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger.address import Place, name_of
from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.display import load_pages, page_of
from sourdine.core.files import CERTIFICATE, Outbox
from sourdine.tables.answers.answer import write_answers
from sourdine.tables.answers.workbook import check_workbooks
from sourdine.tables.origin import TableOrigin
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.record import NAME as RECORD
from sourdine.tables.record import Record
from sourdine.tables.release import TableRelease
from sourdine.tables.specification import Specification

ANSWERS, QUALITY, REPORT = "answers", "quality", "report.html"
FORMATS = ("csv", "json", "parquet", "xlsx")
_ROW, _MOST_ROOM = 300, 1 << 30  # bytes of a row in a file, and of what is taken beforehand


def specification_of(plan: ReleasePlan, origin: TableOrigin, ledger: Place | None = None) -> Specification:
    """What a plan declares, as a file would: for the record of a release that was asked for in Python."""
    unit, privacy = plan.unit, plan.privacy
    return Specification.read(
        {
            "table": {
                **origin.text.model_dump(exclude_defaults=True),
                "source": origin.names,
                "size": plan.size,
                "checked": plan.checked,
            },
            "privacy": {
                "unit": unit.name,
                "column": unit.column,
                "max_rows": unit.max_rows,
                "max_groups": unit.max_groups,
                "neighbours": str(plan.neighbours),
                "ledger": None if ledger is None else name_of(str(ledger)),
                "epsilon": privacy.epsilon,
                "delta": privacy.delta,
                "selection_delta": privacy.selection_delta or None,
                "noise": None if plan.noise is None else str(plan.noise),
                "confidence": plan.confidence,
                "quality": plan.quality,
            },
            "columns": {name: column.model_dump(mode="json") for name, column in plan.schema.columns.items()},
            "joins": origin.joined,
            "queries": [query.model_dump(mode="json") for query in plan.queries],
        }
    )


@dataclass(frozen=True, kw_only=True)
class PublishedRelease:
    """A release that was paid and written; `trouble` is why there is no page, if there should be one."""

    release: TableRelease
    certificate: Certificate
    files: tuple[Path, ...]
    trouble: Exception | None = None


class Publication:
    """Which files a release of a plan is published in. Whatever is wrong with that is found here.

    All of them appear at once, in a folder of their own, or none does.
    """

    def __init__(
        self, plan: ReleasePlan, *, formats: Sequence[str] = FORMATS[:1], report: bool = True
    ) -> None:
        self.formats = tuple(dict.fromkeys([formats] if isinstance(formats, str) else formats))
        for each in self.formats:
            if each not in FORMATS:
                raise check.fail("release", "format", f"be one of {', '.join(FORMATS)}", each)
        if "xlsx" in self.formats:
            check_workbooks()
        self.report = report
        if report:  # now, and not when it is paid
            load_pages()
        kinds = (ANSWERS, QUALITY) if plan.quality else (ANSWERS,)
        self._tables = tuple(f"{kind}.{each}" for kind in kinds for each in self.formats)
        rows = sum(line.measurement.known_groups(plan.schema) for line in plan.lines)
        self._room = min(_ROW * rows * len(self.names), _MOST_ROOM)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all files."""
        return (*self._tables, CERTIFICATE, RECORD, *([REPORT] if self.report else []))

    def outbox(self, folder: Path, warn: Callable[[str], None] = lambda text: None) -> Outbox:
        """The place where the files wait, with room for all of them."""
        return Outbox(folder, self.names, self._room, warn)

    def deliver(
        self, box: Outbox, release: TableRelease, record: Record, certificate: Certificate, paid: str = ""
    ) -> PublishedRelease:
        """Write all files, and let them appear. `paid` tells of a payment that was made for this."""
        troubles: list[Exception] = []

        def fill(place: Path) -> None:
            nonlocal certificate
            for name in self._tables:
                of_quality = release.quality is not None and name.startswith(QUALITY)
                answers = release.quality.answers if release.quality and of_quality else release.values
                write_answers(answers, place / name)
            disk.write_new(place / RECORD, record.to_json() + "\n")
            if self.report:
                try:
                    page = page_of(record, certificate).html()
                except Exception as problem:  # what is paid for is published, even if no page can be drawn
                    troubles.append(problem)
                else:
                    disk.write_new(place / REPORT, page)
            written = [place / name for name in self.names if (place / name).is_file()]
            certificate = certificate.with_digests(written, complete=True)
            disk.write_new(place / CERTIFICATE, certificate.to_json() + "\n")

        files = tuple(box.deliver(fill, paid))
        trouble = troubles[0] if troubles else None
        return PublishedRelease(release=release, certificate=certificate, files=files, trouble=trouble)
