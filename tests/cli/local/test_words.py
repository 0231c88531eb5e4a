"""Words nobody listed on the command line: a specification, reports, and the words found."""

import json
from pathlib import Path

import pytest

from tests.cli.table_case import run

WORDS = "cherry\n" * 400 + "Äpple\n" * 300 + "rare\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("words")
    (place / "words.txt").write_text(WORDS, encoding="utf-8")
    asked = ("local", "spec", "snack", "--epsilon", "6", "--unlisted-words", "--letters", "6")
    code, out, _ = run(*asked, "-o", place / "snack.json")
    assert code == 0
    assert "nobody listed" in out
    assert run("local", "encode", place / "snack.json", place / "words.txt", "-o", place / "r.txt")[0] == 0
    return place


def test_common_words_come_out(folder: Path) -> None:
    code, out, err = run(
        "local", "words", folder / "snack.json", folder / "r.txt", "--json", "--html", folder / "page.html"
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert {each["word"] for each in found["words"]} == {"cherry", "apple"}
    assert found["reports"] == 701
    assert 250 < found["whole_word_reports"] < 450
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "cherry" in page
    assert "2 % at most" in page


def test_it_says_what_the_words_mean(folder: Path) -> None:
    code, out, _ = run("local", "words", folder / "snack.json", folder / "r.txt")
    assert code == 0
    assert "cherry" in out
    assert "at most 0.02" in " ".join(out.split())


def test_a_device_always_tells_prefixes_of_one_length(folder: Path) -> None:
    (folder / "device.key").write_bytes(bytes(range(32)))
    asked = (
        "local",
        "encode",
        folder / "snack.json",
        folder / "words.txt",
        "--secret",
        folder / "device.key",
    )
    assert run(*asked, "-o", folder / "one.txt")[0] == 0
    lines = set((folder / "one.txt").read_text().splitlines())
    assert len(lines) == 3
    assert len({int(line.split()[1][:2], 16) // 32 for line in lines}) == 1  # the level: there are 32 groups


def test_what_is_refused(folder: Path) -> None:
    assert "single reports" in run("local", "estimate", folder / "snack.json", folder / "r.txt")[2]
    run("local", "spec", "c", "--epsilon", "1", "--categories", "3", "-o", folder / "c.json")
    assert "does not ask for words" in run("local", "words", folder / "c.json", folder / "r.txt")[2]
    both = ("local", "spec", "b", "--epsilon", "1", "--unlisted-words", "--categories", "3")
    assert "--unlisted-words" in run(*both, "-o", folder / "b.json")[2]
    other = ("local", "spec", "b", "--epsilon", "1", "--unlisted-words", "--oracle", "kary")
    assert "auto" in run(*other, "-o", folder / "b.json")[2]
