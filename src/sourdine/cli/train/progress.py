"""A bar on stderr while a model is trained, with the epsilon that is spent so far."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sourdine.cli.shared import show

if TYPE_CHECKING:
    from sourdine.learning.result import Progress as Reached
    from sourdine.learning.run import Watch


@contextmanager
def training_bar(label: str) -> "Iterator[Watch]":
    """What a run tells its progress to: a bar that is gone when it ends, or lines where it is no terminal."""
    console = Console(file=sys.stderr)
    last: list[float] = []
    if not console.is_terminal:
        lines = show.Lines()

        def write(now: "Reached") -> None:
            _keep(last, now)
            lines.tell(f"{label}: step {now.step:,} of {now.steps:,}, {told(now, last)}")

        yield write
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None, told="")

        def watch(now: "Reached") -> None:
            _keep(last, now)
            bar.update(task, completed=now.step, total=now.steps, told=told(now, last))

        yield watch


def _keep(last: list[float], now: "Reached") -> None:
    """The accuracy that was told last."""
    if now.accuracy is not None:
        last[:] = [now.accuracy]


def told(now: "Reached", accuracies: list[float]) -> str:
    """How far a run is, in a few words."""
    spent = "NOT private" if math.isinf(now.epsilon) else f"epsilon {now.epsilon:.3g} so far"
    return spent + (f", accuracy {100 * accuracies[-1]:.2f} %" if accuracies else "")
