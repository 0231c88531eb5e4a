"""The command line: `python -m benchmarks.growth [--quick] [--json PATH] [--folder PATH] [--task NAME] …`."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import disk_usage, which
from typing import Any

from rich.console import Console

from benchmarks.growth.cases import ENGINES, TASKS, Case, cases, write_table
from benchmarks.growth.findings import show

_BYTES_A_ROW = 32
_FEW = 10**6  # rows up to which a case is measured more often
Result = dict[str, Any]


def measured(case: Case, path: Path, private: bool) -> Result:
    """One case in a fresh process; what happens only once in a process is measured in several."""
    once = case.task == "first"
    many = case.rows <= 10**5 or case.task == "expressions"
    rounds = 1 if once else 5 if many else 3 if case.rows <= _FEW else 2
    question = {"case": case.asked(), "path": str(path), "private": private, "rounds": rounds}
    command = [sys.executable, "-m", "benchmarks.growth.measure", json.dumps(question)]
    found: list[Result] = []
    for _ in range(5 if once else 1):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"error": done.stderr.strip().splitlines()[-1] if done.stderr else "it ended"}
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return min(found, key=lambda each: float(each["seconds"]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to a million rows and 100,000 keys")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    parser.add_argument("--folder", type=Path, metavar="PATH", help="where the tables are written meanwhile")
    parser.add_argument("--task", choices=TASKS, action="append", help="only this task, or these")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="only this engine, or these")
    parser.add_argument("--rows", type=int, metavar="N", help="only tables of so many rows")
    parser.add_argument("--keys", type=int, metavar="N", help="only tables of so many keys")
    options = parser.parse_args()
    console, results = Console(), list[Result]()
    wanted = [
        case
        for case in cases(options.quick)
        if case.engine in (options.engine or ENGINES)
        and case.task in (options.task or TASKS)
        and options.rows in (None, case.rows)
        and options.keys in (None, case.keys)
    ]
    if which("java") is None:
        console.print("Spark is left out: there is no Java.")
        wanted = [case for case in wanted if case.engine != "spark"]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        need = max((case.rows for case in wanted), default=0) * _BYTES_A_ROW
        if disk_usage(folder).free < 2 * need:
            sys.exit(f"The tables need {2 * need / 1e9:.1f} GB in {folder}. Name another place by --folder.")
        with console.status("measuring") as status:
            for case in wanted:
                path = Path(folder) / case.file
                if not path.exists():
                    for old in Path(folder).iterdir():
                        old.unlink()
                    write_table(path, case)
                status.update(case.words)
                both = {name: measured(case, path, name == "private") for name in ("plain", "private")}
                results.append({**case.asked(), **both})
    show(results, console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
