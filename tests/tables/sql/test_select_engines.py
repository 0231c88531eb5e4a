"""Questions in SQL give the same exact numbers on every engine: those of plain SQL on the same records."""

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import sourdine as sd
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits
from tests.tables.sql.declared import COLUMNS, REGIONS, STATES, STATUS, UNITS
from tests.tables.sql.test_select import ANSWERED, table_of

PEOPLE = 400


def rows(table: str) -> dict[str, list[Any]]:
    """Made-up records, some of them missing a cell."""
    random = np.random.default_rng(5)

    def some(values: list[Any]) -> list[Any]:
        return [
            None if random.random() < 0.05 else values[i] for i in random.integers(0, len(values), PEOPLE)
        ]

    def days(first: str, last: str) -> list[Any]:
        span = np.arange(np.datetime64(first), np.datetime64(last) + 1)
        return some(span.astype(object).tolist())

    every: dict[str, dict[str, list[Any]]] = {
        "census": {
            "age": some(list(range(17, 91))),
            "education_num": some(list(range(17))),
            "capital_loss": some([0, 0, 0, 1500, 4356]),
            "fnlwgt": some([10_000, 700_000, 1_500_000]),
            "sex": some(["Female", "Male"]),
            "marital_status": some(STATUS),
            "native_country": some(["France", "Cuba", "Italy", "Peru"]),
        },
        "pums": {
            "age": some(list(range(101))),
            "sex": some([0, 1]),
            "educ": some(list(range(1, 17))),
            "married": some([0, 1]),
            "income": some([0.0, 12_000.0, 48_000.0, 500_000.0]),
            "state": some(STATES),
        },
        "orders": {
            "order_date": days("2023-01-01", "2024-12-31"),
            "amount": some([1.0, 20.0, 1000.0]),
            "user_id": list(range(PEOPLE)),
        },
        "stays": {
            "start_date": days("2020-01-01", "2024-12-31"),
            "end_date": days("2020-01-01", "2025-12-31"),
        },
        "crashes": {
            "temperature": some([10.0, 55.0, 56.0, 99.0]),
            "region": some(["LATAM", "EMEA", "APAC", "NA"]),
            "device_id": list(range(PEOPLE)),
        },
        "survey": {"weight": some([0.0, 1.5, 10.0]), "income": some([0.0, 30_000.0, 500_000.0])},
        "people": {"town": some(["Lille", "Nice", "Brest"]), "salary": some([1.0, 150_000.0])},
    }
    return every[table]


PLACES = pa.table({"state": STATES, "region": [["north", "south", "east", "west"][i % 4] for i in range(51)]})


def opened(name: str, frame: object) -> sd.Table:
    joins = {"regions": {"table": PLACES, "on": "state", "columns": ["region"]}} if name == "pums" else {}
    unit = UNITS.get(name, sd.PrivacyUnit("person"))
    return sd.Table(frame, unit=unit, columns=COLUMNS[name], joins=joins, size=PEOPLE)


def answers(table: sd.Table, sql: str) -> list[tuple[Any, ...]]:
    """At an epsilon so large that noise is nearly nothing, and of one seed."""
    delta = 1e-6 if "town" in sql or "native_country" in sql else None
    plan = table.plan(table.sql(sql), epsilon=1 << 12, delta=delta, quality=False)
    found = _carry_out(plan, table.source, bits=SeededBits(3))
    return [(a.statistic, *key, *ends) for a in found.values for key, *ends in a.rows()]


ASKED = [sql for sql in ANSWERED if table_of(sql) != "professors"]


@pytest.mark.parametrize("sql", ASKED)
def test_engines_agree(sql: str) -> None:
    name = table_of(sql)
    arrow = pa.table(rows(name))
    one = answers(opened(name, arrow), sql)
    assert one or "HAVING" in sql
    assert repr(answers(opened(name, pl.DataFrame(rows(name))), sql)) == repr(one)


@pytest.mark.slow
@pytest.mark.parametrize("sql", [sql for sql in ASKED if "MEDIAN" not in sql])  # a cluster is asked in trees
def test_spark_agrees(sql: str, spark: Any) -> None:
    name = table_of(sql)
    arrow = pa.table(rows(name))
    frame = spark.createDataFrame(arrow)
    assert repr(answers(opened(name, frame), sql)) == repr(answers(opened(name, arrow), sql))


# sums by weights leave out who lacks either, and rows that are cut are cut by noisy values
OTHERWISE = ("user_id", "ROLLUP", "REGR", "town", "weight", "LIMIT", "HAVING")


@pytest.mark.parametrize("sql", [sql for sql in ASKED if not any(word in sql for word in OTHERWISE)])
def test_the_numbers_are_those_of_plain_sql(sql: str) -> None:
    """Every number that DuckDB gives for the same text is among ours, but for what noise is left."""
    name = table_of(sql)
    held = duckdb.connect()
    held.register(name, pa.table(rows(name)))
    held.register("regions", PLACES)
    plain = held.sql(sql).fetchall()
    values = [row[-3] for row in answers(opened(name, pa.table(rows(name))), sql)]
    keys = {cell for row in answers(opened(name, pa.table(rows(name))), sql) for cell in row[1:-3]}
    for row in plain:
        for cell in row:
            if isinstance(cell, int | float) and cell not in keys and None not in row:
                near = min(abs(cell - value) for value in values)
                assert near <= 2 + 0.01 * abs(cell), (row, cell)


def test_regions_are_declared_as_they_are_joined() -> None:
    assert REGIONS.columns == ("region",)
