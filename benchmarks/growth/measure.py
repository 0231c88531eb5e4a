"""One case in a process of its own: `python -m benchmarks.growth.measure QUESTION`, in JSON."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.growth.cases import (
    DECILES,
    DELTA,
    EPSILON,
    LOWER,
    MAX_GROUPS,
    MAX_ROWS,
    PRIVATE_EPSILON,
    STEPS,
    UPPER,
    Case,
)
from benchmarks.growth.expressions import COLUMNS, QUESTIONS

_SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "6g",
    "spark.sql.shuffle.partitions": "4",
}


def spark_frame(path: str) -> Any:
    """The file as a DataFrame of a local Spark."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in _SPARK.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session.read.parquet(path)


def opened(engine: str, path: str) -> Any:
    """The table as a user of an engine has it, before the clock starts."""
    if engine in ("duckdb", "csv"):
        return path
    if engine == "spark":
        return spark_frame(path)
    import polars as pl

    return pl.scan_parquet(path) if engine == "polars lazy" else pl.read_parquet(path)


def declared(case: Case) -> dict[str, Any]:
    """The columns as they are declared."""
    if case.task == "expressions":
        return COLUMNS
    value = {"type": "real", "lower": LOWER, "upper": UPPER, "granularity": STEPS[case.grid]}
    if case.task == "private":
        return {"k": {"type": "text", "other": "other towns"}, "x": value}
    sizes = {"k": case.keys} if case.columns == ("k",) else {"a": 1000, "b": case.keys // 1000}
    keys = {name: {"type": "category", "keys": list(range(size))} for name, size in sizes.items()}
    return {**keys, "x": value}


def private(table: Any, case: Case) -> Callable[[], object]:
    """A whole release but for the charge: declaring, planning, exact counts, noise, intervals."""
    columns = declared(case)
    if case.task == "first":
        return lambda: _first(table, columns)
    from sourdine.frames.schema import PrivacyUnit
    from sourdine.tables import Table
    from sourdine.tables.release import _carry_out

    ask: list[object] = ["count", {"mean": "x"}] if case.task != "deciles" else []
    if case.task in ("rows", "deciles"):
        ask.append({"quantiles": "x", "levels": list(DECILES)})
    unit: PrivacyUnit | str = "person"
    if case.task == "people":
        unit = PrivacyUnit("person", column="person", max_rows=MAX_ROWS, max_groups=MAX_GROUPS)
    budget: Any = (
        {"epsilon": PRIVATE_EPSILON, "delta": DELTA} if case.task == "private" else {"epsilon": EPSILON}
    )

    def run() -> object:
        held = Table(table, unit=unit, columns=columns)
        asked: Any = {"name": "by key", "ask": ask, "by": case.columns}
        if case.question:
            asked = held.sql(QUESTIONS[case.question])
        plan = held.plan([asked], quality=False, **budget)
        return _carry_out(plan, held.source)

    return run


def _first(table: Any, columns: dict[str, Any]) -> object:
    import sourdine as sd

    return sd.Table(table, unit="person", columns=columns)


def plain(table: Any, case: Case) -> Callable[[], object]:
    """The same aggregates by the engine itself, without privacy.

    Where people have many rows, first by person and key: what a bound on contributions is about.
    """
    if case.engine in ("duckdb", "csv"):
        return _in_duckdb(table, case)
    if case.engine == "spark":
        return _in_spark(table, case)
    return _in_polars(table, case)


def _in_duckdb(table: str, case: Case) -> Callable[[], object]:
    if case.task == "first":
        return lambda: _opened_first(table)
    import duckdb

    if case.question:
        text = QUESTIONS[case.question].replace("people", f"'{table}'")
        return lambda: duckdb.connect().execute(text).fetchnumpy()
    by, source = ", ".join(case.columns), f"'{table}'"
    asked = "" if case.task == "deciles" else ", count(*), avg(x)"
    if case.task in ("rows", "deciles"):
        asked += f", quantile_cont(x, [{', '.join(map(str, DECILES))}])"
    if case.task == "people":
        source = f"(SELECT person, k, count(*) AS n, sum(x) AS x FROM {source} GROUP BY person, k)"
        asked = ", sum(n), sum(x) / sum(n)"
    sql = f"SELECT {by}{asked} FROM {source} GROUP BY {by}"
    if case.task == "private":
        sql += " HAVING count(*) >= 2"
    return lambda: duckdb.connect().execute(sql).fetchnumpy()


def _opened_first(table: str) -> object:
    import duckdb

    return duckdb.connect().execute(f"SELECT * FROM '{table}' LIMIT 0").fetchall()


def _in_spark(table: Any, case: Case) -> Callable[[], object]:
    levels = ", ".join(map(str, DECILES))
    deciles = f", percentile(x, array({levels}))" if case.task == "rows" else ""
    table.createOrReplaceTempView("t")
    by = ", ".join(case.columns)
    sql = f"SELECT {by}, count(*), avg(x){deciles} FROM t GROUP BY {by}"
    return lambda: table.sparkSession.sql(sql).collect()


def _in_polars(table: Any, case: Case) -> Callable[[], object]:
    import polars as pl

    found = [pl.len(), pl.col("x").mean()]
    if case.task == "rows":
        found += [pl.col("x").quantile(level).alias(str(level)) for level in DECILES]
    source = table.lazy()
    if case.task == "people":
        source = source.group_by("person", "k").agg(pl.len().alias("n"), pl.col("x").sum())
        found = [pl.col("n").sum().alias("count"), pl.col("x").sum()]
    return lambda: source.group_by(*case.columns).agg(found).collect(engine="streaming")


def peak() -> int:
    """The most memory that this process and those it started have held, in bytes."""
    total, seen = 0, {os.getpid()}
    known = [each for each in Path("/proc").iterdir() if each.name.isdigit()]
    for each in sorted(known, key=lambda folder: int(folder.name)):
        try:
            held = dict(line.split(":", 1) for line in (each / "status").read_text().splitlines())
        except OSError:
            continue
        if int(each.name) in seen or int(held["PPid"]) in seen:
            seen.add(int(each.name))
            total += int(held.get("VmHWM", "0 kB").split()[0]) * 1024
    return total


def main() -> None:
    question = json.loads(sys.argv[1])
    case = Case(**question["case"])
    table = opened(case.engine, question["path"])
    run = (private if question["private"] else plain)(table, case)
    seconds, processor = [], []
    for _ in range(question["rounds"]):
        start, used = time.perf_counter(), time.process_time()
        run()
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    print(json.dumps({"seconds": min(seconds), "processor": min(processor), "bytes": peak()}))


if __name__ == "__main__":
    main()
