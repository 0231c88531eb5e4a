"""Memory measured over hidden units, batches and image sizes: a fresh process for each case."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from sourdine.core import check
from sourdine.core.errors import SourdineError
from sourdine.learning.memory import FIRST, Stage
from sourdine.learning.memory_rows import Case, Measured, Rows

_MODULE = "sourdine.learning.memory_trial"
_MOST_REPEATS = 1000
Bar = Callable[[Sequence[Case]], Iterable[Case]]


def grid(
    hidden: Sequence[int],
    batch: Sequence[int],
    reduce: Sequence[int],
    *,
    side: int = 224,
    depth: int = 16,
    classes: int = 102,
    optimizer: str = "adam",
) -> list[Case]:
    """All combinations, with and without privacy, small ones first.

    >>> [(case.batch, case.private) for case in grid([8], [2, 4], [1])]
    [(2, False), (2, True), (4, False), (4, True)]
    """
    return [
        Case(
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
    cases: Iterable[Case],
    rows: Rows,
    *,
    repeats: int = 1,
    bar: Bar = iter,
    trial: Callable[[Case], Measured] | None = None,
) -> None:
    """Measure the cases that are not in the file yet, and keep each in it at once."""
    repeats = check.integer("train memory", "repeats", repeats, 1, _MOST_REPEATS)
    run = in_fresh_process if trial is None else trial
    for case in bar(rows.missing(cases, repeats)):
        found = [run(case) for _ in range(repeats)]
        lowest = [each.before for each in found if each.before is not None]
        rows.add(
            Measured(
                case=case,
                live=found[-1].live,
                most={stage: max(each.most[stage] for each in found) for stage in FIRST},
                before=min(lowest, default=None),
                resident=tuple(size for each in found for size in each.resident),
                repeats=repeats,
            )
        )


def in_fresh_process(case: Case) -> Measured:
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
    told = json.loads(ended.stdout.strip().splitlines()[-1])
    return Measured(
        case=case,
        live={Stage(stage): told["live"][stage] for stage in FIRST},
        most={Stage(stage): told["most"][stage] for stage in FIRST},
        before=told["before"],
        resident=() if told["resident"] is None else (told["resident"],),
        repeats=1,
    )
