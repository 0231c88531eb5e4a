"""What the measures come to: one table, and whether shuffles and growth are as they should be."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.console import Console
from rich.table import Table

from benchmarks.finding import better, verdict
from benchmarks.spark.kinds import KINDS
from benchmarks.spark.work import Work

_GROWTH = 1.2  # times the rows: as seconds may grow
_FEW = 10**7  # rows from which on growth is looked at; below, starting jobs takes most of the time


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One kind of release of so many rows, and the query without privacy."""

    kind: str
    rows: int
    plain: Work
    private: Work

    @property
    def times(self) -> float:
        """How many times the query without privacy."""
        return self.private.seconds / self.plain.seconds


def show(measures: Sequence[Measured], console: Console) -> None:
    """A row for each measure, then what is met."""
    console.print(_table(measures))
    for name, kind in KINDS.items():
        found = [each for each in measures if each.kind == name]
        if not found:
            continue
        most = max(each.private.shuffles for each in found)
        jobs = max(each.private.jobs for each in found)
        text = f"{kind.words}: {most} shuffles (target {kind.shuffles}), in {jobs} jobs"
        verdict(console, most <= kind.shuffles, text)
        for less, more in pairwise(found):
            if more.rows > _FEW >= less.rows:
                _judge_growth(kind.words, less, more, console)
    slowest = max(measures, key=lambda each: each.times, default=None)
    if slowest is not None and slowest.times > 1:
        better(
            console,
            f"{KINDS[slowest.kind].words}, {slowest.rows:,} rows: Spark without privacy takes "
            f"1/{slowest.times:.2g} of the time, {slowest.plain.seconds:.2g} s",
        )


def _judge_growth(words: str, less: Measured, more: Measured, console: Console) -> None:
    rows, seconds = more.rows / less.rows, more.private.seconds / less.private.seconds
    text = f"{words}: {less.rows:,} to {more.rows:,} rows take {seconds:.1f} times as long"
    verdict(console, seconds <= _GROWTH * rows, f"{text} (target {_GROWTH * rows:g})")


def _table(measures: Sequence[Measured]) -> Table:
    shown = Table(title="a release on Spark beside the query without privacy")
    shown.add_column("asked")
    for name in ("rows", "", "s", "times", "jobs", "stages", "shuffles", "MB shuffled", "MB brought"):
        shown.add_column(name, justify="right")
    for each in measures:
        for name, work in (("plain", each.plain), ("private", each.private)):
            shown.add_row(
                each.kind if name == "plain" else "",
                f"{each.rows:,}" if name == "plain" else "",
                name,
                f"{work.seconds:.3g}",
                f"{each.times:.2f}" if name == "private" else "",
                *(str(number) for number in (work.jobs, work.stages, work.shuffles)),
                *(f"{size / 1e6:.3g}" for size in (work.shuffled, work.brought)),
            )
    return shown
