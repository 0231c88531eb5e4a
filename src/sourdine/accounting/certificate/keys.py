"""Keys that sign certificates: Ed25519 (RFC 8032), in the PEM files that OpenSSL and others read.

The private key is a file for its owner alone, made whole and never written over. A key is known by its `id`,
the first 32 hexadecimal digits of the SHA-256 of the 32 bytes of the public key.
"""

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.files import unreadable

PRIVATE, PUBLIC = ".key", ".pub"
_LONGEST = 1 << 16  # bytes of a file of a key
_ID = 32  # hexadecimal digits: nobody makes a second key of the same id
_OTHERS = 0o077


@dataclass(frozen=True)
class PublicKey:
    """A key by which signatures are checked; `name` is what its file is called."""

    name: str
    raw: bytes

    @property
    def id(self) -> str:
        """By what signatures name it."""
        return hashlib.sha256(self.raw).hexdigest()[:_ID]

    @classmethod
    def read(cls, path: Path) -> "PublicKey":
        """A key from its PEM file."""
        content = _content(path)
        if b"PRIVATE KEY" in content:
            raise InvalidParameter(
                f"{path} is a private key. To check a signature the public one is enough: name the file that "
                f"ends in {PUBLIC}, and keep the private one to yourself."
            )
        try:
            key = load_pem_public_key(content)
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PublicKey):
            raise InvalidParameter(
                f"{path} is no public key of Ed25519. Name the {PUBLIC} file that 'sourdine certificate "
                "keys' wrote, or ask its owner for it again."
            )
        return cls(path.stem, key.public_bytes_raw())

    def pem(self) -> str:
        """The key as text."""
        key = Ed25519PublicKey.from_public_bytes(self.raw)
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def confirms(self, signature: bytes, message: bytes) -> bool:
        """Whether its owner signed this message."""
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except InvalidSignature:
            return False
        return True


class SigningKey:
    """A private key. It shows nothing of itself."""

    def __init__(self, name: str, key: Ed25519PrivateKey) -> None:
        self.name = name
        self._key = key

    def __repr__(self) -> str:
        return f"<SigningKey {self.public.id}>"

    @classmethod
    def generate(cls, name: str) -> "SigningKey":
        """A new key, from the randomness of the operating system."""
        return cls(name, Ed25519PrivateKey.generate())

    @classmethod
    def read(cls, path: Path, passphrase: Callable[[], str] | None = None) -> "SigningKey":
        """A key from its PEM file, which others may not read; `passphrase` is asked if it needs one."""
        content = _content(path)
        if b"PRIVATE KEY" not in content:
            hint = path.with_suffix(PRIVATE)
            raise InvalidParameter(
                f"{path} is no private key. To sign, name the file {hint.name} of your own."
            )
        _check_rights(path)
        secret = None
        if b"ENCRYPTED" in content and passphrase is not None:
            secret = passphrase().encode()
        try:
            key = load_pem_private_key(content, secret)
        except TypeError:
            raise InvalidParameter(f"The key {path} has a passphrase, and none was given. Give it.") from None
        except (ValueError, UnsupportedAlgorithm):
            why = "has another passphrase, or is damaged" if secret else "cannot be read: it is damaged"
            raise InvalidParameter(f"The key {path} {why}. Try again, or take it from its backup.") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise InvalidParameter(f"{path} is no key of Ed25519. Make one with 'sourdine certificate keys'.")
        return cls(path.stem, key)

    @property
    def public(self) -> PublicKey:
        """The key that others check by."""
        return PublicKey(self.name, self._key.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """The signature, of 64 bytes."""
        return self._key.sign(message)

    def write(self, path: Path, passphrase: str | None = None) -> None:
        """Keep it in a file that appears whole, for its owner alone; nothing is written over."""
        lock = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
        content = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)
        with disk.shared(False):  # whatever else is shared
            disk.write_whole(path, content, over=False)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except OSError as problem:
        other = path.with_name(path.name + PUBLIC)
        hint = f"Do you mean {other}?" if other.is_file() else "Check the path and its rights."
        raise InvalidParameter(f"{unreadable(path, problem, 'key')} {hint}") from None
    if len(content) > _LONGEST:
        raise InvalidParameter(f"{path} is far too long for a key. Check the path.")
    return content


def _check_rights(path: Path) -> None:
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & _OTHERS:
        raise InvalidParameter(
            f"Others on this machine may read the private key {path}, and sign in your name. Take the right "
            f"from them (chmod 600 {path}), and think about whether somebody has read it already."
        )
