import os
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from sourdine.accounting.certificate import PublicKey, SigningKey
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter


@pytest.fixture
def private(tmp_path: Path) -> Path:
    SigningKey.generate("office").write(tmp_path / "office.key")
    return tmp_path / "office.key"


def test_the_first_vector_of_rfc_8032() -> None:
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    signature = bytes.fromhex(
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b"
    )
    key = PublicKey("rfc", public)
    assert key.confirms(signature, b"")
    assert not key.confirms(signature, b"a")
    assert not key.confirms(signature[:-1] + b"\x0c", b"")
    assert not key.confirms(b"", b"")
    # sha256 of the public key, by `sha256sum`
    assert key.id == "21fe31dfa154a261626bf854046fd227"


def test_a_private_key_is_for_its_owner_whatever_is_shared(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with disk.shared():
            SigningKey.generate("a").write(tmp_path / "a.key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.key").stat().st_mode) == 0o600


def test_nothing_is_written_over_even_by_two_at_once(tmp_path: Path) -> None:
    place, keys = tmp_path / "a.key", [SigningKey.generate("a") for _ in range(8)]

    def write(key: SigningKey) -> str | None:
        try:
            key.write(place)
        except FileExistsError:
            return None
        return key.public.id

    with ThreadPoolExecutor(8) as threads:
        written = [each for each in threads.map(write, keys) if each]
    assert written == [SigningKey.read(place).public.id]
    assert [path.name for path in tmp_path.iterdir()] == ["a.key"]


def test_a_key_comes_back_and_shows_nothing(private: Path) -> None:
    key = SigningKey.read(private)
    again = PublicKey("x", key.public.raw)
    assert again.confirms(key.sign(b"m"), b"m")
    assert repr(key) == f"<SigningKey {key.public.id}>"
    (private.parent / "office.pub").write_text(key.public.pem())
    assert PublicKey.read(private.parent / "office.pub") == key.public


def test_a_passphrase_is_asked_for(tmp_path: Path) -> None:
    place = tmp_path / "a.key"
    SigningKey.generate("a").write(place, "correct horse")
    assert b"ENCRYPTED" in place.read_bytes()
    assert SigningKey.read(place, lambda: "correct horse").name == "a"
    with pytest.raises(InvalidParameter, match="has another passphrase"):
        SigningKey.read(place, lambda: "wrong")
    with pytest.raises(InvalidParameter, match="has a passphrase, and none was given"):
        SigningKey.read(place)


def test_a_private_key_that_others_may_read_does_not_sign(private: Path) -> None:
    private.chmod(0o640)
    with pytest.raises(InvalidParameter, match="chmod 600"):
        SigningKey.read(private)


def test_files_that_are_no_keys_are_one_sentence(private: Path, tmp_path: Path) -> None:
    place = tmp_path / "x"
    with pytest.raises(InvalidParameter, match="is a private key"):
        PublicKey.read(private)
    other = rsa.generate_private_key(65537, 2048)
    no_lock = NoEncryption()
    contents = [
        b"",
        b"\xff" * 1000,
        b"-----BEGIN PUBLIC KEY-----\n",
        other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    ]
    for content in contents:
        place.write_bytes(content)
        with pytest.raises(InvalidParameter, match="no public key of Ed25519"):
            PublicKey.read(place)
        with pytest.raises(InvalidParameter, match="no private key"):
            SigningKey.read(place)
    place.chmod(0o600)
    place.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, no_lock))
    with pytest.raises(InvalidParameter, match="no key of Ed25519"):
        SigningKey.read(place)
    place.write_bytes(private.read_bytes()[:60])
    with pytest.raises(InvalidParameter, match="damaged"):
        SigningKey.read(place)
    place.write_bytes(b"x" * 100_000)
    with pytest.raises(InvalidParameter, match="far too long"):
        PublicKey.read(place)
    with pytest.raises(InvalidParameter, match="does not exist"):
        PublicKey.read(tmp_path / "none")
    with pytest.raises(InvalidParameter, match="cannot be read"):
        PublicKey.read(tmp_path)


def test_openssl_reads_the_keys_and_checks_the_signature(private: Path, tmp_path: Path) -> None:
    key = SigningKey.read(private)
    (tmp_path / "office.pub").write_text(key.public.pem())
    (tmp_path / "message").write_bytes(b"five lines")
    (tmp_path / "signature").write_bytes(key.sign(b"five lines"))
    words = "openssl pkeyutl -verify -pubin -inkey office.pub -rawin -in message -sigfile signature"
    try:
        said = subprocess.run(words.split(), check=False, cwd=tmp_path, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl")
    assert (said.returncode, said.stdout.strip()) == (0, "Signature Verified Successfully")
    (tmp_path / "message").write_bytes(b"six lines")
    assert subprocess.run(words.split(), check=False, cwd=tmp_path, capture_output=True).returncode == 1
