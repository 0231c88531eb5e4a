"""The checks behind a verdict, each with its outcome and a sentence that needs no other."""

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from sourdine.accounting.certificate import Certificate, Deviance, Discrepancy, Verification
from sourdine.accounting.certificate.signatures import SignatureStanding
from sourdine.accounting.dpsgd.training import warn_of_delta
from sourdine.accounting.explain import Explanation, explain_guarantee
from sourdine.accounting.explain.words import at_least, at_most, beliefs, guesses, hardly
from sourdine.accounting.ledger.numbers import readable, remaining, room
from sourdine.accounting.spend import foreign_words
from sourdine.audit.plans import PlanAudit
from sourdine.core.distance import Neighbours
from sourdine.core.errors import SourdineError
from sourdine.core.format import counted, plain, shorten_up
from sourdine.core.text import tame
from sourdine.frames.schema import PrivacyUnit
from sourdine.report.view import Page
from sourdine.tables import ReleasePlan
from sourdine.tables.measurement import plural
from sourdine.tables.plan import CHECKED, DECLARATIONS
from sourdine.tables.publication import NAME, Record, other_payment
from sourdine.tables.quality import CHECKED_WORDS

_DELTA = 1e-5  # the largest that is not asked about, however few records there are
_MOST_WORDS = 3  # discrepancies that are told one by one
_LONGEST, _LONGEST_SENTENCE = 60, 200  # letters of what somebody else named


class CheckOutcome(StrEnum):
    """What came of a check."""

    PASSED = "passed"
    FAILED = "failed"
    JUDGE = "judge yourself"
    OPEN = "not made"
    NONE = "does not apply"


@dataclass(frozen=True)
class ReleaseCheck:
    """One question to a release, and its answer in plain words."""

    name: str
    outcome: CheckOutcome
    words: str


