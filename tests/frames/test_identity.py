"""A unit that is written in two ways is one, and counts alike whichever of them comes first."""

import math
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from sourdine.frames import BernsteinSums, PrivacyUnit, Schema, open_source, totals
from sourdine.frames.quality import quality_counts
from sourdine.testing import SeededBits

SCHEMA = Schema.read({"site": {"type": "category", "keys": ["n", "s", "e", "w"]}})
ONE = PrivacyUnit(column="who", max_rows=1, max_groups=1)


@pytest.mark.parametrize(("first", "second"), [(0.0, -0.0)])
@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_which_groups_it_counts_in_does_not_hang_on_the_order(first: float, second: float, kind: str) -> None:
    connection = duckdb.connect()

    def counted(seed: int, writings: list[float]) -> object:
        asked = f"SELECT CAST(unnest($1) AS {kind}) AS who, unnest($2) AS site"
        connection.execute(f"CREATE OR REPLACE TABLE rows AS {asked}", [writings, ["n", "s", "e", "w"]])
        source = open_source(connection.table("rows"), SCHEMA, ["who"])
        by = [source.grouping("site")]
        return totals(source, by=by, statistics=[BernsteinSums()], unit=ONE, bits=SeededBits(seed)).numbers

    found = []
    for seed in range(4):
        ways = [[first] * 4, [second] * 4, [first, second] * 2, [second, first] * 2]
        numbers = [counted(seed, writings) for writings in ways]
        assert numbers == [numbers[0]] * 4
        found.append(numbers[0])
    assert len(set(map(str, found))) > 1  # the secret decides


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_nan_is_no_unit_whatever_its_sign(kind: str) -> None:
    asked = f"SELECT CAST(unnest([?, ?, 1.0]) AS {kind}) AS who, 'n' AS site"
    relation = duckdb.connect().sql(asked, params=[math.nan, -math.nan])
    source = open_source(relation, SCHEMA, ["who"])
    assert quality_counts(source, (), unit=ONE, bits=SeededBits(1)) == (1,)


FAR = [0, 1, 2**63 - 1, -(2**63), 1 - 2**63, 2**62, -(2**62), 2**53]
TIMES = [pa.timestamp(step, zone) for step in ("s", "ms", "us", "ns") for zone in (None, "Europe/Paris")]


@pytest.mark.parametrize("kind", [*TIMES, pa.time64("us"), pa.time64("ns"), pa.date64()], ids=str)
@pytest.mark.parametrize("engine", ["arrow", "pandas", "duckdb"])
def test_no_time_is_so_far_away_that_there_is_no_release(kind: pa.DataType, engine: str) -> None:
    """Written as text, some would raise, and the engine would be of no use to anybody after that."""
    held = pa.Array.from_buffers(kind, len(FAR), [None, pa.array(FAR, pa.int64()).buffers()[1]])
    table: Any = pa.table({"who": held, "site": ["n", "s"] * 4})
    if engine == "pandas":
        table = table.to_pandas(types_mapper=pd.ArrowDtype)
    if engine == "duckdb":
        if kind in TIMES and kind.tz and kind.unit in ("s", "ms"):
            pytest.skip("they are not of the same type there")
        connection = duckdb.connect()
        connection.register("given", table)
        connection.execute("CREATE TABLE rows AS FROM given")
        table = connection.table("rows")
    source = open_source(table, SCHEMA, ["who"])
    by = [source.grouping("site")]
    found = totals(source, by=by, statistics=[BernsteinSums()], unit=ONE, bits=SeededBits(1)).numbers
    quality = quality_counts(source, ["site"], unit=ONE, bits=SeededBits(1))
    assert sum(number for (number,) in found[0]) == sum(quality)
    assert sum(quality) >= 6


@pytest.mark.parametrize(
    "units",
    [
        ["a\ud800", "a\udfff", "a"],
        [10**300 + 1, 10**300 + 2, -(10**300) - 1],
        [10**5000, 10**5000 + 1],
    ],
)
def test_objects_that_differ_are_never_one_unit(units: list[Any]) -> None:
    """What is no text tells no unit. Were it cut down to a text, two units would count as one."""
    frame = pd.DataFrame({"who": pd.Series(units, dtype=object), "site": "n"})
    source = open_source(frame, SCHEMA, ["who"])
    ((known, one),) = source.ask(f"SELECT count(who), count(DISTINCT who) FROM {source.name}")
    assert known == one


def test_instants_nearer_than_microseconds_are_several_units() -> None:
    times = pd.Series(pd.to_datetime([1, 2, 1], unit="ns", utc=True)).dt.as_unit("ns")
    source = open_source(pd.DataFrame({"who": times, "site": "n"}), SCHEMA, ["who"])
    assert source.ask(f"SELECT count(DISTINCT {source.unit('who')}) FROM {source.name}") == [(2,)]
