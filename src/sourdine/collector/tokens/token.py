"""A token: random bytes under the issuer's signature, spent with one report."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import rsa

from sourdine.collector.tokens.blind import PREFIX, BlindMessage, blind, finalize, is_signed, prepare

HEADER = "Sourdine-Token"
NONCE = 32
_TEXT = re.compile(f"([0-9a-f]{{{2 * (PREFIX + NONCE)}}})((?:[0-9a-f]{{2}}){{256,512}})")  # whole bytes
_KEY = 16  # bytes by which a token that was spent is known


@dataclass(frozen=True)
class Token:
    """The right to one report."""

    message: bytes = field(repr=False)
    signature: bytes = field(repr=False)

    def to_text(self) -> str:
        """The token as a header has it."""
        return (self.message + self.signature).hex()

    @classmethod
    def from_text(cls, text: str) -> "Token | None":
        """A token from a header, or nothing if it is none."""
        match = _TEXT.fullmatch(text)
        return None if match is None else cls(*map(bytes.fromhex, match.groups()))

    def is_valid(self, key: rsa.RSAPublicKey) -> bool:
        """Whether the key of a question signed it."""
        return is_signed(key, self.message, self.signature)

    @property
    def spent_as(self) -> bytes:
        """The id of the submission that it is spent with: to spend it again is to send the same again."""
        return hashlib.sha256(b"sourdine token\0" + self.message).digest()[:_KEY]


@dataclass(frozen=True)
class TokenRequest:
    """A token on its way: the blinded part goes to the issuer, all else stays on the device."""

    key: rsa.RSAPublicKey
    message: bytes = field(repr=False)
    blinding: BlindMessage = field(repr=False)

    @classmethod
    def draw(cls, key: rsa.RSAPublicKey) -> "TokenRequest":
        """A new token for the key of a question."""
        message = prepare(secrets.token_bytes(NONCE))
        return cls(key, message, blind(key, message))

    def finish(self, signed: bytes) -> Token:
        """The token, once the issuer has answered; an answer that is no signature is refused."""
        return Token(self.message, finalize(self.key, self.message, signed, self.blinding.inverse))
