"""Signatures under a certificate, in a file of their own beside it.

What is signed are the bytes of the certificate as they lie on the disk, by their SHA-256, so that nobody has
to agree on how JSON is written. The message is five lines of UTF-8, the last without a line end:

    sourdine signature/1
    (the SHA-256 of the certificate, 64 hexadecimal digits)
    (the id of the key)
    (the time, such as 2026-11-17T10:30:00+00:00)
    (the name of whoever signs, of one line)

The certificate holds the digests of all files, so a signature stands for all of them.
"""

import hashlib
import json
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from sourdine.accounting.certificate.keys import PublicKey, SigningKey
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.files import unreadable
from sourdine.core.serialization import decoded, encoded, unambiguous

SUFFIX = ".signatures.json"
_FIRST = "sourdine signature/1"
_FORMAT = 1
_LONGEST_NAME = 200
_LONGEST = 1 << 22  # bytes of the file
_DIGEST, _SIGNATURE, _ID = (re.compile(f"[0-9a-f]{{{digits}}}") for digits in (64, 128, 32))
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


class SignatureStanding(StrEnum):
    """What a signature is worth."""

    VALID = "valid"
    NOT_CHECKED = "not checked"  # the key was not given
    ANOTHER = "of another certificate"
    FALSE = "false"


@dataclass(frozen=True, kw_only=True)
class Signature:
    """Somebody's signature: under which certificate, by which key, when, as they say, and in which name."""

    name: str
    key: str
    time: str
    certificate: str
    signature: str

    def __post_init__(self) -> None:
        forms = (
            (_ID, self.key),
            (_TIME, self.time),
            (_DIGEST, self.certificate),
            (_SIGNATURE, self.signature),
        )
        if not all(form.fullmatch(text) for form, text in forms):
            raise InvalidParameter("A signature is malformed. Sign again.")
        check_name(self.name)

    @property
    def message(self) -> bytes:
        """What was signed."""
        return message_of(self.certificate, self.key, self.time, self.name)

    def standing(self, key: PublicKey, certificate: str) -> SignatureStanding:
        """What it is worth under the certificate of this digest, by the key that it names."""
        if not key.confirms(bytes.fromhex(self.signature), self.message):
            return SignatureStanding.FALSE
        return SignatureStanding.VALID if self.certificate == certificate else SignatureStanding.ANOTHER


def message_of(certificate: str, key: str, time: str, name: str) -> bytes:
    """The five lines that are signed."""
    return "\n".join((_FIRST, certificate, key, time, name)).encode()


def check_name(name: str) -> str:
    """The name of whoever signs: one line that can be read."""
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidParameter(
            f"The name under a signature must be one line of 1 to {_LONGEST_NAME} letters. Give it such as "
            "'Privacy office, J. Doe'."
        )
    return name


def sign(content: bytes, key: SigningKey, name: str) -> Signature:
    """A signature under a certificate, given by its bytes, now."""
    digest, time = hashlib.sha256(content).hexdigest(), datetime.now(UTC).isoformat(timespec="seconds")
    by = key.public.id
    signed = key.sign(message_of(digest, by, time, check_name(name))).hex()
    return Signature(name=name, key=by, time=time, certificate=digest, signature=signed)


def signatures_place(certificate: Path) -> Path:
    """Where the signatures under a certificate lie: beside it."""
    return certificate.with_suffix(SUFFIX)


def read_signatures(path: Path) -> tuple[Signature, ...]:
    """The signatures in a file; none if there is no file."""
    if path.exists() and not path.is_file():  # a pipe would let us wait for ever
        raise InvalidParameter(f"The signatures {path} are no file. Get the release again.")
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise InvalidParameter(unreadable(path, problem, "file of signatures")) from None
    try:
        if len(content) > _LONGEST:
            raise ValueError("far too long")
        fields = json.loads(content.decode("utf-8"), object_pairs_hook=unambiguous)
        if fields["format"] != _FORMAT or fields.keys() != {"format", "signatures"}:
            raise ValueError("unknown format")
        return tuple(decoded(Signature, each, strict=True) for each in fields["signatures"])
    except (SourdineError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise InvalidParameter(
            f"The signatures {path} cannot be read: they are cut short or were changed. Get the file again."
        ) from None


def add_signature(certificate: Path, new: Signature) -> Path:
    """Put a signature with the others, in place of an older one by the same key; all or nothing.

    Whoever may read the certificate may read its signatures. Their place is returned.
    """
    path = signatures_place(certificate)
    with disk.alone(path.parent):  # so that no signature of two is lost
        others = [each for each in read_signatures(path) if each.key != new.key]
        disk.write_whole(path, _text((*others, new)))
        path.chmod(stat.S_IMODE(certificate.stat().st_mode))
    return path


def _text(signatures: Iterable[Signature]) -> str:
    return (
        json.dumps({"format": _FORMAT, "signatures": [encoded(each) for each in signatures]}, indent=2) + "\n"
    )