def brief(text: str, longest: int = _LONGEST) -> str:
    """A name that somebody gave, in so few letters that a page has room for it."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def check_files(verification: Verification, others: Sequence[Discrepancy]) -> ReleaseCheck:
    """Is every file the one that was published?"""
    files, name = verification.files, "Files"
    wrong = [*files.discrepancies, *others]
    if wrong:
        return ReleaseCheck(name, CheckOutcome.FAILED, _first(wrong))
    if not verification.certificate.digests:
        words = "The certificate names no files, so nothing ties any numbers to it."
        return ReleaseCheck(name, CheckOutcome.OPEN, words)
    if files.uncovered:
        words = (
            f"The certificate is of an earlier version and says nothing of {_names(files.uncovered)}, which "
            f"may have been changed. Unchanged: {_names(files.same)}."
        )
        return ReleaseCheck(name, CheckOutcome.OPEN, words)
    if files.absent:
        words = f"Not at hand, so not compared: {_names(files.absent)}. Name the folder to compare all files."
        return ReleaseCheck(name, CheckOutcome.OPEN, words)
    many = f"{counted(len(files.same), 'file')} {'is' if len(files.same) == 1 else 'are'}"
    more = ", and nothing was added" if verification.certificate.complete else ""
    if verification.of_keys(SignatureStanding.VALID):
        words = f"{many} as signed, to the last letter{more}."
    else:
        words = (
            f"{many} as the certificate says, to the last letter{more}. Only a signature shows whether the "
            "certificate was changed along with them."
        )
    return ReleaseCheck(name, CheckOutcome.PASSED, words)


def check_signature(verification: Verification) -> ReleaseCheck:
    """Did the owner of a key that is known sign it?"""
    name = "Signature"
    if verification.signature_trouble:
        return ReleaseCheck(name, CheckOutcome.FAILED, _first(verification.signature_trouble))
    if valid := verification.of_keys(SignatureStanding.VALID):
        signers = "; ".join(f"{brief(each.name)}, {each.time[:10]}, key {each.key[:8]}" for each in valid[:3])
        more = f", and {len(valid) - 3} more" if len(valid) > 3 else ""
        return ReleaseCheck(name, CheckOutcome.PASSED, f"Signed by {signers}{more}.")
    if verification.signatures:
        signers = ", ".join(brief(signature.name) for signature, _ in verification.signatures[:3])
        words = f"It bears the name of {signers}, but no public key was given to check that: --key FILE."
        return ReleaseCheck(name, CheckOutcome.OPEN, words)
    words = "Nobody has signed it yet. If you agree, you can: sourdine certificate sign FOLDER --key FILE."
    return ReleaseCheck(name, CheckOutcome.OPEN, words)


def check_payment(verification: Verification) -> ReleaseCheck:
    """Does a ledger hold this very payment?"""
    name, payment, certificate = "Payment", verification.payment, verification.certificate
    if payment is None:
        words = "No ledger was asked. Whoever keeps it can: sourdine certificate verify FOLDER --ledger FILE."
        return ReleaseCheck(name, CheckOutcome.OPEN, words)
    if payment.refusal:
        return ReleaseCheck(name, CheckOutcome.FAILED, payment.refusal)
    if payment.unconfirmed:
        words = (
            f"Paid: line {certificate.number} of the ledger. Not recorded with it, so not confirmed: "
            f"{', '.join(payment.unconfirmed)}."
        )
        return ReleaseCheck(name, CheckOutcome.JUDGE, words)
    words = f"The ledger holds this payment (line {certificate.number}), made before any noise was drawn."
    return ReleaseCheck(name, CheckOutcome.PASSED, words)


def check_plan(certificate: Certificate, record: Record | None, plan: ReleasePlan | None) -> ReleaseCheck:
    """Is what was asked the same that was paid for?"""
    import sourdine

    name = "Price of the plan"
    if record is None or plan is None:
        return ReleaseCheck(name, CheckOutcome.NONE, "This release holds no plan of a table.")
    if record.payment != certificate.fingerprint:
        words = "The answers say that another payment made them: they are of another release."
        return ReleaseCheck(name, CheckOutcome.FAILED, words)
    if plan.spends == certificate.spends:
        words = "Planned once more from what was declared, it costs exactly what the certificate says."
        return ReleaseCheck(name, CheckOutcome.PASSED, words)
    if certificate.software != f"sourdine {sourdine.__version__}":
        words = (
            f"It was planned by another version ({brief(certificate.software)}), so prices do not compare."
        )
        return ReleaseCheck(name, CheckOutcome.OPEN, words)
    words = "What was asked does not cost what the certificate says: one of them was changed."
    return ReleaseCheck(name, CheckOutcome.FAILED, words)


def check_noise(verification: Verification) -> ReleaseCheck:
    """Did the noise come from where nobody can foresee it?"""
    payment = verification.payment
    if verification.certificate.secure:
        recorded = payment is not None and not payment.refusal and "secure" not in payment.unconfirmed
        who = "As recorded with the charge" if recorded else "As the certificate says"
        words = f"{who}, it came from cryptographic randomness of the operating system."
        return ReleaseCheck("Noise", CheckOutcome.PASSED, words)
    words = "It was seeded, so that whoever knows the seed can take it away: this release protects nobody."
    return ReleaseCheck("Noise", CheckOutcome.FAILED, words)


def check_exact_counts(certificate: Certificate, plan: ReleasePlan | None) -> ReleaseCheck:
    """Were exact counts shown to anybody before the declarations were settled?"""
    name = "Exact counts"
    if certificate.declared.get(DECLARATIONS) == CHECKED or (plan is not None and plan.checked):
        words = f"They were shown beforehand. {CHECKED_WORDS}. Ask what was changed."
        return ReleaseCheck(name, CheckOutcome.JUDGE, words)
    if plan is None:
        return ReleaseCheck(name, CheckOutcome.NONE, "This release holds no plan of a table.")
    words = "None is recorded: 'sourdine check', which shows them, leaves a mark in what is declared."
    return ReleaseCheck(name, CheckOutcome.PASSED, words)


def check_audit(audit: PlanAudit | None, plan: ReleasePlan | None, hindrance: str) -> ReleaseCheck:
    """Did made-up neighbouring tables find a fault in the plan?"""
    name = "Audit of the plan"
    if plan is None:
        return ReleaseCheck(name, CheckOutcome.NONE, "This release holds no plan of a table.")
    if audit is None or not audit.engines:
        words = f"{hindrance[:1].upper()}{hindrance[1:]}."
        return ReleaseCheck(name, CheckOutcome.OPEN, words)
    pairs = counted(sum(audit.engines.values()), "pair")
    if audit.violations:
        fault = audit.violations[0].words
        words = f"Of {pairs} of tables, {len(audit.violations):,} refute it. The first: {fault}"
        return ReleaseCheck(name, CheckOutcome.FAILED, words)
    unit = brief(plan.unit.name)
    words = (
        f"{pairs} of made-up tables ({', '.join(audit.engines)}) that differ in one {unit}: no fault found. "
        "That finds coarse faults, of this way to read a table; sourdine audit plan tries more, and all ways."
    )
    return ReleaseCheck(name, CheckOutcome.PASSED, words)


def check_strength(
    certificate: Certificate, explanation: Explanation | None, size: float | None
) -> Iterator[ReleaseCheck]:
    """Is the guarantee worth something?"""
    name = "Strength"
    if explanation is None:
        words = "There is no finite ε: nothing is promised to anybody."
        yield ReleaseCheck(name, CheckOutcome.FAILED, words)
    elif weak := hardly(explanation):
        yield ReleaseCheck(name, CheckOutcome.JUDGE, weak)
    elif explanation.delta > (_DELTA if size is None else min(_DELTA, 1 / size)):
        words = f"δ = {plain(explanation.delta)} is large: it may allow to publish somebody's whole record."
        if size is not None:
            words = warn_of_delta(explanation.delta, int(size), f"the {int(size):,} records") or words
        yield ReleaseCheck(name, CheckOutcome.JUDGE, words)
    else:
        words = "By itself the guarantee leaves every attack in doubt: what it allows is told above."
        yield ReleaseCheck(name, CheckOutcome.PASSED, words)
    if certificate.foreign:
        words = foreign_words([brief(each) for each in certificate.foreign])
        yield ReleaseCheck("Mechanisms", CheckOutcome.JUDGE, words)


def _first(wrong: Sequence[Discrepancy]) -> str:
    """The first few things that are wrong, and how many others there are."""
    words = " ".join(brief(each.words, _LONGEST_SENTENCE) for each in wrong[:_MOST_WORDS])
    more = len(wrong) - _MOST_WORDS
    return f"{words} And {counted(more, 'thing')} more: sourdine certificate verify." if more > 0 else words


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(map(brief, names[:4])) + more


# What a verdict tells of a release: what it is, about whom, its price, what is left, and what is assumed.


_MOST_NAMES = 6
_GAP = "\N{NO-BREAK SPACE}"
_RELATIONS = {
    Neighbours.ADD_REMOVE: "whether or not one {unit} is in the data at all",
    Neighbours.REPLACE: "whatever one {unit} in the data holds; how many there are is no secret",
    Neighbours.ZERO_OUT: "whether or not the record of one {unit} was used",
}

Fact = tuple[str, str]  # what it is about, and the sentence


def facts(verification: Verification, record: Record | None, plan: ReleasePlan | None) -> tuple[Fact, ...]:
    """A few sentences, each under its word."""
    certificate = verification.certificate
    return (
        ("Published", _published(verification, record, plan)),
        ("About whom", _whom(certificate, record, plan)),
        ("Price", _price(certificate)),
        ("What is left", _left(verification, record)),
    )


def title_of(record: Record | None, verification: Verification) -> str:
    """What the release is called here: by the table it is about, or by its folder."""
    if record is None:
        return brief(verification.place.resolve().parent.name)
    return brief(" and ".join(record.specification.table.sources))


def _published(verification: Verification, record: Record | None, plan: ReleasePlan | None) -> str:
    certificate = verification.certificate
    when = f"Paid for on {certificate.time:%d %B %Y}, made with {brief(certificate.software or 'sourdine')}."
    if record is None or plan is None:
        names = list(certificate.digests)
        listed = ", ".join(map(brief, names[:_MOST_NAMES])) or "files that the certificate does not name"
        return f"{listed}. {when}"
    names = [brief(query.name) for query in plan.queries]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    numbers = sum(len(each.keys) for each in record.answers.each)
    return (
        f"{counted(numbers, 'noisy number')} about {title_of(record, verification)}: "
        f"{', '.join(names[:_MOST_NAMES])}{more}. {when}"
    )


def _whom(certificate: Certificate, record: Record | None, plan: ReleasePlan | None) -> str:
    unit = brief(certificate.unit)
    relation = _RELATIONS[Neighbours(certificate.neighbours)].format(unit=unit)
    size = ""
    if record is not None and record.quality is not None:
        value, lower, upper = (max(each, 0) for each in record.quality.records)  # noise goes below 0
        size = f" About {value:,.0f} records were read (between {lower:,.0f} and {upper:,.0f})."
    elif plan is not None and plan.size is not None:
        size = f" {counted(plan.size, 'record')}, as declared."
    return f"Each {unit} is protected, {relation}.{size}"


def _price(certificate: Certificate) -> str:
    delta = "" if certificate.delta is None else f", δ{_GAP}={_GAP}{plain(certificate.delta)}"
    also = ""
    if certificate.currency != "epsilon":
        also = f" ({certificate.currency} {readable(certificate.price)})"
    guarantee = f"ε{_GAP}={_GAP}{shorten_up(certificate.epsilon)}{delta}{also}"
    measurements = counted(len(certificate.spends), "measurement")
    return f"{guarantee} for each {brief(certificate.unit)}, in {measurements}. Smaller is more private."


def _left(verification: Verification, record: Record | None) -> str:
    certificate = verification.certificate
    payment = verification.payment
    status = None if payment is None else payment.status
    limit: Fraction | None = status.limit if status else record.limit if record else None
    if limit is None:
        then = f"After this release: {certificate.currency} {room(certificate.left)}"
    else:
        whole = f"{certificate.currency} {room(limit)}"
        then = f"After this release: {_remaining(certificate.left, limit)} of {whole}"
    if status is None:
        return f"{then}. What was spent since, the ledger knows."
    delta = "" if status.delta is None else f", δ{_GAP}={_GAP}{plain(status.delta)}"
    return (
        f"{then}. Today: {_remaining(status.left, status.limit)}. All that this ledger has paid so far "
        f"({counted(status.blocks, 'charge')}) comes to ε{_GAP}={_GAP}{shorten_up(status.epsilon)}{delta}."
    )


def _remaining(left: Fraction, limit: Fraction) -> str:
    return "nothing" if left == 0 else remaining(left, limit)


def assumptions(certificate: Certificate, plan: ReleasePlan | None) -> tuple[str, ...]:
    """What the guarantee rests on and no check can show."""
    return tuple(_assumptions(certificate, plan))


def _assumptions(certificate: Certificate, plan: ReleasePlan | None) -> Iterator[str]:
    unit = brief(certificate.unit)
    if plan is not None:
        yield _unit(plan.unit)
    if plan is not None and not plan.checked:
        yield "Bounds, keys and steps were declared without looking at the data."
    yield (
        f"No other ledger pays for data about the same {plural(unit)}. What is published elsewhere about "
        "them adds to the price."
    )
    yield "The numbers were computed by the program that is named here, unchanged: no certificate shows that."
    yield (
        f"It is no secret what the numbers say about {plural(unit)} in general: that can be used about "
        "somebody who never took part."
    )


def _unit(unit: PrivacyUnit) -> str:
    name = brief(unit.name)
    if unit.column is None:
        return (
            f"Each record is another {name}. A {name} with k records has k times the ε, and so much "
            "less protection."
        )
    return f"Records with the same '{brief(unit.column)}' are one {name}, and others are others."


# Red, yellow or green: what all checks of a release come to, as data, for a page and for a terminal.


_LINE, _NARROW = 100, 50  # characters
_MOST_EPSILON = 1 << 20

_OF_FILES = 3  # checks of files, signature and payment, whose failures are listed one by one
_ENGINES = {".parquet": "parquet", ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson"}

Audit = Callable[[ReleasePlan, str], PlanAudit]  # of a plan, on the engine of this name


class Light(StrEnum):
    """What a verdict comes to."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class ReleaseVerdict:
    """What is known of a release, what was checked, and what it means for one unit."""

    title: str
    unit: str
    facts: tuple[Fact, ...]
    checks: tuple[ReleaseCheck, ...]
    assumptions: tuple[str, ...]
    explanation: Explanation | None

    def with_outcome(self, *outcomes: CheckOutcome) -> tuple[ReleaseCheck, ...]:
        """The checks that came out so."""
        return tuple(check for check in self.checks if check.outcome in outcomes)

    @property
    def light(self) -> Light:
        """Red if anything failed; yellow if anything was not looked at or needs judgement; else green."""
        if self.with_outcome(CheckOutcome.FAILED):
            return Light.RED
        return Light.YELLOW if self.with_outcome(CheckOutcome.JUDGE, CheckOutcome.OPEN) else Light.GREEN

    @property
    def words(self) -> str:
        """The verdict in a sentence or two."""
        failures, open_ones = self.with_outcome(CheckOutcome.FAILED), self.with_outcome(CheckOutcome.OPEN)
        doubts = self.with_outcome(CheckOutcome.JUDGE)
        if failures:
            return f"Do not publish this release, and do not rely on it. Failed: {_listed(failures)}."
        parts = [f"not looked at: {_listed(open_ones)}"] if open_ones else []
        parts += [f"for you to judge: {_listed(doubts)}"] if doubts else []
        if parts:
            return f"Nothing wrong was found, but not all is settled. {'; '.join(parts).capitalize()}."
        return "Every check was made, and all passed."

    @property
    def meaning(self) -> tuple[str, ...]:
        """What the guarantee means for one unit."""
        if self.explanation is None:
            return ("No finite ε is known, so nothing is promised.",)
        if self.light is Light.RED:
            claim = "This is what it claims. A check has failed, so do not count on it."
            return claim, beliefs(self.explanation), guesses(self.explanation)
        return beliefs(self.explanation), guesses(self.explanation)

    def to_json(self) -> dict[str, object]:
        """All of it, for machines."""
        return {
            "verdict": self.light.value,
            "words": self.words,
            "release": self.title,
            **{name.lower().replace(" ", "_"): words for name, words in self.facts},
            "meaning": list(self.meaning),
            "checks": [
                {"name": check.name, "outcome": check.outcome.value, "words": check.words}
                for check in self.checks
            ],
            "assumptions": list(self.assumptions),
        }

    def text(self, width: int = _LINE) -> str:
        """The same for a terminal of this width."""
        return "\n".join(self._lines(min(max(width, _NARROW), _LINE)))

    def _lines(self, width: int) -> Iterator[str]:
        yield from _wrap(width, f"{self.light.upper()}: {self.words}")
        yield from _wrap(width, f"The release: {self.title}")
        wide = 2 + max(len(name) for name in [*(name for name, _ in self.facts), *map(_name, self.checks)])
        yield ""
        for name, words in self.facts:
            yield from _wrap(width, words, name.ljust(wide))
        for place, words in enumerate(self.meaning):
            yield from _wrap(width, words, ("" if place else f"For one {self.unit}"[: wide - 1]).ljust(wide))
        yield "\nChecks"
        for check in self.checks:
            yield from _wrap(width, f"{check.outcome.upper()}. {check.words}", check.name.ljust(wide))
        yield "\nAssumed, which no check can show"
        for words in self.assumptions:
            yield from _wrap(width, words, "- ")


