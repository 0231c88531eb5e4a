"""`sourdine bounds`, and specifications with hierarchies and joins."""

import json
import tomllib
from pathlib import Path

import duckdb
import pytest

from sourdine.tables import Specification
from tests.cli.table_case import run

SPECIFICATION = """\
[table]
source = "people.csv"

[privacy]
unit = "person"
ledger = "people.ledger"
epsilon = 1.0

[columns.pay]
type = "integer"
lower = "FILL IN"
upper = "FILL IN"

[[queries]]
name = "pay"
ask = [{ mean = "pay" }]
"""
PLACES = """\

[joins.places]
file = "places.csv"
on = { town = "name" }
columns = ["region"]

[hierarchies.place]
levels = ["land", "town"]
file = "lands.csv"

[columns.region]
type = "category"
keys = ["north", "south"]

[[queries]]
name = "places"
ask = [{ hierarchy = "place" }]

[[queries]]
name = "regions"
ask = ["count"]
by = ["region"]
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    rows = "\n".join(f"{100 + i % 900},{'ab'[i % 2]}" for i in range(4000))
    (tmp_path / "people.csv").write_text(f"pay,town\n{rows}\n")
    (tmp_path / "places.csv").write_text("name,region\na,north\nb,south\n")
    (tmp_path / "lands.csv").write_text("land,town\nx,a\nx,b\ny,c\n")
    place = tmp_path / "people.toml"
    place.write_text(SPECIFICATION)
    code, _, err = run("ledger", "create", tmp_path / "people.ledger", "--epsilon", "3", "--unit", "person")
    assert code == 0, err
    return place


def test_bounds_are_bought_and_pasted(spec: Path) -> None:
    code, out, err = run("bounds", spec, "--column", "pay", "--epsilon", "1", "--plan")
    assert (code, err) == (0, "")
    assert "Nothing was read or spent" in out
    code, out, err = run("bounds", spec, "--column", "pay", "--epsilon", "1", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["price"], found["left"], found["unit"]) == ("1", "2", "person")
    assert 0 <= found["lower"] <= 200 < 900 <= found["upper"]
    held = tomllib.loads(found["block"])["columns"]["pay"]
    assert held["type"] == "integer"
    start = SPECIFICATION.index("[columns.pay]")
    rest = SPECIFICATION[SPECIFICATION.index("[[queries]]") :]
    spec.write_text(SPECIFICATION[:start] + found["block"] + "\n" + rest)
    code, _, err = run("release", spec, "-o", spec.parent / "out", "--no-report")
    assert code == 0, err
    assert "privately, for epsilon 1" in (spec.parent / "out" / "certificate.json").read_text()


def test_the_block_is_printed_for_people(spec: Path) -> None:
    code, out, err = run("bounds", spec, "--column", "pay", "--epsilon", "0.5", "--type", "real")
    assert (code, err) == (0, "")
    assert "Paid epsilon 0.5" in out
    assert '[columns.pay]\ntype = "real"\nlower = ' in out


def test_mistakes_cost_nothing(spec: Path) -> None:
    for options in (["--column", "age"], ["--column", "pay", "--outside", "0.9"]):
        code, _, err = run("bounds", spec, *options, "--epsilon", "1")
        assert code == 2
        assert len(err.strip().splitlines()) >= 1
    code, out, _ = run("ledger", "status", spec.parent / "people.ledger", "--json")
    assert code == 0
    assert json.loads(out)["spent"] == "0"


def test_a_column_of_text_is_refused_before_the_charge(spec: Path) -> None:
    def spent() -> str:
        return json.loads(run("ledger", "status", spec.parent / "people.ledger", "--json")[1])["spent"]

    asked = ("bounds", spec, "--column", "town", "--epsilon", "1")
    code, out, err = run(*asked)  # a CSV file has no types, and the specification does not say one either
    assert (code, out, spent()) == (2, "", "0")
    assert "say --type integer or --type real" in err
    for kind in ("text", "category", "flag"):
        spec.write_text(SPECIFICATION + f'\n[columns.town]\ntype = "{kind}"\n')
        for more in ((), ("--type", "real"), ("--plan",)):
            code, out, err = run(*asked, *more)
            assert (code, out, spent()) == (2, "", "0")
            assert (
                f'is declared with type = "{kind}", and only numbers have bounds. Nothing was spent.' in err
            )


def test_a_column_of_text_is_refused_by_the_types_of_the_table(spec: Path) -> None:
    rows = duckdb.connect().read_csv(str(spec.parent / "people.csv"))
    rows.write_parquet(str(spec.parent / "people.parquet"))
    spec.write_text(SPECIFICATION.replace("people.csv", "people.parquet"))
    code, _, err = run("bounds", spec, "--column", "town", "--epsilon", "1")
    assert code == 2
    assert "'town' holds text, and nothing says that it holds numbers" in err
    code, out, err = run("bounds", spec, "--column", "pay", "--epsilon", "1")
    assert (code, err) == (0, "")
    assert "WARNING" not in out
    assert json.loads(run("ledger", "status", spec.parent / "people.ledger", "--json")[1])["spent"] == "1"


def test_bounds_that_found_no_end_are_told_as_such(spec: Path) -> None:
    code, out, err = run("bounds", spec, "--column", "town", "--epsilon", "1", "--type", "real")
    assert (code, err) == (0, "")
    assert "WARNING: These bounds are about as wide as any can be" in out


def test_a_draft_without_a_ledger_is_told_how_to_make_one(spec: Path) -> None:
    (spec.parent / "people.ledger").unlink()
    code, _, err = run("bounds", spec, "--column", "pay", "--epsilon", "0.5")
    assert code == 2
    assert "There is no ledger" in err
    assert "--epsilon 1.5 --unit person" in err  # the bounds and the release


def test_few_records_are_told_to_be_too_few(spec: Path) -> None:
    asked = ("bounds", spec, "--column", "pay", "--epsilon", "0.5", "--plan")
    assert "records." not in run(*asked)[1]
    for size, said in ((100, "Here it is 100 % of about 100 records. Take a larger"), (10**9, "records.\n")):
        spec.write_text(SPECIFICATION.replace('"people.csv"', f'"people.csv"\nsize = {size}'))
        assert said in run(*asked)[1].replace("\n", " ").strip() + "\n"


def test_bounds_of_a_declared_few_are_not_paid_for_unless_it_is_said(spec: Path) -> None:
    """By the declared size, never by the records: the same file without it is asked and paid."""

    def spent() -> str:
        return json.loads(run("ledger", "status", spec.parent / "people.ledger", "--json")[1])["spent"]

    spec.write_text(SPECIFICATION.replace('"people.csv"', '"people.csv"\nsize = 400'))
    asked = ("bounds", spec, "--column", "pay", "--epsilon", "0.5")
    code, out, err = run(*asked)
    assert (code, out, spent()) == (2, "", "0")
    told = " ".join(err.split())
    assert "would tell little: at epsilon 0.5 noise may hide 393 of about 400 records." in told
    assert "Nothing was spent. Take bounds from what the column means, or an epsilon of 2.46 or more." in told
    assert run(*asked[:-1], "2.46", "--plan")[1].count("Take a larger") == 0
    code, _, err = run(*asked, "--anyway")
    assert (code, err, spent()) == (0, "", "1/2")
    spec.write_text(SPECIFICATION)
    assert "Of fewer than about 1,966 records that tells little." in run(*asked, "--plan")[1].replace(
        "\n", " "
    )
    assert run(*asked)[0] == 0


def test_hierarchies_and_joins_come_from_files(spec: Path) -> None:
    spec.write_text(SPECIFICATION.replace('"FILL IN"', "0", 1).replace('"FILL IN"', "2000", 1) + PLACES)
    code, out, err = run("release", spec, "-o", spec.parent / "out", "--json")
    assert code == 0, err
    rows = json.loads(out)["rows"]
    value = {(row.get("land"), row.get("town"), row.get("region")): row["value"] for row in rows}
    assert value["all", "all", None] == value["x", "all", None] + value["y", "all", None]
    assert value["x", "all", None] == value["x", "a", None] + value["x", "b", None]
    assert abs(value[None, None, "north"] - 2000) < 200
    code, _, err = run("report", spec.parent / "out", "--html", spec.parent / "again.html")
    assert code == 0, err  # a record needs no public file any more
    (spec.parent / "lands.csv").unlink()
    code, _, err = run("report", spec.parent / "out", "--html", spec.parent / "third.html")
    assert code == 0, err


def test_a_hierarchy_that_is_not_declared_is_named(spec: Path) -> None:
    text = SPECIFICATION.replace('"FILL IN"', "0", 1).replace('"FILL IN"', "2000", 1)
    spec.write_text(text.replace('{ mean = "pay" }', '{ hierarchy = "place" }'))
    code, _, err = run("plan", spec)
    assert code == 2
    assert "[hierarchies.place]" in err


def test_rows_may_stand_in_the_specification(spec: Path) -> None:
    text = SPECIFICATION.replace('"FILL IN"', "0", 1).replace('"FILL IN"', "2000", 1)
    rows = '\n[hierarchies.place]\nlevels = ["land", "town"]\nrows = [["x", "a"], ["y", "b"]]\n'
    spec.write_text(text.replace('{ mean = "pay" }', '{ hierarchy = "place" }') + rows)
    assert Specification.load(spec).plan().schema.keys("town") == ("a", "b")
