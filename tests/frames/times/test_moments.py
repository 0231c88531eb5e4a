"""Dates and times of every type are read as the same day and second, whatever the machine's own zone is."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema, open_source
from sourdine.frames.expressions import read_expression
from sourdine.frames.times import offsets, zone_data_version

FIRST, LAST = datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59, 59)
TIMES = [
    datetime(2024, 3, 31, 0, 59, 59, 999999),  # before and after clocks are set forward
    datetime(2024, 3, 31, 1),
    datetime(2024, 10, 27, 0, 30),  # one time on the clock, twice
    datetime(2024, 10, 27, 1, 30),
    datetime(2023, 12, 31, 22, 59, 59),
    datetime(2023, 12, 31, 23),
    datetime(2024, 12, 31, 22, 59, 59, 999999),
    datetime(2024, 12, 31, 23),
    datetime(1800, 1, 1),
    None,
]
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FARTHEST = [-(2**63) + 1, -(2**63) + 2, 2**63 - 1, 2**63 - 2]
ZONE = {"zone": "Europe/Paris"}


def declared(kind: str = "datetime", **more: object) -> Schema:
    return Schema.read({"x": {"type": kind, "first": "2024-01-01", "last": "2024-12-31", **more}})


def read(table: object, schema: Schema) -> list[Any]:
    source = open_source(table, schema)
    return [row[0] for row in source.ask(f"SELECT {source.holds(read_expression('x'))} FROM {source.view}")]


def second(at: datetime | None) -> int | None:
    """The second on a clock, if it counts."""
    if at is None or not FIRST <= at.replace(microsecond=0) <= LAST:
        return None
    return (at - datetime(1970, 1, 1)) // timedelta(seconds=1)


def in_paris(at: datetime | None) -> datetime | None:
    return (
        None
        if at is None
        else at.replace(tzinfo=UTC).astimezone(ZoneInfo("Europe/Paris")).replace(tzinfo=None)
    )


def days(seconds: list[int | None]) -> list[int | None]:
    return [None if each is None else each // 86400 for each in seconds]


def frames(column: pa.Array) -> Iterator[object]:
    table = pa.table({"x": column})
    yield table
    yield table.to_pandas()
    if str(column.type) != "timestamp[s]" and "timestamp[s," not in str(column.type):
        yield pl.from_arrow(table)


@pytest.mark.parametrize("unit", UNITS)
def test_times_of_every_unit(unit: str) -> None:
    whole = [at if at is None or unit in ("us", "ns") else at.replace(microsecond=0) for at in TIMES]
    kept = [None if at is not None and at.year < 1900 and unit == "ns" else at for at in whole]
    here = [second(at) for at in TIMES]
    there = [second(in_paris(at)) for at in TIMES]
    for table in frames(pa.array(kept, pa.timestamp(unit))):
        assert read(table, declared()) == here
        assert read(table, declared("date")) == days(here)
        assert read(table, declared(**ZONE)) == here, "a time without an offset is never converted"
    for table in frames(pa.array(kept, pa.timestamp(unit, "UTC"))):
        assert read(table, declared(**ZONE)) == there
        assert read(table, declared("date", **ZONE)) == days(there)


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", UNITS)
def test_times_too_far_away_are_missing(unit: str, zone: str | None, tmp_path: Path) -> None:
    near = 1709208000
    cells = pa.array(np.array([*FARTHEST, near * UNITS[unit]])).view(pa.timestamp(unit, zone))
    table = pa.table({"x": cells})
    expected = [None] * 4 + [near + (3600 if zone else 0)]
    schema = declared(**ZONE) if zone else declared()
    assert read(table, schema) == expected
    if unit != "s":
        assert read(pl.from_arrow(table), schema) == expected
        pa.parquet.write_table(table, tmp_path / "far.parquet", version="2.6")
        if unit == "ms":  # one such record would stop the engine after the charge
            with pytest.raises(InvalidParameter, match="Write it in microseconds"):
                read(tmp_path / "far.parquet", schema)
        else:
            assert read(tmp_path / "far.parquet", schema) == expected


@pytest.mark.parametrize(
    "kind", ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ", "DATE"]
)
def test_infinities_are_missing(kind: str) -> None:
    table = duckdb.sql(f"SELECT unnest(['infinity', '-infinity', '2024-02-29'])::{kind} AS x")
    found = read(table, declared("date", **ZONE))
    assert found == [None, None, 19782]


TEXTS: dict[str | None, dict[str | None, str | None]] = {
    None: {
        "2024-02-29": "2024-02-29 00:00:00",
        "2024-02-29 01:02:03": "2024-02-29 01:02:03",
        "2024-02-29T01:02": "2024-02-29 01:02:00",
        "2024-02-29 01:02:03.999999": "2024-02-29 01:02:03",
        "2023-02-29": None,
        "2024-02-30": None,
        "2024-02-29 24:00:00": None,
        "2024-02-29 23:59:60": None,
        "0000-01-01": None,
        "20240229": None,
        "": None,
        "x": None,
        None: None,
    },
    "%m/%d/%Y %H:%M": {  # as a spreadsheet writes them
        "2/29/2024 1:05": "2024-02-29 01:05:00",
        "02/29/2024 13:45": "2024-02-29 13:45:00",
        "29/2/2024 1:05": None,
        "2/29/2024": None,
        "2/29/24 1:05": None,
    },
    "%Y%m%d": {"20240229": "2024-02-29 00:00:00", "2024229": None, "20230229": None},
    "%d.%m.%Y": {"29.02.2024": "2024-02-29 00:00:00", "1.3.2024": "2024-03-01 00:00:00", "2024-02-29": None},
    "%Y-%m-%dT%H:%M:%S%z": {
        "2024-02-29T23:30:00Z": "2024-03-01 00:30:00",
        "2024-02-29T23:30:00+02:00": "2024-02-29 22:30:00",
        "2024-02-29T23:30:00-0800": "2024-03-01 08:30:00",
        "2024-02-29T23:30:00": None,
        "2024-02-29T23:30:00+99:00": None,
    },
}


def expected_of(written: dict[str | None, str | None]) -> list[int | None]:
    return [None if each is None else second(datetime.fromisoformat(each)) for each in written.values()]


@pytest.mark.parametrize("form", TEXTS)
def test_text_is_read_by_its_format(form: str | None, tmp_path: Path) -> None:
    schema = declared(**ZONE, **({} if form is None else {"format": form}))
    table = pl.DataFrame({"x": list(TEXTS[form])}, schema={"x": pl.String})
    assert read(table, schema) == expected_of(TEXTS[form])
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f'"{cell or ""}",1\n' for cell in TEXTS[form]))
    assert read(path, schema) == expected_of(TEXTS[form])


@pytest.mark.slow
def test_spark_reads_the_same(spark: Any) -> None:
    for form, written in TEXTS.items():
        schema = declared(**ZONE, **({} if form is None else {"format": form}))
        frame = spark.createDataFrame([(cell,) for cell in written], "x string")
        assert read(frame, schema) == expected_of(written), form
    zoned = [(None if at is None else at.replace(tzinfo=UTC),) for at in TIMES]
    frame = spark.createDataFrame(zoned, "x timestamp")
    assert read(frame, declared(**ZONE)) == [second(in_paris(at)) for at in TIMES]
    frame = spark.createDataFrame([(at,) for at in TIMES], "x timestamp_ntz")
    assert read(frame, declared()) == [second(at) for at in TIMES]
    frame = spark.createDataFrame([(None if at is None else at.date(),) for at in TIMES], "x date")
    assert read(frame, declared("date")) == days([second(at and at.replace(hour=0)) for at in TIMES])


@pytest.fixture(params=["America/New_York", "Asia/Kolkata"])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[None]:
    """The whole process in another time zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield
    os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_the_zone_of_the_machine_does_not_matter() -> None:
    table = pa.table({"x": pa.array(TIMES, pa.timestamp("us", "UTC"))})
    assert read(table, declared(**ZONE)) == [second(in_paris(at)) for at in TIMES]
    connection = duckdb.connect()
    connection.register("given", table)
    assert read(connection.sql("SELECT * FROM given"), declared(**ZONE)) == [
        second(in_paris(at)) for at in TIMES
    ]


