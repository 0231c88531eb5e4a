import json
import shlex
from collections import Counter
from pathlib import Path

import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.tables.mock import draw_register
from tests.cli.table_case import run


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("home"))
        place = Path.cwd()
        code, out, err = run("demo")
        assert (code, err) == (0, "")
    return place, out


def test_it_publishes_spends_and_is_refused(shown: tuple[Path, str]) -> None:
    home, out = shown
    folder = home / "sourdine-demo"
    assert sorted(path.name for path in folder.iterdir()) == [
        "register.csv",
        "register.ledger",
        "register.toml",
        "release",
    ]
    assert "Paid epsilon 1 for each person, line 1 of the ledger. 0 is left." in out
    assert "the budget has 0 left. Nothing was spent." in out
    assert str(folder / "release" / "report.html") in out
    with Ledger.open(folder / "register.ledger") as ledger:
        (entry,) = ledger.history()
    assert entry.price == 1
    queries = {
        row["query"] for row in json.loads((folder / "release" / "release.json").read_text())["answers"]
    }
    assert len(queries) == 6


def test_the_answers_are_near_the_register(shown: tuple[Path, str]) -> None:
    folder = shown[0] / "sourdine-demo"
    people = draw_register()
    exact = Counter(zip(people.region.tolist(), people.sex.tolist(), strict=True))
    answers = json.loads((folder / "release" / "release.json").read_text())["answers"]
    (counts,) = (each for each in answers if each["query"] == "people")
    for key, value, low, high in zip(
        counts["keys"], counts["value"], counts["lower"], counts["upper"], strict=True
    ):
        assert abs(value - exact[tuple(key)]) < 250  # beyond it once in 10^12
        assert low <= value <= high


def test_every_command_it_ends_with_works(shown: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    home, out = shown
    monkeypatch.chdir(home)
    commands = [line.strip() for line in out.split("Next:")[1].splitlines() if "sourdine " in line]
    assert len(commands) == 7
    for command in commands:
        few = ["--pairs", "2"] if " certificate show " in command else []  # of the audit, which takes long
        code, found, err = run(*shlex.split(command)[1:], *few)
        if " plan " in command:  # its errors are told, and that the budget is gone
            assert (code, "± " in found) == (2, True), (command, err)
            assert "the budget has 0 left" in err
        else:
            assert code == 0, (command, err)


def test_a_second_demo_takes_a_numbered_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "register.toml").write_text("an older demonstration")
    monkeypatch.setattr("sourdine.cli.demo._PEOPLE", 500)
    code, out, _ = run("demo", "--output", tmp_path / "demo", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["folder"] == str(tmp_path / "demo-2")
    assert (found["price"], found["left"]) == ("1", "0")
    assert "Nothing was spent" in found["again"]
    assert (tmp_path / "demo" / "register.toml").read_text() == "an older demonstration"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_there_already_is_left_alone(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "mine"
    if kind == "file":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / "thesis.txt").write_text("mine")
    code, out, err = run("demo", "--output", place)
    assert (code, out) == (2, "")
    assert "holds something else" in err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("words", [("--nonsense",), ("extra",), ("--epsilon", "1")])
def test_bad_input_ends_in_one_sentence_and_code_2(words: tuple[str, ...]) -> None:
    code, out, err = run("demo", *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
