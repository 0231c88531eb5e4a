"""Declared tables that questions in SQL are about; nothing is read from any data."""

from typing import Any

from sourdine.frames import PrivacyUnit, Schema
from sourdine.frames.joins import Join
from sourdine.tables.sql import SqlTable

Column = dict[str, Any]


def keys(*names: str | int) -> Column:
    return {"type": "category", "keys": list(names)}


def whole(lower: int, upper: int) -> Column:
    return {"type": "integer", "lower": lower, "upper": upper}


def real(lower: float, upper: float) -> Column:
    return {"type": "real", "lower": float(lower), "upper": float(upper)}


def days(first: str, last: str) -> Column:
    return {"type": "date", "first": first, "last": last}


TEXT: Column = {"type": "text"}
STATES = [f"S{i}" for i in range(51)]
STATUS = ["Divorced", "Married", "Never", "Separated", "Widowed", "Absent", "Army"]
COLUMNS: dict[str, dict[str, Column]] = {
    "census": {
        "age": whole(17, 90),
        "education_num": whole(0, 16),
        "capital_loss": whole(0, 4356),
        "fnlwgt": whole(10_000, 1_500_000),
        "sex": keys("Female", "Male"),
        "marital_status": keys(*STATUS),
        "native_country": TEXT,
    },
    "pums": {
        "age": whole(0, 100),
        "sex": keys(0, 1),
        "educ": keys(*range(1, 17)),
        "married": keys(0, 1),
        "income": real(0, 500_000),
        "state": keys(*STATES),
        "region": keys("north", "south", "east", "west"),
    },
    "orders": {"order_date": days("2023-01-01", "2024-12-31"), "amount": real(0, 1000)},
    "stays": {
        "start_date": days("2020-01-01", "2024-12-31"),
        "end_date": days("2020-01-01", "2025-12-31"),
    },
    "crashes": {"temperature": real(0, 100), "region": keys("LATAM", "EMEA", "APAC", "NA")},
    "survey": {"weight": real(0, 10), "income": real(0, 500_000)},
    "people": {"town": TEXT, "salary": real(0, 150_000)},
    "professors": {"item": TEXT, "quantity": whole(0, 100)},
}
UNITS = {
    "orders": PrivacyUnit("customer", column="user_id", max_rows=20, max_groups=5),
    "crashes": PrivacyUnit("device", column="device_id", max_rows=5, max_groups=2),
    "professors": PrivacyUnit("professor", column="id", max_rows=3, max_groups=2),
}
REGIONS = Join(name="regions", table=None, on=(("state", "state"),), columns=("region",))
TABLES = {
    name: SqlTable(
        schema=Schema.read(columns),
        unit=UNITS.get(name, PrivacyUnit("person")),
        joins=(REGIONS,) if name == "pums" else (),
    )
    for name, columns in COLUMNS.items()
}
