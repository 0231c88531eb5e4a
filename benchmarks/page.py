"""The page of all benchmarks: what was missed first; and one for each, with what it printed."""

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.finding import BETTER, MET, MISSED, findings
from sourdine.core.display import Figure

_HEAD = """# Benchmarks

Ratios to the best peer and to the limit (the same work without privacy, or bare hardware), each from one run
in which all took turns on one machine. Numbers of different runs or machines are not compared. `make bench`
writes these pages; `python -m benchmarks NAME` runs one again. How each is measured stands in
[benchmarks/README.md](../benchmarks/README.md).
"""
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}", re.MULTILINE)


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


def contents(pages: Mapping[str, str], folder: str) -> str:
    """The first page as Markdown, from the page of each benchmark; links go to this folder beside it."""
    told = {name: findings("\n".join(_points(text))) for name, text in sorted(pages.items())}
    every = [mark for each in told.values() for mark, _ in each]
    lines = [_HEAD, f"**{every.count(MET)} targets are met, {every.count(MISSED)} missed.**", ""]
    lines += _list("Missed", MISSED, told, folder)
    lines += _list("Where somebody else is better", BETTER, told, folder)
    lines += ["## All benchmarks", "", "| benchmark | met | missed | better elsewhere | run on |"]
    lines += ["| --- | ---: | ---: | ---: | --- |"]
    for name, each in told.items():
        marks = [mark for mark, _ in each]
        counts = " | ".join(str(marks.count(mark)) for mark in (MET, MISSED, BETTER))
        date = _DATE.search(pages[name])
        lines.append(f"| [{name}]({folder}/{name}.md) | {counts} | {date[0] if date else ''} |")
    return "\n".join([*lines, ""])


def page(run: Run, pictures: Sequence[tuple[str, Figure]] = (), first: str = "../benchmarks.md") -> str:
    """Return the page of one run as Markdown: its findings as one table, its charts, and its command.

    A benchmark that compares with no target shows its first table in place of findings. All that a run
    prints is in `.bench/results`, which is not tracked.
    """
    found = findings(run.output)
    table = _rows(("result", "finding"), found) if found else _first_table(run.output)
    quick = " A quick run, with smaller sizes." if run.quick else ""
    where = f"{run.date}, {run.machine}; load {run.load} on average over the last 15 minutes."
    lines = [f"# Benchmark: {run.name}", "", f"[All benchmarks]({first})", "", *table, ""]
    for address, figure in pictures:
        lines += [f"![{figure.title}]({address})", "", *([figure.note, ""] if figure.note else [])]
    return "\n".join([*lines, f"{where}{quick} Again: `python -m benchmarks {run.name}`", ""])


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(each)} |" for each in [head, ["---"] * len(head), *cells]]


def _first_table(output: str) -> list[str]:
    """Return the first table that a run printed, in Markdown; a cell that goes on below is one cell."""
    head: list[str] = []
    rows: list[list[str]] = []
    for line in output.splitlines():
        if line.startswith("┃"):
            cells = [cell.strip() for cell in line.strip("┃").split("┃")]
            head = [" ".join(pair).strip() for pair in zip(head, cells, strict=True)] if head else cells
        elif line.startswith("│"):
            cells = [cell.strip() for cell in line.strip("│").split("│")]
            if rows and not cells[0]:
                rows[-1] = [" ".join(pair).strip() for pair in zip(rows[-1], cells, strict=True)]
            else:
                rows.append(cells)
        elif line.startswith("└"):
            break
    return _rows(head, rows) if head else []


def _points(page: str) -> list[str]:
    """Return the findings that a page begins with, as the benchmark printed them."""
    marks = tuple(f"| {mark} | " for mark in (MET, MISSED, BETTER))
    return [
        line.removeprefix("| ").removesuffix(" |").replace(" | ", ": ", 1).replace("\\|", "|")
        for line in page.splitlines()
        if line.startswith(marks)
    ]


def _list(title: str, mark: str, told: Mapping[str, Sequence[tuple[str, str]]], folder: str) -> list[str]:
    """All findings of one kind, or nothing."""
    lines = [
        f"- [{name}]({folder}/{name}.md): {text}"
        for name, each in told.items()
        for kind, text in each
        if kind == mark
    ]
    return [f"## {title}", "", *lines, ""] if lines else []
