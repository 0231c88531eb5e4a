"""Specification, reports, estimates and rehearsals on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.table_case import run

LABELS = ["espresso", "filter", "tea", "none"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n")
    (tmp_path / "answers.txt").write_text("espresso\n" * 700 + "tea\n" * 300)
    code, _, err = run(
        "local",
        "spec",
        "coffee",
        "--epsilon",
        "4",
        "--labels",
        tmp_path / "labels.txt",
        "-o",
        tmp_path / "spec.json",
    )
    assert (code, err) == (0, "")
    return tmp_path


def encode(place: Path, name: str = "reports.txt") -> Path:
    code, out, err = run("local", "encode", place / "spec.json", place / "answers.txt", "-o", place / name)
    assert (code, err) == (0, "")
    assert "1,000 reports" in out
    return place / name


def test_answers_become_reports_become_estimates(place: Path) -> None:
    reports = encode(place)
    code, out, err = run("local", "estimate", place / "spec.json", reports, "--json")
    assert (code, err) == (0, "")
    found = {each["answer"]: each for each in json.loads(out)["answers"]}
    assert list(found) == LABELS
    assert found["espresso"]["value"] == pytest.approx(0.7, abs=0.15)
    assert found["espresso"]["lower"] < found["espresso"]["value"] < found["espresso"]["upper"]
    code, out, _ = run("local", "estimate", place / "spec.json", reports)
    assert code == 0
    assert "95 % interval" in out


def test_counts_are_kept_and_added(place: Path) -> None:
    first, second = encode(place), encode(place, "more.txt")
    spec, counts = place / "spec.json", place / "counts.json"
    assert run("local", "estimate", spec, first, "--counts", counts)[0] == 0
    kept = json.loads(run("local", "estimate", spec, counts, second, "--json")[1])
    whole = json.loads(run("local", "estimate", spec, first, second, "--json")[1])
    assert kept == whole
    assert kept["reports"] == 2000


def test_shapes_are_on_request(place: Path) -> None:
    reports = encode(place)
    shaped = json.loads(
        run("local", "estimate", place / "spec.json", reports, "--constrain", "simplex", "--json")[1]
    )
    values = [each["value"] for each in shaped["answers"]]
    assert sum(values) == pytest.approx(1)
    assert min(values) >= 0


def test_a_secret_makes_equal_reports_of_equal_answers(place: Path) -> None:
    (place / "device.key").write_bytes(bytes(range(32)))
    (place / "answers.txt").write_text("tea\ntea\nespresso\ntea\n")
    out = place / "r.txt"
    run(
        "local",
        "encode",
        place / "spec.json",
        place / "answers.txt",
        "-o",
        out,
        "--secret",
        place / "device.key",
    )
    lines = out.read_text().splitlines()
    assert lines[0] == lines[1] == lines[3]


def test_numbers_are_collected_too(tmp_path: Path) -> None:
    spec = tmp_path / "age.json"
    assert run("local", "spec", "age", "--epsilon", "8", "--lower", "0", "--upper", "100", "-o", spec)[0] == 0
    (tmp_path / "ages.txt").write_text("\n".join(["40"] * 2000))
    run("local", "encode", spec, tmp_path / "ages.txt", "-o", tmp_path / "r.txt")
    code, out, err = run("local", "estimate", spec, tmp_path / "r.txt", "--json")
    assert (code, err) == (0, "")
    (mean,) = json.loads(out)["answers"]
    assert mean["answer"] == "mean"
    assert mean["value"] == pytest.approx(40, abs=8)


def test_a_rehearsal_compares_all_oracles() -> None:
    code, out, err = run("local", "simulate", "--categories", "16", "--people", "2000", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert len(found["oracles"]) >= 7
    assert found["best"] in {each["oracle"] for each in found["oracles"]}
    assert all(each["error"] < 4 * each["forecast"] for each in found["oracles"])
    code, out, _ = run("local", "simulate", "--oracle", "kary", "--categories", "4", "--people", "100")
    assert code == 0
    assert "made-up people" in out


def test_a_seed_repeats_a_rehearsal() -> None:
    words = ("local", "simulate", "--oracle", "kary", "--categories", "4", "--people", "300", "--json")
    first, again, other = (
        json.loads(run(*words, *seed)[1])["oracles"][0]["error"]
        for seed in (("--seed", "1"), ("--seed", "1"), ("--seed", "2"))
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("spec", "x", "--epsilon", "0", "--categories", "3"), "'epsilon'"),
        (("spec", "x", "--epsilon", "1", "--categories", "1"), "'categories' of local spec"),
        (("spec", "x", "--epsilon", "1"), "either labels"),
        (("spec", "x", "--epsilon", "1", "--lower", "0"), "both bounds"),
        (("spec", "x", "--epsilon", "1", "--lower", "3", "--upper", "3"), "below the upper"),
        (("spec", "x", "--epsilon", "1", "--categories", "3", "--oracle", "best"), "'oracle'"),
        (("spec", "x", "--epsilon", "1", "--labels", "nowhere.txt"), "does not exist"),
        (("simulate", "--law", "normal"), "'law'"),
        (("simulate", "--people", "0"), "'people'"),
        (("simulate", "--seed", "-1"), "'seed' of local simulate"),
    ],
)
def test_bad_parameters_are_one_sentence(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("local", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert list(tmp_path.iterdir()) == []


def test_bad_files_lose_nothing(place: Path) -> None:
    spec, reports = place / "spec.json", encode(place)
    whole = reports.read_bytes()
    (place / "answers.txt").write_text("espresso\nSECRET\n")
    code, _, err = run("local", "encode", spec, place / "answers.txt", "-o", place / "new.txt")
    assert code == 2
    assert "Answer 2" in err
    assert "SECRET" not in err
    assert not (place / "new.txt").exists()
    code, _, err = run("local", "encode", spec, place / "labels.txt", "-o", reports)
    assert code == 2
    assert "not written over" in err
    assert reports.read_bytes() == whole
    reports.write_bytes(whole[:-3])
    counts = place / "counts.json"
    code, out, err = run("local", "estimate", spec, reports, "--counts", counts, "--json")
    assert code == 0
    assert json.loads(out)["set_apart"] == {"damaged": 1}
    assert json.loads(counts.read_text())["reports"] == 999
    code, out, err = run("local", "estimate", spec, reports)
    assert code == 0
    assert "Not counted: 1 line, damaged (the first is line 1,000 of" in " ".join(err.split())
    (place / "copy.txt").write_bytes(reports.read_bytes())
    code, out, err = run("local", "estimate", spec, reports, place / "copy.txt")
    assert "999 reports" in out
    assert f"a copy of {reports}" in " ".join(err.split())
    other = place / "other.json"
    run("local", "spec", "coffee", "--epsilon", "1", "--labels", place / "labels.txt", "-o", other)
    reports.write_bytes(whole)
    code, _, err = run("local", "estimate", other, reports)
    assert code == 2
    assert "No report was counted: 1,000 lines, made for another specification" in err
    changed = json.loads(spec.read_text()) | {"question": "tea"}
    spec.write_text(json.dumps(changed))
    code, _, err = run("local", "estimate", spec, reports)
    assert code == 2
    assert "own fingerprint" in err


def test_what_was_collected_is_not_written_over_nor_counted_twice(place: Path) -> None:
    spec, reports = place / "spec.json", encode(place)
    whole = reports.read_bytes()
    code, out, err = run("local", "estimate", spec, reports, "--counts", reports)
    assert (code, out) == (2, "")
    assert "not written over" in err
    assert reports.read_bytes() == whole
    code, out, err = run("local", "estimate", spec, reports, reports)
    assert (code, out) == (2, "")
    assert "named twice" in err


def test_files_that_editors_changed_are_read(place: Path) -> None:
    spec, reports = place / "spec.json", encode(place)
    plain = run("local", "estimate", spec, reports, "--json")
    reports.write_bytes(b"\xef\xbb\xbf" + reports.read_bytes().replace(b"\n", b"\r\n"))
    assert run("local", "estimate", spec, reports, "--json") == plain


def test_counts_that_are_cut_short_are_one_sentence_of_ours(place: Path) -> None:
    (place / "cut.json").write_text('{"counts": "8e26')
    code, _, err = run("local", "estimate", place / "spec.json", place / "cut.json")
    assert code == 2
    assert "cut short or were changed" in err
    assert "column" not in err


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("one\n", "has one label"),
        ("a\n\nb\n", "'label 2'"),
        ("a\nb\na\n", "1 and 3 do not"),
        ("caf\xe9\ntea\n", "UTF-8"),
    ],
)
def test_bad_labels_are_one_sentence(tmp_path: Path, lines: str, said: str) -> None:
    labels, spec = tmp_path / "labels.txt", tmp_path / "spec.json"
    labels.write_text(lines, encoding="latin-1")
    code, out, err = run("local", "spec", "x", "--epsilon", "1", "--labels", labels, "-o", spec)
    assert (code, out) == (2, "")
    assert said in err
    assert not spec.exists()


def test_words_by_rappor_have_verbs_of_their_own(place: Path) -> None:
    params, reports = place / "pages.json", place / "r.txt"
    noise = ("--f", "0.5", "--p", "0.5", "--q", "0.75")
    assert run("local", "rappor", "encode", params, place / "answers.txt", "-o", reports, *noise)[0] == 0
    asked = ("encode", params, place / "answers.txt", "-o", place / "n.txt")
    for words in (asked, ("estimate", params, reports)):
        code, out, err = run("local", *words)
        assert (code, out) == (2, "")
        assert "sourdine local rappor" in err


def test_a_secret_is_said_to_be_of_one_device(place: Path) -> None:
    (place / "device.key").write_bytes(bytes(range(32)))
    words = ("encode", place / "spec.json", place / "answers.txt", "-o")
    assert "another person" in " ".join(run("local", *words, place / "a.txt")[1].split())
    told = run("local", *words, place / "b.txt", "--secret", place / "device.key")[1]
    assert "one secret for several people" in " ".join(told.split())
