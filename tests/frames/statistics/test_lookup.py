"""Many known keys are looked up in a table, and give what few in the question give."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sourdine.frames import (
    BernsteinSums,
    PrivacyUnit,
    Schema,
    Totals,
    open_source,
    totals,
)
from sourdine.frames import (
    cells as expression,
)
from sourdine.testing import SeededBits
from tests.frames.every_engine import ENGINES

RANDOM = np.random.default_rng(5)
TOWNS = ["a", "A", "b ", "é", "e\u0301", "o'x", 'say "hi"', "=1+1", "😀"]
CODES = [3, 1, 2**53 + 1, 2**53, -7]
SIZE = 300
TABLE = pa.table(
    {
        "town": RANDOM.choice(np.array([*TOWNS, "elsewhere", "", None], dtype=object), SIZE).tolist(),
        "code": pa.array(RANDOM.choice(np.array([*CODES, 5, None], dtype=object), SIZE).tolist(), pa.int64()),
        "well": RANDOM.choice(np.array([True, False, None], dtype=object), SIZE).tolist(),
        "age": RANDOM.integers(-3, 12, SIZE).tolist(),
        "who": [f"p{i % 40}" for i in range(SIZE)],
    }
)
UNITS = [
    PrivacyUnit(),
    PrivacyUnit(column="who", max_rows=2, max_groups=2),
    PrivacyUnit(column="who", max_rows=2, max_groups=1000),
]


def schema_of(missing: bool) -> Schema:
    def keys(listed: list[Any]) -> dict[str, Any]:
        return {"type": "category", "keys": listed, **({"missing": listed[1]} if missing else {})}

    number = {"type": "integer", "lower": 0, "upper": 9}
    return Schema.read({"town": keys(TOWNS), "code": keys(CODES), "well": {"type": "flag"}, "age": number})


def found(schema: Schema, unit: PrivacyUnit, by: list[str], table: object = TABLE) -> Totals:
    source = open_source(table, schema, ["who"])
    rows = unit.max_rows
    age = BernsteinSums(value=source.place_of("age"), width=9, degree=2, max_rows=rows)
    return totals(
        source,
        by=[source.grouping(name) for name in by],
        statistics=[BernsteinSums(max_rows=rows), age],
        unit=unit,
        bits=SeededBits(2),
    )


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("unit", UNITS)
def test_many_keys_count_as_few_do(missing: bool, unit: PrivacyUnit, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_of(missing)
    for by in (["town"], ["code"], ["well", "town"], ["town", "code", "well"]):
        few = found(schema, unit, by)
        assert few.sums[0].sum() > 0
        monkeypatch.setattr(expression, "_LISTED", 1)
        assert found(schema, unit, by) == few
        monkeypatch.undo()


@pytest.mark.parametrize("engine", ["csv", "pandas", "lazy", "duckdb"])
def test_tables_of_keys_are_lent_to_every_engine(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expression, "_LISTED", 1)
    schema, by = schema_of(True), ["town", "well"]
    table = ENGINES[engine](TABLE.drop(["code"]), tmp_path)
    few = Schema(columns={name: each for name, each in schema.columns.items() if name != "code"})
    for unit in UNITS[:2]:
        assert found(few, unit, by, table) == found(schema, unit, by)


def test_keys_that_nobody_declared_stay_in_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, no more rows come back than there are known groups."""
    monkeypatch.setattr(expression, "_LISTED", 1)
    table = pa.table({"town": ["a", *map(str, range(999))]})
    source = open_source(table, Schema.read({"town": {"type": "category", "keys": TOWNS}}))
    sizes = []
    whole = type(source.engine).columns

    def columns(*given: Any) -> Any:
        answer = whole(*given)
        sizes.append(len(next(iter(answer.values()))))
        return answer

    monkeypatch.setattr(type(source.engine), "columns", columns)
    by = [source.grouping("town")]
    totals(source, by=by, statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
    assert sizes == [1]
