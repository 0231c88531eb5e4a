"""Blind signatures by RSA: RSABSSA-SHA384-PSS-Randomized of RFC 9474.

A message is encoded as PSS has it (RFC 8017), and multiplied by r^e before it is signed: the signer sees a
random number. Divided by r, its answer is an ordinary signature, which anybody checks with PSS.
"""

import hashlib
import secrets
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from sourdine.core.errors import InvalidParameter

PREFIX = 32
"""Random bytes before a message, so that a signer who chose its key badly learns nothing by it."""
SALT = 48
EXPONENT = 65537
KEY_BITS = 2048
_MOST_BITS = 4096
_HASH = 48  # bytes of SHA-384
_BLIND_BITS = 128  # by which a secret exponent is made another one


@dataclass(frozen=True)
class BlindMessage:
    """What is sent to the signer, and what takes the blinding away again, which stays."""

    blinded: bytes
    inverse: int


def new_key(bits: int = KEY_BITS) -> rsa.RSAPrivateKey:
    """A key for one question."""
    return rsa.generate_private_key(EXPONENT, bits)


def public_text(key: rsa.RSAPublicKey) -> str:
    """A public key as an announcement has it: DER in hexadecimal digits."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.DER, form).hex()


def key_name(key: rsa.RSAPublicKey) -> str:
    """Return the name by which an issuer knows which of its keys a token was drawn for."""
    return hashlib.sha256(bytes.fromhex(public_text(key))).hexdigest()[:16]


def read_public(text: str) -> rsa.RSAPublicKey:
    """A public key of an announcement, if it is one for tokens."""
    try:
        key = serialization.load_der_public_key(bytes.fromhex(text))
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, rsa.RSAPublicKey) or not KEY_BITS <= key.key_size <= _MOST_BITS:
        raise InvalidParameter(
            f"The key of tokens must be one of RSA with {KEY_BITS} to {_MOST_BITS} bits. Make one with "
            "'sourdine collect token-key'."
        )
    if key.public_numbers().e != EXPONENT or public_text(key) != text:
        raise InvalidParameter("The key of tokens is written in an unusual way. Make it again.")
    return key


def prepare(message: bytes) -> bytes:
    """A message behind random bytes."""
    return secrets.token_bytes(PREFIX) + message


def encode(message: bytes, bits: int, salt: bytes) -> bytes:
    """EMSA-PSS with SHA-384 and MGF1 (RFC 8017, 9.1.1), of at most so many bits."""
    length = -(-bits // 8)
    digest = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    block = bytes(length - len(salt) - _HASH - 2) + b"\1" + salt
    masked = bytearray(one ^ other for one, other in zip(block, _mask(digest, len(block)), strict=True))
    masked[0] &= 0xFF >> (8 * length - bits)
    return bytes(masked) + digest + b"\xbc"


def _mask(seed: bytes, length: int) -> bytes:
    parts = (hashlib.sha384(seed + i.to_bytes(4, "big")).digest() for i in range(-(-length // _HASH)))
    return b"".join(parts)[:length]


def blind(
    key: rsa.RSAPublicKey, prepared: bytes, *, salt: bytes | None = None, factor: int | None = None
) -> BlindMessage:
    """A prepared message, blinded; salt and factor are random unless a test gives them."""
    numbers, bits = key.public_numbers(), key.key_size
    encoded = int.from_bytes(
        encode(prepared, bits - 1, secrets.token_bytes(SALT) if salt is None else salt), "big"
    )
    while True:
        r = secrets.randbelow(numbers.n - 1) + 1 if factor is None else factor
        try:
            inverse = pow(r, -1, numbers.n)
            break
        except ValueError:  # whoever hits a factor of the key can do worse than fail
            factor = None
    blinded = encoded * pow(r, numbers.e, numbers.n) % numbers.n
    return BlindMessage(_octets(blinded, key), inverse)


def is_blinded(key: rsa.RSAPublicKey, blinded: bytes) -> bool:
    """Whether something may be a blinded message for a key.

    A product with a random power is none of 0, 1 and n - 1, whose roots everybody knows.
    """
    n = key.public_numbers().n
    return len(blinded) == _length(key) and 1 < int.from_bytes(blinded, "big") < n - 1


def blind_sign(key: rsa.RSAPrivateKey, blinded: bytes) -> bytes:
    """The signature of a blinded message.

    Python's powers do not take the same time for all numbers. So the number is multiplied by a random one
    first, and random multiples of the orders of both groups are added to the exponents: what time tells is of
    numbers that are drawn anew for each signature.
    """
    numbers = key.private_numbers()
    n, e = numbers.public_numbers.n, numbers.public_numbers.e
    value = int.from_bytes(blinded, "big")
    if not is_blinded(key.public_key(), blinded):
        raise InvalidParameter(
            "This is no blinded message for this key. Blind it with the key of the question."
        )
    r = secrets.randbelow(n - 1) + 1
    masked = value * pow(r, e, n) % n
    p, q = numbers.p, numbers.q
    by_p, by_q = (
        pow(masked % prime, part + (prime - 1) * secrets.randbits(_BLIND_BITS), prime)
        for prime, part in ((p, numbers.dmp1), (q, numbers.dmq1))
    )
    root = by_q + q * ((by_p - by_q) * numbers.iqmp % p)  # the Chinese remainder, in a third of the time
    signed = root * pow(r, -1, n) % n
    if pow(signed, e, n) != value:  # a fault in the computation would give the key away
        raise ArithmeticError("A signature came out wrong and was not given out.")
    return _octets(signed, key.public_key())


def finalize(
    key: rsa.RSAPublicKey, prepared: bytes, signed: bytes, inverse: int, *, salt: int = SALT
) -> bytes:
    """The signature of a prepared message, from that of the blinded one; checked before it is returned."""
    value = int.from_bytes(signed, "big") * inverse % key.public_numbers().n
    signature = _octets(value, key)
    if len(signed) != _length(key) or not is_signed(key, prepared, signature, salt=salt):
        raise InvalidParameter("The issuer's answer is no signature. Ask for the token again.")
    return signature


def is_signed(key: rsa.RSAPublicKey, prepared: bytes, signature: bytes, *, salt: int = SALT) -> bool:
    """Whether a signature is the key's."""
    try:
        key.verify(signature, prepared, padding.PSS(padding.MGF1(hashes.SHA384()), salt), hashes.SHA384())
    except InvalidSignature:
        return False
    return True


def _length(key: rsa.RSAPublicKey) -> int:
    return -(-key.key_size // 8)


def _octets(value: int, key: rsa.RSAPublicKey) -> bytes:
    return value.to_bytes(_length(key), "big")