def judge(
    verification: Verification,
    *,
    audit: Audit | None = None,
) -> ReleaseVerdict:
    """Weigh all that is known of a release.

    `audit` replays made-up tables through its plan; without it that check
    is open. Nothing is read from files that are not as they were published.
    """
    certificate = verification.certificate
    record, plan, trouble = _record(verification)
    others = other_payment(verification)
    result, hindrance = _audit(plan, record, audit)
    explanation = None
    if math.isfinite(certificate.epsilon) and certificate.epsilon <= _MOST_EPSILON:
        explanation = explain_guarantee(
            certificate.epsilon,
            certificate.delta or 0,
            unit=brief(certificate.unit),
            neighbours=Neighbours(certificate.neighbours),
        )
    return ReleaseVerdict(
        title=title_of(record, verification),
        unit=brief(certificate.unit),
        facts=facts(verification, record, plan),
        checks=(
            check_files(verification, (*others, *trouble)),
            check_signature(verification),
            check_payment(verification),
            check_plan(certificate, record, plan),
            check_noise(verification),
            check_exact_counts(certificate, plan),
            check_audit(result, plan, hindrance),
            *check_strength(certificate, explanation, _size(record, plan)),
        ),
        assumptions=assumptions(certificate, plan),
        explanation=explanation,
    )


