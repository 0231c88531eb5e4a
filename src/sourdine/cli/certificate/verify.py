"""`sourdine certificate verify`: is the folder as it was published, was it paid, and who signed it?"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.core.format import counted, plain

if TYPE_CHECKING:
    from sourdine.accounting.certificate import Discrepancy, PublicKey, Verification

WRONG = 1  # the exit code of whoever looked, and found something

ReleasePath = Annotated[Path, typer.Argument(help="The folder of a release, or its certificate.json.")]
LedgerFile = Annotated[str | None, typer.Option(help="The ledger that paid, to confirm the payment.")]
PublicKeys = Annotated[
    list[Path] | None,
    typer.Option("--key", help="A public key (.pub) that must have signed; may be given several times."),
]


def verify(
    path: ReleasePath,
    *,
    ledger: LedgerFile = None,
    key: PublicKeys = None,
    as_json: AsJson = False,
) -> None:
    """Compare a release with its certificate; with a ledger, confirm the payment, with a key, the signature.

    Every file in the folder is compared with the certificate, which needs nothing else. The ledger vouches
    for the payment alone: it never saw the numbers. A signature stands for the certificate and all files.
    Exit code 1 means that something is not as it was published, paid or signed; each problem is reported.

    Examples: sourdine certificate verify people-release ·
    sourdine certificate verify people-release --key office.pub ·
    sourdine certificate verify people-release --ledger people.ledger
    """
    from sourdine.accounting.certificate import verify_release
    from sourdine.report.verdict import wrong_of

    verification = verify_release(path, ledger=ledger, keys=read_keys(key))
    wrong = wrong_of(verification)
    if as_json:
        show.document(_plain(verification, wrong))
    else:
        _print(verification, wrong)
    raise typer.Exit(WRONG if wrong else 0)


def read_keys(paths: Sequence[Path] | None) -> "list[PublicKey]":
    """The public keys in some files."""
    from sourdine.accounting.certificate import PublicKey

    return [PublicKey.read(each) for each in paths or ()]


def _plain(verification: "Verification", wrong: "Sequence[Discrepancy]") -> dict[str, object]:
    stated, paid = verification.certificate, verification.payment
    return {
        "verified": not wrong,
        "discrepancies": [
            {"kind": each.kind.value, "name": each.name, "words": each.words} for each in wrong
        ],
        "number": stated.number,
        "epsilon": stated.epsilon,
        "delta": stated.delta,
        "selection_delta": str(stated.selection_delta),
        "paid": None if paid is None else not paid.refusal,
        "unconfirmed": [] if paid is None else list(paid.unconfirmed),
        "not_of_this_package": list(stated.foreign),
        "secure": stated.secure,
        "files": list(verification.files.same),
        "absent": list(verification.files.absent),
        "uncovered": list(verification.files.uncovered),
        "harmless": list(verification.files.harmless),
        "complete": stated.complete,
        "signatures": [
            {"name": each.name, "key": each.key, "time": each.time, "standing": standing.value}
            for each, standing in verification.signatures
        ],
    }


def _print(verification: "Verification", wrong: "Sequence[Discrepancy]") -> None:
    for each in wrong:
        show.line(f"WRONG ({each.kind}): {each.words}", aside=True)
    if wrong:
        many = counted(len(wrong), "thing")
        show.line(f"Not verified: {many} wrong. Do not rely on this release; get it again.", aside=True)
    _print_payment(verification)
    _print_signatures(verification)
    _print_files(verification)
    if not wrong:
        show.say(f"Nothing wrong was found. {_proof(verification)}")


def _print_payment(verification: "Verification") -> None:
    from sourdine.accounting.spend import foreign_words

    stated, paid = verification.certificate, verification.payment
    at = f" at delta {plain(stated.delta)}" if stated.delta is not None else ""
    claim = f"epsilon {stated.epsilon:.4g}{at} for each {show.one_line(stated.unit)}"
    if paid is None:
        show.line(f"States: line {stated.number} of the ledger, {claim}. No ledger was asked (--ledger).")
    elif not paid.refusal:
        show.line(f"Paid: line {stated.number} of the ledger, {claim}.")
        if paid.unconfirmed:
            named = ", ".join(paid.unconfirmed)
            show.line(f"Not recorded with the charge, so not confirmed by the ledger: {named}.")
    if stated.selection_delta:
        show.line(f"Of that delta, {float(stated.selection_delta):.3g} went into choosing keys.")
    if stated.foreign:
        show.say(foreign_words(stated.foreign))
    if not stated.secure:
        show.line("Its noise was seeded: the release protects nobody.")


def _print_signatures(verification: "Verification") -> None:
    from sourdine.accounting.certificate.signatures import SignatureStanding

    for each, standing in verification.signatures:
        by = f"{each.name}, key {each.key}, {each.time}"
        if standing is SignatureStanding.VALID:
            show.line(f"Signed: {by}.")
        if standing is SignatureStanding.NOT_CHECKED:
            show.line(f"Not checked, since the key was not given (--key): a signature of {by}.")
    if not verification.signatures and not verification.keys:
        show.line("Not signed.")


def _print_files(verification: "Verification") -> None:
    files, stated = verification.files, verification.certificate
    if files.same:
        only = stated.complete and not (files.discrepancies or files.absent or files.harmless)
        whole = " Nothing else is in the folder." if only else ""
        show.line(f"As published with the certificate: {_listed(files.same)}.{whole}")
    if files.absent:
        show.line(f"Not beside the certificate, so not compared: {_listed(files.absent)}.")
    if files.harmless:
        show.line(
            f"Left in the folder by a system or a program, and no part of it: {_listed(files.harmless)}."
        )
    if files.uncovered:
        show.say(
            f"NOT COVERED: {_listed(files.uncovered)}. The certificate is of an earlier version and says "
            "nothing of them, so they may have been changed."
        )
    if not stated.digests:
        show.line("The certificate names no files, so nothing ties any numbers to it.")


def _listed(names: Sequence[str]) -> str:
    return show.one_line(", ".join(names))


def _proof(verification: "Verification") -> str:
    """What all this does not prove."""
    from sourdine.accounting.certificate.signatures import SignatureStanding

    if verification.of_keys(SignatureStanding.VALID):
        return (
            "A signature proves who vouches for the certificate and these files, not that the numbers were "
            "computed as stated."
        )
    if verification.payment is None:
        return (
            "This shows accidents and careless changes. Whoever can write the folder can write the "
            "certificate too: a signature (--key) shows that, and the ledger (--ledger) whether it was paid."
        )
    return (
        "The ledger vouches for the payment, not for the numbers: that they are those which were paid for "
        "rests on the certificate, so get it from whoever published it, or have it signed."
    )
