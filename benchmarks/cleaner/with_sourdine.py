"""Sourdine's cleaner on a table in DuckDB's memory: reading, noise for every cell, a shuffled table again."""

import time

import duckdb

from benchmarks.cleaner.cases import COLUMNS, OUTCOME, values
from benchmarks.peers import Answer, Question, serve, versions
from sourdine.local.cleaner import Cleaner, Method

_HELD: dict[int, duckdb.DuckDBPyRelation] = {}


def table(rows: int) -> duckdb.DuckDBPyRelation:
    """The made-up table."""
    if rows not in _HELD:
        connection = duckdb.connect()
        connection.register("held", values(rows))
        connection.execute("CREATE TABLE pima AS SELECT * FROM held")
        _HELD[rows] = connection.table("pima")
    return _HELD[rows]


def declared() -> dict[str, dict[str, object]]:
    columns: dict[str, dict[str, object]] = {OUTCOME: {"type": "flag", "missing": False}}
    for name, (low, high, step) in COLUMNS.items():
        if step == 1:
            columns[name] = {"type": "integer", "lower": int(low), "upper": int(high), "missing": int(low)}
        else:
            columns[name] = {"type": "real", "lower": low, "upper": high, "granularity": step, "missing": low}
    return columns


def answer(question: Question) -> Answer:
    """Seconds of processor time, on all threads, of cleaning all columns."""
    held = table(question["rows"])
    start = time.process_time()
    Cleaner(declared(), each=question["epsilon"], method=Method(question["method"])).clean(held)
    return {"seconds": time.process_time() - start, "version": versions("numpy")["numpy"]}


if __name__ == "__main__":
    serve(answer)
