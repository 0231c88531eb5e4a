"""What version 0.2 writes by lasting names stays readable, and is written so again.

The files in `0.2` are only ever added to (see `make_0_2.py` for how they were made).
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sourdine.accounting import Spend
from sourdine.accounting.certificate import PublicKey, verify_release
from sourdine.core.mechanism import Mechanism
from sourdine.core.serialization import TABLE
from sourdine.local import Question
from sourdine.local.questionnaire import DeviceLedger, Questionnaire, QuestionnaireDevice
from tests.golden.test_golden_0_1 import read, run, same, same_estimate

KEPT = Path(__file__).parent / "0.2"
NAMES = read(KEPT / "names.json")
QUESTIONS = sorted(path.name.removesuffix(".reports.txt") for path in KEPT.glob("local/*.reports.txt"))


def test_no_file_is_changed_or_lost() -> None:
    lines = (KEPT / "MANIFEST").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    for name, digest in listed.items():
        assert hashlib.sha256((KEPT / name).read_bytes()).hexdigest() == digest, f"{name} was changed"
    there = {path.relative_to(KEPT).as_posix() for path in KEPT.rglob("*") if path.is_file()}
    assert there == {*listed, "MANIFEST"}, "list what is new in the MANIFEST, and leave nothing beside it"


@pytest.mark.parametrize("kept", NAMES["mechanisms"], ids=lambda kept: kept["written"]["mechanism"])
def test_a_mechanism_keeps_its_name(kept: dict[str, Any]) -> None:
    made = Mechanism.from_json(kept["written"])
    assert made == Mechanism.from_json(kept["first"])
    same(made.to_json(), kept["written"])
    if "identity" in kept:
        assert made.identity == kept["identity"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kept", NAMES["samplings"], ids=lambda kept: kept["written"]["sampling"]["sampling"])
def test_a_sampling_keeps_its_name(kept: dict[str, Any]) -> None:
    made = Spend.from_json(kept["written"])
    assert made == Spend.from_json(kept["first"])
    same(made.to_json(), kept["written"])


def test_every_name_of_the_version_is_kept() -> None:
    named = {each["written"]["mechanism"] for each in NAMES["mechanisms"]}
    named |= {each["written"]["sampling"]["sampling"] for each in NAMES["samplings"]}
    assert len(named) == 42
    assert named <= set(TABLE)


@pytest.mark.parametrize("name", QUESTIONS)
def test_reports_to_a_question_of_format_2_count(tmp_path: Path, name: str) -> None:
    here, kept = KEPT / "local", read(KEPT / f"local/{name}.json")
    question = Question.from_json(kept)
    assert (question.format, question.fingerprint) == (2, kept["fingerprint"])
    assert question.to_json() == kept
    words = ("local", "estimate", here / f"{name}.json")
    told = run(*words, here / f"{name}.reports.txt", "--counts", tmp_path / "counts.json", "--json")
    same_estimate(json.loads(told), read(here / f"{name}.estimate.json"), question)
    assert read(tmp_path / "counts.json") == read(here / f"{name}.counts.json")


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_device_reports_the_same_for_ever_in_either_format(tmp_path: Path, name: str) -> None:
    here, made = KEPT / "local", tmp_path / "reports.txt"
    answers = "answers.txt" if read(here / f"{name}.json")["labels"] else "numbers.txt"
    run(
        *("local", "encode", here / f"{name}.json", here / answers),
        *("-o", made, "--secret", here / "device.key"),
    )
    assert made.read_bytes() == (here / f"{name}.device.txt").read_bytes()
    first = KEPT.parent / "0.1" / "local" / f"{name}.device.txt"
    sent, before = (path.read_text().splitlines() for path in (made, first))
    assert [line.split()[1] for line in sent] == [line.split()[1] for line in before]


def test_a_questionnaire_that_names_no_oracles_asks_the_same_for_ever(tmp_path: Path) -> None:
    here = KEPT / "questionnaire"
    expected = read(here / "expected.json")
    survey = Questionnaire.from_json(read(here / "questionnaire.json"))
    assert survey.identity == expected["identity"]
    assert survey.to_json() == read(here / "questionnaire.json")
    asked = [question.to_json() for question in survey.questions]
    assert asked == [read(here / f"question_{place}.json") for place in (1, 2)]
    secret = bytes.fromhex((here / "device.key").read_text())
    answers = [{"lunch": lunch, "way": way, "days": "3"} for lunch, way in (("yes", "bike"), ("no", "car"))]
    answers.append({"lunch": "yes", "way": "bus", "days": "3"})
    shutil.copy(here / "ledger.json", tmp_path / "ledger.json")
    for ledger in (DeviceLedger(), DeviceLedger.open(tmp_path / "ledger.json")):
        device = QuestionnaireDevice(survey, secret, ledger)
        made = [
            [[question.fingerprint, row.tobytes().hex()] for question, row in device.reports(each)]
            for each in answers
        ]
        assert made == expected["reports"]
        assert str(device.spent) == expected["spent"]


def test_a_release_that_was_signed_stays_verified(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "signed", tmp_path / "signed")  # a ledger is opened for writing
    place = tmp_path / "signed"
    keys = [PublicKey.read(place / name) for name in ("office.pub", "board.pub")]
    verification = verify_release(place / "published", ledger=place / "people.ledger", keys=keys)
    assert verification.discrepancies == ()
    assert [(each.name, standing.value) for each, standing in verification.signatures] == [
        ("Privacy office, J. Doe", "valid"),
        ("Büro des Vorstands", "valid"),
    ]
    assert verification.certificate.complete
    assert len(verification.files.same) == 7
