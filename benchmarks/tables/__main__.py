"""The command line: `python -m benchmarks.tables [--quick] [--json PATH]`."""

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import verdict
from benchmarks.peers import Worker
from benchmarks.tables.cases import DIFFPRIVLIB, OPENDP, OURS, table, text_table

ROWS = 10_000_000
FEWER = 1_000_000
TARGET = 1.5


def in_turn(workers: dict[str, Worker], question: dict[str, Any], rounds: int) -> dict[str, dict[str, Any]]:
    """The quickest answer of each, after one to warm up; they take turns, so that load falls on all."""
    found: dict[str, dict[str, Any]] = {}
    for place in range(rounds + 1):
        for name, worker in workers.items():
            answer = worker.ask(question)
            if place and (name not in found or answer["seconds"] < found[name]["seconds"]):
                found[name] = answer
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, fewer rounds")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    rows, rounds = (FEWER, 3) if options.quick else (ROWS, 7)
    console = Console()
    results: dict[str, dict[str, dict[str, Any]]] = {}
    with console.status("making the environments and the table"):
        for environment in (OPENDP, DIFFPRIVLIB):
            environment.prepare()
        path = str(table(rows))
        text = {"CSV file": text_table(rows), "CSV file, quotes and CRLF": text_table(rows, quoted=True)}
    with (
        console.status("measuring"),
        OURS.start("benchmarks.tables.with_sourdine") as ours,
        OURS.start("benchmarks.tables.with_duckdb") as plain,
        OPENDP.start("benchmarks.tables.with_opendp") as opendp,
        DIFFPRIVLIB.start("benchmarks.tables.with_diffprivlib") as diffprivlib,
    ):
        both = {"plain DuckDB": plain, "Sourdine": ours}
        for memory in (False, True):
            question = {"path": path, "task": "records", "memory": memory, "rows": rows}
            name = "in memory" if memory else "Parquet file"
            results[f"one row per unit, {name}"] = in_turn(both, question, rounds)
        for name, place in text.items():
            question = {"path": str(place), "task": "records", "memory": False, "rows": rows}
            results[f"one row per unit, {name}"] = in_turn(both, question, max(2, rounds // 2))
        peers = {"OpenDP": opendp, "diffprivlib": diffprivlib}
        question = {"path": path, "task": "records", "memory": False, "rows": rows}
        results["one row per unit, Parquet file"] |= in_turn(peers, question, 2)
        question = {"path": path, "task": "units", "memory": False, "rows": rows}
        results["many rows per unit, Parquet file"] = in_turn(both, question, max(2, rounds // 2))
    show(results, rows, console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def show(results: dict[str, dict[str, dict[str, Any]]], rows: int, console: Console) -> None:
    """Seconds, and the ratio to the same queries without privacy."""
    title = (
        f"{rows:,} rows: count, sum and mean by 100 keys, and a histogram (many rows per unit: by keys only)"
    )
    shown = Table(title=title)
    for name in ("case", "who", "seconds", "times plain DuckDB"):
        shown.add_column(name, justify="left" if name in ("case", "who") else "right")
    for case, found in results.items():
        limit = found["plain DuckDB"]["seconds"]
        for who, answer in found.items():
            shown.add_row(case, who, f"{answer['seconds']:.3f}", f"{answer['seconds'] / limit:.2f}")
    console.print(shown)
    for kind in ("Parquet file", "CSV file", "CSV file, quotes and CRLF"):
        held = results[f"one row per unit, {kind}"]
        ratio = held["Sourdine"]["seconds"] / held["plain DuckDB"]["seconds"]
        told = f"{kind}: {ratio:.2f} times the same queries without privacy (target {TARGET})"
        verdict(console, ratio <= TARGET, told)
    held = results["one row per unit, Parquet file"]
    for who in ("OpenDP", "diffprivlib"):
        quicker = held[who]["seconds"] / held["Sourdine"]["seconds"]
        verdict(console, quicker >= 1, f"{quicker:.1f} times as quick as {who} (target 1)")


if __name__ == "__main__":
    main()
