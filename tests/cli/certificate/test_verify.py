import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature

from sourdine.accounting.certificate import Deviance
from tests.cli.certificate.release_case import SignedRelease, build_signed
from tests.cli.table_case import run
from tests.documents import ROOT, blocks

SIGNATURES = "certificate.signatures.json"
FILES = ["answers.csv", "quality.csv", "release.json", "report.html"]
GOLDEN = Path(__file__).parents[2] / "golden" / "0.1"


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> SignedRelease:
    return build_signed(tmp_path_factory.mktemp("case"))


@pytest.fixture
def case(signed: SignedRelease, tmp_path: Path) -> SignedRelease:
    return signed.copied(tmp_path / "published")


def verify(case: SignedRelease, *words: object) -> tuple[int, str, str]:
    code, out, err = run("certificate", "verify", case.folder, *words)
    return code, " ".join(out.split()), " ".join(err.split())


@pytest.fixture
def elsewhere(case: SignedRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another folder, with a copy of the release and of the public key, and nothing else."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    shutil.copytree(case.folder, place / "release")
    shutil.copy(case.public, place / "office.pub")
    monkeypatch.chdir(place)
    return place


def test_a_release_is_verified_elsewhere_with_its_folder_and_a_public_key(elsewhere: Path) -> None:
    code, out, err = run("certificate", "verify", "release", "--key", "office.pub")
    assert (code, err) == (0, "")
    assert "Signed: Privacy office, key" in out
    assert f"As published with the certificate: {', '.join(FILES)}. Nothing else" in out
    assert "No ledger was asked" in out
    assert sorted(path.name for path in elsewhere.iterdir()) == ["office.pub", "release"]


@pytest.mark.slow
def test_another_process_verifies_it_elsewhere(elsewhere: Path) -> None:
    program = "from sourdine.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", program, "certificate", "verify", "release", "--key", "office.pub"],
        check=False,
        env={"PATH": "/usr/bin", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "Signed: Privacy office, key" in result.stdout


def test_with_nothing_but_the_folder_digests_are_compared_and_the_rest_is_open(case: SignedRelease) -> None:
    code, out, err = verify(case)
    assert (code, err) == (0, "")
    assert "No ledger was asked (--ledger)" in out
    assert "Not checked, since the key was not given (--key): a signature of Privacy office" in out
    assert "Whoever can write the folder can write the certificate too" in out


def test_with_the_ledger_it_was_paid(case: SignedRelease) -> None:
    code, out, _ = verify(case, "--ledger", case.ledger, "--key", case.public)
    assert code == 0
    assert "Paid: line 1 of the ledger, epsilon 0.25 for each person." in out
    assert "not that the numbers were computed as stated" in out


def test_machines_are_told_the_same(case: SignedRelease) -> None:
    told = json.loads(run("certificate", "verify", case.folder, "--key", case.public, "--json")[1])
    assert told["verified"] is True
    assert told["files"] == FILES
    assert (told["paid"], told["complete"], told["discrepancies"]) == (None, True, [])
    assert [(each["name"], each["standing"]) for each in told["signatures"]] == [("Privacy office", "valid")]
    (case.folder / "answers.csv").unlink()
    code, out, _ = run("certificate", "verify", case.folder, "--json")
    told = json.loads(out)
    assert (code, told["verified"]) == (1, False)
    assert [(each["kind"], each["name"]) for each in told["discrepancies"]] == [("missing", "answers.csv")]


def edit(name: str, old: str, new: str) -> Callable[[SignedRelease], None]:
    def change(case: SignedRelease) -> None:
        path = case.folder / name
        text = path.read_text(encoding="utf-8")
        changed = re.sub(old, new, text, count=1)
        assert changed != text
        path.write_text(changed, encoding="utf-8")

    return change


def edit_signature(**fields: str) -> Callable[[SignedRelease], None]:
    def change(case: SignedRelease) -> None:
        path = case.folder / SIGNATURES
        content = json.loads(path.read_text())
        content["signatures"][0] |= fields
        path.write_text(json.dumps(content))

    return change


def edit_certificate(**fields: object) -> Callable[[SignedRelease], None]:
    def change(case: SignedRelease) -> None:
        path = case.folder / "certificate.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields, indent=2) + "\n")

    return change


def same_length(case: SignedRelease) -> None:
    path = case.folder / "report.html"
    text = path.read_text(encoding="utf-8")
    cell = re.search(r'class="number">(\d)', text)
    assert cell is not None
    other = str((int(cell[1]) + 1) % 10)
    path.write_text(text[: cell.start(1)] + other + text[cell.end(1) :], encoding="utf-8")


def cut_short(case: SignedRelease) -> None:
    path = case.folder / "release.json"
    path.write_bytes(path.read_bytes()[:-100])


def rename(case: SignedRelease) -> None:
    (case.folder / "answers.csv").rename(case.folder / "results.csv")


def exchange(case: SignedRelease) -> None:
    names = [case.folder / name for name in ("answers.csv", "quality.csv", "waiting")]
    names[0].rename(names[2])
    names[1].rename(names[0])
    names[2].rename(names[1])


def add_folder(case: SignedRelease) -> None:
    (case.folder / "more").mkdir()


def link(case: SignedRelease) -> None:
    shutil.copy(case.folder / "answers.csv", case.folder.parent / "mine.csv")
    (case.folder / "answers.csv").unlink()
    (case.folder / "answers.csv").symlink_to(case.folder.parent / "mine.csv")


def folder_in_place(case: SignedRelease) -> None:
    (case.folder / "answers.csv").unlink()
    (case.folder / "answers.csv").mkdir()


def pipe(case: SignedRelease) -> None:
    (case.folder / "answers.csv").unlink()
    os.mkfifo(case.folder / "answers.csv")


def line_ends(case: SignedRelease) -> None:
    path = case.folder / "release.json"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def unix_line_ends(case: SignedRelease) -> None:
    path = case.folder / "answers.csv"
    content = path.read_bytes()
    ends = (b"\r\n", b"\n") if b"\r\n" in content else (b"\n", b"\r\n")
    path.write_bytes(content.replace(*ends))


def byte_order_mark(case: SignedRelease) -> None:
    path = case.folder / "answers.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def certificate_line_ends(case: SignedRelease) -> None:
    path = case.folder / "certificate.json"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def drop_a_file_from_both(case: SignedRelease) -> None:
    """A file is taken away, and the certificate is mended so that it names it no more."""
    (case.folder / "quality.csv").unlink()
    path = case.folder / "certificate.json"
    content = json.loads(path.read_text())
    del content["digests"]["quality.csv"], content["sizes"]["quality.csv"]
    path.write_text(json.dumps(content, indent=2) + "\n")


def leave_the_folder(case: SignedRelease) -> None:
    path = case.folder / "certificate.json"
    content = json.loads(path.read_text())
    content["digests"]["../mine.csv"] = "0" * 64
    content["sizes"]["../mine.csv"] = 1
    path.write_text(json.dumps(content))


def change_then_mend(case: SignedRelease) -> None:
    """A number is changed, and the digest in the certificate with it: only a signature shows that."""
    edit("answers.csv", r"\d\.\d", "7.777777")(case)
    path = case.folder / "certificate.json"
    content = json.loads(path.read_text())
    raw = (case.folder / "answers.csv").read_bytes()
    content["digests"]["answers.csv"] = hashlib.sha256(raw).hexdigest()
    content["sizes"]["answers.csv"] = len(raw)
    path.write_text(json.dumps(content, indent=2) + "\n")


def certificate_of_another(case: SignedRelease) -> None:
    shutil.copy(case.other / "certificate.json", case.folder / "certificate.json")


def signatures_of_another(case: SignedRelease) -> None:
    shutil.copy(case.other / SIGNATURES, case.folder / SIGNATURES)


def strip(case: SignedRelease) -> None:
    (case.folder / SIGNATURES).unlink()


def sign_by_another(case: SignedRelease) -> None:
    """Somebody else signs in the office's name, and calls the key by the office's id."""
    keys = case.folder.parent / "mallory"
    run("certificate", "keys", keys)
    by = json.loads((case.folder / SIGNATURES).read_text())["signatures"][0]["key"]
    strip(case)
    words = ("--key", f"{keys}.key", "--name", "Privacy office")
    assert run("certificate", "sign", case.folder, *words)[0] == 0
    edit_signature(key=by)(case)


def sign_by_unknown(case: SignedRelease) -> None:
    keys = case.folder.parent / "mallory"
    run("certificate", "keys", keys)
    strip(case)
    words = ("--key", f"{keys}.key", "--name", "Privacy office")
    assert run("certificate", "sign", case.folder, *words)[0] == 0


def twice(case: SignedRelease) -> None:
    path = case.folder / "certificate.json"
    path.write_text(path.read_text().replace("{", '{"epsilon": 0.001,', 1))


def add(name: str) -> Callable[[SignedRelease], None]:
    def change(case: SignedRelease) -> None:
        (case.folder / name).write_text("query,value\npeople,7\n")

    return change


WAYS = [
    (same_length, Deviance.CHANGED, "report.html was changed, though it is as long as it was"),
    (edit("answers.csv", r"\d\.\d", "7.777777"), Deviance.LONGER, "answers.csv was changed or added to"),
    (cut_short, Deviance.CUT_SHORT, "release.json was cut short or changed"),
    (lambda case: (case.folder / "quality.csv").unlink(), Deviance.MISSING, "quality.csv is missing: it was"),
    (rename, Deviance.RENAMED, "answers.csv is missing. What it held is there as results.csv"),
    (exchange, Deviance.EXCHANGED, "answers.csv was exchanged: it holds what was published as quality.csv"),
    (add("answers-corrected.csv"), Deviance.ADDED, "answers-corrected.csv is a file that was not published"),
    (add_folder, Deviance.FOLDER_ADDED, "more is a folder that was not published"),
    (link, Deviance.LINK, "answers.csv is a link to something elsewhere"),
    (folder_in_place, Deviance.FOLDER, "answers.csv is a folder, and not the file"),
    (pipe, Deviance.NO_FILE, "answers.csv is no ordinary file"),
    (line_ends, Deviance.LINE_ENDS, "release.json has other line ends"),
    (unix_line_ends, Deviance.LINE_ENDS, "answers.csv has other line ends"),
    (byte_order_mark, Deviance.MARK, "answers.csv was saved anew by a program that put a byte order mark"),
    (
        leave_the_folder,
        Deviance.OUTSIDE,
        "The certificate names '../mine.csv', which is no file of a release",
    ),
    (certificate_of_another, Deviance.ANOTHER_SIGNED, "certificate.json was changed after it was signed"),
    (edit_certificate(epsilon=0.001), Deviance.ANOTHER_SIGNED, "was changed after it was signed"),
    (edit_certificate(complete=False), Deviance.ANOTHER_SIGNED, "was changed after it was signed"),
    (edit_certificate(secure=False), Deviance.ANOTHER_SIGNED, "was changed after it was signed"),
    (change_then_mend, Deviance.ANOTHER_SIGNED, "Privacy office signed another certificate than this"),
    (drop_a_file_from_both, Deviance.ANOTHER_SIGNED, "Privacy office signed another certificate than this"),
    (certificate_line_ends, Deviance.ANOTHER_SIGNED, "only in this: line ends changed"),
    (signatures_of_another, Deviance.ANOTHER_SIGNED, "or put in place of another"),
    (strip, Deviance.UNSIGNED, "It has no signature at all"),
    (sign_by_unknown, Deviance.UNSIGNED, "It is signed by other keys: Privacy office ("),
    (sign_by_another, Deviance.FORGED, "The signature of Privacy office is false"),
    (edit_signature(signature="0" * 128), Deviance.FORGED, "The signature of Privacy office is false"),
    (edit_signature(name="Data office"), Deviance.FORGED, "The signature of Data office is false"),
    (edit_signature(time="2020-01-01T00:00:00+00:00"), Deviance.FORGED, "its name or its time was changed"),
    (edit_signature(signature="xyz"), Deviance.SIGNATURES, "they are cut short or were changed"),
]


@pytest.mark.parametrize(
    ("tamper", "kind", "words"), WAYS, ids=[f"{n}-{way[1]}" for n, way in enumerate(WAYS)]
)
def test_tampering_is_named(
    case: SignedRelease, tamper: Callable[[SignedRelease], None], kind: Deviance, words: str
) -> None:
    tamper(case)
    code, _, err = verify(case, "--key", case.public)
    assert code == 1
    assert words in err
    assert f"WRONG ({kind})" in err
    assert "Do not rely on this release" in err
    told = json.loads(run("certificate", "verify", case.folder, "--key", case.public, "--json")[1])
    assert not told["verified"]
    assert kind in {each["kind"] for each in told["discrepancies"]}


PROGRAM = next(
    block.body
    for block in blocks(ROOT / "docs" / "how_to" / "sign_a_release.md")
    if block.title == "check_release.py"
)


def check(case: SignedRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the program of the documentation, as if it were called with a folder and a key."""
    monkeypatch.setattr(sys, "argv", ["check_release.py", str(case.folder), str(case.public)])
    exec(compile(PROGRAM, "check_release.py", "exec"), {"__name__": "__main__"})


def test_another_program_checks_it_in_twenty_lines(
    case: SignedRelease, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len([line for line in PROGRAM.splitlines() if line.strip()]) <= 20
    assert "sourdine" not in PROGRAM.replace('"sourdine signature/1"', "")
    check(case, monkeypatch)
    assert capsys.readouterr().out.startswith("as signed by Privacy office at 20")


@pytest.mark.parametrize(
    "tamper", [way[0] for way in WAYS], ids=[f"{n}-{way[1]}" for n, way in enumerate(WAYS)]
)
def test_the_program_passes_nothing_that_was_tampered_with(
    case: SignedRelease, tamper: Callable[[SignedRelease], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tamper(case)
    with pytest.raises((SystemExit, InvalidSignature, StopIteration, OSError, ValueError)):
        check(case, monkeypatch)


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (edit_certificate(epsilon=0.001), "line 1 of the ledger differ in epsilon"),
        (edit_certificate(price="1/1000"), "line 1 of the ledger differ in price"),
        (edit_certificate(unit="household"), "line 1 of the ledger differ in unit"),
        (edit_certificate(number=2), "The ledger has no line 2 with this fingerprint"),
        (edit_certificate(fingerprint="0" * 64), "no line 1 with this fingerprint"),
        (edit_certificate(ledger="another"), "The certificate belongs to another ledger"),
        (edit_certificate(spends=[]), "differ in spends"),
        (edit_certificate(declared={}), "differ in declared"),
    ],
)
def test_what_the_ledger_does_not_confirm_is_named(
    case: SignedRelease, tamper: Callable[[SignedRelease], None], words: str
) -> None:
    tamper(case)
    strip(case)
    code, _, err = verify(case, "--ledger", case.ledger)
    assert code == 1
    assert f"WRONG ({Deviance.UNPAID})" in err
    assert words in err


def test_answers_of_another_payment_are_named(case: SignedRelease) -> None:
    """All files are those of another release, and only the payment in the certificate is this one's."""
    paid = json.loads((case.folder / "certificate.json").read_text())
    shutil.rmtree(case.folder)
    shutil.copytree(case.other, case.folder)
    other = json.loads((case.folder / "certificate.json").read_text())
    files = {name: other[name] for name in ("digests", "sizes")}
    (case.folder / "certificate.json").write_text(json.dumps(paid | files))
    strip(case)
    code, _, err = verify(case, "--ledger", case.ledger)
    assert code == 1
    assert f"WRONG ({Deviance.ANOTHER_RELEASE}): release.json says that another payment made it" in err


def test_all_that_is_wrong_is_told_at_once(case: SignedRelease) -> None:
    rename(case)
    same_length(case)
    add("x.csv")(case)
    code, _, err = verify(case, "--ledger", case.ledger, "--key", case.public)
    assert code == 1
    assert [err.count(word) for word in ("(renamed)", "(changed)", "(added)", "3 things wrong")] == [1] * 4


def test_a_name_that_stands_twice_is_refused(case: SignedRelease) -> None:
    twice(case)
    code, out, err = verify(case)
    assert (code, out) == (2, "")
    assert "The certificate cannot be read" in err


def test_what_systems_leave_in_a_folder_is_told_and_harmless(case: SignedRelease) -> None:
    for name in (".DS_Store", "Thumbs.db", ".~lock.answers.csv#"):
        (case.folder / name).write_bytes(b"x")
    code, out, _ = verify(case, "--key", case.public)
    assert code == 0
    assert "and no part of it: .DS_Store, .~lock.answers.csv#, Thumbs.db" in out
    (case.folder / ".localized").symlink_to("answers.csv")
    assert verify(case)[0] == 1


def test_a_certificate_alone_says_what_was_not_compared(case: SignedRelease, tmp_path: Path) -> None:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    for name in ("certificate.json", SIGNATURES, "answers.csv"):
        shutil.copy(case.folder / name, downloads / name)
    (downloads / "holiday.jpg").write_bytes(b"x")
    code, out, err = run("certificate", "verify", downloads / "certificate.json", "--key", case.public)
    assert (code, err) == (0, "")
    assert "As published with the certificate: answers.csv.\n" in out
    assert "so not compared: quality.csv, release.json, report.html." in out
    assert run("certificate", "verify", downloads)[0] == 1  # as a folder it lacks files, and has another


def test_a_certificate_of_version_0_1_says_what_it_does_not_cover(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "cleaner" / "paid", tmp_path / "paid")
    code, out, err = run("certificate", "verify", tmp_path / "paid")
    assert (code, err) == (0, "")
    assert "As published with the certificate: people.csv, cleaning.json." in out
    assert "NOT COVERED: report.html. The certificate is of an earlier version" in " ".join(out.split())
    (tmp_path / "paid" / "people.csv").write_text("7\n")
    assert run("certificate", "verify", tmp_path / "paid")[0] == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"null",
        b'{"format": 1}',
        b"[" * 200_000,
        b'{"format": 1' + b" " * 10**6,
    ],
)
def test_a_certificate_that_is_none_is_one_sentence(case: SignedRelease, content: bytes) -> None:
    (case.folder / "certificate.json").write_bytes(content)
    code, out, err = run("certificate", "verify", case.folder)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_certificate_that_is_no_file_is_one_sentence(case: SignedRelease, tmp_path: Path) -> None:
    (case.folder / "certificate.json").unlink()
    for place in (case.folder, tmp_path / "nothing"):
        code, _, err = run("certificate", "verify", place)
        assert (code, err.count("\n")) == (2, 1)
        assert "which holds a certificate.json" in err
    os.mkfifo(case.folder / "certificate.json")
    assert "is no file" in run("certificate", "verify", case.folder)[2]


