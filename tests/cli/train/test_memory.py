import csv
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from sourdine.cli import train
from sourdine.cli.shared.app import OneSentence
from sourdine.learning.memory import table
from tests.learning.memory.test_table import made

app = typer.Typer(cls=OneSentence)
app.add_typer(train.app, name="train")
app.callback()(lambda: None)
SIZES = ("--hidden", "8,64", "--batch-size", "4,8,15,16,17", "--reduce", "1,2", "--side", "64")


def run(*args: object, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["train", "memory", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Cases that were measured, by arithmetic instead of processes."""
    done: list[object] = []

    def trial(case):  # type: ignore[no-untyped-def]
        done.append(case)
        return made(case, jump_at=16)

    monkeypatch.setattr(table, "in_fresh_process", trial)
    return done


def test_every_case_is_measured_once(tmp_path: Path, measured: list[object]) -> None:
    out, page = tmp_path / "memory.csv", tmp_path / "memory.html"
    said = run(*SIZES, "--output", out, "--html", page).stdout
    assert len(measured) == len(set(measured)) == 2 * 5 * 2 * 2
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 40
    assert {row["Differential_Privacy"] for row in rows} == {"Y", "N"}
    assert "the largest jump of tensors is 0.0005 MB" in said
    assert "<h1>Memory of training" in page.read_text()
    run(*SIZES, "--hidden", "8", "--output", out)
    assert len(measured) == 40
    run(*SIZES, "--hidden", "16", "--output", out)
    assert len(measured) == 60


def test_machines_read_json(tmp_path: Path) -> None:
    found = json.loads(run(*SIZES, "--output", tmp_path / "memory.csv", "--json").stdout)
    assert len(found["cases"]) == 40
    line = next(each for each in found["lines"] if each["quantity"] == "tensors at most")
    assert (line["hidden"], line["private"]) == (8, False)
    assert {(each["before"], each["after"]) for each in found["jumps"]} == {(15, 16), (16, 17)}


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (
            ("--batch-size", "4,x"),
            "The 'batch-size' of train memory must be whole numbers separated by commas.",
        ),
        (("--batch-size", "0"), "The 'batch' of train memory"),
        (("--reduce", "8"), "The 'reduce' of train memory must leave 32 of 224 pixels."),
        (("--optimizer", "luck"), "The 'optimizer' of train memory must be one of sgd, momentum, adam."),
        (("--repeats", "0"), "The 'repeats' of train memory"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, args: tuple[str, ...], told: str) -> None:
    result = run(*args, "--output", tmp_path / "memory.csv", code=2)
    assert told in " ".join(result.output.split())
