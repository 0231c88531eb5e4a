"""A paid release as a folder of files: its answers, its record, its report and, last, its certificate."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.certificate.files import Deviance, Discrepancy
from sourdine.accounting.ledger.address import Place, name_of
from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.display import load_pages, page_of
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.files import CERTIFICATE, Outbox
from sourdine.frames.keys import Keys
from sourdine.tables.answers import Answer, Answers, check_workbooks, write_answers
from sourdine.tables.intervals import GroupEstimate
from sourdine.tables.origin import TableOrigin
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.quality import DataQuality
from sourdine.tables.release import TableRelease
from sourdine.tables.specification import Specification
from sourdine.tables.statistics import bounded

if TYPE_CHECKING:
    from sourdine.accounting.certificate import Verification


# A release as a file: its answers and its declarations, from which its report can be made again.

NAME = "release.json"
_FORMAT = 2
_WITHOUT_QUALITY = 1  # the format of records whose releases told nothing of it
_ENDS = ("value", "lower", "upper")


@dataclass(frozen=True, kw_only=True)
class Record:
    """What was declared and what was answered; `payment` is the mark of the ledger's line that paid.

    `caveats` are those of the plan where the specification does not give them, and `near` says whether its
    records were brought here.
    """

    specification: Specification
    answers: Answers
    payment: str
    spent: Fraction
    limit: Fraction
    quality: DataQuality | None = None
    caveats: tuple[str, ...] | None = None
    near: bool = True

    @cached_property
    def plan(self) -> ReleasePlan:
        """The plan that was carried out: that of the specification, and what only the release knows of it."""
        plan = self.specification.plan()
        caveats = plan.caveats if self.caveats is None else self.caveats
        return replace(plan, caveats=caveats, near=self.near)

    @classmethod
    def of(cls, specification: Specification, release: TableRelease) -> "Record":
        """The record of a release that was paid."""
        if release.receipt is None:
            raise InvalidParameter("A release that was not paid has no record. Pay for it from a ledger.")
        if specification.privacy.delta is not None:  # which noise was taken then is no longer left to choose
            noise = {"noise": str(release.plan.noise_taken)}
            privacy = specification.privacy.model_copy(update=noise)
            specification = specification.model_copy(update={"privacy": privacy})
        return cls(
            specification=specification,
            answers=release.values,
            payment=release.receipt.fingerprint,
            spent=release.receipt.spent,
            limit=release.receipt.limit,
            quality=release.quality,
            caveats=release.plan.caveats,
            near=release.plan.near,
        )

    def to_json(self) -> str:
        """The record as text. Of the paths in the specification only names are kept."""
        declared = self.specification.model_dump(mode="json", exclude={"folder"})
        names = [Path(each).name for each in self.specification.table.sources]
        declared["table"]["source"] = names[0] if len(names) == 1 else names
        for join in declared["joins"].values():
            join["file"] = Path(join["file"]).name
        if declared["privacy"]["ledger"] is not None:
            declared["privacy"]["ledger"] = name_of(declared["privacy"]["ledger"])
        fields = {
            "format": _FORMAT,
            "specification": declared,
            "confidence": self.answers.confidence,
            "answers": [_plain(each) for each in self.answers.each],
            "payment": self.payment,
            "spent": str(self.spent),
            "limit": str(self.limit),
            "quality": self.quality
            and {
                "answers": [_plain(each) for each in self.quality.answers.each],
                "warnings": list(self.quality.warnings),
            },
        }
        plan = self.specification.plan()
        if self.caveats not in (None, plan.caveats):  # what a question in SQL or a table in Python brought
            fields["caveats"] = list(self.caveats)
        if not self.near:
            fields["near"] = False
        return json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """A record read back."""
        try:
            fields = json.loads(text)
            if fields["format"] not in (_FORMAT, _WITHOUT_QUALITY):
                raise ValueError("unknown format")
            declared, confidence = fields["specification"], float(fields["confidence"])
            if fields["format"] == _WITHOUT_QUALITY:
                declared = {**declared, "privacy": {**declared["privacy"], "quality": False}}
                fields["quality"] = None
            if "noise" not in declared["privacy"] and declared["privacy"].get("delta"):
                # before there was a choice, a delta was always paid for by Gaussian noise
                declared = {**declared, "privacy": {**declared["privacy"], "noise": "gaussian"}}
            if declared["privacy"]["quality"] != (fields["quality"] is not None):
                raise ValueError("the data quality is missing")
            return cls(
                specification=Specification.read(declared),
                answers=Answers(tuple(map(_answer, fields["answers"])), confidence),
                quality=_quality(fields["quality"], confidence),
                payment=str(fields["payment"]),
                spent=Fraction(fields["spent"]),
                limit=Fraction(fields["limit"]),
                caveats=None if "caveats" not in fields else tuple(map(str, fields["caveats"])),
                near=bool(fields.get("near", True)),
            )
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, SourdineError):
            raise InvalidParameter(
                "The record of the release cannot be read. It is cut short or was changed. Get it again."
            ) from None


def payment_of(path: Path) -> str | None:
    """The payment that a record names; None if it cannot be read, which whoever needs more will find."""
    try:
        fields = json.loads(path.read_bytes())
        return str(fields["payment"])
    except (OSError, KeyError, TypeError, ValueError, RecursionError):
        return None


def other_payment(verification: "Verification") -> list[Discrepancy]:
    """Whether the answers say that another line of the ledger paid for them than the certificate does."""
    paid = payment_of(verification.place.parent / NAME) if NAME in verification.files.same else None
    if paid in (None, verification.certificate.fingerprint):
        return []
    words = f"{NAME} says that another payment made it than the certificate does: they are of two releases."
    return [Discrepancy(kind=Deviance.ANOTHER_RELEASE, name=NAME, words=words)]


def _quality(fields: Mapping[str, Any] | None, confidence: float) -> DataQuality | None:
    if fields is None:
        return None
    answers = Answers(tuple(map(_answer, fields["answers"])), confidence)
    return DataQuality(answers, tuple(map(str, fields["warnings"])))


def _plain(answer: Answer) -> dict[str, object]:
    return {
        "query": answer.query,
        "statistic": answer.statistic,
        "kind": answer.kind,
        "columns": list(answer.columns),
        "keys": [list(key) for key in answer.keys],
        **{
            end: [None if math.isnan(x) else x for x in getattr(answer.estimate, end).tolist()]
            for end in _ENDS
        },
        "measure": answer.measure,
        "whole": answer.whole,
        "span": answer.span,
        "chosen": list(answer.chosen),
        **({"hidden": True} if answer.hidden else {}),
        **({"selection": answer.selection} if answer.selection else {}),
    }


def _answer(fields: Mapping[str, Any]) -> Answer:
    numbers = [np.array(fields[end], dtype=float) for end in _ENDS]
    columns = tuple(map(str, fields["columns"]))
    keys = Keys.of(fields["keys"], len(columns))
    if {len(each) for each in numbers} != {len(keys)}:
        raise ValueError("unlike lengths")
    if np.isnan(numbers if bounded(fields["kind"]) else numbers[0]).any():
        raise ValueError("numbers are missing")
    return Answer(
        query=str(fields["query"]),
        statistic=str(fields["statistic"]),
        kind=str(fields["kind"]),
        columns=columns,
        keys=keys,
        estimate=GroupEstimate(*numbers),
        measure=str(fields["measure"]),
        whole=bool(fields["whole"]),
        span=None if fields.get("span") is None else (float(fields["span"][0]), float(fields["span"][1])),
        chosen=tuple(map(str, fields.get("chosen", []))),
        hidden=bool(fields.get("hidden", False)),
        selection=str(fields.get("selection", "")),
    )


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
        return (*self._tables, CERTIFICATE, NAME, *([REPORT] if self.report else []))

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
            disk.write_new(place / NAME, record.to_json() + "\n")
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
