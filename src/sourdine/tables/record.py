"""A release as a file: its answers and its declarations, from which its report can be made again."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sourdine.accounting.certificate.files import Deviance, Discrepancy
from sourdine.accounting.ledger.address import name_of
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.frames.keys import Keys
from sourdine.tables.answers.answer import Answer, Answers
from sourdine.tables.answers.estimate import GroupEstimate
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.quality.private import DataQuality
from sourdine.tables.release import TableRelease
from sourdine.tables.specification import Specification
from sourdine.tables.statistics import bounded

if TYPE_CHECKING:
    from sourdine.accounting.certificate import Verification

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
