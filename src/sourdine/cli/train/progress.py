"""Bars on stderr while models are trained: with the epsilon that is spent so far, or over a whole sweep."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sourdine.cli.shared import show
from sourdine.cli.shared.heartbeat import HEARTBEAT

if TYPE_CHECKING:
    from sourdine.learning.result import Progress as Reached
    from sourdine.learning.running.run import ReportProgress
    from sourdine.learning.sweep.settings import Setting, Sweep


@contextmanager
def training_bar(label: str) -> "Iterator[ReportProgress]":
    """What a run tells its progress to: a bar that is gone when it ends, or lines where it is no terminal."""
    console = Console(file=sys.stderr)
    last: list[float] = []
    if not console.is_terminal:
        lines = show.Lines()

        def write(now: "Reached") -> None:
            _keep(last, now)
            lines.tell(f"{label}: step {now.step:,} of {now.steps:,}, {say_progress(now, last)}")

        yield write
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TextColumn("{task.fields[words]}"),
        TimeRemainingColumn(),
    )
    with HEARTBEAT.quiet(), Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None, words="")

        def move(now: "Reached") -> None:
            _keep(last, now)
            bar.update(task, completed=now.step, total=now.steps, words=say_progress(now, last))

        yield move


def _keep(last: list[float], now: "Reached") -> None:
    """The accuracy that was told last."""
    if now.accuracy is not None:
        last[:] = [now.accuracy]


def say_progress(now: "Reached", accuracies: list[float]) -> str:
    """How far a run is, in a few words."""
    spent = "NOT private" if math.isinf(now.epsilon) else f"epsilon {now.epsilon:.3g} so far"
    return spent + (f", accuracy {100 * accuracies[-1]:.2f} %" if accuracies else "")


class SweepBar:
    """How far a sweep is, in steps of all runs; nothing of a run that is not finished is told.

    `tell` is given the label of the run and the steps that are done, those of earlier runs too.
    """

    def __init__(self, sweep: "Sweep", tell: Callable[[str, int], None]) -> None:
        self._sweep, self._tell = sweep, tell
        self._label, self._before = "sweep", 0

    def begins(self, setting: "Setting", done: int) -> None:
        """A run begins after so many finished ones."""
        steps = [each.steps for each in self._sweep.plans]
        whole, part = divmod(done, len(steps))
        self._before = whole * sum(steps) + sum(steps[:part])
        self._label = f"run {done + 1:,} of {self._sweep.runs:,} (rate {setting.learning_rate:g})"
        self._tell(self._label, self._before)

    def moved(self, now: "Reached") -> None:
        """A run has taken a step."""
        self._tell(self._label, self._before + now.step)


@contextmanager
def sweep_bar(sweep: "Sweep") -> Iterator[SweepBar]:
    """What a sweep tells its progress to."""
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        lines = show.Lines()
        yield SweepBar(sweep, lambda label, done: lines.tell(f"{label}: {done:,} of {sweep.steps:,} steps"))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TimeRemainingColumn(),
    )
    with HEARTBEAT.quiet(), Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("sweep", total=sweep.steps)
        yield SweepBar(sweep, lambda label, done: bar.update(task, description=label, completed=done))