def wrong_of(verification: Verification) -> tuple[Discrepancy, ...]:
    """Return all that is wrong with a release: there is something exactly where its verdict is red.

    Made-up tables are not replayed, which takes its time, so an audit that fails is not among it.
    """
    known = (*verification.discrepancies, *other_payment(verification))
    verdict = judge(verification)
    said = {each.name for each in verdict.checks[:_OF_FILES]} if known else set()
    failed = [each for each in verdict.with_outcome(CheckOutcome.FAILED) if each.name not in said]
    return (
        *known,
        *(Discrepancy(kind=Deviance.CONTRADICTED, name=each.name, words=each.words) for each in failed),
    )


def _record(
    verification: Verification,
) -> tuple[Record | None, ReleasePlan | None, tuple[Discrepancy, ...]]:
    """The record and the plan of a release of tables, if they are as they were published."""
    if NAME not in verification.files.same:
        return None, None, ()
    try:
        record = Record.from_json((verification.place.parent / NAME).read_text(encoding="utf-8"))
        return record, record.plan, ()
    except (OSError, UnicodeDecodeError, SourdineError):
        words = f"{NAME} is as it was published, but it is no record that this version can read."
        return None, None, (Discrepancy(kind=Deviance.UNREADABLE, name=NAME, words=words),)


