"""A unit that is written in two ways is one, and counts alike whichever of them comes first."""

import math

import duckdb
import pytest

from sourdine.frames import Moments, Schema, Unit, open_source, totals
from sourdine.testing import SeededBits

SCHEMA = Schema.read({"site": {"type": "category", "keys": ["n", "s", "e", "w"]}})
ONE = Unit(column="who", rows=1, groups=1)


@pytest.mark.parametrize(("first", "second"), [(0.0, -0.0), (math.nan, -math.nan)])
@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_which_groups_it_counts_in_does_not_hang_on_the_order(first: float, second: float, kind: str) -> None:
    connection = duckdb.connect()

    def counted(seed: int, writings: list[float]) -> object:
        asked = f"SELECT CAST(unnest($1) AS {kind}) AS who, unnest($2) AS site"
        connection.execute(f"CREATE OR REPLACE TABLE rows AS {asked}", [writings, ["n", "s", "e", "w"]])
        source = open_source(connection.table("rows"), SCHEMA, ["who"])
        by = [source.grouping("site")]
        return totals(source, by=by, statistics=[Moments()], unit=ONE, bits=SeededBits(seed)).numbers

    found = []
    for seed in range(8):
        ways = [[first] * 4, [second] * 4, [first, second] * 2, [second, first] * 2]
        numbers = [counted(seed, writings) for writings in ways]
        assert numbers == [numbers[0]] * 4
        found.append(numbers[0])
    assert len(set(map(str, found))) > 1  # the secret decides
