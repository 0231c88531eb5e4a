"""All benchmarks in turn, and the pages that tell what they found: `python -m benchmarks [NAME ...]`.

What each printed is kept under `.bench/results`. A page is written for each that is kept there, and a first
page from all pages there are, so that one benchmark can be run again without the others.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from benchmarks.charts import FIGURES, draw
from benchmarks.page import Run, contents, page
from benchmarks.peers import ENVIRONMENTS, ROOT

KEPT = ENVIRONMENTS / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = "pictures/benchmarks"  # beside the page
_WIDTH = 118


def names() -> list[str]:
    """Every benchmark there is, in order."""
    return sorted(path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; all without any")
    parser.add_argument("--quick", action="store_true", help="smaller sizes; the page says so")
    parser.add_argument(
        "--page",
        type=Path,
        default=PAGE,
        metavar="PATH",
        help="where the first page goes, beside the others' folder",
    )
    options = parser.parse_args()
    wanted = options.names or names()
    if unknown := sorted(set(wanted) - set(names())):
        parser.error(f"there is no benchmark {unknown[0]}; there are {', '.join(names())}")
    console = Console(stderr=True)
    KEPT.mkdir(parents=True, exist_ok=True)
    failed = []
    for place, name in enumerate(wanted, 1):
        start = time.perf_counter()
        with console.status(f"{name} ({place} of {len(wanted)})"):
            good = run(name, options.quick)
        took = time.perf_counter() - start
        console.print(f"{place} of {len(wanted)}: {name}, {took:.0f} s{'' if good else ', FAILED'}")
        failed += [] if good else [name]
    runs = [Run.read(KEPT, name) for name in names() if Run.kept(KEPT, name)]
    folder = options.page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for each in runs:
        drawn = draw(each.name, measures_of(each.name), options.page.parent / PICTURES)
        pictures = [(f"../{PICTURES}/{path.name}", figure) for path, figure in drawn]
        made = page(each, pictures, first=f"../{options.page.name}")
        (folder / f"{each.name}.md").write_text(made, encoding="utf-8")
    told = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    options.page.write_text(contents(told, folder.name), encoding="utf-8")
    console.print(f"The page is {options.page}.")
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}. What they printed is in {KEPT}.")


def measures_of(name: str) -> Path:
    """Where the measures of a benchmark that has charts are kept."""
    return KEPT / f"{name}.measures.json"


def run(name: str, quick: bool) -> bool:
    """One benchmark in a process of its own; whether it came to its end."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *(["--quick"] if quick else [])]
    if name in FIGURES:
        command += ["--json", str(measures_of(name))]
    environment = os.environ | {"COLUMNS": str(_WIDTH), "NO_COLOR": "1"}
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if found.returncode:
        (KEPT / f"{name}.failed.txt").write_text(found.stdout + found.stderr)
        return False
    Run.now(name, quick=quick, output=found.stdout).write(KEPT)
    return True


if __name__ == "__main__":
    main()