def _audit(
    plan: ReleasePlan | None, record: Record | None, audit: Audit | None
) -> tuple[PlanAudit | None, str]:
    """What an audit finds, or why there is none."""
    if plan is None or record is None or audit is None:
        return None, "it was not asked for: sourdine certificate show FOLDER --pairs 100"
    if record.specification.joins:
        return None, "it needs the public tables that are joined; audit the specification, where they are"
    result = audit(plan, _engine(record))
    return result, "; ".join(result.skipped.values()) or "no engine could be asked"


def _engine(record: Record) -> str:
    """The way by which the table of a release came in, as far as its name tells."""
    names = {Path(each).name.lower().removesuffix(".gz") for each in record.specification.table.sources}
    endings = {_ENGINES.get(Path(name).suffix, "csv") for name in names}
    return endings.pop() if len(endings) == 1 else "duckdb"


def _size(record: Record | None, plan: ReleasePlan | None) -> float | None:
    """How many records there are at most, as far as that is known: told privately, or declared."""
    if record is not None and record.quality is not None and math.isfinite(record.quality.records[2]):
        return max(record.quality.records[2], 1)
    return None if plan is None or plan.size is None else plan.size


def _name(check: ReleaseCheck) -> str:
    return check.name


def _listed(checks: Sequence[ReleaseCheck]) -> str:
    names = [check.name.lower() for check in checks]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _wrap(width: int, text: str, first: str = "") -> list[str]:
    return textwrap.wrap(
        tame(text), width, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False
    )


