"""The command line: `python -m benchmarks.keys [--quick] [--json PATH]`."""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import verdict

ROWS = 10_000_000
MOST_SECONDS = 60.0
UNITS = ("one row per unit", "two rows per unit")
_PLAIN = "SELECT town, count(*), avg(age) FROM read_parquet(?) GROUP BY town HAVING count(*) >= ?"


def measure(keys: int, rows: int, unit: str) -> dict[str, Any]:
    """One release by so many keys, in this process: seconds, those of plain DuckDB, memory and keys shown."""
    import duckdb

    import sourdine as sd
    from sourdine.tables.release import _carry_out

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        made = f"'town ' || (hash(range) % {keys}) AS town, CAST(hash(range + 7) % 100 AS INTEGER) AS age"
        duckdb.connect().execute(
            f"COPY (SELECT {made}, range // 2 AS who FROM range({rows})) TO '{path}' (FORMAT parquet)"
        )
        columns = {"town": {"type": "text", "other": "other towns"}, "age": _AGE}
        whose = sd.PrivacyUnit(name="person", column="who", max_groups=2) if unit == UNITS[1] else "person"
        table = sd.Table(path, unit=whose, columns=columns)
        query = {"name": "towns", "ask": ["count", {"mean": "age"}], "by": ["town"]}
        plan = table.plan(query, epsilon=20, delta=1e-6, quality=False)
        start = time.perf_counter()
        duckdb.connect().execute(_PLAIN, [path, plan.lines[0].mechanism.threshold]).fetchall()  # type: ignore[attr-defined]
        plain = time.perf_counter() - start
        start = time.perf_counter()
        made_keys = len(_carry_out(plan, table.source).values.each[0].keys)
        seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": seconds, "plain": plain, "gigabytes": memory, "shown": made_keys}


_AGE = {"type": "integer", "lower": 0, "upper": 99}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keys", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, up to 10^5 keys")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    parser.add_argument("--one", nargs=3, metavar=("KEYS", "ROWS", "UNIT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(int(options.one[0]), int(options.one[1]), options.one[2])))
        return
    rows, powers = (ROWS // 10, range(1, 6)) if options.quick else (ROWS, range(1, 7))
    console, results = Console(), list[dict[str, Any]]()
    for unit in UNITS:
        for power in powers:
            with console.status(f"{10**power:,} keys, {unit}"):
                asked = [sys.executable, "-m", "benchmarks.keys", "--one", str(10**power), str(rows), unit]
                out = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
            results.append({"unit": unit, "keys": 10**power, **json.loads(out)})
    shown = Table("unit", "keys", "shown", "seconds", "plain DuckDB", "GB", title=f"{rows:,} rows")
    for each in results:
        numbers = (f"{each[name]:.2f}" for name in ("seconds", "plain", "gigabytes"))
        shown.add_row(each["unit"], f"{each['keys']:,}", f"{each['shown']:,}", *numbers)
    console.print(shown)
    last = max(results, key=lambda each: each["seconds"])
    text = f"{last['keys']:,} keys, count and mean by each, in {last['seconds']:.1f} s (at most 60 s)"
    verdict(console, last["seconds"] < MOST_SECONDS, text)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
