"""The command line: `python -m benchmarks.growth [--quick] [--json PATH] [--folder PATH]`."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import disk_usage, which
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import better, verdict
from benchmarks.growth.cases import ENGINES, write_table

TARGET, MEMORY = 1.5, 8 << 30
_BYTES_A_ROW = 16
_FEWEST_OF_SPARK = 10**7  # rows above which Spark and frames in memory are left out
Result = dict[str, Any]


def measured(question: dict[str, Any]) -> Result:
    """One configuration in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.growth.measure", json.dumps(question)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr else "it ended"}
    found: Result = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def cases(quick: bool) -> Iterator[dict[str, Any]]:
    """Against rows with 100 keys, then against keys; deciles need a grid, of cents or the default one."""
    largest = 6 if quick else 8
    for power in range(5, largest + 1):
        rows = 10**power
        for engine in ENGINES:
            if engine in ("polars frame", "spark") and rows > _FEWEST_OF_SPARK:
                continue
            for grid in ("cents", "fine"):
                yield {"rows": rows, "keys": 100, "engine": engine, "grid": grid, "deciles": True}
    for power in range(1, 5 if quick else 7):
        for engine in ENGINES:
            if engine != "polars frame":
                rows = 10**6 if quick or engine == "spark" else 10**7
                yield {"rows": rows, "keys": 10**power, "engine": engine, "grid": "cents", "deciles": False}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to a million rows and ten thousand keys")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    parser.add_argument("--folder", type=Path, metavar="PATH", help="where the tables are written meanwhile")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="only this engine, or these")
    parser.add_argument("--rows", type=int, metavar="N", help="only tables of so many rows")
    options = parser.parse_args()
    console, results = Console(), []
    wanted = [
        case
        for case in cases(options.quick)
        if case["engine"] in (options.engine or ENGINES) and options.rows in (None, case["rows"])
    ]
    if which("java") is None:
        console.print("Spark is left out: there is no Java.")
        wanted = [case for case in wanted if case["engine"] != "spark"]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        need = max((case["rows"] for case in wanted), default=0) * _BYTES_A_ROW
        if disk_usage(folder).free < 2 * need:
            sys.exit(f"The tables need {2 * need / 1e9:.1f} GB in {folder}. Name another place by --folder.")
        with console.status("measuring") as status:
            for case in wanted:
                path = Path(folder) / f"{case['rows']}_{case['keys']}.parquet"
                if not path.exists():
                    for old in Path(folder).iterdir():
                        old.unlink()
                    write_table(path, case["rows"], case["keys"])
                status.update(
                    f"{case['rows']:,} rows, {case['keys']:,} keys, {case['engine']}, {case['grid']}"
                )
                asked = {**case, "path": str(path), "rounds": 3 if case["rows"] <= 10**6 else 2}
                both = {
                    name: measured({**asked, "private": name == "private"}) for name in ("plain", "private")
                }
                results.append({**case, **both})
    show(results, console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def show(results: list[Result], console: Console) -> None:
    """Seconds and memory, and the ratio to the same query without privacy on the same engine."""
    shown = Table(title="count and mean by key, and nine deciles where a grid is named")
    for name in (
        "rows",
        "keys",
        "engine",
        "deciles",
        "plain s",
        "private s",
        "times",
        "plain GB",
        "private GB",
    ):
        shown.add_column(name, justify="left" if name in ("engine", "deciles") else "right")
    for each in results:
        plain, ours = each["plain"], each["private"]
        grid = f"on {each['grid']}" if each["deciles"] else "none"
        cells = [f"{each['rows']:,}", f"{each['keys']:,}", each["engine"], grid]
        if "error" in plain or "error" in ours:
            shown.add_row(*cells, plain.get("error", ""), ours.get("error", ""))
            continue
        numbers = [plain["seconds"], ours["seconds"], ours["seconds"] / plain["seconds"]]
        memory = [plain["bytes"] / 1e9, ours["bytes"] / 1e9]
        shown.add_row(*cells, *(f"{number:.2f}" for number in numbers + memory))
    console.print(shown)
    for each in results:
        target = (each["rows"], each["engine"], each["deciles"]) == (10**8, "duckdb", True)
        if target and "error" not in {**each["plain"], **each["private"]}:
            ratio = each["private"]["seconds"] / each["plain"]["seconds"]
            good = ratio <= TARGET and each["private"]["bytes"] <= MEMORY
            verdict(
                console,
                good,
                f"10^8 rows in a file, deciles on {each['grid']}: {ratio:.2f} times the query without "
                f"privacy (target {TARGET}), {each['private']['bytes'] / 1e9:.1f} GB (target 8 GiB)",
            )
    for size, deciles in (("rows", True), ("keys", False)):
        ratio, most = _dearest([each for each in results if each["deciles"] is deciles])
        if ratio > 1:
            better(
                console,
                f"at {most[size]:,} {size}, {most['engine']} without privacy takes 1/{ratio:.0f} of the "
                f"time, {most['plain']['seconds']:.2g} s",
            )


def _dearest(results: list[Result]) -> tuple[float, Result]:
    """Where privacy multiplies the time most, and by how much."""
    good = [each for each in results if "error" not in {**each["plain"], **each["private"]}]
    ratios = [(each["private"]["seconds"] / each["plain"]["seconds"], each) for each in good]
    return max(ratios, key=lambda pair: pair[0], default=(0.0, {}))


if __name__ == "__main__":
    main()
