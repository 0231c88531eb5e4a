"""A bar on stderr while a model is trained, with the epsilon that is spent so far."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from sourdine.learning.run import Watch
    from sourdine.learning.trained import Progress as Reached


@contextmanager
def training_bar(label: str) -> "Iterator[Watch]":
    """What a run tells its progress to; shown if anybody is looking, and gone when it ends."""
    console = Console(file=sys.stderr)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None, told="")
        last: list[float] = []

        def watch(now: "Reached") -> None:
            if now.accuracy is not None:
                last[:] = [now.accuracy]
            bar.update(task, completed=now.step, total=now.steps, told=told(now, last))

        yield watch


def told(now: "Reached", accuracies: list[float]) -> str:
    """How far a run is, in a few words."""
    spent = "NOT private" if math.isinf(now.epsilon) else f"epsilon {now.epsilon:.3g} so far"
    return spent + (f", accuracy {100 * accuracies[-1]:.2f} %" if accuracies else "")
