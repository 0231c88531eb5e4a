"""The same queries without privacy."""

import time
from typing import Any

import duckdb

from benchmarks.peers import Answer, Question, serve

_OPEN: dict[str, Any] = {}


def answer(question: Question) -> Answer:
    """Seconds of the two queries, from a file or from a table in memory."""
    path = question["path"]
    key = f"{path} {question['memory']}"
    if key not in _OPEN:
        connection = duckdb.connect()
        if question["memory"]:
            connection.execute(f"CREATE TABLE t AS SELECT * FROM '{path}'")
        else:
            connection.execute(f"CREATE VIEW t AS SELECT * FROM '{path}'")
        _OPEN[key] = connection
    connection = _OPEN[key]
    start = time.perf_counter()
    if question["task"] == "units":
        inner = "SELECT k, who, count(*) AS c, sum(x) AS s FROM t GROUP BY k, who"
        connection.execute(f"SELECT k, sum(c), sum(s), sum(s) / sum(c) FROM ({inner}) GROUP BY k").fetchall()
    else:
        connection.execute("SELECT k, count(*), sum(x), avg(x) FROM t GROUP BY k").fetchall()
        connection.execute("SELECT floor(x / 10), count(*) FROM t GROUP BY 1").fetchall()
    return {"seconds": time.perf_counter() - start, "version": duckdb.__version__}


if __name__ == "__main__":
    serve(answer)
