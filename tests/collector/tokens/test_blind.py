"""Blind signatures: the vectors of RFC 9474, and what signers, devices and collectors cannot do."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from sourdine.collector.tokens.blind import (
    blind,
    blind_sign,
    encode,
    finalize,
    is_signed,
    new_key,
    prepare,
    public_text,
    read_public,
)
from sourdine.core.errors import InvalidParameter

FILE = json.loads((Path(__file__).parent / "rfc9474.json").read_text(encoding="ascii"))
KEY = new_key()


@pytest.fixture(scope="module")
def published() -> rsa.RSAPrivateKey:
    """The key of the vectors."""
    p, q, n, e, d = (int(FILE["key"][name], 16) for name in "pqned")
    return rsa.RSAPrivateNumbers(
        p=p,
        q=q,
        d=d,
        dmp1=d % (p - 1),
        dmq1=d % (q - 1),
        iqmp=pow(q, -1, p),
        public_numbers=rsa.RSAPublicNumbers(e, n),
    ).private_key()


@pytest.mark.parametrize("vector", FILE["vectors"], ids=lambda each: each["variant"])
def test_the_vectors_of_the_standard(vector: dict[str, str], published: rsa.RSAPrivateKey) -> None:
    public = published.public_key()
    prepared, salt, inverse = (
        bytes.fromhex(vector["prepared_msg"]),
        bytes.fromhex(vector["salt"]),
        int(vector["inv"], 16),
    )
    assert encode(prepared, public.key_size - 1, salt).hex() == vector["encoded_msg"]
    factor = pow(inverse, -1, public.public_numbers().n)
    made = blind(public, prepared, salt=salt, factor=factor)
    assert made.blinded.hex() == vector["blinded_msg"]
    signed = blind_sign(published, made.blinded)
    assert signed.hex() == vector["blind_sig"]
    assert finalize(public, prepared, signed, made.inverse, salt=len(salt)).hex() == vector["sig"]


def test_two_requests_for_one_message_look_nothing_alike() -> None:
    public, message = KEY.public_key(), prepare(b"the same")
    one, other = blind(public, message), blind(public, message)
    assert one.blinded != other.blinded
    for each in (one, other):
        assert is_signed(
            public, message, finalize(public, message, blind_sign(KEY, each.blinded), each.inverse)
        )


def test_an_answer_that_is_no_signature_is_refused() -> None:
    public, message = KEY.public_key(), prepare(b"m")
    made = blind(public, message)
    signed = bytearray(blind_sign(KEY, made.blinded))
    signed[-1] ^= 1
    for wrong in (bytes(signed), bytes(len(signed)), b""):
        with pytest.raises(InvalidParameter, match="no signature"):
            finalize(public, message, wrong, made.inverse)
    assert not is_signed(
        public, message + b"!", finalize(public, message, blind_sign(KEY, made.blinded), made.inverse)
    )


@pytest.mark.parametrize("wrong", [b"", bytes(256), b"\xff" * 256, b"\1" * 255])
def test_a_signer_takes_only_numbers_of_its_group(wrong: bytes) -> None:
    with pytest.raises(InvalidParameter, match="no blinded message"):
        blind_sign(KEY, wrong)


def test_public_keys_are_read_in_one_form_alone() -> None:
    text = public_text(KEY.public_key())
    assert public_text(read_public(text)) == text
    odd: list[Any] = [
        "",
        "zz",
        text[:-2],
        text.upper(),
        public_text(rsa.generate_private_key(3, 2048).public_key()),
    ]
    for wrong in odd:
        with pytest.raises(InvalidParameter, match="key of tokens"):
            read_public(wrong)
