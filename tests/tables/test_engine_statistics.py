"""What an engine knows of a column must not change which records a condition is about."""

from fractions import Fraction
from typing import Any

import duckdb
import pytest

from sourdine.frames import Schema, open_source
from sourdine.tables import Privacy, Query, ReleasePlan
from tests.tables.exact import exact_numbers

COLUMNS: dict[str, Any] = {
    "flag": {"type": "flag", "missing": True},
    "text": {"type": "category", "keys": ["a", "b"], "missing": "a"},
    "whole": {"type": "category", "keys": [1, 2, 9], "missing": 1},
    "number": {"type": "integer", "lower": 0, "upper": 9, "missing": 5},
}
HELD = {"flag": (True, False), "text": ("a", "b"), "whole": (1, 2), "number": (5, 7)}
KINDS = {"flag": "BOOLEAN", "text": "VARCHAR", "whole": "BIGINT", "number": "DOUBLE"}
WHERE: dict[str, list[Any]] = {
    "flag": [[True], [True, False]],
    "text": [["a"], ["a", "b"]],
    "whole": [[1], [1, 2], [1, 2, 9]],
    "number": [{"at_least": 2}, {"below": 9}, {"at_least": 2, "below": 9}],
}


@pytest.mark.parametrize(
    ("name", "where"), [(name, each) for name, listed in WHERE.items() for each in listed]
)
@pytest.mark.parametrize("by", [[], pytest.param(["flag"], marks=pytest.mark.slow), ["text"]])
def test_missing_values_count_whatever_others_hold(name: str, where: Any, by: list[str]) -> None:
    schema = Schema.read(COLUMNS)
    query = Query.read({"name": "q", "ask": ["count"], "by": by, "where": {name: where}})
    plan = ReleasePlan(schema=schema, queries=(query,), privacy=Privacy(epsilon=Fraction(1)))
    plain, other = HELD[name]
    connection = duckdb.connect()
    for cells in ([plain, plain, None], [plain, plain, None, other], [None, None], [plain, None, None]):
        given = ", ".join(
            f"CAST({'unnest($1)' if each == name else 'NULL'} AS {KINDS[each]}) AS {each}" for each in COLUMNS
        )
        connection.execute(f"CREATE OR REPLACE TABLE rows AS SELECT {given}", [cells])
        counted = sum(exact_numbers(plan, open_source(connection.table("rows"), schema))[0])
        asked = where if isinstance(where, list) else [5, 7]
        assert counted == sum(cell is None or cell in asked for cell in cells), cells
