import hashlib
import json
import shutil
from pathlib import Path

import pytest

from sourdine.accounting.certificate import verify_release
from sourdine.accounting.explain import explain_guarantee
from sourdine.accounting.ledger import Ledger
from sourdine.report.verdict import CheckOutcome, check_strength
from tests.cli.certificate.release_case import SignedRelease, build_signed
from tests.cli.table_case import build, run

GOLDEN = Path(__file__).parents[2] / "golden" / "0.1"


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> SignedRelease:
    return build_signed(tmp_path_factory.mktemp("case"))


@pytest.fixture
def case(signed: SignedRelease, tmp_path: Path) -> SignedRelease:
    return signed.copied(tmp_path / "published")


def show(folder: Path, *words: object, pairs: int = 0) -> tuple[int, str, str]:
    code, out, err = run("certificate", "show", folder, "--pairs", pairs, *words)
    return code, " ".join(out.split()), " ".join(err.split())


def checks(folder: Path, *words: object, pairs: int = 0) -> tuple[str, dict[str, str]]:
    """The light, and what came of each check."""
    told = json.loads(run("certificate", "show", folder, "--pairs", pairs, *words, "--json")[1])
    return told["verdict"], {each["name"]: each["outcome"] for each in told["checks"]}


def test_everything_checked_is_green(case: SignedRelease, tmp_path: Path) -> None:
    page = tmp_path / "verdict.html"
    words = ("--ledger", case.ledger, "--key", case.public, "--html", page)
    code, out, _ = show(case.folder, *words, pairs=2)
    assert code == 0
    assert out.startswith("GREEN: Every check was made, and all passed.")
    assert "3 noisy numbers about people.csv: people, ages." in out
    assert "ε = 0.25 for each person" in out
    assert "After this release: 0.75 of epsilon 1. Today: 0.5." in out
    assert "(2 charges) comes to ε = 0.5." in out
    assert (
        "2 pairs of made-up tables (csv) that differ in one person: no fault found. That finds coarse" in out
    )
    assert "As recorded with the charge, it came from cryptographic randomness" in out
    assert "NOT MADE" not in out
    text = page.read_text(encoding="utf-8")
    assert ">GREEN<" in text
    assert "☐ may be published" in text


