"""Words of a question that change what it means: each is read as SQL has it, or refused."""

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit, Schema
from sourdine.tables import Query
from sourdine.tables.query import with_expressions
from sourdine.tables.sql import SqlTable, read_sql
from tests.tables.sql.declared import TABLES, days, keys, whole

SCHEMA = Schema.read(
    {
        "age": {**whole(0, 120), "missing": "drop"},
        "pay": whole(0, 100_000),
        "region": keys("north", "south", "east"),
        "sex": keys("f", "m"),
        "seen": days("2024-01-01", "2024-12-31"),
        "at": {"type": "datetime", "first": "2024-01-01 00:00:00", "last": "2024-12-31 00:00:00"},
    }
)
TABLE = SqlTable(
    schema=SCHEMA, unit=PrivacyUnit(name="person", column="pid", max_rows=3, max_groups=2), joins=()
)


def ask(sql: str, table: SqlTable = TABLE) -> Query:
    query = read_sql(sql, table).query
    query.check(with_expressions(table.schema, [query]))
    return query


def computed(query: Query) -> dict[str, str]:
    return {name: tree.text for name, tree in query.derived.items()}


PRESENT = "CASE WHEN NOT (age IS NULL) THEN 1 ELSE 0 END"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(age) / COUNT(*) FROM people",
        "SELECT COUNT(age) - COUNT(*) FROM people",
        "SELECT COUNT(age), MEAN(pay) FROM people",
        "SELECT region, COUNT(age) FROM people GROUP BY region HAVING COUNT(*) > 100",
        "SELECT region, COUNT(age) FROM people GROUP BY region ORDER BY SUM(pay)",
    ],
)
def test_values_are_counted_without_other_aggregates_losing_records(sql: str) -> None:
    query = ask(sql)
    assert not query.where
    assert computed(query) == {PRESENT: PRESENT}
    assert len(query.ask) == 2


def test_values_are_counted_where_a_filter_is() -> None:
    (only,) = computed(ask("SELECT COUNT(age) FILTER (WHERE pay > 3) FROM people")).values()
    assert only == "CASE WHEN (pay > 3) AND (NOT (age IS NULL)) THEN 1 ELSE 0 END"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FILTER (WHERE age > 3) - COUNT(*) FILTER (WHERE pay > 5) AS d FROM people",
        "SELECT COUNT(*) FILTER (WHERE age > 3) / COUNT(*) FILTER (WHERE pay > 5) AS d FROM people",
        "SELECT COUNT(*) FILTER (WHERE age > 3) AS d, COUNT(*) FILTER (WHERE pay > 5) AS d FROM people",
        "SELECT region, COUNT(*) FILTER (WHERE age > 3) AS d FROM people GROUP BY region "
        "HAVING COUNT(*) FILTER (WHERE pay > 5) > 10",
    ],
)
def test_two_filters_are_two_columns_whatever_they_are_called(sql: str) -> None:
    query = ask(sql)
    assert set(computed(query).values()) == {
        "CASE WHEN age > 3 THEN 1 ELSE 0 END",
        "CASE WHEN pay > 5 THEN 1 ELSE 0 END",
    }
    assert len({each.label for each in query.ask}) == 2


def test_a_step_is_found_by_its_name_in_any_case_and_may_be_called_as_its_table() -> None:
    inner = "AS (SELECT * FROM people WHERE age > 18)"
    for text in (
        f"WITH Grown {inner} SELECT COUNT(*) FROM grown",
        f"WITH people {inner} SELECT COUNT(*) FROM People",
    ):
        assert [each.text for each in ask(text).where] == ["age > 18"]


def test_what_is_computed_takes_no_name_of_a_column() -> None:
    for alias in ("pid", "age", "PAY"):
        query = ask(
            f"SELECT FLOOR(pay / 50000) AS {alias}, COUNT(*) FROM (SELECT pay FROM people) GROUP BY 1"
        )
        assert query.by == ("FLOOR(pay / 50000)",)


def test_the_top_is_ranked_by_what_is_asked() -> None:
    asked = "SELECT region FROM people GROUP BY region ORDER BY {} DESC LIMIT 2"
    assert [each.label for each in ask(asked.format("COUNT(DISTINCT pid)")).ask] == ["top 2 of region"]
    with pytest.raises(InvalidParameter, match="most people have"):
        ask(asked.format("COUNT(*)"))
    by_values = ask(asked.format("COUNT(age)"))
    assert [each.label for each in by_values.ask] == ["count"]
    assert [each.text for each in by_values.where] == ["NOT (age IS NULL)"]


def test_a_difference_of_dates_is_in_days_and_one_of_times_in_seconds() -> None:
    end = "TIMESTAMP '2024-12-31 00:00:00'"
    for asked, told in {
        "DATE_DIFF('day', seen, '2024-12-31')": "DATE '2024-12-31' - seen",
        f"DATE_DIFF('second', at, {end})": f"SECONDS({end} - at)",
    }.items():
        assert list(computed(ask(f"SELECT AVG({asked}) FROM people")).values()) == [told]


