"""`sourdine sql`: one question, planned or paid; a refused one costs nothing."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.table_case import Case, build, run


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return build(tmp_path)


def test_explain_prints_errors_and_spends_nothing(case: Case) -> None:
    code, out, err = run("sql", case.spec, "EXPLAIN SELECT sex, AVG(age) FROM people GROUP BY sex")
    assert (code, err) == (0, "")
    assert "A plan at epsilon 0.5. No record was read, nothing spent." in out
    assert "mean of age" in out
    assert case.spent() == "0"
    found = json.loads(run("sql", case.spec, "explain SELECT COUNT(*) FROM people", "--json")[1])
    assert [each["statistic"] for each in found["forecasts"]] == ["count"]


def test_a_question_is_paid_and_published(case: Case) -> None:
    folder = case.folder / "asked"
    asked = "SELECT sex, COUNT(*) AS n FROM people WHERE age >= 18 GROUP BY sex ORDER BY n DESC"
    code, _, err = run("sql", case.spec, asked, "--epsilon", "0.25", "-o", folder, "--name", "grown")
    assert (code, err) == (0, "")
    assert case.spent() == "1/4"
    rows = list(csv.DictReader((folder / "answers.csv").read_text().splitlines()))
    assert {row["query"] for row in rows} == {"grown"}
    values = [float(row["value"]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert run("certificate", "verify", folder)[0] == 0
    assert run("report", folder, "-o", case.folder / "again.html")[0] in (0, 2)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("SELECT MIN(age) FROM people", "value of one record"),
        ("SELECT * FROM people", "show records"),
        ("DROP TABLE people", "Only SELECT"),
        ("SELECT AVG(agee) FROM people", "Did you mean 'age'"),
    ],
)
def test_what_is_refused_costs_nothing_and_points_at_the_words(case: Case, asked: str, words: str) -> None:
    code, out, err = run("sql", case.spec, asked)
    assert (code, out) == (2, "")
    assert words in err
    assert case.spent() == "0"
    assert not (case.folder / "sql-release").exists()


def test_a_specification_asks_in_sql(case: Case) -> None:
    start = case.spec.read_text().index("[[queries]]")
    text = case.spec.read_text()[:start]
    asked = "SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS band, COUNT(*) FROM t GROUP BY band"
    case.spec.write_text(f'{text}[[queries]]\nname = "bands"\nsql = "{asked}"\nweight = 2\n')
    code, out, err = run("plan", case.spec)
    assert (code, err) == (0, "")
    assert "also because a column is missing" in " ".join(out.split())
    folder = case.folder / "out"
    assert run("release", case.spec, "-o", folder)[0] == 0
    assert "young" in (folder / "answers.csv").read_text()
    case.spec.write_text(f'{text}[[queries]]\nname = "bands"\nsql = "{asked}"\nby = ["sex"]\n')
    code, out, err = run("plan", case.spec)
    assert code == 2
    assert "Say it in the SQL" in err