def test_it_fits_the_terminal(case: SignedRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, widest in ((80, 80), (200, 100), (20, 50)):
        monkeypatch.setenv("COLUMNS", str(columns))
        out = run("certificate", "show", case.folder, "--pairs", 0)[1]
        assert widest - 20 < max(map(len, out.splitlines())) <= widest


def test_what_was_not_looked_at_is_yellow(case: SignedRelease) -> None:
    code, out, _ = show(case.folder)
    assert code == 0
    assert out.startswith(
        "YELLOW: Nothing wrong was found, but not all is settled. Not looked at: signature,"
    )
    assert "It bears the name of Privacy office, but no public key was given" in out
    assert "What was spent since, the ledger knows." in out
    assert checks(case.folder) == (
        "yellow",
        {
            "Files": "passed",
            "Signature": "not made",
            "Payment": "not made",
            "Price of the plan": "passed",
            "Noise": "passed",
            "Exact counts": "passed",
            "Audit of the plan": "not made",
            "Strength": "passed",
        },
    )


def test_what_was_tampered_with_is_red_and_its_claims_are_doubted(
    case: SignedRelease, tmp_path: Path
) -> None:
    (case.folder / "answers.csv").write_text("7\n")
    page = tmp_path / "verdict.html"
    code, out, _ = show(case.folder, "--html", page)
    assert code == 1
    assert out.startswith("RED: Do not publish this release, and do not rely on it. Failed: files.")
    assert "This is what it claims. A check has failed, so do not count on it." in out
    text = page.read_text(encoding="utf-8")
    assert ">RED<" in text
    assert "☐ may be published" not in text


def test_files_that_nobody_vouches_for_are_not_said_to_be_as_published(case: SignedRelease) -> None:
    assert "files are as signed, to the last letter" in show(case.folder, "--key", case.public)[1]
    answers, certificate = case.folder / "answers.csv", case.folder / "certificate.json"
    before = hashlib.sha256(answers.read_bytes()).hexdigest()
    answers.write_bytes(answers.read_bytes()[::-1])  # as long as it was
    after = hashlib.sha256(answers.read_bytes()).hexdigest()
    certificate.write_text(certificate.read_text().replace(before, after))
    (case.folder / "certificate.signatures.json").unlink()
    code, out, _ = show(case.folder, "--ledger", case.ledger)
    assert code == 0
    assert "as the certificate says, to the last letter" in out
    assert "Only a signature shows whether the certificate was changed along with them." in out
    assert "as published" not in out


def test_nothing_is_told_from_a_record_that_was_changed(case: SignedRelease) -> None:
    place = case.folder / "release.json"
    place.write_text(place.read_text().replace('"people"', '"lies"'))
    code, out, _ = show(case.folder)
    assert code == 1
    assert "lies" not in out
    assert "release.json was cut short or changed" in out


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"secure": False}, "Noise"),
        ({"fingerprint": "0" * 64}, "Price of the plan"),
        ({"spends": []}, "Price of the plan"),
        ({"epsilon": float("inf")}, "Strength"),
    ],
)
def test_a_certificate_that_says_so_is_red(case: SignedRelease, change: dict[str, object], name: str) -> None:
    place = case.folder / "certificate.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | change))
    (case.folder / "certificate.signatures.json").unlink()
    light, outcomes = checks(case.folder)
    assert (light, outcomes[name]) == ("red", "failed")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": 30.0}, "Strength"),
        ({"delta": 0.01}, "Strength"),
        (
            {"declared": {"the declarations": "were checked against the data, which is not private"}},
            "Exact counts",
        ),
    ],
)
def test_what_needs_judgement_is_yellow(case: SignedRelease, change: dict[str, object], name: str) -> None:
    place = case.folder / "certificate.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | change))
    (case.folder / "certificate.signatures.json").unlink()
    light, outcomes = checks(case.folder)
    assert (light, outcomes[name]) == ("yellow", "judge yourself")


def test_exact_counts_that_were_shown_are_told(tmp_path: Path) -> None:
    case = build(tmp_path)
    run("check", case.spec)
    run("release", case.spec, "-o", tmp_path / "out")
    _, out, _ = show(tmp_path / "out", "--ledger", case.ledger)
    assert "JUDGE YOURSELF. They were shown beforehand. The declarations were checked against the data" in out
    assert "declared without looking at the data" not in out


def test_exact_counts_are_told_of_a_release_without_its_plan(case: SignedRelease) -> None:
    place = case.folder / "certificate.json"
    stated = json.loads(place.read_text())
    (case.folder / "release.json").unlink()
    del stated["digests"]["release.json"], stated["sizes"]["release.json"]
    stated["declared"] |= {"the declarations": "were checked against the data, which is not private"}
    place.write_text(json.dumps(stated))
    (case.folder / "certificate.signatures.json").unlink()
    light, outcomes = checks(case.folder)
    assert (light, outcomes["Exact counts"]) == ("yellow", "judge yourself")
    assert outcomes["Price of the plan"] == "does not apply"


@pytest.mark.parametrize(
    ("delta", "size", "outcome"),
    [
        (1e-6, None, CheckOutcome.PASSED),
        (1e-4, None, CheckOutcome.JUDGE),
        (0.09, 1, CheckOutcome.JUDGE),  # below one record of ten, and still one time in eleven
        (1e-3, 100, CheckOutcome.JUDGE),
        (1e-6, 100, CheckOutcome.PASSED),
        (1e-6, 1e7, CheckOutcome.JUDGE),
    ],
)
def test_a_large_delta_is_asked_about_however_few_there_are(
    case: SignedRelease, delta: float, size: float | None, outcome: CheckOutcome
) -> None:
    certificate = verify_release(case.folder).certificate
    (check,) = check_strength(certificate, explain_guarantee(0.5, delta), size)
    assert check.outcome is outcome
    assert check.words