REFUSED = {
    "SELECT AVG(DATE_DIFF('hour', at, TIMESTAMP '2024-12-31 00:00:00')) FROM people": "how often a new hour",
    "SELECT AVG(age) FROM (SELECT * REPLACE (age / 2 AS age) FROM people) t": "'REPLACE' is not understood",
    "SELECT AVG(age) FROM (SELECT * EXCLUDE (age) FROM people) t": "'EXCEPT' is not understood",
    "SELECT COUNT(* EXCLUDE (age)) FROM people": "'EXCEPT' is not understood",
    "SELECT AVG(age) FROM (SELECT age, pay FROM people) AS t(pay, age)": "'COLUMN' is not understood",
    "WITH t(pay, age) AS (SELECT age, pay FROM people) SELECT AVG(age) FROM t": "'COLUMN' is not understood",
    "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT COUNT(*) FROM a": "only further on",
    "WITH a AS (SELECT * FROM p), A AS (SELECT * FROM p) SELECT COUNT(*) FROM a": "twice",
    "SELECT region, COUNT(*) FROM people GROUP BY region WITH ROLLUP": "'ROLLUP' is not understood",
    "SELECT region, sex, COUNT(*) FROM people GROUP BY region, sex WITH CUBE": "'CUBE' is not understood",
    "SELECT region, sex FROM people GROUP BY region ORDER BY COUNT(*) DESC LIMIT 2": "neither grouped by",
    "SELECT COUNT(DISTINCT pid) FROM (SELECT age AS pid FROM people)": "another column here",
    "SELECT COUNT(DISTINCT x.pid) FROM people": "no table 'x'",
    "SELECT CAST(AVG(age) AS VARCHAR) FROM people": "Answers are numbers",
    "SELECT REGR_SLOPE(pay, age) - REGR_INTERCEPT(pay, age) FROM people": "come as one answer",
    "SELECT QUANTILE_CONT(pay, 0.9) / MEDIAN(pay) FROM people": "come as one answer",
    "SELECT region, AVG(pay) - MEDIAN(pay) FROM people GROUP BY region": "come as one answer",
    "SELECT COUNT(*) - COUNT(*) FROM people": "Both are the same",
    "SELECT region, COUNT(*) FROM people GROUP BY region HAVING COUNT(*) > 'abc'": "Compare it with a number",
    "SELECT region, COUNT(*) FROM people GROUP BY region HAVING region > 1": "Compare it with a text",
    "SELECT region, COUNT(*), REGR_SLOPE(pay, age) FROM people GROUP BY region "
    "HAVING REGR_SLOPE(pay, age) > 3": "other rows than 'count'",
    "SELECT region, COUNT(*) FROM people GROUP BY region HAVING COUNT(*) > 1e400": "up to 1e100",
    "SELECT COUNT(*) * 1e400 FROM people": "up to 1e100",
    "SELECT COUNT(*) * 1e90 * 1e90 FROM people": "up to 1e100",
    "SELECT COUNT(*) FROM people WHERE age > 1e999999999": "up to 1e100",
    "SELECT COUNT(*) FROM people WHERE age > 1" + "0" * 5000: "up to 1e100",
    "SELECT COUNT(*) FROM people GROUP BY " + "1" * 5000: "up to 1e100",
    "SELECT COUNT(*) FROM people LIMIT " + "1" * 5000: "up to 1e100",
    "SELECT COUNT(*)" + "+1" * 3000 + " FROM people": "nested too deeply",
    "SELECT COUNT(*) FROM people HAVING " + " AND ".join(["COUNT(*) > 1"] * 900): "too deeply|at most 64",
    "SELECT COUNT(*) FROM people HAVING " + " AND ".join(["COUNT(*) > 1"] * 65): "at most 64 conditions",
    "SELECT COUNT(*) AS n FROM people ORDER BY " + ", ".join(["n"] * 65): "at most 64 terms",
    "WITH a AS (SELECT age AS x FROM people), "
    + ", ".join(f"b{i} AS (SELECT x + x AS x FROM {f'b{i - 1}' if i else 'a'})" for i in range(60))
    + " SELECT AVG(x) FROM b59": "more than 4,096 parts",
}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        pytest.param(
            sql, words, marks=[pytest.mark.slow] if "4,096" in words else []
        )  # which takes long to read
        for sql, words in REFUSED.items()
    ],
)
def test_what_would_be_ignored_or_fail_later_is_refused(sql: str, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words.replace("(", r"\(")):
        ask(sql)


def test_a_public_table_has_its_own_columns_alone() -> None:
    table, asked = TABLES["pums"], "SELECT AVG({}) FROM pums JOIN {} r ON pums.state = r.state"
    with pytest.raises(InvalidParameter, match="brings no column 'income'"):
        read_sql(asked.format("r.income", "regions"), table)
    with pytest.raises(InvalidParameter, match="'COLUMN' is not understood"):
        read_sql(asked.format("income", "regions").replace(" r ON", " AS r(a, b) ON"), table)
    step = "WITH regions AS (SELECT state FROM pums) "
    with pytest.raises(InvalidParameter, match="declared public table"):
        read_sql(step + asked.format("income", "regions"), table)
