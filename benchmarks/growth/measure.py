"""One configuration in a process of its own: `python -m benchmarks.growth.measure QUESTION`, in JSON."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.growth.cases import DECILES, EPSILON, LOWER, STEPS, UPPER

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
    if engine == "duckdb":
        return path
    if engine == "spark":
        return spark_frame(path)
    import polars as pl

    return pl.scan_parquet(path) if engine == "polars lazy" else pl.read_parquet(path)


def private(table: Any, question: dict[str, Any]) -> Callable[[], object]:
    """A whole release but for the charge: planning, exact counts, noise, intervals."""
    from sourdine.tables import Table
    from sourdine.tables.release import _carry_out

    columns = {
        "k": {"type": "category", "keys": list(range(question["keys"]))},
        "x": {"type": "real", "lower": LOWER, "upper": UPPER, "granularity": STEPS[question["grid"]]},
    }
    ask: list[object] = ["count", {"mean": "x"}]
    if question["deciles"]:
        ask.append({"quantiles": "x", "levels": list(DECILES)})

    def run() -> object:
        held = Table(table, unit="person", columns=columns)
        return _carry_out(
            held.plan({"name": "by key", "ask": ask, "by": ["k"]}, epsilon=EPSILON, quality=False),
            held.source,
        )

    return run


def plain(table: Any, question: dict[str, Any]) -> Callable[[], object]:
    """The same aggregates by the engine itself, without privacy."""
    levels = ", ".join(map(str, DECILES))
    if question["engine"] == "duckdb":
        import duckdb

        deciles = f", quantile_cont(x, [{levels}])" if question["deciles"] else ""
        sql = f"SELECT k, count(*), avg(x){deciles} FROM '{table}' GROUP BY k"
        return lambda: duckdb.connect().execute(sql).fetchall()
    if question["engine"] == "spark":
        deciles = f", percentile(x, array({levels}))" if question["deciles"] else ""
        table.createOrReplaceTempView("t")
        return lambda: table.sparkSession.sql(
            f"SELECT k, count(*), avg(x){deciles} FROM t GROUP BY k"
        ).collect()
    import polars as pl

    found = [pl.len(), pl.col("x").mean()]
    if question["deciles"]:
        found += [pl.col("x").quantile(level).alias(str(level)) for level in DECILES]
    return lambda: table.lazy().group_by("k").agg(found).collect(engine="streaming")


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
    table = opened(question["engine"], question["path"])
    run = (private if question["private"] else plain)(table, question)
    seconds = []
    for _ in range(question["rounds"]):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(seconds), "bytes": peak()}))


if __name__ == "__main__":
    main()