def test_offsets_are_those_of_zoneinfo() -> None:
    zone, start = ZoneInfo("Europe/Paris"), -(10**9) * 3
    changes = offsets("Europe/Paris", start, start + 5 * 10**9)
    assert len(changes) > 100
    for at, ahead in changes:
        for second_of, sign in ((at, 0), (at - 1, -1)):
            offset = (
                (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second_of)).astimezone(zone).utcoffset()
            )
            assert offset is not None
            assert (offset.total_seconds() == ahead) == (sign == 0 or at == start)
    assert zone_data_version()[:2] == "20"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"first": "2025-01-01"}, "first must not be after last"),
        ({"zone": "Europe/Pariss"}, "no time zone"),
        ({"format": "%d/%m"}, "needs %Y, %m and %d"),
        ({"format": "%d-%b-%Y"}, "no '%b' that every engine reads alike"),
        ({"period": "fortnight"}, "period must be one of hour"),
        ({"first": "soon"}, "columns.x.first"),
    ],
)
def test_a_declaration_that_is_none_is_refused(more: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        declared(**more)


def test_the_day_of_a_time_with_an_offset_needs_a_zone() -> None:
    with pytest.raises(InvalidParameter, match="zone"):
        open_source(pa.table({"x": pa.array(TIMES, pa.timestamp("us", "UTC"))}), declared())