def test_a_link_in_place_of_the_certificate_is_named(case: SignedRelease) -> None:
    place = case.folder / "certificate.json"
    place.rename(case.folder.parent / "mine.json")
    place.symlink_to(case.folder.parent / "mine.json")
    code, _, err = verify(case)
    assert code == 1
    assert "certificate.json is a link" in err


def test_a_socket_and_names_that_are_no_text_are_named(case: SignedRelease) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(case.folder / "s"))
        (case.folder / os.fsdecode(b"caf\xe9.csv")).write_text("x")
        code, _, err = verify(case)
    assert code == 1
    assert "s is a file that was not published" in err
    assert "caf\\udce9.csv is a file that was not published" in err
    told = json.loads(run("certificate", "verify", case.folder, "--json")[1])
    assert "caf\udce9.csv" in {each["name"] for each in told["discrepancies"]}


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become somebody else")
def test_a_file_that_may_not_be_read_is_named(case: SignedRelease) -> None:
    """As somebody else than root, who may read everything."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "published"
        shutil.copytree(case.folder, folder)
        for path in (folder, folder.parent):
            path.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o644)
        (folder / "answers.csv").chmod(0)
        os.seteuid(65534)
        try:
            code, _, err = run("certificate", "verify", folder)
        finally:
            os.seteuid(0)
    assert code == 1
    assert "answers.csv cannot be read (Permission denied), so nothing is known of it." in err
