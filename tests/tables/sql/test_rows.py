"""How answers are shown: what AS calls them, which rows HAVING keeps, and shares of a total."""

import json

import pyarrow as pa
import pytest

import sourdine as sd
from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit, Schema
from sourdine.tables import Query
from sourdine.tables.release import _carry_out
from sourdine.tables.sql import SqlQuestion, SqlTable, read_sql
from sourdine.testing import SeededBits

COLUMNS = {
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "pay": {"type": "integer", "lower": 0, "upper": 1000},
    "sex": {"type": "category", "keys": ["f", "m"]},
    "region": {"type": "category", "keys": ["n", "s"]},
}


def ask(sql: str) -> SqlQuestion:
    return read_sql(sql, SqlTable(schema=Schema.read(COLUMNS), unit=PrivacyUnit()))


def names(sql: str) -> dict[str, str]:
    return dict(ask(sql).query.show.names)


def test_answers_are_called_as_is_said() -> None:
    table = sd.Table(
        pa.table({"age": [30, 40], "pay": [10, 20], "sex": ["f", "m"], "region": ["n", "s"]}),
        unit="person",
        columns=COLUMNS,
        size=2,
    )
    text = (
        "SELECT sex, COUNT(*) AS people, AVG(pay) AS typical, SUM(pay) / COUNT(*) AS each, "
        "COUNT_IF(age > 35) AS grown FROM t GROUP BY sex ORDER BY people DESC"
    )
    plan = table.plan(table.sql(text), epsilon=1, quality=False)
    found = [each.statistic for each in _carry_out(plan, table.source, bits=SeededBits(1)).values]
    assert found == ["people", "typical", "sum of pay", "grown", "each"]


def test_a_name_that_would_mean_two_things_is_not_given() -> None:
    assert names("SELECT COUNT(*) AS a, COUNT(*) AS b FROM t") == {}
    assert names("SELECT sex, COUNT(*) AS age FROM t GROUP BY sex") == {}  # a column
    assert names("SELECT MEDIAN(pay) AS m, QUANTILE_CONT(pay, 0.9) AS p FROM t") == {}  # rows of one answer
    assert names("SELECT REGR_SLOPE(pay, age) AS slope FROM t") == {}
    assert names("SELECT MEDIAN(pay) AS m FROM t") == {"quantiles of pay": "m"}
    assert names('SELECT COUNT(*), AVG(pay) AS "count" FROM t') == {}


@pytest.mark.parametrize("words", ["COUNT(*) BETWEEN 3 AND 20", "NOT (COUNT(*) < 3 OR COUNT(*) > 20)"])
def test_rows_between_two_numbers_are_shown(words: str) -> None:
    having = ask(f"SELECT sex, COUNT(*) FROM t GROUP BY sex HAVING {words}").query.show.having
    assert [(part.of, part.sign, part.value) for each in having for part in each.filters] == [
        ("count", ">=", 3),
        ("count", "<=", 20),
    ]


@pytest.mark.parametrize(
    ("words", "clauses"),
    {
        "COUNT(*) > 3 OR COUNT(*) < 2": [["count > 3", "count < 2"]],
        "NOT (COUNT(*) > 3 AND sex = 'f')": [["count <= 3", "sex <> f"]],
        "COUNT(*) NOT BETWEEN 1 AND 2": [["count < 1", "count > 2"]],
        "(COUNT(*) > 3 AND sex = 'f') OR n < 1": [["count > 3", "count < 1"], ["sex = f", "count < 1"]],
        "sex IN ('f', 'm')": [["sex = f", "sex = m"]],
        "COUNT(*) NOT IN (3, -1)": [["count <> 3"], ["count <> -1"]],
    }.items(),
)
def test_rows_are_chosen_by_any_condition(words: str, clauses: list[list[str]]) -> None:
    having = ask(f"SELECT sex, COUNT(*) AS n FROM t GROUP BY sex HAVING {words}").query.show.having
    assert [[f"{part.of} {part.sign} {part.value}" for part in each.filters] for each in having] == clauses
    query = ask(f"SELECT sex, COUNT(*) AS n FROM t GROUP BY sex HAVING {words}").query
    assert Query.read(json.loads(query.model_dump_json())) == query  # as a record keeps it


def test_what_having_cannot_compare_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="compares answers or keys with constants") as refused:
        ask("SELECT sex, COUNT(*) FROM t GROUP BY sex HAVING COUNT(*) + 1")
    assert "^" in str(refused.value)


def test_a_share_of_a_total_is_asked_for_by_a_window() -> None:
    present = "FROM t WHERE sex IS NOT NULL"
    whole = ask(f"SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER () AS part {present} GROUP BY sex").query
    assert [each.label for each in whole.compare] == ["share of count"]
    assert whole.show.names == {"share of count": "part"}
    within = (
        "SELECT sex, region, 100.0 * SUM(pay) / SUM(SUM(pay)) OVER (PARTITION BY region) "
        f"{present} GROUP BY 1, 2"
    )
    assert [each.label for each in ask(within).query.compare] == [
        "share of sum of pay by sex",
        "100 * share of sum of pay by sex",
    ]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT COUNT(*) / SUM(COUNT(*)) OVER () FROM t", "with GROUP BY"),
        ("SELECT sex, SUM(pay) / SUM(COUNT(*)) OVER () FROM t GROUP BY sex", "share of a group in a total"),
        ("SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER (ORDER BY sex) FROM t GROUP BY sex", "ORDER"),
        (
            "SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY age) FROM t GROUP BY sex",
            "not grouped by",
        ),
        ("SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex) FROM t GROUP BY sex", "all but one"),
        ("SELECT sex, RANK() OVER (ORDER BY COUNT(*)) FROM t GROUP BY sex", "Release the sums"),
    ],
)
def test_other_windows_are_refused(sql: str, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why) as refused:
        ask(sql)
    assert "^" in str(refused.value)
