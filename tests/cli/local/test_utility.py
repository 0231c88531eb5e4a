import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sourdine.cli.local.utility import utility
from sourdine.cli.shared.app import OneSentence

SPECIFICATION = """\
[columns.dose]
type = "integer"
lower = 0
upper = 20
missing = 10

[columns.well]
type = "flag"
missing = false
"""
app = typer.Typer(cls=OneSentence)
app.command(name="utility")(utility)
app.callback()(lambda: None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = "".join(f"{12 if k % 3 else 5},{'true' if k % 3 else 'false'}\n" for k in range(90))
    (tmp_path / "wards.csv").write_text("dose,well\n" + rows)
    (tmp_path / "new.csv").write_text("dose,well\n11,true\n4,false\n")
    (tmp_path / "wards.toml").write_text(SPECIFICATION)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: object) -> tuple[int, str, str]:
    given = ["utility", "wards.csv", "--label", "well", "--repeats", "2", *(str(word) for word in words)]
    result = CliRunner().invoke(app, given)
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def test_scores_are_told_with_a_notice_and_a_page(folder: Path) -> None:
    code, out, err = call("--epsilon", "1,20", "--method", "laplace", "--html", "page.html")
    assert (code, err) == (0, "")
    assert out.startswith("NOT PRIVATE")
    assert "72 rows were cleaned" in out
    assert "the commonest label" in out
    assert "NOT PRIVATE" in (folder / "page.html").read_text(encoding="utf-8")


def test_ranges_and_lists_of_epsilon(folder: Path) -> None:
    for text, many in (("1:10", 4), (".5:2:3,8", 4), ("2", 1), ("1:2,1", 5)):
        code, out, _ = call("--each", text, "--method", "laplace", "--json")
        assert code == 0
        told = json.loads(out)
        assert told["notice"].startswith("NOT PRIVATE")
        assert len(told["points"]) == many
        assert all(2 * float(eval(point["asked"])) == point["epsilon"] for point in told["points"])


def test_a_second_table_tests(folder: Path) -> None:
    told = json.loads(
        call("--epsilon", "4", "--test", "new.csv", "--tested", "untouched,cleaned", "--json")[1]
    )
    assert (told["train"], told["test"]) == (90, 2)
    assert list(told["points"][0]["tested"]) == ["untouched", "cleaned"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--epsilon", "10:1"), "above its lower end"),
        (("--epsilon", "a"), "finite number"),
        (("--epsilon", "1:2:x"), "finite number"),
        (("--epsilon", "1:2:2.5"), "points of epsilon"),
        (("--epsilon", "1", "--model", "oracle"), "naive-bayes, logistic, tree"),
        (("--epsilon", "1", "--test", "gone.csv"), "gone.csv does not exist"),
        (("--epsilon", "1", "--spec", "gone.toml"), "gone.toml"),
        (("--epsilon", "1", "--html", "page.txt"), ".html"),
        ((), "Give one"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(folder: Path, words: tuple[str, ...], message: str) -> None:
    code, _, err = call(*words)
    assert code == 2
    assert message in err
