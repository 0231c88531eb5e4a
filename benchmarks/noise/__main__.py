"""The command line: `python -m benchmarks.noise [--quick] [--json PATH]`."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from benchmarks.noise.measure import measure
from benchmarks.noise.show import show


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.noise", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller draws of the peers")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    console = Console()
    with console.status("starting") as status:
        results = measure(options.quick, status.update)
    show(results, console)
    if options.json:
        options.json.write_text(json.dumps(asdict(results), indent=2) + "\n")


if __name__ == "__main__":
    main()
