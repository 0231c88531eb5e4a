import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sourdine.cli.anonymity import app
from sourdine.cli.shared.app import OneSentence

SECRET = "leukaemia"
ROWS = """age;home;care
19;25000;asthma
43;25200;cancer
73;25170;leukaemia
27;25480;HIV
35;25120;HIV
61;25000;leukaemia
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    place = tmp_path / "hospital.csv"
    place.write_text(ROWS)
    return place


def run(*words: object) -> Result:
    """The verb below a root of its own, so that mistakes end as they do on the command line."""
    import typer

    root = typer.Typer(cls=OneSentence)
    root.add_typer(app, name="anonymity")
    return CliRunner().invoke(root, ["anonymity", *map(str, words)])


def test_measures_are_shown_and_marked(table: Path) -> None:
    done = run("measure", table, "--quasi", "age,home", "--sensitive", "care")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("Measured on raw data: not for publication.")
    for word in ("records", "certainty", "l (distinct)", "t (equal)", "age + home", "sourdine release"):
        assert word in done.stdout


def test_measures_for_machines(table: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = run(
        "measure", table, "--quasi", "age", "--quasi", "home", "--sensitive", "care", "--json", "--html", page
    )
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert "not for publication" in told["note"]
    assert (told["k"], told["records"], told["sensitive"][0]["delta"]) == (1, 6, None)
    assert "not for publication" in page.read_text()


def test_a_population_orders_and_a_tree(table: Path, tmp_path: Path) -> None:
    trees = tmp_path / "trees"
    trees.mkdir()
    (trees / "care.csv").write_text("asthma;lungs;*\ncancer;grave;*\nleukaemia;grave;*\nHIV;grave;*\n")
    done = run(
        "measure", table, "--quasi", "home", "--sensitive", "care", "--hierarchical", "care",
        "--hierarchies", trees, "--population", table, "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["sensitive"][0]["ground"] == "hierarchical"
    assert told["journalist"]["average"] == told["prosecutor"]["average"]
    done = run("measure", table, "--quasi", "home", "--sensitive", "age", "--ordered", "age", "--json")
    assert json.loads(done.stdout)["sensitive"][0]["ground"] == "ordered"


def test_declared_columns_are_read_from_a_specification(table: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text('[columns.age]\ntype = "integer"\nlower = 0\nupper = 40\n')
    done = run("measure", table, "--quasi", "age", "--spec", spec, "--json")
    assert json.loads(done.stdout)["sizes"] == [[1, 3], [3, 1]]  # 43, 73 and 61 are moved to 40


def test_a_table_is_generalised_and_written(table: Path, tmp_path: Path) -> None:
    trees, out, page = tmp_path / "trees", tmp_path / "out.csv", tmp_path / "report.html"
    trees.mkdir()
    ages = {19: "18-30", 27: "18-30", 35: "35-45", 43: "35-45", 61: "60+", 73: "60+"}
    (trees / "age.csv").write_text("".join(f"{age};{band};*\n" for age, band in ages.items()))
    homes = {
        25000: "Besançon",
        25170: "Besançon",
        25480: "Besançon",
        25200: "Montbéliard",
        25120: "Montbéliard",
    }
    (trees / "home.csv").write_text("".join(f"{code};{town};*\n" for code, town in homes.items()), "utf-8")
    words = ("generalise", table, "--quasi", "age,home", "--sensitive", "care", "--hierarchies", trees)
    done = run(*words, "--k", "2", "-o", out, "--html", page)
    assert done.exit_code == 0, done.stderr
    assert "not for publication" in done.stdout
    assert "Satisfied: k = 2." in done.stdout
    with out.open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["age", "home", "care"]
    assert sorted(rows[1:]) == [
        ["18-30", "Besançon", "HIV"],
        ["18-30", "Besançon", "asthma"],
        ["35-45", "Montbéliard", "HIV"],
        ["35-45", "Montbéliard", "cancer"],
        ["60+", "Besançon", "leukaemia"],
        ["60+", "Besançon", "leukaemia"],
    ]
    assert "not for publication" in page.read_text()
    done = run(*words, "--k", "2", "--l", "2", "--suppress", "34%", "-o", tmp_path / "two.csv", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["after"]["sensitive"][0]["diversity"] >= 2
    assert told["suppressed"] == 2
    assert told["proven"] is True
    done = run(*words, "--k", "3", "--method", "mondrian", "-o", tmp_path / "three.csv", "--json")
    assert json.loads(done.stdout)["after"]["k"] >= 3


BAD = {
    "a column that is not there": (["--quasi", "weight"], "none is called 'weight'"),
    "k above the number of rows": (["--quasi", "age", "--k", "7"], "more than the 6 records"),
    "a value no class can have": (["--quasi", "age", "--sensitive", "care", "--l", "5"], "not varied enough"),
    "a share above one": (["--quasi", "age", "--suppress", "150%"], "'suppress'"),
    "a method nobody knows": (["--quasi", "age", "--method", "magic"], "full, mondrian, relaxed"),
    "a t above one": (["--quasi", "age", "--sensitive", "care", "--t", "2"], "'t'"),
    "a folder that is not there": (["--quasi", "age", "--hierarchies", "nowhere"], "no folder nowhere"),
    "no tree for distances": (
        ["--quasi", "age", "--sensitive", "care", "--hierarchical", "care"],
        "no hierarchy for 'care'",
    ),
    "a column named twice": (["--quasi", "age", "--sensitive", "age"], "named twice"),
    "missing by no rule": (["--quasi", "age", "--missing", "guess"], "value, drop"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_ends_in_one_sentence_and_writes_nothing(case: str, table: Path, tmp_path: Path) -> None:
    words, told = BAD[case]
    out, page = tmp_path / "out.csv", tmp_path / "page.html"
    done = run("generalise", table, *words, "-o", out, "--html", page)
    assert done.exit_code == 2
    assert told in done.stderr
    assert SECRET not in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hospital.csv"]


def test_a_hierarchy_that_misses_a_value_is_refused(table: Path, tmp_path: Path) -> None:
    trees, out = tmp_path / "trees", tmp_path / "out.csv"
    trees.mkdir()
    (trees / "age.csv").write_text("19;young;*\n")
    done = run("generalise", table, "--quasi", "age", "--hierarchies", trees, "-o", out)
    assert done.exit_code == 2
    assert "The hierarchy of 'age' misses 5 of the 6 values" in done.stderr
    assert not out.exists()


def test_a_file_that_is_there_is_never_written_over(table: Path) -> None:
    done = run("generalise", table, "--quasi", "age", "--k", "2", "-o", table)
    assert done.exit_code == 2
    assert "not written over" in done.stderr
    assert table.read_text() == ROWS


@pytest.mark.parametrize("way", ["itself", "link", "hard link"])
def test_a_page_never_takes_the_place_of_a_table(way: str, table: Path, tmp_path: Path) -> None:
    page, out = tmp_path / "report.html", tmp_path / "out.csv"
    if way == "itself":
        page = table
    elif way == "link":
        page.symlink_to(table)
    else:
        page.hardlink_to(table)
    for words in (("measure", table), ("generalise", table, "--k", "2", "-o", out)):
        done = run(*words, "--quasi", "age", "--html", page)
        assert done.exit_code == 2
        assert "is not written over" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert table.read_text() == ROWS
        assert not out.exists()


def test_a_page_takes_the_place_of_no_other_file(table: Path, tmp_path: Path) -> None:
    people, out = tmp_path / "people.csv", tmp_path / "out.csv"
    people.write_text(ROWS)
    done = run("measure", table, "--quasi", "age", "--population", people, "--html", people)
    assert done.exit_code == 2
    assert people.read_text() == ROWS
    done = run("generalise", table, "--quasi", "age", "--k", "2", "-o", out, "--html", out)
    assert done.exit_code == 2
    assert not out.exists()


@pytest.mark.parametrize("threshold", ["20%", "0.2", "1/5"])
def test_a_threshold_is_a_share(threshold: str, table: Path) -> None:
    done = run("measure", table, "--quasi", "age", "--threshold", threshold, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["prosecutor"]["threshold"] == 0.2


@pytest.mark.parametrize("threshold", ["0", "1", "100%", "-1"])
def test_a_threshold_that_is_no_risk_is_refused(threshold: str, table: Path) -> None:
    done = run("measure", table, "--quasi", "age", "--threshold", threshold)
    assert done.exit_code == 2
    assert "'threshold'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("threshold", ["1e-99", "0." + "3" * 50])
def test_a_threshold_of_many_digits_is_taken_exactly(threshold: str, table: Path) -> None:
    done = run("measure", table, "--quasi", "age", "--threshold", threshold, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["prosecutor"]["records_at_risk"] == 6


def test_a_specification_that_cannot_be_read_is_named(table: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    assert "cannot be read" in run("measure", table, "--quasi", "age", "--spec", spec).stderr
    spec.write_text("x = 1")
    assert "no [columns]" in run("measure", table, "--quasi", "age", "--spec", spec).stderr


def test_both_verbs_help_with_an_example() -> None:
    for verb in ("measure", "generalise"):
        assert f"sourdine anonymity {verb}" in " ".join(run(verb, "--help").stdout.split())
