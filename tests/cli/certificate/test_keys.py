import json
import shutil
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sourdine.accounting.certificate import PublicKey
from sourdine.cli import app
from tests.cli.table_case import run

GOLDEN = Path(__file__).parents[2] / "golden" / "0.2"


def test_a_pair_of_keys_is_made_once(tmp_path: Path) -> None:
    code, out, err = run("certificate", "keys", tmp_path / "office")
    assert (code, err) == (0, "")
    public = PublicKey.read(tmp_path / "office.pub")
    assert " ".join(public.id[k : k + 4] for k in range(0, 32, 4)) in out
    assert stat.S_IMODE((tmp_path / "office.key").stat().st_mode) == 0o600
    content = (tmp_path / "office.key").read_bytes()
    for name in ("office", "office.key", "office.pub"):
        code, _, err = run("certificate", "keys", tmp_path / name)
        assert code == 2
        assert "exists already and is not written over" in err
    assert (tmp_path / "office.key").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["office.key", "office.pub"]


def test_a_private_key_is_never_shared(tmp_path: Path) -> None:
    assert run("--shared", "certificate", "keys", tmp_path / "office")[0] == 0
    assert stat.S_IMODE((tmp_path / "office.key").stat().st_mode) == 0o600


def test_a_lost_public_key_is_made_again(tmp_path: Path) -> None:
    first = json.loads(run("certificate", "keys", tmp_path / "office", "--json")[1])
    (tmp_path / "office.pub").unlink()
    code, out, _ = run("certificate", "keys", tmp_path / "office")
    assert code == 0
    assert "was there already" in out
    assert PublicKey.read(tmp_path / "office.pub").id == first["id"]
    (tmp_path / "office.key").unlink()
    code, _, err = run("certificate", "keys", tmp_path / "office")
    assert code == 2
    assert "without office.key" in err


def test_keys_do_not_go_into_a_release(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text("{}")
    code, _, err = run("certificate", "keys", tmp_path / "office")
    assert code == 2
    assert "a private key never is" in err
    assert run("certificate", "keys", tmp_path / "none" / "office")[0] == 2


def test_a_passphrase_is_asked_for_twice_and_then_to_sign(tmp_path: Path) -> None:
    words = ["certificate", "keys", str(tmp_path / "boss"), "--passphrase"]
    assert CliRunner().invoke(app, words, input="open\nsesame\n\n\n").exit_code != 0
    assert not (tmp_path / "boss.key").exists()
    assert CliRunner().invoke(app, words, input="open sesame\nopen sesame\n").exit_code == 0
    shutil.copytree(GOLDEN / "signed", tmp_path / "signed")
    folder, office = tmp_path / "signed" / "published", tmp_path / "signed" / "office.pub"
    sign = ["certificate", "sign", str(folder), "--key", str(tmp_path / "boss.key")]
    wrong = CliRunner().invoke(app, sign, input="open\n")
    assert wrong.exit_code == 2
    assert "has another passphrase" in wrong.stderr
    assert CliRunner().invoke(app, sign, input="open sesame\n").exit_code == 0
    code, out, _ = run("certificate", "verify", folder, "--key", office, "--key", tmp_path / "boss.pub")
    assert code == 0
    assert [name in out for name in ("Signed: Privacy office", "Signed: boss")] == [True, True]
    assert "Not checked, since the key was not given (--key): a signature of Büro des Vorstands" in out


@pytest.mark.parametrize("spaces", ["\n\n", " \n \n"])
def test_a_passphrase_of_nothing_is_refused(tmp_path: Path, spaces: str) -> None:
    words = ["certificate", "keys", str(tmp_path / "boss"), "--passphrase"]
    assert CliRunner().invoke(app, words, input=spaces).exit_code != 0
    assert not (tmp_path / "boss.key").exists()