def test_of_few_records_none_are_below_zero(case: SignedRelease) -> None:
    assert "(between -" not in show(case.folder)[1]


def test_a_payment_that_the_ledger_does_not_hold_is_red(case: SignedRelease, tmp_path: Path) -> None:
    other = tmp_path / "other.ledger"
    with Ledger.create(other, epsilon=1, unit="person"):
        pass
    light, outcomes = checks(case.folder, "--ledger", other, "--key", case.public)
    assert (light, outcomes["Payment"]) == ("red", "failed")


def test_a_key_that_did_not_sign_is_red(case: SignedRelease, tmp_path: Path) -> None:
    run("certificate", "keys", tmp_path / "other")
    light, outcomes = checks(case.folder, "--key", tmp_path / "other.pub")
    assert (light, outcomes["Signature"]) == ("red", "failed")


@pytest.mark.parametrize("name", ["cleaner/paid", "training/model", "tables/gaussian-release"])
def test_releases_of_version_0_1_are_shown(tmp_path: Path, name: str) -> None:
    shutil.copytree(GOLDEN / name, tmp_path / "old")
    code, out, err = show(tmp_path / "old", "--html", tmp_path / "verdict.html")
    assert (code, err) == (0, "")
    assert out.startswith("YELLOW")
    assert "sourdine 0.1.0" in out


def test_a_plan_with_joins_is_not_audited_without_its_tables(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "tables" / "joins-release", tmp_path / "old")
    assert "It needs the public tables that are joined" in show(tmp_path / "old", pairs=1)[1]


def test_the_page_goes_nowhere_into_the_release(case: SignedRelease) -> None:
    for place in (case.folder, case.folder / "certificate.json"):
        code, _, err = show(place, "--html", case.folder / "verdict.html")
        assert code == 2
        assert "a page in it would count as added" in err
    assert not (case.folder / "verdict.html").exists()


def test_a_certificate_alone_is_shown_beside_itself(case: SignedRelease, tmp_path: Path) -> None:
    (tmp_path / "downloads").mkdir()
    shutil.copy(case.folder / "certificate.json", tmp_path / "downloads" / "people.json")
    code, out, _ = show(tmp_path / "downloads" / "people.json", "--html", tmp_path / "downloads" / "v.html")
    assert code == 0
    assert (
        "NOT MADE. Not at hand, so not compared: answers.csv, quality.csv, release.json, report.html." in out
    )
    assert (tmp_path / "downloads" / "v.html").exists()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("published/report.html", "is no certificate. Name the folder of the release: "),
        (".", "is no release itself: it holds no certificate.json. There is one below:"),
        ("nothing", "Check the path: it is the folder of a release"),
    ],
)
def test_whoever_names_something_else_is_told_what_to_name(
    case: SignedRelease, place: str, words: str
) -> None:
    code, out, err = show(case.folder.parent / place)
    assert (code, out) == (2, "")
    assert words in err


def test_whoever_looks_for_a_command_elsewhere_is_led_to_it() -> None:
    assert "There is: " in run("verify", "published")[2]
    assert run("verify", "published")[2].strip().endswith("certificate verify")
    assert "To see which there are:" in run("certificate", "published")[2]


def test_names_of_others_are_no_markup_and_no_command(case: SignedRelease, tmp_path: Path) -> None:
    (case.folder / "<script>alert(1)<").write_text("x")
    (case.folder / "\x1b[2J").write_text("x")
    page = tmp_path / "verdict.html"
    code, out, _ = run("certificate", "show", case.folder, "--pairs", 0, "--html", page)
    assert code == 1
    assert "\x1b" not in out
    text = page.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt; is a file" in text
