import json
from pathlib import Path

import duckdb
import pytest
import typer
from typer.testing import CliRunner

from sourdine.accounting.ledger import Ledger
from sourdine.cli.local.clean import clean
from sourdine.cli.shared.app import OneSentence
from sourdine.local.cleaner import Cleaner
from tests.cli.table_case import run

SPECIFICATION = """\
[columns.age]
type = "integer"
lower = 0
upper = 120
missing = 40

[columns.sex]
type = "category"
keys = ["f", "m"]
missing = "f"

[columns.ill]
type = "flag"
"""
app = typer.Typer(cls=OneSentence)
app.command(name="clean")(clean)
app.callback()(lambda: None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = "7,30,f,true\n" * 100 + "8,60,m,\n" * 200
    (tmp_path / "people.csv").write_text("secret,age,sex,ill\n" + rows)
    (tmp_path / "people.toml").write_text(SPECIFICATION)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["clean", *(str(word) for word in words)])
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def test_it_writes_the_table_the_cleaning_and_a_report(folder: Path) -> None:
    code, out, err = call("people.csv", "--epsilon", "9")
    assert (code, err) == (0, "")
    assert "EPSILON 9 FOR EACH PERSON = (3 + 3 + 3)" in out
    assert "Not paid from a ledger" in out
    assert "pulled towards the middle" in out
    made = folder / "people-clean"
    assert sorted(path.name for path in made.iterdir()) == ["cleaning.json", "people.csv", "report.html"]
    lines = (made / "people.csv").read_text().splitlines()
    assert lines[0] == "age,sex,ill"
    assert len(lines) == 301
    page = (made / "report.html").read_text(encoding="utf-8")
    assert "people.csv, cleaned" in page
    assert "drawn anew" in page
    cleaner = Cleaner.from_json(json.loads((made / "cleaning.json").read_text(encoding="utf-8")))
    assert cleaner.total == 9
    assert cleaner.estimates(made / "people.csv")["sex"].value.sum() == pytest.approx(1)


def test_with_next_to_no_noise_the_table_is_the_table(folder: Path) -> None:
    assert (
        call("people.csv", "--each", "60", "--column-epsilon", "sex=100", "-o", "out", "--keep-order")[0] == 0
    )
    lines = (folder / "out" / "people.csv").read_text().splitlines()[1:]
    assert [line.split(",")[1:] for line in lines] == [["f", "true"]] * 100 + [["m", ""]] * 200
    ages = [int(line.split(",")[0]) for line in lines]
    assert sum(ages[:100]) / 100 == pytest.approx(30, abs=2)


@pytest.mark.parametrize("ending", ["parquet", "json", "tsv"])
def test_other_files(folder: Path, ending: str) -> None:
    kinds = {"parquet": "", "json": "", "tsv": "(FORMAT csv, DELIMITER '\t')"}
    duckdb.sql(f"COPY (FROM 'people.csv') TO 'people.{ending}' {kinds[ending]}")
    code, _, err = call(f"people.{ending}", "--each", "1", "--no-report", "-o", "out")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["cleaning.json", f"people.{ending}"]


def test_json_for_machines(folder: Path) -> None:
    code, out, _ = call("people.csv", "--each", "1", "--rows", "2", "--method", "unbiased", "--json")
    held = json.loads(out)
    assert code == 0
    assert held["epsilon"] == 6
    assert held["records"] == 300
    assert held["columns"]["ill"]["labels"] == [False, True, None]
    assert held["columns"]["age"]["noise"] == "hybrid, unbiased"
    assert len(held["files"]) == 3


def test_a_ledger_pays(folder: Path) -> None:
    assert run("ledger", "create", "people.ledger", "--epsilon", "4", "--neighbours", "replace")[0] == 0
    code, out, err = call("people.csv", "--epsilon", "3", "--ledger", "people.ledger", "-o", "out")
    assert (code, err) == (0, "")
    assert "line 1. 1 is left" in out
    assert run("certificate", "verify", "out", "--ledger", "people.ledger")[0] == 0
    assert json.loads(Path("out/certificate.json").read_text())["complete"] is True
    code, out, err = call("people.csv", "--epsilon", "3", "--ledger", "people.ledger", "-o", "again")
    assert code == 2
    assert "has 1 left" in err
    assert not (folder / "again").exists()


