"""Quantiles by 1,000 groups of a table: Sourdine's query, and DuckDB's own without privacy."""

import time

import duckdb

from benchmarks.peers import Answer, Question, serve
from sourdine.tables import Table
from sourdine.tables.release import _carry_out

GROUPS = 1000
LEVELS = {"median": [0.5], "deciles": [i / 10 for i in range(1, 10)]}
_HELD: dict[int, duckdb.DuckDBPyConnection] = {}


def opened(size: int) -> duckdb.DuckDBPyConnection:
    """A table in memory: a key, and a made-up value."""
    if size not in _HELD:
        _HELD.clear()
        _HELD[size] = duckdb.connect()
        _HELD[size].execute(
            f"CREATE TABLE t AS SELECT CAST(hash(i, 3) % {GROUPS} AS INTEGER) AS k, "
            f"(hash(i, 1) % 1000003) / 1000003.0 * 100 AS x FROM range({size}) r(i)"
        )
    return _HELD[size]


def answer(question: Question) -> Answer:
    """Seconds of a query for every group, planning included."""
    held, at = opened(int(question["size"])), LEVELS[question["levels"]]
    table = Table(
        held.table("t"),
        unit="person",
        columns={
            "k": {"type": "category", "keys": list(range(GROUPS))},
            "x": {"type": "real", "lower": 0.0, "upper": 100.0, "granularity": 0.0001},
        },
    )
    start = time.perf_counter()
    if question["task"] == "duckdb":
        held.execute(f"SELECT k, quantile_cont(x, {at}) FROM t GROUP BY k").fetchall()
    else:
        asked = {"quantiles": "x", "levels": at, "method": question["task"]}
        plan = table.plan({"name": "q", "ask": [asked], "by": ["k"]}, epsilon=1, quality=False)
        _carry_out(plan, table.source)
    return {"seconds": time.perf_counter() - start, "version": duckdb.__version__}


if __name__ == "__main__":
    serve(answer)
