"""All that can be found out about a release from its folder, a ledger and public keys.

Files are compared with the certificate, which needs nothing else. A ledger tells whether it was paid, and a
public key whether its owner signed the certificate, and with it all files. What was not asked for is not
known, and said so.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sourdine.accounting.certificate.files import (
    Deviance,
    Discrepancy,
    FileComparison,
    compare_files,
    only_differs,
)
from sourdine.accounting.certificate.keys import PublicKey
from sourdine.accounting.certificate.signatures import (
    Signature,
    SignatureStanding,
    read_signatures,
    signatures_place,
)
from sourdine.accounting.certificate.statement import Certificate
from sourdine.accounting.ledger import Ledger, Status
from sourdine.accounting.ledger.ledger import opened
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.core.files import CERTIFICATE, unreadable

_LONGEST = 1 << 27  # bytes of a certificate


@dataclass(frozen=True, kw_only=True)
class Payment:
    """What a ledger says: what it did not record and cannot confirm, or why it does not confirm at all."""

    unconfirmed: tuple[str, ...] = ()
    refusal: str = ""
    status: Status | None = None  # where the ledger stands now


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What is known of a release. `payment` is None if no ledger was asked."""

    place: Path
    certificate: Certificate
    content: bytes  # the certificate as it lies on the disk
    files: FileComparison
    signatures: tuple[tuple[Signature, SignatureStanding], ...]
    signature_trouble: tuple[Discrepancy, ...]
    keys: tuple[PublicKey, ...]
    payment: Payment | None

    @property
    def discrepancies(self) -> tuple[Discrepancy, ...]:
        """All that is wrong."""
        return (*self.files.discrepancies, *self.signature_trouble, *self._unpaid())

    def _unpaid(self) -> Iterator[Discrepancy]:
        if self.payment is not None and self.payment.refusal:
            yield Discrepancy(kind=Deviance.UNPAID, name=self.place.name, words=self.payment.refusal)

    @property
    def good(self) -> bool:
        """Whether nothing is wrong, of what was looked at."""
        return not self.discrepancies

    def of_keys(self, standing: SignatureStanding) -> tuple[Signature, ...]:
        """The signatures of this worth."""
        return tuple(signature for signature, worth in self.signatures if worth is standing)


def verify_release(
    path: Path | str, *, ledger: Ledger | Path | str | None = None, keys: Sequence[PublicKey] = ()
) -> Verification:
    """Compare a release, by its folder or its certificate alone, with its certificate, a ledger and keys.

    Of a folder all files are asked for, and nothing else may be in it. Of a certificate that is given alone,
    the files that it names are compared where they lie beside it. Every key that is given must have signed.
    It raises only where nothing can be compared: what is found to be wrong is in `discrepancies`.
    """
    start = Path(path)
    place, alone = (start / CERTIFICATE, False) if start.is_dir() else (start, True)
    content = _content(place)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise LedgerError(f"The certificate {place} is no text in UTF-8. Get it again.") from None
    certificate = Certificate.from_json(text)
    digest = hashlib.sha256(content).hexdigest()
    own = frozenset({place.name, signatures_place(place).name})
    files = compare_files(
        place.parent,
        certificate.digests,
        certificate.sizes,
        own=own,
        complete=certificate.complete,
        alone=alone,
    )
    signatures, trouble = _signatures(place, digest, keys)
    if not alone and place.is_symlink():
        words = f"{place.name} is a link to something elsewhere, and not the file that was published."
        trouble.insert(0, Discrepancy(kind=Deviance.LINK, name=place.name, words=words))
    return Verification(
        place=place,
        certificate=certificate,
        content=content,
        files=files,
        signatures=signatures,
        signature_trouble=tuple(trouble),
        keys=tuple(keys),
        payment=_payment(certificate, ledger),
    )


def _content(place: Path) -> bytes:
    if place.is_file() and place.suffix != ".json":
        beside = place.parent / CERTIFICATE
        hint = f": {place.parent}" if beside.exists() else f", or its {CERTIFICATE}"
        raise InvalidParameter(f"{place} is no certificate. Name the folder of the release{hint}.")
    if place.exists() and not place.is_file():
        raise InvalidParameter(f"{place} is no file. Name the folder of a release, or its {CERTIFICATE}.")
    if not place.exists() and place.name == CERTIFICATE and place.parent.is_dir():
        below = sorted(each.parent for each in place.parent.glob(f"*/{CERTIFICATE}"))
        if below:
            raise InvalidParameter(
                f"{place.parent} is no release itself: it holds no {CERTIFICATE}. There is one below: "
                f"{below[0]}."
            )
    try:
        with place.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except OSError as problem:
        raise InvalidParameter(
            f"{unreadable(place, problem, 'certificate')} Check the path: it is the folder "
            f"of a release, which holds a {CERTIFICATE}, or that file itself."
        ) from None
    if len(content) > _LONGEST:
        raise InvalidParameter(f"{place} is far too long for a certificate. Check the path.")
    return content


def _payment(certificate: Certificate, ledger: Ledger | Path | str | None) -> Payment | None:
    with opened(ledger) as payer:
        if payer is None:
            return None
        try:
            unconfirmed = certificate.verify(payer)
        except LedgerError as problem:
            return Payment(refusal=str(problem))
        return Payment(unconfirmed=unconfirmed, status=payer.status())


def _signatures(
    place: Path, digest: str, keys: Sequence[PublicKey]
) -> tuple[tuple[tuple[Signature, SignatureStanding], ...], list[Discrepancy]]:
    """Each signature with what it is worth, and what is wrong."""
    beside = signatures_place(place)
    trouble: list[Discrepancy] = []
    try:
        listed = read_signatures(beside)
    except InvalidParameter as problem:
        words = str(problem)
        return (), [Discrepancy(kind=Deviance.SIGNATURES, name=beside.name, words=words)]
    known = {key.id: key for key in keys}
    pairs = []
    for each in listed:
        key = known.get(each.key)
        standing = SignatureStanding.NOT_CHECKED if key is None else each.standing(key, digest)
        if key is None and each.certificate != digest:
            standing = SignatureStanding.ANOTHER  # by its own word, so no key is needed to see it
        pairs.append((each, standing))
        trouble += _wrong(each, standing, place, digest)
    for key in keys:
        if key.id not in {each.key for each in listed}:
            words = f"The certificate is not signed by the key {key.name} ({key.id}). {_others(listed)}"
            trouble.append(Discrepancy(kind=Deviance.UNSIGNED, name=beside.name, words=words))
    return tuple(pairs), trouble


def _others(listed: Sequence[Signature]) -> str:
    if not listed:
        return "It has no signature at all: it was never signed, or the signatures were taken away."
    return f"It is signed by other keys: {', '.join(f'{each.name} ({each.key})' for each in listed)}."


def _wrong(
    signature: Signature, standing: SignatureStanding, place: Path, digest: str
) -> Iterator[Discrepancy]:
    if standing is SignatureStanding.FALSE:
        yield Discrepancy(
            kind=Deviance.FORGED,
            name=signatures_place(place).name,
            words=f"The signature of {signature.name} is false: the key {signature.key} did not sign this. "
            "The signature, its name or its time was changed, or somebody else made it.",
        )
    if standing is SignatureStanding.ANOTHER:
        if (only := only_differs(place, signature.certificate)) is not None:
            why = f"{place.name} differs from what was signed only in this: {only}."
        else:
            why = f"{place.name} was changed after it was signed, or put in place of another."
        yield Discrepancy(
            kind=Deviance.ANOTHER_SIGNED,
            name=place.name,
            words=f"{signature.name} signed another certificate than this. {why}",
        )
