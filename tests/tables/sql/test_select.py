"""Questions that people ask in SQL: what each comes to, or which of its words are refused."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from sourdine.core.errors import InvalidParameter
from sourdine.tables import Query
from sourdine.tables.shown_rows import RowFilter
from sourdine.tables.sql import SqlQuestion, read_sql
from tests.tables.sql.declared import TABLES


def ask(table: str, sql: str) -> SqlQuestion:
    return read_sql(sql, TABLES[table])


def _filters(query: Query) -> list[RowFilter]:
    return [part for each in query.show.having for part in each.filters]


def told(query: Query) -> dict[str, object]:
    """What a query asks, as people read it."""
    found = {
        "ask": [each.label for each in query.ask],
        "by": list(query.by),
        "where": [each.text for each in query.where],
        "derived": {name: tree.text for name, tree in query.derived.items()},
        "compare": [each.label for each in query.compare],
        "order": [("-" if each.descending else "") + each.of for each in query.show.order],
        "having": [f"{each.of} {each.sign} {each.value}" for each in _filters(query)],
        "limit": query.show.limit,
    }
    return {name: held for name, held in found.items() if held}


ANSWERED = {
    "SELECT COUNT(*) AS n FROM census": {"ask": ["count"]},
    "SELECT COUNT(age) AS n FROM census": {"ask": ["count"], "where": ["NOT (age IS NULL)"]},
    "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM census GROUP BY sex ORDER BY sex": {
        "ask": ["count", "mean of age"],
        "by": ["sex"],
        "order": ["sex"],
    },
    "SELECT educ, AVG(income) AS pay FROM pums GROUP BY educ ORDER BY pay DESC LIMIT 5": {
        "ask": ["mean of income"],
        "by": ["educ"],
        "order": ["-mean of income"],
        "limit": 5,
    },
    "SELECT educ, COUNT(*) AS n FROM pums GROUP BY educ HAVING COUNT(*) > 100": {
        "ask": ["count"],
        "by": ["educ"],
        "having": ["count > 100"],
    },
    "SELECT sex, SUM(capital_loss / 10000) AS s FROM census GROUP BY sex HAVING NOT (sex = 'Female') "
    "ORDER BY s DESC LIMIT 10": {
        "ask": ["sum of capital_loss / 10000"],
        "by": ["sex"],
        "derived": {"capital_loss / 10000": "capital_loss / 10000"},
        "having": ["sex <> Female"],
        "order": ["-sum of capital_loss / 10000"],
        "limit": 10,
    },
    "SELECT age, COUNT(*) AS n FROM census WHERE age BETWEEN 18 AND 30 GROUP BY age": {
        "ask": ["count"],
        "by": ["age"],
        "where": ["age >= 18", "age <= 30"],
    },
    "SELECT native_country, COUNT(*) FROM census WHERE native_country NOT IN ('Cuba', 'Italy') GROUP BY 1": {
        "ask": ["count"],
        "by": ["native_country"],
        "where": ["NOT (native_country IN ('Cuba', 'Italy'))"],
    },
    "SELECT CASE WHEN age < 50 THEN 'young' ELSE 'old' END AS band, COUNT(*) FROM census GROUP BY band": {
        "ask": ["count"],
        "by": ["band"],
        "derived": {"band": "CASE WHEN age < 50 THEN 'young' ELSE 'old' END"},
    },
    "SELECT sex, COUNT(*) FILTER (WHERE age >= 65) AS seniors, COUNT(*) AS n FROM pums GROUP BY sex": {
        "ask": ["sum of seniors", "count"],
        "by": ["sex"],
        "derived": {"seniors": "CASE WHEN age >= 65 THEN 1 ELSE 0 END"},
    },
    "SELECT COUNT(*) FILTER (WHERE married = 1) * 1.0 / COUNT(*) AS share FROM pums": {
        "ask": ["mean of share"],
        "derived": {"share": "CASE WHEN married IN (1) THEN 1 ELSE 0 END"},
    },
    "SELECT POWER(AVG(age), 2) AS r, 1 + AVG(age) AS s FROM census": {
        "ask": ["mean of age"],
        "compare": ["(mean of age)^2", "mean of age + 1"],
    },
    "SELECT UPPER(marital_status) AS m, COUNT(*) AS n FROM census GROUP BY marital_status": {
        "ask": ["count"],
        "by": ["m"],
        "derived": {"m": "UPPER(marital_status)"},
    },
    "SELECT CEIL(capital_loss / 100) AS bin, COUNT(*) AS n FROM census GROUP BY bin": {
        "ask": ["count"],
        "by": ["bin"],
        "derived": {"bin": "CEIL(capital_loss / 100)"},
    },
    "SELECT MEDIAN(income) AS m, QUANTILE_CONT(income, 0.9) FROM pums": {"ask": ["quantiles of income"]},
    "SELECT COUNT(*) FROM (SELECT * FROM pums WHERE age > 30) AS t": {
        "ask": ["count"],
        "where": ["age > 30"],
    },
    "WITH y AS (SELECT age, income / 12 AS pay FROM pums WHERE age < 40) SELECT AVG(pay) FROM y": {
        "ask": ["mean of income / 12"],
        "where": ["age < 40"],
        "derived": {"income / 12": "income / 12"},
    },
    "SELECT r.region, AVG(p.income) FROM pums p JOIN regions r ON p.state = r.state GROUP BY r.region": {
        "ask": ["mean of income"],
        "by": ["region"],
        "where": ["MATCHED(regions)"],
    },
    "SELECT COUNT(DISTINCT device_id) AS n, region FROM crashes WHERE temperature > 55 GROUP BY region": {
        "ask": ["units"],
        "by": ["region"],
        "where": ["temperature > 55"],
    },
    "SELECT DATE_TRUNC('month', order_date) AS m, COUNT(*) AS n FROM orders GROUP BY m ORDER BY m": {
        "ask": ["count"],
        "by": ["m"],
        "derived": {"m": "DATE_TRUNC('month', order_date)"},
        "order": ["m"],
    },
    "SELECT COUNT(*) FROM orders WHERE order_date >= DATE '2024-01-01' AND order_date < '2024-04-01'": {
        "ask": ["count"],
        "where": ["order_date >= DATE '2024-01-01'", "order_date < DATE '2024-04-01'"],
    },
    "SELECT AVG(end_date - start_date) FROM stays": {
        "ask": ["mean of end_date - start_date"],
        "derived": {"end_date - start_date": "end_date - start_date"},
    },
    "SELECT REGR_SLOPE(income, age), REGR_INTERCEPT(income, age) FROM pums": {
        "ask": ["regression of income on age"]
    },
    "SELECT SUM(weight * income) / SUM(weight) AS m FROM survey WHERE income IS NOT NULL": {
        "ask": ["weighted mean of income by weight"],
        "where": ["NOT (income IS NULL)"],
    },
    "SELECT SUM(weight * income) / SUM(weight) AS m FROM survey": {
        "ask": ["sum of weight * income", "sum of weight"],
        "derived": {"weight * income": "weight * income"},
        "compare": ["sum of weight * income per sum of weight"],
    },
    "SELECT sex, educ, COUNT(*) FROM pums WHERE sex = 1 AND educ IS NOT NULL GROUP BY ROLLUP (sex, educ)": {
        "ask": ["sex by educ"],
        "where": ["sex IN (1)", "NOT (educ IS NULL)"],
    },
    "SELECT sex, COUNT(*) FROM pums WHERE sex >= 0 GROUP BY ROLLUP (sex)": {
        "ask": ["sex by total"],
        "where": ["sex IN (0, 1)"],
    },
    "SELECT DISTINCT sex FROM pums": {"ask": ["count"], "by": ["sex"], "having": ["count >= 1"]},
    "SELECT educ AS e, COUNT(*) FROM pums GROUP BY e ORDER BY e": {
        "ask": ["count"],
        "by": ["educ"],
        "order": ["educ"],
    },
    "SELECT town FROM people GROUP BY town ORDER BY COUNT(*) DESC LIMIT 10": {"ask": ["top 10 of town"]},
    "select Sum(INCOME) / count(*) from PUMS where sex = 0 or not married = 1": {
        "ask": ["sum of income", "count"],
        "where": ["(sex IN (0)) OR (NOT (married IN (1)))"],
        "compare": ["sum of income per count"],
    },
    "SELECT SUM(amount) / COUNT(DISTINCT user_id) FROM orders": {
        "ask": ["sum of amount", "units"],
        "compare": ["sum of amount per units"],
    },
    "SELECT CORR(age, income), COVAR_POP(age, income), VAR_POP(age), STDDEV_POP(income) FROM pums": {
        "ask": [
            "correlation of age and income",
            "covariance of age and income",
            "variance of age",
            "deviation of income",
        ]
    },
}
REFUSED = {
    "SELECT SUM(LN(capital_loss)) AS s FROM census": ("LN(capital_loss + 1)", "LN(capital_loss"),
    "SELECT COUNT(DISTINCT age) AS n FROM census": ("privacy unit alone", "COUNT(DISTINCT age"),
    "SELECT SUM(DISTINCT age) AS s FROM census": ("DISTINCT", "SUM(DISTINCT age"),
    "SELECT MIN(age), MAX(age) FROM census": ("value of one record", "age"),
    "SELECT MAX(income) FROM pums": ("QUANTILE_CONT(income, 0.99)", "income"),
    "SELECT sex, RANK() OVER (ORDER BY age) FROM pums": ("computed from others", "RANK"),
    "SELECT COUNT(*) FROM pums UNION SELECT AVG(age) FROM pums": ("Ask each of these by itself", "COUNT"),
    "SELECT * FROM census": ("show records", "*"),
    "SELECT age FROM census": ("value of one record", "age"),
    "SELECT married, educ, AVG(age) FROM pums GROUP BY married": ("neither grouped by nor", "educ"),
    "SELECT AVG(s) FROM (SELECT SUM(capital_loss) AS s FROM census GROUP BY age) AS t": ("one person", "age"),
    "WITH a AS (SELECT * FROM census), b AS (SELECT * FROM census) SELECT COUNT(*) FROM a JOIN b": (
        "declared public table",
        "b",
    ),
    "SELECT COUNT(*) FROM pums CROSS JOIN regions": ("on its key", "regions"),
    "SELECT COUNT(*) FROM pums JOIN regions ON pums.region = regions.region": (
        "several times",
        "pums.region = regions.region",
    ),
    "SELECT COUNT(*) FROM orders WHERE order_date > CURRENT_DATE - 30": ("another tomorrow", "order_date"),
    "SELECT COUNT(*) FROM pums TABLESAMPLE BERNOULLI (10)": ("not secret", "pums"),
    "SELECT COUNT(*) FROM pums WHERE income / (age - 30) > 1000": ("NULLIF(age - 30, 0)", "income / (age"),
    "SELECT COUNT(*) FROM read_csv('other.csv')": ("declared tables", "read_csv"),
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) AVG(quantity) FROM professors": (
        "declared beside the table",
        "WITH DIFFERENTIAL_PRIVACY",
    ),
    "SELECT COUNT(*) FROM orders GROUP BY user_id": ("would be one customer", "user_id"),
    "SELECT AVG(user_id) FROM orders": ("COUNT(DISTINCT user_id)", "user_id"),
    "SELECT SUM(amount) OVER (ORDER BY order_date) FROM orders": ("one person could move many", "SUM"),
    "SELECT STDDEV(income) FROM pums": ("STDDEV_POP", "STDDEV(income"),
    "SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER () FROM pums GROUP BY sex": ("WHERE sex IS NOT NULL", "COUNT"),
    "SELECT sex, COUNT(*) FROM pums GROUP BY CUBE (sex, educ)": ("WHERE sex IS NOT NULL", "sex"),
    "SELECT COALESCE(VAR_POP(income), 0) FROM pums": ("no answer is missing", "COALESCE(VAR_POP(income), 0"),
    "SELECT WEEKDAY(order_date), COUNT(*) FROM orders GROUP BY 1": ("DAYNAME(x)", "WEEKDAY"),
    "SELECT DISTINCT sex, COUNT(*) FROM pums GROUP BY sex, educ": ("several rows one", "sex"),
    "SELECT CASE sex WHEN 0 THEN 'a' WHEN 1 THEN 'b' WHEN 0 THEN 'c' END, COUNT(*) FROM pums GROUP BY sex": (
        "several keys",
        "sex",
    ),
    "SELECT COUNT(*) FROM (SELECT sex AS state FROM pums) AS p JOIN regions ON p.state = regions.state": (
        "another column",
        "regions",
    ),
    "SELECT COUNT(*) FROM pums WHERE age > (SELECT AVG(age) FROM pums)": ("computed from others", "AVG(age"),
    "SELECT COUNT(*) FROM pums QUALIFY 1 = 1": ("QUALIFY", "1"),
    "SELECT sex, COUNT(*) FROM pums GROUP BY sex ORDER BY income": ("what SELECT asks for", "income"),
    "SELECT AVG(incme) FROM pums": ("Did you mean 'income'", "incme"),
    "SELECT AVG(income) FROM pums LIMIT 0": ("whole number above 0", "0"),
    "SELECT AVG(income) FROM pums OFFSET 5": ("OFFSET", "5"),
    "SELECT random() FROM pums": ("noise alone", "random"),
    "SELECT SUM(income) + SUM(age) FROM pums": ("differences and ratios", "SUM(income) + SUM(age"),
    "SELECT COUNT(*) FROM pums, regions": ("several times", "regions"),
    "SELECT LISTAGG(state) FROM pums": ("not answered", "state"),
    "SELECT ROUND(AVG(income), 2) FROM pums": ("rounded to what", "ROUND"),
}


def table_of(sql: str) -> str:
    words = sql.lower().replace("(", " ").replace(".", " ").replace(",", " ").split()
    return next((name for name in TABLES if name in words), "pums")


@pytest.mark.parametrize("sql", ANSWERED)
def test_what_a_question_comes_to(sql: str) -> None:
    query = ask(table_of(sql), sql).query
    assert told(query) == ANSWERED[sql]
    assert Query.model_validate_json(query.model_dump_json()) == query
    assert Query.read(json.loads(query.model_dump_json())) == query  # as a record keeps it


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_refused_says_which_words_and_why(sql: str) -> None:
    sentence, words = REFUSED[sql]
    with pytest.raises(InvalidParameter) as problem:
        ask(table_of(sql), sql)
    first, line, carets = str(problem.value).split("\n")
    assert sentence in first
    marked = line[carets.index("^") : carets.rindex("^") + 1]
    assert marked.startswith(words)


def test_only_a_plan_may_be_asked_for() -> None:
    assert ask("pums", "EXPLAIN SELECT COUNT(*) FROM pums").explain
    assert not ask("pums", "SELECT COUNT(*) FROM pums").explain


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE pums",
        "SELECT COUNT(*) FROM pums; SELECT COUNT(*) FROM pums",
        "INSERT INTO pums VALUES (1)",
        "COPY pums TO 'x'",
        "ATTACH 'x.db'",
        "PRAGMA version",
        "",
        "SELECT",
        "SELECT COUNT(*) FROM pums UNION ALL SELECT COUNT(*) FROM pums",
        "SELECT COUNT(*) FROM 'file.parquet'",
        "SELECT COUNT(*) FROM other.schema.pums",
        "FROM pums",
        "x" * 30_000,
        "SELECT COUNT(*) FROM pums WHERE " + "(" * 500 + "age > 1" + ")" * 500,
        "SELECT COUNT(*) FROM pums WHERE age > ?",
        "SELECT COUNT(*) FROM pums WHERE state = $1",
        "SELECT COUNT(*) FROM pums WHERE getenv('HOME') = 'x'",
    ],
)
def test_nothing_else_is_run(sql: str) -> None:
    with pytest.raises(InvalidParameter):
        ask("pums", sql)


WORDS = [
    *("SELECT", "FROM", "pums", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "COUNT(*)", "AVG(", ")"),
    *(
        "age",
        "income",
        "sex",
        "(",
        ",",
        "=",
        ">",
        "AND",
        "OR",
        "NOT",
        "IN",
        "1",
        "'x'",
        "0.5",
        "CASE",
        "WHEN",
    ),
    *("THEN", "ELSE", "END", "AS", "a", "*", "/", "-", "BETWEEN", "NULL", "IS", "DISTINCT", "WITH", "JOIN"),
    *("regions", "ON", "state", "OVER", "UNION", ";", "--", "/*", "*/", '"', "'", "SUM(", "FILTER (WHERE"),
]


@given(some.lists(some.sampled_from(WORDS), max_size=25))
@example(["DISTINCT"])
def test_whatever_is_written_is_read_or_refused(words: list[str]) -> None:
    sql = "SELECT " + " ".join(words)
    for text in (sql, f"{sql} FROM pums"):
        try:
            found = read_sql(text, TABLES["pums"])
        except InvalidParameter:
            continue
        assert found.query.ask


def test_a_text_with_signs_that_a_terminal_obeys_is_shown_tame() -> None:
    with pytest.raises(InvalidParameter) as problem:
        ask("pums", "SELECT AVG(\x1b[31mage) FROM pums")
    assert "\x1b" not in str(problem.value)
