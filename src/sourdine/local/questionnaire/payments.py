"""What a device has paid for: which answers it reported on, how many it may, and the report that stands."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from sourdine.core import disk
from sourdine.core.errors import InvalidParameter

FORMAT = "sourdine device ledger 1"


@dataclass(frozen=True)
class Paid:
    """Of one question, keyed digests of the answers that were paid for, and the last report in digits."""

    answers: tuple[str, ...] = ()
    report: str = ""

    def after(self, claim: "Claim", max_answers: int) -> "Paid":
        """What is paid and stands after a report is asked for: an answer beyond the limit changes nothing."""
        if claim.answer in self.answers:
            return Paid(self.answers, claim.report)
        if len(self.answers) < max_answers:
            return Paid((*self.answers, claim.answer), claim.report)
        return self


@dataclass(frozen=True)
class Claim:
    """A report that a device would make: to which question, the digest of the answer, and the report."""

    question: str
    answer: str
    report: str


@dataclass
class DeviceLedger:
    """What a device has paid: of each question, by its identity, which answers it reported on.

    Answers are known by keyed digests, so the file tells how many there were and not which; the report that
    it keeps was given out. It is on the disk before a report is given out, and processes with the same file
    take turns, where the system has locks of files. Without a path it lasts as long as this object.
    """

    path: Path | None = None
    paid: dict[str, Paid] = field(default_factory=dict)
    _turn: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    @classmethod
    def open(cls, path: Path) -> "DeviceLedger":
        """The ledger in a file, which is new if there is none."""
        return cls(path, _read(path) if path.exists() else {})

    def answers(self, questions: Sequence[str]) -> int:
        """How many answers to these questions were paid for."""
        return sum(len(self.paid[each].answers) for each in questions if each in self.paid)

    def settle(self, claims: Sequence[Claim], max_answers: int) -> list[Paid]:
        """Pay for what is new and within the limit, on the disk; what stands then for each."""
        with self._turn:
            if self.path is None:
                return self._settled(claims, max_answers)
            with disk.alone(self.path.resolve().parent):
                if self.path.exists():  # another process may have paid meanwhile
                    self.paid = _read(self.path)
                return self._settled(claims, max_answers)

    def _settled(self, claims: Sequence[Claim], max_answers: int) -> list[Paid]:
        after = {
            each.question: self.paid.get(each.question, Paid()).after(each, max_answers) for each in claims
        }
        changed = self.paid | after
        if self.path is not None and changed != self.paid:
            disk.write_whole(self.path, _text(changed))
        self.paid = changed
        return [after[each.question] for each in claims]


def _text(paid: Mapping[str, Paid]) -> str:
    questions = {name: {"answers": each.answers, "report": each.report} for name, each in paid.items()}
    return json.dumps({"format": FORMAT, "questions": questions}) + "\n"


def _read(path: Path) -> dict[str, Paid]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content["format"] == FORMAT
        paid = {
            name: Paid(tuple(each["answers"]), bytes.fromhex(each["report"]).hex())
            for name, each in content["questions"].items()
        }
        assert all(each.answers and each.report for each in paid.values())
        assert all(isinstance(tag, str) for each in paid.values() for tag in each.answers)
    except (OSError, ValueError, AssertionError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidParameter(
            f"The ledger {path} cannot be read. Without it nobody knows what was paid: report nothing "
            "more under this secret."
        ) from None
    return paid
