"""What a device has paid for: which answers it reported on, how many it may, and the report that stands."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from threading import Lock

from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter

FORMATS = ("sourdine device ledger 1", "sourdine device ledger 2")


@dataclass(frozen=True)
class Paid:
    """Keyed digests of the answers to one question that were paid for, and the last report in digits.

    `epsilon` is the price of each report. It is None for a question of a ledger of format 1, which kept none.
    """

    answers: tuple[str, ...] = ()
    report: str = ""
    epsilon: Fraction | None = None

    def after(self, claim: "Claim", max_answers: int) -> "Paid":
        """What is paid and stands after a report is asked for: an answer beyond the limit changes nothing."""
        if claim.answer in self.answers:
            return Paid(self.answers, claim.report, claim.epsilon)
        if len(self.answers) < max_answers:
            return Paid((*self.answers, claim.answer), claim.report, claim.epsilon)
        return replace(self, epsilon=claim.epsilon)


@dataclass(frozen=True)
class Claim:
    """A report that a device would make: the question, the digest of the answer, the report and its price."""

    question: str
    answer: str
    report: str
    epsilon: Fraction


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

    @property
    def spent(self) -> Fraction:
        """Epsilon of all reports that were ever paid from this ledger, to whichever questionnaire."""
        total = Fraction(0)
        for each in self.paid.values():
            if each.epsilon is None:
                raise InvalidParameter(
                    "The ledger was written by version 0.2 and has answers whose price it does not have. "
                    "Call `price` with the questions of every questionnaire that was answered."
                )
            total += len(each.answers) * each.epsilon
        return total

    def price(self, prices: Mapping[str, Fraction]) -> None:
        """Add the price of a report to those of these questions that have none, by their identities."""
        with self._exclusive():
            self._keep(
                {
                    name: replace(each, epsilon=prices[name])
                    for name, each in self.paid.items()
                    if each.epsilon is None and name in prices
                }
            )

    def settle(self, claims: Sequence[Claim], max_answers: int) -> list[Paid]:
        """Pay for what is new and within the limit, on the disk; what stands then for each."""
        with self._exclusive():
            after = {
                each.question: self.paid.get(each.question, Paid()).after(each, max_answers)
                for each in claims
            }
            self._keep(after)
            return [after[each.question] for each in claims]

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with self._turn:
            if self.path is None:
                yield
                return
            with disk.alone(self.path.resolve().parent):
                if self.path.exists():  # another process may have paid meanwhile
                    self.paid = _read(self.path)
                yield

    def _keep(self, changes: Mapping[str, Paid]) -> None:
        changed = self.paid | dict(changes)
        if self.path is not None and changed != self.paid:
            disk.write_whole(self.path, _text(changed))
        self.paid = changed


def _text(paid: Mapping[str, Paid]) -> str:
    questions = {
        name: {"answers": each.answers, "report": each.report}
        | ({} if each.epsilon is None else {"epsilon": str(each.epsilon)})
        for name, each in paid.items()
    }
    return json.dumps({"format": FORMATS[-1], "questions": questions}) + "\n"


def _read(path: Path) -> dict[str, Paid]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content["format"] in FORMATS
        paid = {
            name: Paid(
                tuple(each["answers"]), bytes.fromhex(each["report"]).hex(), _price(each.get("epsilon"))
            )
            for name, each in content["questions"].items()
        }
        assert all(each.answers and each.report for each in paid.values())
        assert all(isinstance(tag, str) for each in paid.values() for tag in each.answers)
    except (
        OSError,
        ValueError,
        AssertionError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ):
        raise InvalidParameter(
            f"The ledger {path} cannot be read. Without it nobody knows what was paid: report nothing "
            "more under this secret."
        ) from None
    return paid


def _price(written: object) -> Fraction | None:
    if written is None:
        return None
    assert isinstance(written, str)
    epsilon = Fraction(written)
    assert epsilon > 0
    return epsilon
