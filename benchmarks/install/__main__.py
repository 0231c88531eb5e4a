"""What an installation brings, beside OpenDP and diffprivlib: `python -m benchmarks.install`.

Each goes into a fresh environment by pip, first with an empty cache, so that all is fetched from the index,
then from the cache. Sizes are of files as they lie on the disk, without pip. `make dist` makes the wheel.
"""

import argparse
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from rich.console import Console
from rich.table import Table as Lines

from benchmarks.finding import better
from benchmarks.peers import ROOT

LARGEST = 8


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What pip brought: bytes of every distribution and of what it compiled, and its seconds."""

    name: str
    sizes: dict[str, int]
    compiled: int
    cold: float
    warm: float

    @property
    def megabytes(self) -> float:
        """All of it on the disk."""
        return (sum(self.sizes.values()) + self.compiled) / 1e6


def cases() -> dict[str, list[str]]:
    """What pip is asked for. diffprivlib is given the scikit-learn that it still imports with."""
    wheels = sorted((ROOT / "dist").glob("sourdine-*.whl"))
    if not wheels:
        sys.exit("There is no wheel in dist. Make it first: make dist")
    return {
        "sourdine": ["-c", str(ROOT / "constraints.txt"), str(wheels[-1])],
        "opendp": ["opendp==0.16.0"],
        "opendp[polars]": ["opendp[polars]==0.16.0"],
        "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn==1.6.1"],
    }


def main() -> None:
    """Install each in turn, and show what they brought."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.install", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="beside OpenDP alone")
    wanted = list(cases().items())[: 2 if parser.parse_args().quick else None]
    show([measured(name, arguments) for name, arguments in wanted], Console())


def measured(name: str, wanted: list[str]) -> Installation:
    """Installed with an empty cache, and once more from it."""
    with tempfile.TemporaryDirectory() as cache:
        with tempfile.TemporaryDirectory() as folder:
            cold = install(wanted, Path(folder), cache)
            sizes, compiled = weigh(Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            warm = install(wanted, Path(folder), cache)
    return Installation(name=name, sizes=sizes, compiled=compiled, cold=cold, warm=warm)


def install(wanted: list[str], folder: Path, cache: str) -> float:
    """Seconds of pip, into an environment made for it."""
    venv.create(folder, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(folder), "--cache-dir", cache, "--quiet"]
    start = time.perf_counter()
    subprocess.run([*pip, "install", *wanted], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def weigh(folder: Path) -> tuple[dict[str, int], int]:
    """Bytes of the files of every distribution in an environment, and of all that pip compiled."""
    places = [str(path) for path in folder.glob("[Ll]ib/**/site-packages")]
    sizes: dict[str, int] = {}
    compiled = 0
    for each in distributions(path=places):
        for file in each.files or []:
            path = Path(str(file.locate()))
            if path.suffix == ".pyc":
                compiled += path.stat().st_size
            elif path.exists():
                sizes[each.name] = sizes.get(each.name, 0) + path.stat().st_size
    return sizes, compiled


def show(found: list[Installation], console: Console) -> None:
    """A table of all, the largest parts of ours, and where a peer is smaller."""
    lines = Lines("", "MB", "of them compiled", "distributions", "s, empty cache", "s, from cache")
    for each in found:
        texts = [f"{each.megabytes:.0f}", f"{each.compiled / 1e6:.0f}", str(len(each.sizes))]
        lines.add_row(each.name, *texts, f"{each.cold:.0f}", f"{each.warm:.0f}")
    console.print(lines)
    ours, *others = found
    largest = sorted(ours.sizes.items(), key=lambda pair: -pair[1])[:LARGEST]
    parts = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in largest)
    console.print(f"The largest of {ours.name}, in MB: {parts}.", soft_wrap=True, highlight=False)
    for each in others:
        if each.megabytes < ours.megabytes:
            ratio = ours.megabytes / each.megabytes
            better(console, f"{each.name} takes {each.megabytes:.0f} MB on the disk, {1 / ratio:.2f} of ours")


if __name__ == "__main__":
    main()
