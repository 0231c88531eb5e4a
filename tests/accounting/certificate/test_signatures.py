import hashlib
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sourdine.accounting.certificate import Signature, SigningKey
from sourdine.accounting.certificate.signatures import (
    SignatureStanding,
    add_signature,
    read_signatures,
    sign,
    signatures_place,
)
from sourdine.core.errors import InvalidParameter

CONTENT = b'{"format": 1}\n'
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def certificate_in(folder: Path) -> Path:
    (folder / "certificate.json").write_bytes(CONTENT)
    return folder / "certificate.json"


@pytest.fixture(scope="module")
def key() -> SigningKey:
    return SigningKey.generate("office")


@pytest.fixture(scope="module")
def signature(key: SigningKey) -> Signature:
    return sign(CONTENT, key, "Büro für Datenschutz")


def test_the_message_is_five_lines(key: SigningKey, signature: Signature) -> None:
    lines = signature.message.decode().split("\n")
    assert lines[:3] == ["sourdine signature/1", DIGEST, key.public.id]
    assert lines[3:] == [signature.time, "Büro für Datenschutz"]
    assert key.public.confirms(bytes.fromhex(signature.signature), signature.message)


def test_every_field_is_signed(key: SigningKey, signature: Signature) -> None:
    assert signature.standing(key.public, DIGEST) is SignatureStanding.VALID
    assert signature.standing(key.public, "0" * 64) is SignatureStanding.ANOTHER
    changes = {"name": "Other", "time": "2020-01-01T00:00:00+00:00", "certificate": "0" * 64, "key": "0" * 32}
    for name, value in changes.items():
        changed = replace(signature, **{name: value})
        assert changed.standing(key.public, DIGEST) is SignatureStanding.FALSE
    assert signature.standing(SigningKey.generate("x").public, DIGEST) is SignatureStanding.FALSE


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "x" * 201, "bell\a", "left\u202eright", "a\u2028b"])
def test_a_name_is_one_line(key: SigningKey, name: str) -> None:
    with pytest.raises(InvalidParameter, match="must be one line"):
        sign(CONTENT, key, name)


@pytest.mark.parametrize(
    "change",
    [
        {"key": "0" * 31},
        {"time": "yesterday"},
        {"time": "2026-11-17T10:30:00+01:00"},
        {"certificate": "A" * 64},
        {"signature": "0" * 127},
        {"signature": "0" * 128 + "\n"},
        {"more": "x"},
        {"name": 7},
    ],
)
def test_a_malformed_signature_is_not_read(
    signature: Signature, tmp_path: Path, change: dict[str, object]
) -> None:
    place = add_signature(certificate_in(tmp_path), signature)
    content = json.loads(place.read_text())
    content["signatures"][0] |= change
    place.write_text(json.dumps(content))
    with pytest.raises(InvalidParameter, match="cut short or were changed"):
        read_signatures(place)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"\xff", b'{"format": 2, "signatures": []}', b"[" * 10**5, b" " * (1 << 23)],
    ids=["empty", "list", "nothing", "bytes", "format", "deep", "long"],
)
def test_a_file_that_holds_none_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InvalidParameter, match="cut short or were changed"):
        read_signatures(tmp_path / "x")


def test_many_sign_at_once_and_none_is_lost(tmp_path: Path) -> None:
    keys = [SigningKey.generate(str(each)) for each in range(12)]
    place = certificate_in(tmp_path)
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda key: add_signature(place, sign(CONTENT, key, key.name)), keys))
    assert {each.name for each in read_signatures(signatures_place(place))} == {key.name for key in keys}


def test_signing_again_takes_the_place_of_the_first(key: SigningKey, tmp_path: Path) -> None:
    for name in ("first", "second"):
        place = add_signature(certificate_in(tmp_path), sign(CONTENT, key, name))
    assert [each.name for each in read_signatures(place)] == ["second"]


def test_whoever_may_read_the_certificate_may_read_its_signatures(key: SigningKey, tmp_path: Path) -> None:
    for rights in (0o600, 0o644):
        certificate = certificate_in(tmp_path)
        certificate.chmod(rights)
        place = add_signature(certificate, sign(CONTENT, key, "office"))
        assert stat.S_IMODE(place.stat().st_mode) == rights


def test_a_pipe_in_their_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(InvalidParameter, match="are no file"):
        read_signatures(tmp_path / "x")


def test_signatures_lie_beside_their_certificate(tmp_path: Path) -> None:
    assert signatures_place(tmp_path / "certificate.json").name == "certificate.signatures.json"
    assert signatures_place(tmp_path / "pure-block.json").name == "pure-block.signatures.json"
    assert read_signatures(tmp_path / "none") == ()
