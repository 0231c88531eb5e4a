"""Memory measured over hidden units, batches and image sizes, a fresh process each, as rows of a CSV."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.learning.memory.model import FIRST, Stage

OPTIMIZERS = ("sgd", "momentum", "adam")
DEPTHS = (13, 16)
_ENDS = {
    Stage.MODEL: "Model_Loaded",
    Stage.BATCH: "Images_Loaded",
    Stage.GRADIENT: "Loss_Gradient",
    Stage.STEP: "Model_Computed",
}


@dataclass(frozen=True, kw_only=True)
class MemoryCase:
    """A perceptron of some hidden units behind frozen VGG convolutions, and how it is trained.

    Images have `side` pixels over `reduce` in height and width; `private` says whether gradients are clipped
    and noised.
    """

    hidden: int
    batch: int
    reduce: int
    private: bool
    side: int = 224
    depth: int = 16
    classes: int = 102
    optimizer: str = "adam"

    def __post_init__(self) -> None:
        owner = "train memory"
        check.keep(self, hidden=check.integer(owner, "hidden", self.hidden, 1, 1 << 16))
        check.keep(self, batch=check.integer(owner, "batch", self.batch, 1, 1 << 20))
        check.keep(self, reduce=check.integer(owner, "reduce", self.reduce, 1, 64))
        check.keep(self, side=check.integer(owner, "side", self.side, 32, 1 << 12))
        check.keep(self, classes=check.integer(owner, "classes", self.classes, 2, 1 << 16))
        if self.side // self.reduce < 32:
            remedy = "The convolutions need 32 x 32 pixels."
            raise check.fail(owner, "reduce", f"leave 32 of {self.side} pixels", self.reduce, remedy)
        if self.depth not in DEPTHS:
            raise check.fail(owner, "depth", f"be one of {', '.join(map(str, DEPTHS))}", self.depth)
        if self.optimizer not in OPTIMIZERS:
            raise check.fail(owner, "optimizer", f"be one of {', '.join(OPTIMIZERS)}", self.optimizer)


@dataclass(frozen=True, kw_only=True)
class MeasuredMemory:
    """The bytes of a case: of tensors after each stage and at most within it, and of the whole process.

    `resident` are the largest resident sets of the process over its life, one for each repeat; `before` is
    the least there was before the model was made. Both are empty where the system does not tell.
    """

    case: MemoryCase
    live: Mapping[Stage, int]
    most: Mapping[Stage, int]
    before: int | None
    resident: tuple[int, ...]
    repeats: int

    @property
    def peak(self) -> int:
        """The most bytes of tensors at once."""
        return max(self.most.values())

    @property
    def middle(self) -> int | None:
        """The middle one of the resident sets."""
        return sorted(self.resident)[len(self.resident) // 2] if self.resident else None


COLUMNS = (
    "Hidden_Units",
    "Batch_size",
    "Fact",
    "Differential_Privacy",
    *(f"Mem_{end}" for end in _ENDS.values()),
    *(f"Peak_{end}" for end in _ENDS.values()),
    "RSS_Before",
    "RSS_Peak",
    "RSS_Peak_Lowest",
    "RSS_Peak_Highest",
    "Repeats",
    "Side",
    "Depth",
    "Classes",
    "Optimizer",
)


def cells(row: MeasuredMemory) -> tuple[str, ...]:
    """A row of the file."""
    case = row.case
    ends = (min(row.resident), max(row.resident)) if row.resident else (None, None)
    values: tuple[object, ...] = (
        case.hidden,
        case.batch,
        case.reduce,
        "Y" if case.private else "N",
        *(row.live[stage] for stage in FIRST),
        *(row.most[stage] for stage in FIRST),
        row.before,
        row.middle,
        *ends,
        row.repeats,
        case.side,
        case.depth,
        case.classes,
        case.optimizer,
    )
    return tuple("" if cell is None else str(cell) for cell in values)


class MeasurementFile:
    """A CSV file that is written row by row, so that nothing is measured twice.

    A last row that was cut off, as when the process was killed, is dropped and measured again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[MeasuredMemory] = _read(path) if path.exists() else []
        whole = io.StringIO()
        writer = csv.writer(whole, lineterminator="\n")
        writer.writerows((COLUMNS, *map(cells, self.rows)))
        disk.write_whole(path, whole.getvalue())

    def missing(self, cases: Iterable[MemoryCase], repeats: int = 1) -> list[MemoryCase]:
        """Those of some cases that were not measured, or less often."""
        known = {row.case for row in self.rows if row.repeats >= repeats}
        return [case for case in dict.fromkeys(cases) if case not in known]

    def add(self, row: MeasuredMemory) -> None:
        """Keep a row, on the disk before anything else happens."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(cells(row))
            file.flush()
            os.fsync(file.fileno())
        self.rows.append(row)

    def of(self, cases: Iterable[MemoryCase]) -> list[MeasuredMemory]:
        """The last row of each case, in their order."""
        known = {row.case: row for row in self.rows}
        return [known[case] for case in dict.fromkeys(cases) if case in known]


def _read(path: Path) -> list[MeasuredMemory]:
    text = path.read_text(encoding="utf-8")
    lines = list(csv.reader(io.StringIO(text)))
    if lines and tuple(lines[0]) != COLUMNS:
        raise InvalidParameter(f"{path} is there and holds something else. Name another file.")
    rows: list[MeasuredMemory] = []
    for place, line in enumerate(lines[1:], start=2):
        cut_off = place == len(lines) and not text.endswith("\n")
        try:
            row = _row(dict(zip(COLUMNS, line, strict=True)))
        except (ValueError, InvalidParameter):
            if not cut_off:
                raise InvalidParameter(f"{path}, line {place}, is no measurement. Delete the line.") from None
            continue
        if not cut_off:
            rows.append(row)
    return rows


def _row(cell: Mapping[str, str]) -> MeasuredMemory:
    lowest, middle, highest = (cell[f"RSS_Peak{end}"] for end in ("_Lowest", "", "_Highest"))
    return MeasuredMemory(
        case=MemoryCase(
            hidden=int(cell["Hidden_Units"]),
            batch=int(cell["Batch_size"]),
            reduce=int(cell["Fact"]),
            private=cell["Differential_Privacy"] == "Y",
            side=int(cell["Side"]),
            depth=int(cell["Depth"]),
            classes=int(cell["Classes"]),
            optimizer=cell["Optimizer"],
        ),
        live={stage: int(cell[f"Mem_{end}"]) for stage, end in _ENDS.items()},
        most={stage: int(cell[f"Peak_{end}"]) for stage, end in _ENDS.items()},
        before=int(cell["RSS_Before"]) if cell["RSS_Before"] else None,
        resident=tuple(int(each) for each in (lowest, middle, highest) if each),
        repeats=int(cell["Repeats"]),
    )


_MODULE = "sourdine.learning.memory.trial"
_MOST_REPEATS = 1000
Bar = Callable[[Sequence[MemoryCase]], Iterable[MemoryCase]]


def grid(
    hidden: Sequence[int],
    batch: Sequence[int],
    reduce: Sequence[int],
    *,
    side: int = 224,
    depth: int = 16,
    classes: int = 102,
    optimizer: str = "adam",
) -> list[MemoryCase]:
    """All combinations, with and without privacy, small ones first.

    >>> [(case.batch, case.private) for case in grid([8], [2, 4], [1])]
    [(2, False), (2, True), (4, False), (4, True)]
    """
    return [
        MemoryCase(
            hidden=units,
            batch=size,
            reduce=by,
            private=private,
            side=side,
            depth=depth,
            classes=classes,
            optimizer=optimizer,
        )
        for size in sorted(set(batch))
        for by in sorted(set(reduce), reverse=True)
        for units in sorted(set(hidden))
        for private in (False, True)
    ]


def measure_all(
    cases: Iterable[MemoryCase],
    rows: MeasurementFile,
    *,
    repeats: int = 1,
    bar: Bar = iter,
    trial: Callable[[MemoryCase], MeasuredMemory] | None = None,
) -> None:
    """Measure the cases that are not in the file yet, and keep each in it at once."""
    repeats = check.integer("train memory", "repeats", repeats, 1, _MOST_REPEATS)
    run = in_fresh_process if trial is None else trial
    for case in bar(rows.missing(cases, repeats)):
        trials = [run(case) for _ in range(repeats)]
        lowest = [each.before for each in trials if each.before is not None]
        rows.add(
            MeasuredMemory(
                case=case,
                live=trials[-1].live,
                most={stage: max(each.most[stage] for each in trials) for stage in FIRST},
                before=min(lowest, default=None),
                resident=tuple(size for each in trials for size in each.resident),
                repeats=repeats,
            )
        )


def in_fresh_process(case: MemoryCase) -> MeasuredMemory:
    """Measure a case where nothing was allocated before."""
    command = [sys.executable, "-m", _MODULE, json.dumps(asdict(case))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or [f"it ended with {ended.returncode}"])[-1]
        raise SourdineError(
            f"A batch of {case.batch} with {case.hidden} hidden units and images of "
            f"{case.side // case.reduce} pixels could not be measured: {last} If memory ran out, take "
            "smaller batches. What was measured before is kept."
        )
    report = json.loads(ended.stdout.strip().splitlines()[-1])
    return MeasuredMemory(
        case=case,
        live={Stage(stage): report["live"][stage] for stage in FIRST},
        most={Stage(stage): report["most"][stage] for stage in FIRST},
        before=report["before"],
        resident=() if report["resident"] is None else (report["resident"],),
        repeats=1,
    )
