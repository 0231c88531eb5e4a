"""The checks behind a verdict, each with its outcome and a sentence that needs no other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sourdine.accounting.certificate import Certificate, Discrepancy, Verification
from sourdine.accounting.certificate.signatures import SignatureStanding
from sourdine.accounting.dpsgd.training import warn_of_delta
from sourdine.accounting.explain import Explanation
from sourdine.accounting.explain.words import hardly
from sourdine.accounting.spend import foreign_words
from sourdine.audit.plans import PlanAudit
from sourdine.core.format import counted, plain
from sourdine.tables import ReleasePlan
from sourdine.tables.plan import CHECKED, DECLARATIONS
from sourdine.tables.quality.exact import CHECKED_WORDS
from sourdine.tables.record import Record

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
