"""Questions that were once answered otherwise than by DuckDB: without noise both give the same."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sourdine as sd
from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions import Constant, Negate
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits
from tests.tables.sql.machine import without_noise

ROWS = 60
TOWNS = ["Lille", "Nice", "Brest", "Elsewhere", None]
PRIVATE = pa.table(
    {
        "town": [TOWNS[i % 5] for i in range(ROWS)],
        "sex": ["f" if i % 3 else "m" for i in range(ROWS)],
        "educ": [None if i % 7 == 0 else ["zebra", "ant", "bee"][i % 3] for i in range(ROWS)],
        "ok": [i % 4 == 0 for i in range(ROWS)],
        "a": pa.array([None if i % 6 == 0 else i % 9 for i in range(ROWS)], pa.int64()),
        "b": [1 + i % 8 / 2 for i in range(ROWS)],
        "w": [i % 5 for i in range(ROWS)],
        "day": [date(2024, 9 + i % 4, 1 + i % 28) for i in range(ROWS)],
        "seen": [datetime(2024, 1, 29 + i % 3, i % 24) for i in range(ROWS)],
    }
)
PUBLIC = pa.table({"name": ["Lille", "Nice", "Brest"], "region": [None, "south", "west"], "size": [1, 2, 3]})
COLUMNS: dict[str, dict[str, Any]] = {
    "town": {"type": "category", "keys": ["Lille", "Nice", "Brest", "Elsewhere"]},
    "sex": {"type": "category", "keys": ["m", "f"], "missing": "f"},
    "educ": {"type": "category", "keys": ["zebra", "ant", "bee"]},
    "ok": {"type": "flag", "missing": False},
    "a": {"type": "integer", "lower": 0, "upper": 10},
    "b": {"type": "real", "lower": 1.0, "upper": 5.0, "granularity": 0.5},
    "w": {"type": "integer", "lower": 0, "upper": 5, "missing": 0},
    "day": {"type": "date", "first": "2024-09-01", "last": "2024-12-31"},
    "seen": {"type": "datetime", "first": "2024-01-01 00:00:00", "last": "2024-03-31 00:00:00"},
    "region": {"type": "category", "keys": ["south", "west", "none"]},
}
LEFT, INNER = "FROM p LEFT JOIN r ON p.town = r.name", "FROM p JOIN r ON p.town = r.name"


def opened(**region: Any) -> sd.Table:
    columns = {**COLUMNS, "region": {**COLUMNS["region"], **region}}
    join = {"table": PUBLIC, "on": {"town": "name"}, "columns": ["region"]}
    return sd.Table(PRIVATE, unit="person", columns=columns, joins={"r": join}, size=ROWS)


def plain(sql: str) -> list[tuple[Any, ...]]:
    held = duckdb.connect()
    held.register("p", PRIVATE)
    held.register("r", PUBLIC)
    return held.sql(sql).fetchall()


def ours(sql: str, table: sd.Table) -> list[tuple[tuple[Any, ...], float]]:
    """Keys and values of the answer that was asked for last, which others are computed for."""
    with without_noise():
        plan = table.plan(table.sql(sql), epsilon=1 << 20, quality=False)
        answer = _carry_out(plan, table.source, bits=SeededBits(1)).values.each[-1]
    return list(zip(answer.keys, answer.estimate.value.tolist(), strict=True))


MONTHS = {"2024-09-01": "2024-09", "2024-10-01": "2024-10", "2024-11-01": "2024-11", "2024-12-01": "2024-12"}


def key(cell: Any) -> Any:
    return MONTHS[str(cell)[:10]] if isinstance(cell, date) else cell


EQUAL = [
    f"SELECT COUNT(*) {LEFT} WHERE r.name IS NULL",
    f"SELECT COUNT(*) {LEFT} WHERE r.name IS NOT NULL AND sex = 'f'",
    f"SELECT COUNT(r.name) {LEFT}",
    f"SELECT sex, COUNT(r.name) {LEFT} GROUP BY sex",
    f"SELECT sex, COUNT(r.region) {LEFT} GROUP BY sex",
    f"SELECT r.name, COUNT(*) {LEFT} GROUP BY r.name",
    f"SELECT COUNT(*) {INNER}",
    f"SELECT r.region, COUNT(*) {INNER} GROUP BY r.region",
    "SELECT sex, ok, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex) FROM p GROUP BY sex, ok",
    "SELECT educ, COUNT(*) / SUM(COUNT(*)) OVER () FROM p WHERE educ IS NOT NULL GROUP BY educ",
    "SELECT date_trunc('month', day) AS m, COUNT(*) FROM p GROUP BY m HAVING m >= '2024-11-01'",
    "SELECT date_trunc('month', day) AS m, COUNT(*) FROM p GROUP BY m HAVING m = DATE '2024-11-01'",
    "SELECT date_trunc('month', day) AS m, COUNT(*) FROM p GROUP BY m HAVING m > '2024-10-31' ORDER BY 1",
    "SELECT COUNT(*) FROM p WHERE date_trunc('month', day) >= '2024-11-01'",
    "SELECT COUNT(*) FROM p WHERE date_trunc('week', day) = '2024-10-07'",
    "SELECT COUNT(*) FROM p WHERE date_trunc('week', day) < DATE '2024-10-09'",
    "SELECT COUNT(*) FROM p WHERE seen::date <= '2024-01-30'",
    "SELECT COUNT(*) FROM p WHERE CAST(seen AS DATE) = DATE '2024-01-30'",
    "SELECT CAST(AVG(b) AS INTEGER) FROM p",
    "SELECT educ, AVG(b) FROM p WHERE educ IS NOT NULL GROUP BY educ ORDER BY educ LIMIT 1",
    "SELECT educ AS e, COUNT(*) FROM p WHERE educ IS NOT NULL GROUP BY e ORDER BY e",
    "SELECT educ AS e, COUNT(*) FROM p GROUP BY e HAVING e = 'bee'",
    "SELECT educ, COUNT(*) FROM p GROUP BY educ HAVING educ IN ('bee', 'ant') OR COUNT(*) > 100",
    "SELECT educ, COUNT(*) AS n FROM p GROUP BY educ HAVING n IN (17, 18, -1)",
    "SELECT educ, COUNT(*) FROM p GROUP BY educ HAVING educ LIKE '%e%'",
    "SELECT educ AS w, COUNT(*) FROM p GROUP BY educ HAVING w = 'bee'",
    "SELECT educ AS sex, sex AS w, COUNT(*) FROM p GROUP BY educ, p.sex HAVING sex = 'f'",
    "SELECT ok, COUNT(*) FROM p GROUP BY ok ORDER BY ok DESC",
    "SELECT SUM(w * a) / SUM(w) FROM p",
    "SELECT sex, SUM(w * a) / SUM(w) FROM p GROUP BY sex",
    "SELECT COUNT(*) FROM p WHERE a IN (3, -1)",
    "SELECT COUNT(*) FROM p WHERE educ NOT LIKE '%b%'",
    "SELECT COUNT(*) FROM p WHERE educ < 'bee'",
    "SELECT COUNT(*) FROM p WHERE educ IS DISTINCT FROM 'bee'",
    "SELECT COUNT(*) FROM p WHERE a IS NOT DISTINCT FROM w",
    "SELECT COUNT(*) FROM p WHERE a = - (-2)",
    "SELECT 1 / AVG(b) FROM p",
    "SELECT FLOOR(AVG(b) * 3) FROM p",
    "SELECT COALESCE(SUM(a), 0) FROM p",
    "SELECT COALESCE(AVG(a), 7) FROM p WHERE a > 4",
    "SELECT sex, COALESCE(AVG(a) FILTER (WHERE sex = 'f'), 0) FROM p GROUP BY sex",
    "SELECT COUNT(*) FROM p WHERE UPPER(town) = 'LILLE'",
]


@pytest.mark.parametrize("sql", EQUAL)
def test_the_answer_is_that_of_duckdb(sql: str) -> None:
    found, wanted = ours(sql, opened()), plain(sql)
    theirs = [(tuple(map(key, row[:-1])), row[-1]) for row in wanted if None not in row]
    assert [each for each, _ in found if "ORDER" in sql] == [each for each, _ in theirs if "ORDER" in sql]
    # a group without records is shown here
    assert {each: value for each, value in theirs if value} == pytest.approx(
        {each: value for each, value in found if value}
    )


@pytest.mark.parametrize("word", ["ROLLUP", "CUBE"])
@pytest.mark.parametrize("keys", [["sex"], ["sex", "ok"], ["sex", "educ", "ok"]])
def test_sums_are_those_of_rollup_and_of_cube(word: str, keys: Sequence[str]) -> None:
    named = ", ".join(keys)
    sql = f"SELECT {named}, COUNT(*) FROM p WHERE educ IS NOT NULL GROUP BY {word} ({named})"
    theirs = {tuple("all" if cell is None else cell for cell in row[:-1]): row[-1] for row in plain(sql)}
    assert {each: count for each, count in ours(sql, opened()) if count} == theirs


def test_a_column_that_is_brought_is_null_where_nothing_matched() -> None:
    """What missing cells count as is said of the public table's cells, not of records without a row in it."""
    table = opened(missing="none")
    assert ours(f"SELECT COUNT(*) {INNER}", table)[0][1] == plain(f"SELECT COUNT(*) {INNER}")[0][0] == 36
    sql = f"SELECT COUNT(r.region) {LEFT}"
    assert ours(sql, table)[0][1] == 36
    assert ours(f"SELECT COUNT(*) {LEFT} WHERE r.region IS NULL", table)[0][1] == ROWS - 36


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (
            "SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER () FROM p GROUP BY sex HAVING COUNT(*) > 20",
            "hides some of its groups",
        ),
        ("SELECT educ, COUNT(*) / SUM(COUNT(*)) OVER () FROM p GROUP BY educ", "WHERE educ IS NOT NULL"),
        ("SELECT sex, educ, COUNT(*) FROM p GROUP BY ROLLUP (sex, educ)", "WHERE educ IS NOT NULL"),
        ("SELECT sex, COUNT(*) FROM p GROUP BY ROLLUP (sex, sex)", "names a key twice"),
        (
            "SELECT CASE educ WHEN 'bee' THEN 'x' WHEN 'ant' THEN 'x' WHEN 'zebra' THEN 'y' "
            "WHEN 'bee' THEN 'z' END, COUNT(*) FROM p GROUP BY educ",
            "several keys",
        ),
        ("SELECT sex, COUNT(*), MEDIAN(b) FROM p GROUP BY sex HAVING COUNT(*) > 20", "has other rows"),
        ("SELECT STDDEV_SAMP(b) FROM p", "Write STDDEV_POP"),
        ("SELECT seen, COUNT(*) FROM p GROUP BY seen", "DATE_TRUNC"),
    ],
)
def test_what_would_be_another_answer_is_refused_before_a_charge(sql: str, why: str) -> None:
    table = opened()
    with pytest.raises(InvalidParameter, match=why):
        table.plan(table.sql(sql), epsilon=1)


def test_keys_that_occur_are_shown() -> None:
    sql = "SELECT DISTINCT sex FROM p WHERE b > 1"
    assert {each for each, _ in ours(sql, opened())} == {(cell,) for (cell,) in plain(sql)}


def test_a_rehearsal_of_a_join_knows_which_records_matched() -> None:
    table = opened()
    plan = table.plan(table.sql(f"SELECT COUNT(r.name) {LEFT}"), epsilon=1, quality=False)
    assert plan.joins == ("r",)
    assert sd.tables.rehearse(plan).values.each


def test_the_opposite_of_a_negative_number_is_no_comment() -> None:
    assert Negate(Constant(-2)).text == "-(-2)"