def test_what_is_there_already_is_not_written_over(folder: Path) -> None:
    assert call("people.csv", "--epsilon", "3", "--no-report")[0] == 0
    before = (folder / "people-clean" / "people.csv").read_bytes()
    code, _, err = call("people.csv", "--epsilon", "3")
    assert code == 2
    assert "not written over" in err
    assert (folder / "people-clean" / "people.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("none.csv", "--epsilon", "1"), "The file none.csv does not exist"),
        (("people.xls", "--epsilon", "1"), "'.xls' is not read"),
        (("people.csv",), "'age' has no epsilon"),
        (("people.csv", "--epsilon", "0"), "'epsilon' of local clean"),
        (("people.csv", "--epsilon", "x"), "finite number"),
        (("people.csv", "--epsilon", "1", "--each", "1"), "not both"),
        (("people.csv", "--each", "1", "--column-epsilon", "age"), "a sign ="),
        (("people.csv", "--each", "1", "--column-epsilon", "secret=1"), "not declared"),
        (("people.csv", "--each", "1", "--method", "gauss"), "laplace, staircase, unbiased"),
        (("people.csv", "--each", "1", "--rows", "0"), "'rows'"),
        (("people.csv", "--each", "1", "--spec", "none.toml"), "none.toml does not exist"),
        (("people.csv", "--each", "1", "--encoding", "ebcdic"), "encoding"),
        (("people.csv", "--each", "1", "--ledger", "none.ledger"), "none.ledger"),
        (("people.csv", "--each", "100"), "the column 'age'"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    folder: Path, words: tuple[str, ...], message: str
) -> None:
    (folder / "people.xls").write_text("")
    before = sorted(folder.iterdir())
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert sorted(folder.iterdir()) == before


def test_blanks_and_unknown_columns_are_told_before_anything_is_paid(folder: Path) -> None:
    assert run("ledger", "create", "people.ledger", "--epsilon", "4", "--neighbours", "replace")[0] == 0
    for change in ('lower = "FILL IN"', "lower = 0\n[columns.height]\ntype = 'flag'\n[columns.b]\nlower = 0"):
        (folder / "people.toml").write_text(SPECIFICATION.replace("lower = 0", change))
        assert call("people.csv", "--epsilon", "3", "--ledger", "people.ledger")[0] == 2
    with Ledger.open(folder / "people.ledger") as ledger:
        assert ledger.status().spent == 0
    assert not (folder / "people-clean").exists()


def test_a_ledger_for_other_neighbours_is_refused(folder: Path) -> None:
    assert run("ledger", "create", "people.ledger", "--epsilon", "4")[0] == 0
    code, _, err = call("people.csv", "--epsilon", "3", "--ledger", "people.ledger")
    assert code == 2
    assert "--neighbours replace" in err
    assert not (folder / "people-clean").exists()


def test_a_table_named_like_a_file_that_goes_with_it(folder: Path) -> None:
    (folder / "people.csv").rename(folder / "cleaning.json")
    code, _, err = call("cleaning.json", "--spec", "people.toml", "--epsilon", "3")
    assert code == 2
    assert "Rename it" in err


def test_it_says_how_many_records_and_that_they_are_not_hidden(folder: Path) -> None:
    with (folder / "people.csv").open("a") as file:
        file.write("9,40\n")  # too short: the rest of it is missing
    out = " ".join(call("people.csv", "--epsilon", "9")[1].split())
    assert "301 records. That number is not hidden" in out
    assert "nor that somebody is among them" in out


def test_a_column_has_one_epsilon(folder: Path) -> None:
    code, out, err = call(
        "people.csv", "--epsilon", "9", "--column-epsilon", "age=1", "--column-epsilon", "age=2"
    )
    assert (code, out) == (2, "")
    assert "two epsilons" in err


def test_gaps_are_told_and_a_rule_leaves_none(folder: Path) -> None:
    _, out, _ = call("people.csv", "--epsilon", "9")
    assert "Cells of ill may be missing, which most learners refuse." in out
    code, out, err = call("people.csv", "--epsilon", "9", "--gap", "drop", "-o", "whole", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert 0 < told["handed_out"] < told["records"] == 300
    assert told["columns"]["ill"]["gap"] == "drop"
    lines = (folder / "whole" / "people.csv").read_text().splitlines()
    assert len(lines) == 1 + told["handed_out"]
    assert not any(line.endswith(",") for line in lines)
    assert "shown as missing, truly or not" in (folder / "whole" / "report.html").read_text(encoding="utf-8")
    assert "keep, drop, draw" in call("people.csv", "--epsilon", "9", "--gap", "guess")[2]


def test_the_rule_may_stand_in_the_specification(folder: Path) -> None:
    (folder / "people.toml").write_text(
        SPECIFICATION + '[clean]\nepsilon = 9\n[clean.columns.ill]\ngap = "draw"\n'
    )
    code, out, _ = call("people.csv")
    assert code == 0
    assert "a value is drawn evenly" in " ".join(out.split())
    assert len((folder / "people-clean" / "people.csv").read_text().splitlines()) == 301
