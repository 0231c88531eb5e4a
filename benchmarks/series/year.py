"""1,000 keys by 365 days, published day by day; and publishing that is killed at random moments."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sourdine.accounting.ledger import Ledger
from sourdine.tables.series import TableSeries
from sourdine.tables.specification import Specification

START = date(2026, 1, 1)
_SPECIFICATION = """\
[table]
source = "visits.parquet"
[privacy]
unit = "person"
column = "id"
ledger = "visits.ledger"
epsilon = 1
delta = 1e-6
[columns.arrived]
type = "date"
first = 2026-01-01
last = 2027-12-31
[columns.place]
type = "integer"
lower = 0
upper = {last}
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


def prepare(folder: Path, *, keys: int, periods: int, records: int) -> Specification:
    """A register with so many records a day, its specification and its ledger."""
    rng = np.random.default_rng(1)
    days = np.repeat(np.arange(periods), records)
    all_days = pa.array([START + timedelta(days=day) for day in range(periods)], pa.date32())
    table = pa.table(
        {
            "id": np.arange(len(days)),
            "arrived": all_days.take(pa.array(days)),
            "place": rng.integers(0, keys, len(days)),
        }
    )
    pq.write_table(table, folder / "visits.parquet")
    (folder / "visits.toml").write_text(_SPECIFICATION.format(last=keys - 1, periods=periods))
    Ledger.create(folder / "visits.ledger", epsilon=1, delta=1e-6).close()
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
            series.publish(specification.open())
            times.append(time.perf_counter() - start)
    return {
        "day": float(np.median(times)),
        "slowest": max(times),
        "year": time.perf_counter() - begin,
        "memory": float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024,
        "state": float(specification.series_path.stat().st_size),
    }


_PUBLISHER = """
import json, sys
from pathlib import Path
from sourdine.tables.series import TableSeries
from sourdine.tables.specification import Specification
folder = Path(sys.argv[1])
specification = Specification.load(folder / "visits.toml")
plan, place = specification.series_plan(), specification.series_path
TableSeries.start(plan, place, folder / "visits.ledger").close() if sys.argv[2] == "start" else None
print("ready", flush=True)
for line in sys.stdin:
    with TableSeries.open(plan, place) as series:
        answers = series.publish(specification.open(), int(line))
    rows = answers.tables[0].rows
    print(json.dumps([int(line), rows[:, -1].tolist()]), flush=True)
"""


def kills(folder: Path, *, times: int, seed: int = 0) -> dict[str, int]:
    """Kill a publisher at random moments: whatever was shown is shown again, and nothing is paid twice."""
    specification = prepare(folder, keys=4, periods=times + 50, records=8)
    plan, place, ledger = specification.series_plan(), specification.series_path, folder / "visits.ledger"
    TableSeries.start(plan, place, ledger).close()
    with Ledger.open(ledger) as book:
        paid = book.status().spent
    dice, shown = random.Random(seed), dict[int, list[int]]()
    killed = lost = changed = refused = 0
    worker = _worker(folder)
    wait = 0.05
    while killed < times:
        number = len(shown) + 1
        start = time.perf_counter()
        delay = dice.random() * 1.3 * wait
        _ask(worker, number)
        time.sleep(delay)
        worker.send_signal(signal.SIGKILL)
        output = worker.communicate()[0].decode().splitlines()
        killed += 1
        for line in output:
            told, rows = json.loads(line)
            changed += told in shown and shown[told] != rows
            shown[told] = rows
        worker = _worker(folder)
        if killed % 25 == 0:  # let one through, so that the series goes on
            _ask(worker, number)
            assert worker.stdout is not None
            told, rows = json.loads(worker.stdout.readline())
            changed += told in shown and shown[told] != rows
            shown[told] = rows
            wait = 0.8 * wait + 0.2 * (time.perf_counter() - start)
    worker.kill()
    worker.communicate()
    with TableSeries.open(plan, place) as series:
        held, restored = series.status().closed, series.status().restored
        for number, rows in shown.items():
            again = series.publish(specification.open(), number).tables[0].rows[:, -1].tolist()
            lost += again != rows
    refused += restored
    with Ledger.open(ledger) as book:
        more = book.status().spent != paid
    return {
        "kills": killed,
        "shown": len(shown),
        "held": held,
        "changed": changed,
        "lost": lost,
        "refused": int(refused),
        "paid_twice": int(more),
    }


def _ask(worker: "subprocess.Popen[bytes]", number: int) -> None:
    assert worker.stdin is not None
    os.write(worker.stdin.fileno(), f"{number}\n".encode())


def _worker(folder: Path) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    worker = subprocess.Popen(
        [sys.executable, "-c", _PUBLISHER, str(folder), "go"], stdin=pipe, stdout=pipe, bufsize=0
    )
    assert worker.stdout is not None
    worker.stdout.readline()
    return worker
