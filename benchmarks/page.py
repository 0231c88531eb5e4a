"""The page of all benchmarks: ratios first, then what each printed."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.finding import BETTER, MET, MISSED, findings
from sourdine.core.figure import Figure

_HEAD = """# Benchmarks

Ratios to the best peer and to the limit (the same work without privacy, or bare hardware), each from one run
in which all took turns on one machine. Numbers of different runs or machines are not compared. `make bench`
writes this page; `python -m benchmarks NAME` runs one again. How each is measured stands in
[benchmarks/README.md](../benchmarks/README.md).
"""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one benchmark printed, when and on what."""

    name: str
    date: str
    machine: str
    load: float
    quick: bool
    output: str

    @classmethod
    def now(cls, name: str, *, quick: bool, output: str) -> "Run":
        """A run that has just ended."""
        return cls(
            name=name,
            date=datetime.now(UTC).date().isoformat(),
            machine=machine(),
            load=round(os.getloadavg()[2], 1),
            quick=quick,
            output=output.rstrip() + "\n",
        )

    @staticmethod
    def kept(folder: Path, name: str) -> bool:
        """Whether a run of this name is kept."""
        return (folder / f"{name}.json").exists()

    @classmethod
    def read(cls, folder: Path, name: str) -> "Run":
        """The last run of this name."""
        return cls(**json.loads((folder / f"{name}.json").read_text()))

    def write(self, folder: Path) -> None:
        """Keep it as the last of its name."""
        (folder / f"{self.name}.json").write_text(json.dumps(asdict(self), indent=1))


def machine() -> str:
    """The machine, as far as it matters for speed."""
    model = platform.machine()
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        found = [line for line in cpu.read_text().splitlines() if line.startswith("model name")]
        model = found[0].partition(": ")[2] if found else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}"


def page(runs: Sequence[Run], pictures: Mapping[str, Sequence[tuple[str, Figure]]] = {}) -> str:
    """The page as Markdown; each picture has its address and the figure that it shows."""
    lines = [_HEAD]
    found = {run.name: findings(run.output) for run in runs}
    every = [mark for each in found.values() for mark, _ in each]
    lines += [f"**{every.count(MET)} targets are met, {every.count(MISSED)} missed.**", ""]
    lines += _list("Missed", MISSED, found)
    lines += _list("Where somebody else is better", BETTER, found)
    for run in runs:
        quick = " A quick run, with smaller sizes." if run.quick else ""
        lines += [f"## {run.name}", ""]
        lines += [f"- {mark}: {text}" for mark, text in found[run.name]]
        where = f"{run.date}, {run.machine}; load {run.load} on average over the last 15 minutes."
        lines += ["", f"{where}{quick}", ""]
        for address, figure in pictures.get(run.name, ()):
            lines += [f"![{figure.title}]({address})", "", *([figure.note, ""] if figure.note else [])]
        lines += ["<details><summary>All it printed</summary>", "", "```text", run.output.rstrip(), "```", ""]
        lines += ["</details>", ""]
    return "\n".join(lines)


def _list(title: str, mark: str, found: dict[str, list[tuple[str, str]]]) -> list[str]:
    """All findings of one kind, or nothing."""
    held = [f"- {name}: {text}" for name, each in found.items() for kind, text in each if kind == mark]
    return [f"## {title}", "", *held, ""] if held else []
