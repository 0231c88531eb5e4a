"""The page of a verdict: one sheet that can be printed and signed by hand."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from sourdine.accounting.certificate import Verification
from sourdine.accounting.explain.words import at_least, at_most
from sourdine.report.pages.page import Page
from sourdine.report.verdict import CheckOutcome, Light, ReleaseVerdict

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
