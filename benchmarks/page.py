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

_MISSED, _BETTER = "Missed", "Where somebody else is better"
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


def parts(text: str) -> dict[str, str]:
    """The part of each benchmark in a page that was written before, without its title.

    >>> parts("# Benchmarks\\n\\n## Missed\\n\\n- noise: 3 GB\\n\\n## noise\\n\\n- missed: 3 GB\\n")
    {'noise': '- missed: 3 GB'}
    """
    found = {}
    for each in text.split("\n## ")[1:]:
        title, _, rest = each.partition("\n")
        if title not in (_MISSED, _BETTER):
            found[title] = rest.strip()
    return found


def page(
    runs: Sequence[Run],
    pictures: Mapping[str, Sequence[tuple[str, Figure]]] = {},
    earlier: Mapping[str, str] = {},
) -> str:
    """The page as Markdown; each picture has its address and the figure that it shows.

    Of benchmarks that are not among the runs, it keeps the parts that it had earlier.
    """
    made = {**earlier, **{run.name: _part(run, pictures.get(run.name, ())) for run in runs}}
    told = {name: findings("\n".join(_points(part))) for name, part in made.items()}
    every = [mark for each in told.values() for mark, _ in each]
    lines = [_HEAD, f"**{every.count(MET)} targets are met, {every.count(MISSED)} missed.**", ""]
    lines += _list(_MISSED, MISSED, told)
    lines += _list(_BETTER, BETTER, told)
    for name in sorted(made):
        lines += [f"## {name}", "", made[name], ""]
    return "\n".join(lines)


def _part(run: Run, pictures: Sequence[tuple[str, Figure]]) -> str:
    """What the page says of one run."""
    lines = [f"- {mark}: {text}" for mark, text in findings(run.output)]
    quick = " A quick run, with smaller sizes." if run.quick else ""
    where = f"{run.date}, {run.machine}; load {run.load} on average over the last 15 minutes."
    lines += ["", f"{where}{quick}", ""]
    for address, figure in pictures:
        lines += [f"![{figure.title}]({address})", "", *([figure.note, ""] if figure.note else [])]
    lines += ["<details><summary>All it printed</summary>", "", "```text", run.output.rstrip(), "```", ""]
    return "\n".join([*lines, "</details>"]).strip()


def _points(part: str) -> list[str]:
    """The findings that a part begins with, as the benchmark printed them."""
    return [line.removeprefix("- ") for line in part.splitlines() if line.startswith("- ")]


def _list(title: str, mark: str, told: Mapping[str, Sequence[tuple[str, str]]]) -> list[str]:
    """All findings of one kind, or nothing."""
    lines = [f"- {name}: {text}" for name, each in told.items() for kind, text in each if kind == mark]
    return [f"## {title}", "", *lines, ""] if lines else []
