import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cli.certificate.release_case import SignedRelease, build_signed
from tests.cli.table_case import run

GOLDEN = Path(__file__).parents[2] / "golden" / "0.1"


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> SignedRelease:
    return build_signed(tmp_path_factory.mktemp("case"))


@pytest.fixture
def case(signed: SignedRelease, tmp_path: Path) -> SignedRelease:
    return signed.copied(tmp_path / "published")


def test_what_was_changed_is_not_signed(case: SignedRelease) -> None:
    before = (case.folder / "certificate.signatures.json").read_text()
    (case.folder / "report.html").write_text("7")
    code, out, err = run("certificate", "sign", case.folder, "--key", case.private)
    assert (code, out) == (2, "")
    assert "so it is not signed: report.html was cut short or changed" in err
    assert (case.folder / "certificate.signatures.json").read_text() == before


def test_what_was_not_paid_is_not_signed(case: SignedRelease, tmp_path: Path) -> None:
    other = tmp_path / "other.ledger"
    run("ledger", "create", other, "--epsilon", 1)
    code, _, err = run("certificate", "sign", case.folder, "--key", case.private, "--ledger", other)
    assert code == 2
    assert "so it is not signed: The certificate belongs to another ledger" in err


def test_it_says_what_was_not_looked_at(case: SignedRelease) -> None:
    _, out, _ = run("certificate", "sign", case.folder, "--key", case.private)
    assert "Whether it was paid was not looked at" in out
    assert f"sourdine certificate verify {case.folder} --key office.pub" in out
    out = run("certificate", "sign", case.folder, "--key", case.private, "--ledger", case.ledger)[1]
    assert "was not looked at" not in out


def test_a_signature_that_no_longer_fits_is_replaced(case: SignedRelease) -> None:
    """Somebody changed the certificate and takes the office for a fool: signing anew is refused."""
    place = case.folder / "certificate.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"epsilon": 0.1}))
    code, _, err = run("certificate", "sign", case.folder, "--key", case.private)
    assert code == 2
    assert "Privacy office signed another certificate than this" in err


def test_the_key_must_be_private(case: SignedRelease) -> None:
    code, _, err = run("certificate", "sign", case.folder, "--key", case.public)
    assert code == 2
    assert "is no private key. To sign, name the file office.key of your own." in err


def test_a_certificate_of_version_0_1_is_signed_with_a_warning(case: SignedRelease, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "cleaner" / "paid", tmp_path / "paid")
    code, out, _ = run("certificate", "sign", tmp_path / "paid", "--key", case.private)
    assert code == 0
    assert "does not cover report.html: your signature does not stand for that" in " ".join(out.split())
    assert run("certificate", "verify", tmp_path / "paid", "--key", case.public)[0] == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become somebody else")
def test_a_folder_that_may_not_be_written_is_told(case: SignedRelease) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, key = Path(place) / "published", Path(place) / "office.key"
        shutil.copytree(case.folder, folder)
        shutil.copy(case.private, key)
        os.chown(key, 65534, 65534)
        for path in (folder.parent, folder, *folder.iterdir()):
            path.chmod(0o755)
        os.seteuid(65534)
        try:
            code, _, err = run("certificate", "sign", folder, "--key", key)
        finally:
            os.seteuid(0)
    assert code == 2
    assert "The signature cannot be written beside" in err


@pytest.mark.slow
def test_a_signing_that_is_killed_leaves_what_was_there(case: SignedRelease) -> None:
    """Killed while it writes: the signatures of before stay whole, and what is left over is named."""
    program = (
        "import os, signal, sys\n"
        "from sourdine.core import files as disk\n"
        "disk.settle = lambda place, like=None: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from sourdine.cli import app\n"
        "app(sys.argv[1:])\n"
    )
    before = (case.folder / "certificate.signatures.json").read_bytes()
    words = ["certificate", "sign", str(case.folder), "--key", str(case.private), "--name", "Other"]
    killed = subprocess.run([sys.executable, "-c", program, *words], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert (case.folder / "certificate.signatures.json").read_bytes() == before
    code, _, err = run("certificate", "verify", case.folder, "--key", case.public)
    assert code == 1
    assert "which was cut short, such as a signing. Remove it." in err
    for path in case.folder.glob(".*.part"):
        shutil.rmtree(path)
    assert run("certificate", "verify", case.folder, "--key", case.public)[0] == 0


def test_machines_are_told(case: SignedRelease) -> None:
    words = ("--key", case.private, "--name", "Büro", "--json")
    told = json.loads(run("certificate", "sign", case.folder, *words)[1])
    assert told["name"] == "Büro"
    assert told["signatures"] == str(case.folder / "certificate.signatures.json")
    code, _, err = run("certificate", "sign", case.folder, "--key", case.private, "--name", "a\nb")
    assert code == 2
    assert "must be one line" in err
