"""`sourdine certificate sign`: put a signature under a release that was compared."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from sourdine.cli.certificate.verify import LedgerFile, ReleasePath
from sourdine.cli.shared import show
from sourdine.cli.shared.heartbeat import ask_passphrase
from sourdine.cli.shared.parse import AsJson
from sourdine.core.errors import InvalidParameter, LedgerError


def sign(
    path: ReleasePath,
    *,
    key: Annotated[Path, typer.Option(help="Your private key (.key).")],
    name: Annotated[
        str | None, typer.Option(help="Who signs, as others shall read it. Without it: the name of the key.")
    ] = None,
    ledger: LedgerFile = None,
    as_json: AsJson = False,
) -> None:
    """Sign the certificate of a release, and with it every file that it covers.

    The folder is compared first, and with --ledger the payment is confirmed; what is not as it was published
    is not signed. The signature goes into certificate.signatures.json beside the certificate, with those of
    others. Signing once more with the same key takes the place of the first.

    Example: sourdine certificate sign people-release --key office.key --name "Privacy office, J. Doe"
    """
    from sourdine.accounting.certificate import SigningKey, verify_release
    from sourdine.accounting.certificate.signatures import add_signature, check_name
    from sourdine.accounting.certificate.signatures import sign as sign_content
    from sourdine.report.verdict import wrong_of

    if name is not None:
        check_name(name)
    verification = verify_release(path, ledger=ledger)
    wrong = wrong_of(verification)
    if wrong:
        raise LedgerError(
            f"This release is not as it was published, so it is not signed: {wrong[0].words} To see all that "
            f"is wrong: sourdine certificate verify {quote(str(path))}"
        )
    pair = SigningKey.read(key, ask_passphrase)
    signature = sign_content(verification.content, pair, pair.name if name is None else name)
    try:
        place = add_signature(verification.place, signature)
    except OSError as problem:
        raise InvalidParameter(
            f"The signature cannot be written beside {verification.place} ({problem.strerror}). Copy the "
            "folder to where you may write, and sign it there."
        ) from None
    if as_json:
        show.document(
            {"signatures": str(place), "name": signature.name, "key": signature.key, "time": signature.time}
        )
        return
    show.line(f"Signed as {signature.name}, {signature.time}: {place}")
    if verification.files.uncovered:
        show.say(
            f"The certificate is of an earlier version and does not cover "
            f"{', '.join(verification.files.uncovered)}: your signature does not stand for that.",
            mark="WARNING: ",
        )
    if verification.files.absent:
        show.say(f"Not beside the certificate, so not compared: {', '.join(verification.files.absent)}.")
    if verification.payment is None:
        show.say("Whether it was paid was not looked at: name the ledger with --ledger to do so.")
    show.line(
        f"Others check it with: sourdine certificate verify {quote(str(path))} --key "
        f"{quote(key.with_suffix('.pub').name)}"
    )
