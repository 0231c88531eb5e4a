"""The command line: `python -m benchmarks.spark [--quick] [--rows N] [--kind NAME] [--folder PATH]`."""

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from shutil import disk_usage, which
from typing import Any

from rich.console import Console

from benchmarks.growth.cases import write_table
from benchmarks.growth.measure import private, spark_frame
from benchmarks.spark.findings import Measured, show
from benchmarks.spark.kinds import KINDS
from benchmarks.spark.work import Work, work_of

_BYTES_A_ROW = 32
_ROUNDS = {10**6: 3, 10**7: 2}  # of more rows one


def measured(name: str, rows: int, folder: Path) -> Measured:
    """One kind on a table of so many rows, which is written for it; the best of a few rounds, in turn."""
    kind = KINDS[name]
    case = kind.case(rows)
    path = folder / case.file
    if not path.exists():
        for old in folder.iterdir():
            old.unlink()
        write_table(path, case)
    frame = spark_frame(str(path))
    session = frame.sparkSession
    frame.createOrReplaceTempView("t")
    asked: dict[str, Callable[[], Any]] = {
        "plain": lambda: session.sql(kind.plain).collect(),
        "private": private(frame, case),
    }
    rounds = _ROUNDS.get(rows, 1 if rows > max(_ROUNDS) else 2)
    done: dict[str, list[Work]] = {side: [] for side in asked}
    for _ in range(rounds):
        for side, call in asked.items():
            done[side].append(work_of(session, call))
    best = {side: min(works, key=lambda work: work.seconds) for side, works in done.items()}
    return Measured(kind=name, rows=rows, plain=best["plain"], private=best["private"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to a million rows")
    parser.add_argument("--rows", type=int, action="append", metavar="N", help="only tables of so many rows")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind, or these")
    parser.add_argument("--folder", type=Path, metavar="PATH", help="where the tables are written meanwhile")
    options = parser.parse_args()
    console, measures = Console(), list[Measured]()
    if which("java") is None:
        console.print("Nothing is measured: Spark needs Java, which is not installed.")
        return
    sizes = options.rows or ([10**5, 10**6] if options.quick else [10**6, 10**7, 10**8])
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark warns of the pandas that is installed
        need = max(sizes) * _BYTES_A_ROW
        if disk_usage(folder).free < 4 * need:
            sys.exit(
                f"Tables and shuffles need {4 * need / 1e9:.1f} GB in {folder}. Name another by --folder."
            )
        with console.status("measuring") as status:
            for rows in sorted(sizes):
                for name in options.kind or KINDS:
                    status.update(f"{KINDS[name].words}, {rows:,} rows")
                    measures.append(measured(name, rows, Path(folder)))
    show(sorted(measures, key=lambda each: list(KINDS).index(each.kind)), console)


if __name__ == "__main__":
    main()
