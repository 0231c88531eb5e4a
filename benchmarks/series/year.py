"""1,000 keys by 365 days, published day by day; and publishing that is killed at random moments."""

import json
import os
import random
import resource
import signal
import time
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sourdine.accounting.ledger import Ledger
from sourdine.cli.verbs import asked_for, make_app
from sourdine.tables.series import TableSeries
from sourdine.tables.specification import Specification

for _name in ("duckdb", "rich.progress", "rich.table", "scipy.special", "sourdine.cli.series"):
    import_module(_name)  # what the command loads, so that a killed process spends its time on its work
Shown = list[dict[str, Any]]
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
last = 2035-12-31
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
    """Kill the command at random moments: whatever was shown is shown again, and nothing is paid twice.

    Of two kills one comes at any moment of a run, and one near its end, where rows are committed and shown.
    """
    many = {"records": 400, "epsilon": 8} if chosen else {"records": 8}
    specification = prepare(folder, keys=4, periods=2 * times + 50, chosen=chosen, **many)
    plan, place, ledger = specification.series_plan(), specification.series_path, folder / "visits.ledger"
    TableSeries.start(plan, place, ledger).close()
    with Ledger.open(ledger) as book:
        paid = book.status().spent, len(book.history())
    file, calendar = folder / "visits.toml", plan.block.calendar
    dice, shown, took = random.Random(seed), dict[str, Shown](), 0.0
    killed = changed = unseen = 0
    while killed < times:
        period = calendar.name(len(shown) + 1)
        start, through = time.perf_counter(), not shown or dice.random() < 1 / 8  # now and then one is let
        earliest = 0.0 if dice.random() < 1 / 2 else 0.6
        moment = None if through else (earliest + (1.2 - earliest) * dice.random()) * took
        answers, cut = _shown(file, period, moment)
        if through:
            spent = time.perf_counter() - start
            took = 0.5 * (took + spent) if took else spent
        killed += cut
        if answers is not None:
            shown[period] = answers
        elif through:
            raise RuntimeError(f"The period {period} was not published though nobody was killed.")
        elif cut and len(shown) < _closed(specification):
            unseen += 1  # committed, and cut off before it was shown
    for period, answers in shown.items():
        changed += _shown(file, period)[0] != answers
    with TableSeries.open(plan, place) as series:
        status = series.status()
    with Ledger.open(ledger) as book:
        more = (book.status().spent, len(book.history())) != paid
    return {
        "kills": killed,
        "shown": len(shown),
        "held": status.closed,
        "committed_unseen": unseen,
        "keys": max((len(rows) for rows in shown.values()), default=0),
        "changed": changed,
        "refused": int(status.restored),
        "paid_twice": int(more),
    }


def _closed(specification: Specification) -> int:
    with TableSeries.open(specification.series_plan(), specification.series_path) as series:
        return series.status().closed


def _publisher(specification: Path, period: str) -> tuple[int, int]:
    """A process that runs the command for one period; what it shows comes through a pipe."""
    read, write = os.pipe()
    process = os.fork()
    if process:
        os.close(write)
        return process, read
    try:
        os.dup2(write, 1)
        words = ["series", "publish", str(specification), "--period", period, "--early", "--json"]
        make_app(asked_for(words))(words)
    finally:
        os._exit(0)


def _shown(specification: Path, period: str, after: float | None = None) -> tuple[Shown | None, bool]:
    """What the command shows of a period, if it does; and whether it was killed after so many seconds."""
    process, pipe = _publisher(specification, period)
    if after is not None:
        time.sleep(after)
        os.kill(process, signal.SIGKILL)
    text = b""
    while part := os.read(pipe, 1 << 16):
        text += part
    os.close(pipe)
    _, ended = os.waitpid(process, 0)
    try:
        shown: Shown | None = json.loads(text)["answers"]
    except ValueError:  # cut off
        shown = None
    return shown, os.WIFSIGNALED(ended)
