"""What people ask, each in one query about 100,000 made-up people: the truth lies in every interval."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sourdine as sd
from sourdine import statistics as st
from sourdine.tables import Answer
from sourdine.tables.builder import TableQuestion
from sourdine.tables.release import _carry_out
from sourdine.tables.sql import SqlQuestion
from sourdine.testing import SeededBits

pytestmark = pytest.mark.slow
SIZE, CONFIDENCE = 100_000, 0.9999
LEVELS = [0.5, 0.95, 0.99]
REGIONS = ["north", "south", "east", "west"]
COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "lower": 18, "upper": 90},
    "sex": {"type": "category", "keys": ["f", "m"]},
    "region": {"type": "category", "keys": REGIONS},
    "pay": {"type": "real", "lower": 0.0, "upper": 200_000.0},
    "spend": {"type": "real", "lower": 0.0, "upper": 500.0},
    "visits": {"type": "integer", "lower": 0, "upper": 20},
    "weight": {"type": "real", "lower": 0.0, "upper": 3.0},
    "seen": {"type": "datetime", "first": datetime(2024, 3, 1), "last": datetime(2024, 4, 30, 23, 59, 59)},
    "start": {"type": "date", "first": date(2023, 1, 1), "last": date(2023, 12, 31)},
    "end": {"type": "date", "first": date(2022, 12, 1), "last": date(2024, 2, 28)},
}


def drawn() -> pa.Table:
    """People who exist nowhere; two records for each user."""
    rng = np.random.default_rng(7)
    age = rng.integers(18, 91, SIZE)
    sex = rng.choice(["f", "m"], SIZE)
    raised = rng.lognormal(10.3, 0.5, SIZE) * np.where(sex == "m", 1.1, 1.0) + 200 * (age - 40)
    start = np.datetime64("2023-01-01", "D") + rng.integers(0, 365, SIZE)
    return pa.table(
        {
            "user": np.arange(SIZE) // 2,
            "age": age,
            "sex": sex,
            "region": rng.choice(REGIONS, SIZE, p=[0.4, 0.3, 0.2, 0.1]),
            "pay": np.clip(raised, 0, 200_000).round(2),
            "spend": np.clip(rng.exponential(40, SIZE), 0, 500).round(2),
            "visits": rng.integers(0, 20, SIZE),
            "weight": rng.uniform(0.5, 3, SIZE).round(3),
            "seen": np.datetime64("2024-03-01T00:00:00", "us")
            + rng.integers(0, 61 * 86_400, SIZE).astype("timedelta64[s]"),
            "start": start,
            "end": start + rng.integers(-3, 30, SIZE),
        }
    )


ROWS = drawn()
PEOPLE = sd.Table(ROWS, unit="person", columns=COLUMNS, size=SIZE)
USERS = sd.Table(
    ROWS, unit=sd.PrivacyUnit("user", column="user", max_rows=2, max_groups=2), columns=COLUMNS, size=SIZE
)
C, U = PEOPLE.c, USERS.c


@dataclass(frozen=True)
class Asked:
    """A question, its answer by plain DuckDB, keys first, and how wide its intervals are at most."""

    question: TableQuestion | SqlQuestion
    truth: str
    within: float  # the half of an interval, as a share of the value
    statistic: str
    table: sd.Table = PEOPLE


QUESTIONS = {
    "daily counts from a timestamp": Asked(
        PEOPLE.ask("q").by(C.seen.day()).get(st.Count()),
        "SELECT strftime(seen, '%Y-%m-%d'), count(*) FROM t GROUP BY 1",
        0.01,
        "count",
    ),
    "weekly active users": Asked(
        USERS.ask("q").by(U.seen.week()).get(st.Units()),
        "SELECT strftime(seen, '%G-W%V'), count(DISTINCT \"user\") FROM t GROUP BY 1",
        0.02,
        "units",
        USERS,
    ),
    "weekly spend per user": Asked(
        USERS.ask("q").by(U.seen.week()).get(U.spend.sum().per(st.Units())),
        "SELECT strftime(seen, '%G-W%V'), sum(spend) / count(DISTINCT \"user\") FROM t GROUP BY 1",
        0.35,  # in a week of two days; 0.1 in others
        "sum of spend per units",
        USERS,
    ),
    "p50, p95 and p99 by group": Asked(
        PEOPLE.ask("q").by(C.region).get(C.pay.quantiles(LEVELS, method="tree")),
        f"SELECT region, unnest({LEVELS}), unnest(quantile_disc(pay, {LEVELS})) FROM t GROUP BY region",
        0.6,  # of the 99th in the smallest region, 0.2 of others
        "quantiles of pay",
    ),
    "a pay gap": Asked(
        PEOPLE.ask("q").get(C.pay.mean().difference(C.sex, "m", "f")),
        "SELECT avg(pay) FILTER (sex = 'm') - avg(pay) FILTER (sex = 'f') FROM t",
        0.02,
        "mean of pay, m less f",
    ),
    "a ratio of two sums": Asked(
        PEOPLE.ask("q").get(C.spend.sum().per(C.visits.sum())),
        "SELECT sum(spend) / sum(visits) FROM t",
        0.01,
        "sum of spend per sum of visits",
    ),
    "a survey-weighted mean": Asked(
        PEOPLE.ask("q").get(C.pay.weighted_mean(C.weight)),
        "SELECT sum(pay * weight) / sum(weight) FROM t",
        0.01,
        "weighted mean of pay by weight",
    ),
    "a correlation by region": Asked(
        PEOPLE.ask("q").by(C.region).get(C.pay.correlation(C.age)),
        "SELECT region, corr(pay, age) FROM t GROUP BY 1",
        0.15,
        "correlation of pay and age",
    ),
    "a regression by region": Asked(
        PEOPLE.ask("q").by(C.region).get(C.pay.regression(C.age)),
        "SELECT region, 'slope', regr_slope(pay, age) FROM t GROUP BY 1 UNION ALL "
        "SELECT region, 'intercept', regr_intercept(pay, age) FROM t GROUP BY 1",
        0.15,
        "regression of pay on age",
    ),
    "a OR b": Asked(
        PEOPLE.ask("q").where((C.age < 25) | (C.region == "west")).get(st.Count()),
        "SELECT count(*) FROM t WHERE age < 25 OR region = 'west'",
        0.01,
        "count",
    ),
    "end > start": Asked(
        PEOPLE.ask("q").where(C.end > C.start).get(st.Count()),
        'SELECT count(*) FROM t WHERE "end" > start',
        0.01,
        "count",
    ),
    "a range of dates": Asked(
        PEOPLE.ask("q").where(C.seen.between("2024-03-10 00:00:00", "2024-03-16 23:59:59")).get(st.Count()),
        "SELECT count(*) FROM t WHERE seen >= '2024-03-10' AND seen < '2024-03-17'",
        0.01,
        "count",
    ),
    "an SQL text": Asked(
        PEOPLE.sql(
            "SELECT region, AVG(pay) FROM people WHERE age BETWEEN 25 AND 64 OR sex = 'f' "
            "GROUP BY region HAVING COUNT(*) > 100 ORDER BY AVG(pay) DESC"
        ),
        "SELECT region, avg(pay) FROM t WHERE age BETWEEN 25 AND 64 OR sex = 'f' GROUP BY region",
        0.05,
        "mean of pay",
    ),
}


def truth_of(sql: str) -> Mapping[tuple[object, ...], float]:
    t = ROWS  # noqa: F841 - DuckDB finds it by its name
    found = duckdb.sql(sql)
    assert found is not None
    return {tuple(_key(key) for key in keys): float(value) for *keys, value in found.fetchall()}


def _key(key: object) -> object:
    return float(key) if isinstance(key, Decimal) else key


def answer_of(question: object, table: sd.Table, statistic: str) -> Answer:
    plan = table.plan(question, epsilon=1, confidence=CONFIDENCE)  # type: ignore[arg-type]
    release = _carry_out(plan, table.source, bits=SeededBits(11))
    return next(each for each in release if each.statistic == statistic)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_truth_lies_in_every_interval_which_is_short(name: str) -> None:
    asked = QUESTIONS[name]
    answer, truth = answer_of(asked.question, asked.table, asked.statistic), truth_of(asked.truth)
    assert {tuple(key) for key in answer.keys} == set(truth)
    for key, value, lower, upper in answer.rows():
        assert lower <= truth[key] <= upper, key
        assert (upper - lower) / 2 <= asked.within * abs(value), key


def test_the_sql_text_is_shown_in_the_order_that_it_asks_for() -> None:
    asked = QUESTIONS["an SQL text"]
    values = answer_of(asked.question, PEOPLE, asked.statistic).estimate.value
    assert values.tolist() == sorted(values, reverse=True)


def test_a_folder_of_compressed_text_is_one_table(tmp_path: Path) -> None:
    for part in range(4):
        with gzip.open(tmp_path / f"part-{part}.csv.gz", "wb") as file:
            pyarrow.csv.write_csv(ROWS.slice(part * SIZE // 4, SIZE // 4), file)
    people = sd.Table(tmp_path, unit="person", columns=COLUMNS, size=SIZE)
    question = people.ask("q").by(people.c.seen.day()).where(people.c.end > people.c.start).get(st.Count())
    truth = truth_of("SELECT strftime(seen, '%Y-%m-%d'), count(*) FROM t WHERE \"end\" > start GROUP BY 1")
    answer = answer_of(question, people, "count")
    assert {tuple(key) for key in answer.keys} == set(truth)
    assert all(lower <= truth[key] <= upper for key, _, lower, upper in answer.rows())
