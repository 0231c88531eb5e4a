"""A device that answers a questionnaire: beyond its budget nothing new is told, and nobody sees it."""

import hmac
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from sourdine.core.errors import InvalidParameter
from sourdine.core.random import samplers as exact
from sourdine.local.memoization import LEAST_SECRET, KeyedBits, Memo
from sourdine.local.oracle import Bytes
from sourdine.local.question import Question
from sourdine.local.questionnaire.payments import Claim, DeviceLedger
from sourdine.local.questionnaire.specification import BESIDE, Questionnaire, Way

_CHOICE, _TAG = b"sourdine questionnaire 1\0", b"sourdine answer 1\0"


class QuestionnaireDevice:
    """One device's reports to a questionnaire: the same answers have the same reports, and cost once.

    Which question it answers depends on its secret alone, each different answer costs the epsilon of a
    report, and there are at most `changes` of them: after that it goes on with the report that it made last,
    whatever the answer. So with `changes=1` all its reports, for ever, are `epsilon`-DP in all its answers
    together. With more they are, given when an answer was the same as which one before: reports that differ
    tell that an answer changed, and no epsilon covers that (docs/guarantees/questionnaire.md).
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
        self._earlier: tuple[Question, ...] = ()

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
        """Epsilon of all reports that its ledger has paid for, also to other questionnaires."""
        self.payments.price({question.identity: self._price for question in self.questionnaire.questions})
        return self.payments.spent

    @property
    def _price(self) -> Fraction:
        return self.questionnaire.report_epsilon(self.questionnaire.way)

    @property
    def earlier(self) -> tuple[Question, ...]:
        """To which questions the last `reports` repeated an earlier one, since no other could be paid for.

        For the person beside the device alone: whatever is sent, or is not sent, because of it tells of the
        answer what nobody paid for.
        """
        return self._earlier

    def reports(self, answers: Mapping[str, str]) -> list[tuple[Question, Bytes]]:
        """The reports of someone's answers, by item, each beside the question that it is to.

        Answers to all items are asked for, and checked, whichever is reported on: otherwise whoever is beside
        the device would see which it was. Answers that cannot be paid for any more are not refused, since
        whoever waits for a report would see that: the last report is given once more.
        """
        self._check(answers)
        choices = [
            (self.questionnaire.questions[place], self.questionnaire.asks[place]) for place in self.places
        ]
        labels = [
            (question, BESIDE.join(answers[item.name] for item in items)) for question, items in choices
        ]
        values = [(question, int(question.values([label])[0])) for question, label in labels]
        rows = [Memo(question, self._secret).row(value) for question, value in values]
        claims = [
            Claim(question.identity, self._tag(question, value), row.tobytes().hex(), self._price)
            for (question, value), row in zip(values, rows, strict=True)
        ]
        paid = self.payments.settle(claims, self.questionnaire.changes)
        settled = list(zip(values, rows, claims, paid, strict=True))
        self._earlier = tuple(
            question for (question, _), _, claim, now in settled if claim.answer not in now.answers
        )
        return [
            (question, np.frombuffer(bytes.fromhex(now.report), np.uint8).reshape(row.shape))
            for (question, _), row, _, now in settled
        ]

    def _check(self, answers: Mapping[str, str]) -> None:
        for item in self.questionnaire.items:
            if item.name not in answers:
                raise InvalidParameter(
                    f"There is no answer to '{item.name}'. Give one to each item. Nothing was reported."
                )
            if answers[item.name] not in item.labels:
                raise InvalidParameter(
                    f"The answer to '{item.name}' is none of its labels. Give one of them. "
                    "Nothing was reported."
                )

    def _tag(self, question: Question, value: int) -> str:
        body = _TAG + question.identity.encode() + value.to_bytes(8, "little")
        return hmac.digest(self._secret, body, "sha256").hex()[:32]
