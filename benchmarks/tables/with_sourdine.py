"""Sourdine: plan, charge, exact totals, noise, intervals; everything but the charge's disk."""

import time
from typing import Any

import duckdb

from benchmarks.peers import Answer, Question, serve
from benchmarks.tables.cases import EDGES, EPSILON, KEYS, LOWER, STEP, UPPER
from sourdine.frames import PrivacyUnit
from sourdine.tables import Query, Table
from sourdine.tables.release import _carry_out

_OPEN: dict[str, Any] = {}
_COLUMNS = {
    "k": {"type": "category", "keys": list(range(KEYS))},
    "x": {"type": "real", "lower": LOWER, "upper": UPPER, "granularity": STEP},
}
_BY_KEY = Query.read({"name": "by key", "ask": ["count", {"sum": "x"}, {"mean": "x"}], "by": ["k"]})
_HISTOGRAM = Query.read({"name": "histogram", "ask": [{"histogram": "x", "edges": list(EDGES)}]})


def answer(question: Question) -> Answer:
    """Seconds of one release, planning included."""
    path, units = question["path"], question["task"] == "units"
    key = f"{path} {question['memory']} {units}"
    if key not in _OPEN:
        source: object = path
        if question["memory"]:
            connection = duckdb.connect()
            connection.execute(f"CREATE TABLE t AS SELECT * FROM '{path}'")
            source = connection.table("t")
        unit = (
            PrivacyUnit(name="person", column="who", max_rows=2, max_groups=3)
            if units
            else PrivacyUnit(name="person")
        )
        _OPEN[key] = Table(source, unit=unit, columns=_COLUMNS)
    table = _OPEN[key]
    start = time.perf_counter()
    plan = table.plan(*((_BY_KEY,) if units else (_BY_KEY, _HISTOGRAM)), epsilon=EPSILON, quality=False)
    made = _carry_out(plan, table.source)
    seconds = time.perf_counter() - start
    count, low, high = made.values["by key", "count"].at(7)
    return {"seconds": seconds, "count": [count, low, high]}


if __name__ == "__main__":
    serve(answer)
