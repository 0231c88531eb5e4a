"""1,000 keys by 365 days, published day by day; and publishing that is killed at random moments."""

import json
import os
import random
import resource
import signal
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sourdine.accounting.ledger import Ledger
from sourdine.frames.source import Source
from sourdine.tables.series import TableSeries
from sourdine.tables.specification import Specification

Shown = list[list[Any]]
START = date(2026, 1, 1)
_SPECIFICATION = """\
[table]
source = "visits.parquet"
[privacy]
unit = "person"
column = "id"
ledger = "visits.ledger"
epsilon = {epsilon}
delta = 1e-6
[columns.arrived]
type = "date"
first = 2026-01-01
last = 2027-12-31
[columns.place]
{place}
[[queries]]
name = "visits"
ask = ["count"]
by = "place"
[series]
period = "day"
first = 2026-01-01
periods = {periods}
arrived = "arrived"
publish = ["total"]
"""


def prepare(
    folder: Path, *, keys: int, periods: int, records: int, chosen: bool = False, epsilon: int = 1
) -> Specification:
    """A register with so many records a day, its specification and its ledger.

    The keys are declared, or texts of which nobody knows: those are to be chosen.
    """
    rng = np.random.default_rng(1)
    days = np.repeat(np.arange(periods), records)
    all_days = pa.array([START + timedelta(days=day) for day in range(periods)], pa.date32())
    table = pa.table(
        {
            "id": np.arange(len(days)),
            "arrived": all_days.take(pa.array(days)),
            "place": pa.array(rng.integers(0, keys, len(days))).cast(pa.string() if chosen else pa.int64()),
        }
    )
    place = 'type = "text"' if chosen else f'type = "integer"\nlower = 0\nupper = {keys - 1}'
    pq.write_table(table, folder / "visits.parquet")
    (folder / "visits.toml").write_text(_SPECIFICATION.format(place=place, periods=periods, epsilon=epsilon))
    kept = 5e-7 if chosen else None
    Ledger.create(folder / "visits.ledger", epsilon=epsilon, delta=1e-6, selection_delta=kept).close()
    return Specification.load(folder / "visits.toml")


def day_by_day(folder: Path, *, keys: int, periods: int, records: int) -> dict[str, float]:
    """Seconds and bytes of a day and of the year."""
    specification = prepare(folder, keys=keys, periods=periods, records=records)
    plan = specification.series_plan()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    begin = time.perf_counter()
    with TableSeries.start(plan, specification.series_path, folder / "visits.ledger") as series:
        for _ in range(periods):
            start = time.perf_counter()
            series.publish(specification.open(), early=True)
            times.append(time.perf_counter() - start)
    return {
        "day": float(np.median(times)),
        "slowest": max(times),
        "year": time.perf_counter() - begin,
        "memory": float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024,
        "state": float(specification.series_path.stat().st_size),
    }


def kills(folder: Path, *, times: int, seed: int = 0, chosen: bool = False) -> dict[str, int]:
    """Kill a publisher at random moments: whatever was shown is shown again, and nothing is paid twice."""
    many = {"records": 400, "epsilon": 8} if chosen else {"records": 8}
    specification = prepare(folder, keys=4, periods=times + 50, chosen=chosen, **many)
    plan, place, ledger = specification.series_plan(), specification.series_path, folder / "visits.ledger"
    TableSeries.start(plan, place, ledger).close()
    with Ledger.open(ledger) as book:
        paid = book.status().spent
    dice, shown, took = random.Random(seed), dict[int, Shown](), 0.0
    killed = changed = 0
    while killed < times:
        number = len(shown) + 1
        start, through = time.perf_counter(), not shown or dice.random() < 1 / 8  # now and then one is let
        process, pipe = _publisher(specification, number)
        if not through:
            time.sleep(dice.random() * 1.2 * took)
            os.kill(process, signal.SIGKILL)
        text = b""
        while part := os.read(pipe, 1 << 16):
            text += part
        os.close(pipe)
        _, ended = os.waitpid(process, 0)
        if through:
            spent = time.perf_counter() - start
            took = 0.5 * (took + spent) if took else spent
        killed += os.WIFSIGNALED(ended)
        if text.endswith(b"\n"):
            rows = json.loads(text)
            changed += shown.get(number, rows) != rows
            shown[number] = rows
        elif through:
            raise RuntimeError(f"The period {number} was not published though nobody was killed.")
    with TableSeries.open(plan, place) as series:
        status, source = series.status(), specification.open()
        again = {number: _rows(series, source, number) for number in shown}
    with Ledger.open(ledger) as book:
        more = book.status().spent != paid
    return {
        "kills": killed,
        "shown": len(shown),
        "held": status.closed,
        "keys": max((len(rows) for rows in shown.values()), default=0),
        "changed": changed + sum(again[number] != rows for number, rows in shown.items()),
        "refused": int(status.restored),
        "paid_twice": int(more),
    }


def _publisher(specification: Specification, number: int) -> tuple[int, int]:
    """A process that publishes one period and writes down what it was shown."""
    read, write = os.pipe()
    process = os.fork()
    if process:
        os.close(write)
        return process, read
    try:
        with TableSeries.open(specification.series_plan(), specification.series_path) as series:
            rows = _rows(series, specification.open(), number)
        os.write(write, json.dumps(rows).encode() + b"\n")
    finally:
        os._exit(0)


def _rows(series: TableSeries, source: Source, number: int) -> Shown:
    """The keys of a period, each with the last row of it."""
    table = series.publish(source, number, early=True).tables[0]
    return [[*map(str, key), row] for key, row in zip(table.keys, table.rows[:, -1].tolist(), strict=True)]
