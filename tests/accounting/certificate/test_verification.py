import random
import shutil
from pathlib import Path

import pytest

from sourdine.accounting.certificate import PublicKey, Verification, verify_release
from sourdine.accounting.certificate.signatures import read_signatures
from sourdine.core.errors import SourdineError

GOLDEN = Path(__file__).parents[2] / "golden" / "0.2" / "signed"
SIGNATURES = "certificate.signatures.json"
NAMES = sorted(path.name for path in (GOLDEN / "published").iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN / "published", tmp_path / "published")
    return tmp_path / "published"


def verify(folder: Path) -> Verification | None:
    """What is known; nothing where it cannot be read."""
    keys = [PublicKey.read(GOLDEN / f"{name}.pub") for name in ("office", "board")]
    try:
        return verify_release(folder, keys=keys)
    except SourdineError:
        return None


def passes(folder: Path) -> bool:
    verification = verify(folder)
    return verification is not None and verification.good


@pytest.mark.parametrize("name", NAMES)
def test_no_byte_can_be_changed_added_or_taken_away(folder: Path, name: str) -> None:
    """Wherever it is: only in the file of signatures may one be that says nothing, such as a blank."""
    dice, place = random.Random(name), folder / name
    content = place.read_bytes()
    signatures = read_signatures(folder / SIGNATURES)
    assert passes(folder)
    for _ in range(60):
        at, byte = dice.randrange(len(content)), bytes([dice.randrange(256)])
        change = dice.choice([content[:at] + byte + content[at:], content[:at] + content[at + 1 :]])
        if dice.random() < 0.5:
            change = content[:at] + bytes([content[at] ^ 1 << dice.randrange(8)]) + content[at + 1 :]
        if change == content:
            continue
        place.write_bytes(change)
        if passes(folder):
            assert name == SIGNATURES
            assert read_signatures(place) == signatures


@pytest.mark.parametrize("name", [name for name in NAMES if name != SIGNATURES])
def test_every_file_is_needed(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert not passes(folder)


def test_a_signature_of_one_does_not_stand_for_another(folder: Path) -> None:
    place = folder / SIGNATURES
    text = place.read_text(encoding="utf-8")
    office, board = read_signatures(place)
    place.write_text(text.replace(office.signature, board.signature), encoding="utf-8")
    assert not passes(folder)
    place.write_text(text.replace(office.key, board.key), encoding="utf-8")
    assert not passes(folder)


def test_keys_that_nobody_gave_are_not_trusted(folder: Path) -> None:
    verification = verify_release(folder)
    assert verification.good
    assert {standing.value for _, standing in verification.signatures} == {"not checked"}
