"""Red, yellow or green: what all checks of a release come to, as data, for a page and for a terminal."""

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sourdine.accounting.certificate import Deviance, Discrepancy, Verification
from sourdine.accounting.explain import Explanation, explain_guarantee
from sourdine.accounting.explain.words import beliefs, guesses
from sourdine.audit.plans import PlanAudit
from sourdine.core.distance import Neighbours
from sourdine.core.errors import SourdineError
from sourdine.core.text.escaping import tame
from sourdine.report.verdict.checks import (
    CheckOutcome,
    ReleaseCheck,
    brief,
    check_audit,
    check_exact_counts,
    check_files,
    check_noise,
    check_payment,
    check_plan,
    check_signature,
    check_strength,
)
from sourdine.report.verdict.facts import Fact, assumptions, facts, title_of
from sourdine.tables import ReleasePlan
from sourdine.tables.record import NAME, Record, other_payment

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
