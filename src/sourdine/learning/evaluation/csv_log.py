"""The course of a run as a CSV file, for spreadsheets and plots."""

import csv
from pathlib import Path

from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.text import csv_text, inert
from sourdine.learning.result import Progress

_COLUMNS = ("step", "steps", "epoch", "epsilon", "loss", "accuracy")


class CsvLog:
    """Writes a row for each epoch of a run, or after `every` so many steps: `progress=CsvLog("run.csv")`.

    A row says how far the run is, what so many steps cost at most, and loss, accuracy and metrics on public
    examples where they were computed. It says nothing of time: how long a step took tells how many examples
    it drew. A run that goes on from a checkpoint goes on with its file, and rows of steps that are taken
    again are replaced.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "run.csv"
    >>> CsvLog(place)(Progress(step=1, steps=1, epoch=1, epsilon=0.5, loss=0.25, accuracy=1.0))
    >>> print(place.read_text(), end="")
    step,steps,epoch,epsilon,loss,accuracy
    1,1,1,0.5,0.25,1.0
    """

    def __init__(self, path: Path | str, *, every: int | None = None) -> None:
        self.path = Path(path)
        self._every = None if every is None else check.integer("CsvLog", "every", every, 1, 1 << 40)
        self._rows: list[list[str]] | None = None
        self._epoch = 0
        if not self.path.parent.is_dir():
            raise InvalidParameter(f"There is no folder {self.path.parent} for the log. Make it first.")

    def __call__(self, now: Progress) -> None:
        """Take a step of the run in."""
        if self._rows is None:
            self._rows = self._earlier(now.step)
            self._epoch = now.epoch - 1 if now.loss is not None else now.epoch
        over = now.epoch > self._epoch or now.step == now.steps
        self._epoch = now.epoch
        if not over and (self._every is None or now.step % self._every):
            return
        names = [*_COLUMNS, *map(inert, now.metrics)]
        if now.metrics or not self._rows:
            self._rows[:1] = [names]
        values = (now.step, now.steps, now.epoch, now.epsilon, now.loss, now.accuracy, *now.metrics.values())
        self._rows.append(["" if each is None else str(each) for each in values])
        with disk.whole_file(self.path) as place:
            place.write_text(csv_text(self._rows), encoding="utf-8")

    def _earlier(self, step: int) -> list[list[str]]:
        """The rows of steps before this one, where a run goes on."""
        if step == 1 or not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        if not rows or tuple(rows[0][: len(_COLUMNS)]) != _COLUMNS:
            return []
        return [rows[0], *(row for row in rows[1:] if row and row[0].isdecimal() and int(row[0]) < step)]
