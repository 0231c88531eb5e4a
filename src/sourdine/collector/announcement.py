"""The signed question: what devices are asked, until when, what is kept of their reports, and what it costs.

Whoever asks signs it with a key that never lies on the server. The server hands on the very bytes, and a
device takes a question only from a key that it knows, so that no server can ask for more than was announced.

The file is JSON with `format`, `announcement` (the text of the body) and `signatures`. Signed by Ed25519 is
the line 'sourdine announcement/1' and then that text, character by character, in UTF-8.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

from sourdine.accounting.certificate.keys import PublicKey, SigningKey
from sourdine.collector.period import KeptPeriod, day_of
from sourdine.collector.tokens.blind import read_public
from sourdine.core import check
from sourdine.core.distributions import float_above
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.files import unreadable
from sourdine.core.format import shorten_up
from sourdine.core.serialization import unambiguous
from sourdine.local.question import Question
from sourdine.local.rappor.oracle import RapporOracle
from sourdine.local.thresholds import thresholds

FORMAT = "sourdine announcement 1"
FIRST = "sourdine announcement/1\n"
SUFFIX = ".announcement.json"
_LONGEST = 1 << 26  # bytes of a file: thresholds of many categories are long
_SIGNATURE, _ID = re.compile("[0-9a-f]{128}"), re.compile("[0-9a-f]{32}")
_MOST_DAYS = 100 * 366
_MOST_VERSION = 1 << 31
_OWNER = "Announcement"
MOST_BATCH = 1 << 26
"""How many bytes a batch of a shuffler may have."""
DELTA = Fraction(1, 10**6)
_LEAST_DELTA = Fraction(1, 10**15)


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """A question with its dates, what is kept of reports, and how devices are to answer.

    `opens` and `closes` are the first and last day, by the clock of UTC. `retention` is for how many days
    after its period a report is kept on its own; its part in the counts stays. A device reports on at most
    `answers` different answers under one secret, and draws a new secret after `secret_days` (0: never), which
    it pays for: the whole price is epsilon times answers times secrets. Beyond these answers it repeats its
    last report.
    """

    question: Question
    opens: date
    closes: date
    version: int = 1
    period: KeptPeriod = KeptPeriod.WHOLE
    retention: int = 90
    secret_days: int = 0
    answers: int = 1
    batch: int = 0
    """How many reports a shuffler passes on together at least; 0: there is none."""
    delta: Fraction = DELTA
    """At which the epsilon of a shuffled batch is told."""
    tokens: str = ""
    """The public key of tokens, in hexadecimal digits: with one, each report needs a token of its own."""
    former_tokens: tuple[str, ...] = ()
    """Earlier keys of tokens whose unspent tokens are still good; a key that was stolen is not among them."""
    thresholds: Mapping[str, Sequence[str]] | None = None
    """Of each law the numbers that a device compares its bits with; None: as the oracle has them."""

    def __post_init__(self) -> None:
        question: object = self.question
        if not isinstance(question, Question):
            raise check.fail(_OWNER, "question", "be a Question", question)
        for name in ("opens", "closes"):
            if type(getattr(self, name)) is not date:
                raise check.fail(_OWNER, name, "be a date", getattr(self, name))
        if self.closes < self.opens:
            raise check.fail(_OWNER, "closes", f"not be before {self.opens}, when it opens", str(self.closes))
        check.keep(
            self,
            version=check.integer(_OWNER, "version", self.version, 1, _MOST_VERSION),
            period=check.member(_OWNER, "period", self.period, KeptPeriod),
            retention=check.integer(_OWNER, "retention", self.retention, 0, _MOST_DAYS),
            secret_days=check.integer(_OWNER, "secret_days", self.secret_days, 0, _MOST_DAYS),
            answers=check.integer(_OWNER, "answers", self.answers, 1, 1 << 24),
            batch=check.integer(_OWNER, "batch", self.batch, 0, 1 << 24),
            delta=check.between(_OWNER, "delta", self.delta, _LEAST_DELTA, Fraction(1, 100)),
        )
        if (
            2 * self.batch * self.question.oracle.width > MOST_BATCH
        ):  # so that two halves of too many are batches
            least = MOST_BATCH // (2 * self.question.oracle.width)
            raise check.fail(_OWNER, "batch", f"be at most {least:,} for reports of this length", self.batch)
        check.keep(self, former_tokens=tuple(map(str, self.former_tokens)))
        keys = self.token_keys
        for key in keys:
            read_public(key)
        if len(set(keys)) < len(keys) or (self.former_tokens and not self.tokens):
            raise check.fail(_OWNER, "former_tokens", "be other keys than the one of now", len(keys))
        if self.thresholds is None:
            check.keep(self, thresholds=_thresholds(self.question))

    @property
    def fingerprint(self) -> str:
        """That of the question."""
        return self.question.fingerprint

    @property
    def token_keys(self) -> tuple[str, ...]:
        """The keys whose tokens are good, the one of now first."""
        return (self.tokens, *self.former_tokens) if self.tokens else self.former_tokens

    @property
    def secrets(self) -> int:
        """How many secrets a device has while the question is open: each makes it pay again."""
        days = (self.closes - self.opens).days + 1
        return 1 if self.secret_days == 0 else -(-days // self.secret_days)

    @property
    def periods(self) -> int:
        """How many periods there are while the question is open, in each of which a device may report."""
        return self.period.number_between(self.opens, self.closes)

    @property
    def report_epsilon(self) -> float:
        """What one report reveals at most."""
        return float_above(self.question.oracle.spend.loss().epsilon)

    @property
    def device_epsilon(self) -> float:
        """What all reports of one device reveal at most, as long as the question is open.

        With several answers, given when they were the same: reports that differ tell of a change.
        """
        oracle = self.question.oracle
        if isinstance(oracle, RapporOracle):
            return oracle.epsilon_infinity * self.answers * self.secrets
        once = Fraction(oracle.spend.loss().epsilon)
        return float(once * self.answers * self.secrets)

    @property
    def is_once(self) -> bool:
        """Whether a device sends one report and no other, ever."""
        return self.period is KeptPeriod.WHOLE and self.answers == 1 and self.secrets == 1

    def is_open(self, day: date) -> bool:
        """Whether reports are taken on a day."""
        return self.opens <= day <= self.closes

    def body(self) -> str:
        """The text that is signed."""
        fields: dict[str, object] = {
            "question": self.question.to_json(),
            "thresholds": self.thresholds,
            "identity": self.question.identity,
            "width": self.question.oracle.width,
            "version": self.version,
            "opens": self.opens.isoformat(),
            "closes": self.closes.isoformat(),
            "period": str(self.period),
            "retention": self.retention,
            "secret_days": self.secret_days,
            "answers": self.answers,
            "price": {
                "report": shorten_up(self.report_epsilon, 6),
                "device": shorten_up(self.device_epsilon, 6),
            },
        }
        if self.batch:
            fields["shuffle"] = {"batch": self.batch, "delta": str(self.delta)}
        if self.tokens:
            fields["tokens"] = self.tokens
        if self.former_tokens:
            fields["former_tokens"] = list(self.former_tokens)
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def read_body(cls, text: str) -> "Announcement":
        """An announcement from its text; one that does not say the same when written again is refused."""
        fields = _fields(text)
        try:
            announcement = cls(
                question=Question.from_json(fields["question"]),
                opens=day_of(_OWNER, "opens", fields["opens"]),
                closes=day_of(_OWNER, "closes", fields["closes"]),
                version=fields["version"],  # type: ignore[arg-type]  # checked as they are taken
                period=KeptPeriod(str(fields["period"])),
                retention=fields["retention"],  # type: ignore[arg-type]
                secret_days=fields["secret_days"],  # type: ignore[arg-type]
                answers=fields["answers"],  # type: ignore[arg-type]
                thresholds=fields["thresholds"],  # type: ignore[arg-type]
                tokens=str(fields.get("tokens", "")),
                former_tokens=tuple(fields.get("former_tokens", ())),  # type: ignore[arg-type]
                **_shuffle(fields),
            )
        except (KeyError, ValueError, TypeError):
            raise _unreadable() from None
        if _fields(announcement.body()) != fields:
            raise _unreadable()
        return announcement


@dataclass(frozen=True)
class SignedAnnouncement:
    """An announcement with the text that was signed and the signatures under it, by the ids of their keys."""

    announcement: Announcement
    body: str
    signatures: tuple[tuple[str, str], ...]

    @classmethod
    def sign(cls, announcement: Announcement, *keys: SigningKey) -> "SignedAnnouncement":
        """The announcement under the signatures of some keys, of which one is enough for a device."""
        body = announcement.body()
        message = (FIRST + body).encode()
        return cls(announcement, body, tuple((key.public.id, key.sign(message).hex()) for key in keys))

    def confirmed_by(self, key: PublicKey) -> bool:
        """Whether a key has signed it."""
        message = (FIRST + self.body).encode()
        return any(
            name == key.id and key.confirms(bytes.fromhex(signature), message)
            for name, signature in self.signatures
        )

    def to_text(self) -> str:
        """The file."""
        signatures = [{"key": name, "signature": signature} for name, signature in self.signatures]
        content = {"format": FORMAT, "announcement": self.body, "signatures": signatures}
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_text(cls, text: str) -> "SignedAnnouncement":
        """An announcement from its file; whether its signatures are right is asked with `confirmed_by`."""
        fields = _fields(text)
        if fields.get("format") != FORMAT or fields.keys() != {"format", "announcement", "signatures"}:
            raise InvalidParameter(
                "This is no announcement of a question. Make one with 'sourdine collect announce', from the "
                "specification that 'sourdine local spec' wrote."
            )
        body, signatures = fields["announcement"], fields["signatures"]
        if not isinstance(body, str) or not isinstance(signatures, list):
            raise _unreadable()
        return cls(Announcement.read_body(body), body, tuple(map(_signature, signatures)))

    @classmethod
    def read(cls, path: Path) -> "SignedAnnouncement":
        """An announcement from a file."""
        try:
            with path.open("rb") as file:
                content = file.read(_LONGEST + 1)
        except OSError as problem:
            raise InvalidParameter(f"{unreadable(path, problem, 'announcement')} Check the path.") from None
        try:
            if len(content) > _LONGEST:
                raise _unreadable()
            return cls.from_text(content.decode("utf-8"))
        except UnicodeDecodeError:
            raise InvalidParameter(f"{path}: {_unreadable()}") from None
        except SourdineError as problem:
            raise InvalidParameter(f"{path}: {problem}") from None


def _signature(fields: object) -> tuple[str, str]:
    if isinstance(fields, Mapping) and fields.keys() == {"key", "signature"}:
        name, signature = str(fields["key"]), str(fields["signature"])
        if _ID.fullmatch(name) and _SIGNATURE.fullmatch(signature):
            return name, signature
    raise _unreadable()


def _shuffle(fields: Mapping[str, object]) -> dict[str, Any]:
    """What is said of a shuffler, which is nothing where there is none."""
    if "shuffle" not in fields:
        return {}
    told = fields["shuffle"]
    if not isinstance(told, Mapping) or told.keys() != {"batch", "delta"} or not told["batch"]:
        raise _unreadable()
    return {"batch": told["batch"], "delta": Fraction(str(told["delta"]))}


def _fields(text: str) -> dict[str, object]:
    try:
        fields = json.loads(text, object_pairs_hook=unambiguous)
    except (ValueError, RecursionError, SourdineError):
        fields = None
    if not isinstance(fields, dict):
        raise _unreadable()
    return fields


def _unreadable() -> InvalidParameter:
    return InvalidParameter(
        "The announcement cannot be read: it is cut short or was changed. Get the file again from whoever "
        "signed it."
    )


def _thresholds(question: Question) -> dict[str, list[str]]:
    """What a browser compares its bits with; none where only Python draws reports."""
    try:
        return thresholds(question.oracle)
    except InvalidParameter:
        return {}
