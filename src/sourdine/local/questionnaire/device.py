"""A device that answers a questionnaire, and its own ledger: no new answer is reported beyond the budget."""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from sourdine.core import disk
from sourdine.core.errors import BudgetExceeded, InvalidParameter
from sourdine.core.randomness import exact
from sourdine.local.memoization import LEAST_SECRET, KeyedBits, Memo
from sourdine.local.oracle import Bytes
from sourdine.local.question import Question
from sourdine.local.questionnaire.specification import BESIDE, Questionnaire, Way

_CHOICE, _TAG = b"sourdine questionnaire 1\0", b"sourdine answer 1\0"


@dataclass
class DeviceLedger:
    """What a device has paid: of each question, by its fingerprint, which different answers it reported on.

    Answers are known by keyed digests, so the file tells how many there were and not which. It is on the disk
    before a report is given out.
    """

    path: Path | None = None
    answers: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> "DeviceLedger":
        """The ledger in a file, which is new if there is none."""
        if not path.exists():
            return cls(path)
        try:
            answers = json.loads(path.read_text(encoding="utf-8"))
            well = isinstance(answers, dict) and all(map(_are_tags, answers.values()))
        except (OSError, ValueError):
            well = False
        if not well:
            raise InvalidParameter(
                f"The ledger {path} cannot be read. Without it nobody knows what was paid: report nothing "
                "more under this secret."
            )
        return cls(path, answers)

    def spent(self, epsilon: Fraction) -> Fraction:
        """What all reports together have revealed at most, if each costs so much."""
        return sum(map(len, self.answers.values())) * epsilon

    def add(self, question: str, tag: str) -> None:
        """Take an answer to a question in, on the disk first."""
        tags = self.answers.get(question, [])
        if tag in tags:
            return
        changed = self.answers | {question: [*tags, tag]}
        if self.path is not None:
            disk.write_whole(self.path, json.dumps(changed) + "\n")
        self.answers = changed


def _are_tags(tags: object) -> bool:
    return isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)


class QuestionnaireDevice:
    """One device's reports to a questionnaire: the same answers have the same reports, and cost once.

    All its reports, for ever, are `epsilon`-DP in all its answers together: which question it answers depends
    on its secret alone, each different answer costs the epsilon of a report, and there are at most `changes`
    of them (docs/guarantees/questionnaire.md).
    """

    def __init__(
        self, questionnaire: Questionnaire, secret: bytes, payments: DeviceLedger | None = None
    ) -> None:
        key: object = secret
        if not isinstance(key, bytes) or len(key) < LEAST_SECRET:
            raise InvalidParameter(
                f"The 'secret' of QuestionnaireDevice must be at least {LEAST_SECRET} bytes that nobody can "
                "guess. Make it once with secrets.token_bytes(32), and keep it on the device."
            )
        self.questionnaire, self._secret = questionnaire, key
        self.payments = DeviceLedger() if payments is None else payments

    def __repr__(self) -> str:
        return f"QuestionnaireDevice({self.questionnaire.name!r}, secret=...)"

    @property
    def places(self) -> tuple[int, ...]:
        """Which of the questions this device answers: one by its secret, or all."""
        count = len(self.questionnaire.questions)
        if self.questionnaire.way is Way.SPLIT:
            return tuple(range(count))
        key = hmac.digest(self._secret, _CHOICE + self.questionnaire.identity.encode(), "sha256")
        return (int(exact.uniform(count, 1, KeyedBits(key))[0]),)

    @property
    def spent(self) -> Fraction:
        """What its reports so far have revealed at most."""
        return self.payments.spent(self.questionnaire.report_epsilon(self.questionnaire.way))

    def reports(self, answers: Mapping[str, str]) -> list[tuple[Question, Bytes]]:
        """The reports of someone's answers, by item, each beside the question that it is to.

        Answers to all items are asked for, whichever is reported on: otherwise whoever is beside the device
        would see which it was.
        """
        missing = [item.name for item in self.questionnaire.items if item.name not in answers]
        if missing:
            raise InvalidParameter(
                f"There is no answer to '{missing[0]}'. Give one to each item. Nothing was reported."
            )
        choices = [
            (self.questionnaire.questions[place], self.questionnaire.asks[place]) for place in self.places
        ]
        labels = [
            (question, BESIDE.join(answers[item.name] for item in items)) for question, items in choices
        ]
        values = [(question, int(question.values([label])[0])) for question, label in labels]
        tags = [self._tag(question, value) for question, value in values]
        for (question, _), tag in zip(values, tags, strict=True):
            known = self.payments.answers.get(question.fingerprint, [])
            if tag not in known and len(known) >= self.questionnaire.changes:
                raise BudgetExceeded(
                    f"This device has reported on as many different answers as the questionnaire allows "
                    f"({self.questionnaire.changes}). Nothing was reported: the answer of before stands.",
                    amount=self.questionnaire.report_epsilon(self.questionnaire.way),
                    left=self.questionnaire.epsilon - self.spent,
                )
        for (question, _), tag in zip(values, tags, strict=True):
            self.payments.add(question.fingerprint, tag)
        return [(question, Memo(question, self._secret).row(value)) for question, value in values]

    def _tag(self, question: Question, value: int) -> str:
        body = _TAG + question.identity.encode() + value.to_bytes(8, "little")
        return hmac.digest(self._secret, body, "sha256").hex()[:32]
