import json
from pathlib import Path

import pytest
from typer.testing import CliRunner
from typer.testing import Result as Shown

from sourdine.cli import app
from sourdine_reproduction import (
    Result,
    Settings,
    Standing,
    experiment,
    find_experiments,
    judge,
    registry,
)


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Two small experiments instead of the real ones."""
    seen: list[Settings] = []
    find_experiments()
    monkeypatch.setattr(registry, "_KNOWN", {})

    def run(settings: Settings) -> Result:
        seen.append(settings)
        verdict = judge("thesis.order", finding="2", standing=Standing.WRONG, why="So it is.")
        return Result(name=f"toy{len(seen)}", title="A toy", lead="", verdicts=(verdict,), sections=())

    experiment("toy1", "The first")(run)
    experiment("toy2", "The second")(run)
    return seen


def reproduce(*args: str) -> Shown:
    return CliRunner().invoke(app, ["reproduce", *args])


def test_verdicts_are_shown_and_pages_kept(tmp_path: Path, toys: list[Settings]) -> None:
    result = reproduce("toy1", "-o", str(tmp_path / "out"))
    assert result.exit_code == 0
    assert "wrong. So it is." in result.stdout
    assert (tmp_path / "out" / "toy1.html").exists()
    assert (tmp_path / "out" / "toy1_verdicts.csv").exists()
    assert (toys[0].quick, toys[0].data) == (False, None)


def test_all_with_data_as_json(tmp_path: Path, toys: list[Settings]) -> None:
    result = reproduce("all", "--quick", "--data", str(tmp_path), "-o", str(tmp_path / "out"), "--json")
    found = json.loads(result.stdout)["experiments"]
    assert [one["name"] for one in found] == ["toy1", "toy2"]
    (told,) = found[0]["verdicts"]
    assert (told["name"], told["published"], told["found"]) == ("thesis.order", "13", "2")
    assert (told["standing"], told["why"]) == ("wrong", "So it is.")
    assert told["sentence"] == "The optimal α is 13.0."
    assert "4.1.1" in told["place"]
    assert all(Path(path).exists() for one in found for path in one["files"])
    assert [(one.quick, one.data) for one in toys] == [(True, tmp_path)] * 2


def test_without_a_name_it_lists_what_there_is() -> None:
    assert "The second" in reproduce().stdout
    names = [one["name"] for one in json.loads(reproduce("--json").stdout)["experiments"]]
    assert names == ["toy1", "toy2"]


def test_bad_input_ends_in_one_sentence_and_code_2(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for args, told in (
        (("gossip",), "The 'name' of reproduce must be all or one of toy1, toy2. Got 'gossip'."),
        (("toy1", "--data", str(tmp_path / "none")), "is not a folder"),
        (("toy1", "-o", str(file)), "cannot be a folder"),
        (("toy1", "-o", str(file / "below")), "cannot be a folder"),
        (("toy1", "toy2"), "toy2"),
    ):
        result = reproduce(*args)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert len(result.stderr.strip().splitlines()) == 1
        assert told in result.stderr


def test_all_has_a_page_of_contents_and_one_a_source_and_is_not_done_twice(
    tmp_path: Path, toys: list[Settings]
) -> None:
    first = reproduce("all", "-o", str(tmp_path / "out"))
    assert first.exit_code == 0
    page = tmp_path / "out" / "all.html"
    assert str(page.name) in first.stdout.replace("\n", "")
    assert "A toy" in page.read_text()
    assert 'href="thesis_learning.html"' in page.read_text()
    assert "The optimal α is 13.0." in (tmp_path / "out" / "thesis_learning.html").read_text()
    assert len(toys) == 2
    again = reproduce("all", "-o", str(tmp_path / "out"))
    assert "earlier run" in again.stdout
    assert len(toys) == 2
    reproduce("toy1", "--again", "-o", str(tmp_path / "out"))
    assert len(toys) == 3


def test_each_experiment_says_whether_its_data_are_real(tmp_path: Path) -> None:
    run = registry._KNOWN["toy1"].run
    for name in ("mnist", "cleaner"):
        experiment(name, name)(run)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "diabetes.csv").write_text("")
    (tmp_path / "data" / "cifar-10-python.tar.gz").write_bytes(b"")
    words = ("all", "--data", str(tmp_path / "data"), "-o", str(tmp_path / "out"))
    said = " ".join(reproduce(*words).stdout.split())
    assert "Real data: the Pima table, from " in said
    assert "STAND-IN: the images of MNIST are not at hand, so nothing is trained" in said
    assert said.count("It needs no data.") == 2
    assert "and not used: the source prints no numbers of it." in said
    assert "Real data: the Pima table" in "".join(
        path.read_text() for path in (tmp_path / "out").glob("*.html")
    )
    found = json.loads(reproduce(*words, "--json").stdout)["experiments"]
    assert [[one["real"] for one in each["data"]] for each in found] == [[True], [False], [], []]