# The page of a verdict: one sheet that can be printed and signed by hand.


_SIGNS = {Light.GREEN: "✓", Light.YELLOW: "!", Light.RED: "✗"}
_OUTCOME_SIGNS = {
    CheckOutcome.PASSED: "✓",
    CheckOutcome.FAILED: "✗",
    CheckOutcome.JUDGE: "!",
    CheckOutcome.OPEN: "?",
    CheckOutcome.NONE: "–",
}


@dataclass(frozen=True, kw_only=True)
class Bar:
    """How far a belief of 50 of 100 can move, in hundredths."""

    lower: int
    upper: int


@dataclass(frozen=True, kw_only=True)
class VerdictPage(Page):
    """A page with a light on top, which is a word and a sign as well as a colour."""

    template: ClassVar[str] = "verdict.html"
    verdict: ReleaseVerdict
    sign: str
    signs: dict[CheckOutcome, str]
    bar: Bar | None
    marks: tuple[tuple[str, str], ...]


def verdict_page(verdict: ReleaseVerdict, verification: Verification) -> VerdictPage:
    """One sheet about one release."""
    import hashlib

    certificate = verification.certificate
    return VerdictPage(
        title=f"Privacy verdict: {verdict.title}",
        lead=verdict.words,
        sections=(),
        verdict=verdict,
        sign=_SIGNS[verdict.light],
        signs=_OUTCOME_SIGNS,
        bar=_bar(verdict),
        marks=(
            ("certificate (SHA-256)", hashlib.sha256(verification.content).hexdigest()),
            ("ledger", f"{certificate.ledger[:16]}, line {certificate.number}"),
            ("checked on", f"{datetime.now(UTC):%d %B %Y, %H:%M} UTC"),
        ),
    )


def _bar(verdict: ReleaseVerdict) -> Bar | None:
    if verdict.explanation is None:
        return None
    bounds = verdict.explanation.posterior(0.5)
    lower, upper = at_least(bounds.lower), at_most(bounds.upper)
    return Bar(lower=100 * lower.many // lower.of, upper=-(-100 * upper.many // upper.of))
