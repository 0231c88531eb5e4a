"""Values in order where the records are far away: counts in bins, cut finer where somebody looks.

Only counts come back: at most MOST_ROWS rows a question, or one for each group if there are more groups. What
is cut finer beforehand, and what only when it is looked at, makes no difference to any answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expression import Grouping
from sourdine.frames.source import Source
from sourdine.frames.statistics.group_ranks import GroupRanks, between_each
from sourdine.frames.statistics.lookup import index_of

Ints = NDArray[np.int64]
MOST_ROWS = 1 << 20
_NODES = "sourdine_nodes"


def few_counts(groups: int, places: int) -> bool:
    """Whether a count for each step of each group is little enough to be brought here."""
    return groups * places <= MOST_ROWS


def check_counted(source: Source, label: str, groups: int, places: int) -> None:
    """Refuse values in order that could only be had by bringing the records here."""
    if not source.dialect.near and not few_counts(groups, places):
        raise InvalidParameter(
            f"The {label} by this method need all values, and those of a Spark table stay on its cluster: "
            f"{groups:,} groups with {places:,} grid steps each are more than the {MOST_ROWS:,} counts that "
            'are brought here. Use the method "tree", a coarser granularity, or fewer groups.'
        )


@dataclass
class Levels:
    """The counts of all groups in bins; `rows` is SQL of the records that count, with a `value` each.

    `cuts` are the widths of bins from the widest to 1, each a multiple of the next.
    """

    source: Source
    rows: str
    by: Sequence[Grouping]
    cuts: Sequence[int]
    groups: int
    bins: "list[Binned]" = field(default_factory=list)

    def open(self, places: int, near: Sequence[float]) -> "list[Binned]":
        """The values of each group, cut finely around given shares of them."""
        widths = [places, *self.cuts]
        first = max(
            i for i, wide in enumerate(widths) if i == 0 or self.groups * -(-places // wide) <= MOST_ROWS
        )
        self.cuts = widths[first:]
        empty = np.zeros(0, np.int64)
        self.bins = [Binned(self, group, empty, empty, empty) for group in range(self.groups)]
        self._take(self._count(self.cuts[0], None), self.cuts[0])
        at = 0
        while at < len(self.cuts) - 1:
            counts = np.concatenate([each.counts[each.widths == self.cuts[at]] for each in self.bins])
            rows = [int(np.minimum(counts, -(-self.cuts[at] // fine)).sum()) for fine in self.cuts]
            after = max(i for i, many in enumerate(rows) if i == at + 1 or (i > at and many <= MOST_ROWS))
            self._cut_near(self.cuts[at], self.cuts[after], near)
            at = after
        return self.bins

    def finer(self, groups: Ints, starts: Ints, widths: Ints) -> None:
        """Cut some bins of some groups once more: one question for each width."""
        for wide in np.unique(widths).tolist():
            wide_enough = widths == wide
            self._cut(groups[wide_enough], starts[wide_enough], wide, self.cuts[self.cuts.index(wide) + 1])

    def _cut_near(self, coarse: int, fine: int, near: Sequence[float]) -> None:
        """Cut all bins of a width if that is little, else those nearest to the ranks that are looked for."""
        group = np.concatenate([np.full(each.starts.size, each.group) for each in self.bins])
        starts = np.concatenate([each.starts for each in self.bins])
        widths = np.concatenate([each.widths for each in self.bins])
        rows = np.concatenate([np.minimum(each.counts, -(-coarse // fine)) for each in self.bins])
        gaps = np.concatenate([each.gaps(near) for each in self.bins])
        wide = np.flatnonzero(widths == coarse)
        if rows[wide].sum() > MOST_ROWS:
            wide = wide[np.argsort(gaps[wide], kind="stable")]
            wide = wide[: np.searchsorted(np.cumsum(rows[wide]), MOST_ROWS, side="right")]
        self._cut(group[wide], starts[wide], coarse, fine, every=wide.size == widths.size)

    def _cut(self, group: Ints, starts: Ints, coarse: int, fine: int, *, every: bool = False) -> None:
        """Put counts of finer bins in the place of some, or of every one there is."""
        if starts.size:
            finer_bins = self._count(fine, None if every else (group, starts // coarse, coarse))
            for number in np.unique(group).tolist():
                self.bins[number].forget(starts[group == number])
            self._take(finer_bins, fine)

    def _take(self, counts_of_bins: tuple[Ints, Ints, Ints], wide: int) -> None:
        group, nodes, counts = counts_of_bins
        order = np.lexsort((nodes, group))
        edges = np.searchsorted(group[order], np.arange(self.groups + 1))
        for number in np.unique(group).tolist():
            part = order[edges[number] : edges[number + 1]]
            self.bins[number].learn(nodes[part] * wide, wide, counts[part])

    def _count(self, wide: int, among: tuple[Ints, Ints, int] | None) -> tuple[Ints, Ints, Ints]:
        """How many values of each group lie in each bin of a width, or in those within coarser ones."""
        dialect, marks = self.source.dialect, [f"key_{i}" for i in range(len(self.by))]
        listed = ", ".join([*marks, "node"])
        present = " AND ".join(["value >= 0", *(f"{mark} IS NOT NULL" for mark in marks)])
        node = dialect.quotient("value", str(wide))
        rows = f"SELECT {', '.join([*marks, 'value', f'{node} AS node'])} FROM ({self.rows}) WHERE {present}"
        tables: dict[str, dict[str, NDArray[Any]]] = {}
        if among is not None:
            group, nodes, coarse = among
            tables[_NODES] = self._named(group, nodes)
            on = [f"records.{mark} = nodes.{dialect.quoted(mark)}" for mark in marks]
            on.append(f"{dialect.quotient('records.value', str(coarse))} = nodes.{dialect.quoted('node')}")
            rows = (
                f"SELECT /*+ BROADCAST(nodes) */ records.* FROM ({rows}) AS records "
                f"JOIN {_NODES} AS nodes ON {' AND '.join(on)}"
            )
        question = f"SELECT {listed}, count(*) AS records FROM ({rows}) GROUP BY {listed}"
        answer = self.source.columns(question, tables)
        group = np.zeros(answer["node"].size, np.int64)
        for mark, each in zip(marks, self.by, strict=True):
            group = group * len(each.keys) + index_of(answer[mark], each)
        return group, answer["node"].astype(np.int64), answer["records"].astype(np.int64)

    def _named(self, group: Ints, nodes: Ints) -> dict[str, NDArray[Any]]:
        """Nodes by the keys of their groups, as the engine knows them."""
        columns: dict[str, NDArray[Any]] = {"node": nodes}
        for i, each in reversed(list(enumerate(self.by))):
            keys = np.array(each.keys, dtype=object if isinstance(each.keys[0], str) else None)
            columns[f"key_{i}"] = keys[group % len(keys)]
            group = group // len(keys)
        return columns


@dataclass
class Binned:
    """The values of one group as far as they are known: bins in rising order that hold something."""

    levels: Levels = field(repr=False)
    group: int
    starts: Ints
    widths: Ints
    counts: Ints

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    def count_below(self, places: ArrayLike) -> Ints:
        """How many values lie below each place."""
        wanted = np.asarray(places, np.int64)
        while (inside := self.cut_by(wanted)).size:
            self._look(inside)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])
        return before[np.searchsorted(self.starts, wanted, side="left")]

    def cut_by(self, places: Ints) -> Ints:
        """The bins that some places lie within, so that they must be cut before values below are counted."""
        upto = np.searchsorted(self.starts, places, side="left")
        ends = np.append(self.starts + self.widths, 0)  # before the first bin there is nothing
        return np.unique(upto[ends[upto - 1] > places] - 1)

    def values_between(self, first: int, last: int) -> Ints:
        """The values of these ranks, counted from 0, the last left out."""
        while True:
            upto = np.cumsum(self.counts)
            wide = np.flatnonzero((self.widths > 1) & (upto > first) & (upto - self.counts < last))
            if not wide.size:
                ranks = np.arange(max(first, 0), min(last, self.size))
                return self.starts[np.searchsorted(upto, ranks, side="right")]
            self._look(wide)

    def gaps(self, near: Sequence[float]) -> NDArray[np.float64]:
        """How many ranks each bin is away from the nearest of some shares of all."""
        upto = np.cumsum(self.counts)
        ranks = np.array(near or [0.5])[:, None] * self.size
        below, above = np.maximum(upto - self.counts - ranks, 0), np.maximum(ranks - upto, 0)
        return np.asarray((below + above).min(axis=0), dtype=np.float64)

    def forget(self, starts: Ints) -> None:
        """Leave out bins that are cut."""
        others = ~np.isin(self.starts, starts)
        self.starts, self.widths, self.counts = self.starts[others], self.widths[others], self.counts[others]

    def learn(self, starts: Ints, wide: int, counts: Ints) -> None:
        """Put in bins of a width, where there are none."""
        at = np.searchsorted(self.starts, starts)
        self.starts = np.insert(self.starts, at, starts)
        self.widths = np.insert(self.widths, at, wide)
        self.counts = np.insert(self.counts, at, counts)

    def _look(self, bins: Ints) -> None:
        self.levels.finer(np.full(bins.size, self.group), self.starts[bins], self.widths[bins])


@dataclass(frozen=True)
class BinnedGroups(GroupRanks):
    """The groups of such counts. Whatever many groups must have cut finer is cut together."""

    bins: tuple[Binned, ...]

    def part(self, group: int) -> Binned:
        return self.bins[group]

    @cached_property
    def sizes(self) -> Ints:
        return np.array([each.size for each in self.bins], np.int64)

    def values_between(self, groups: Ints, first: Ints, last: Ints) -> Ints:
        return between_each(self.bins, groups, first, last)

    def count_below(self, groups: Ints, places: Ints) -> Ints:
        members = [(self.bins[number], groups == number) for number in np.unique(groups).tolist()]
        wide = [(bins_of_group, bins_of_group.cut_by(places[here])) for bins_of_group, here in members]
        while any(inside.size for _, inside in wide):
            numbers = np.concatenate(
                [np.full(inside.size, bins_of_group.group) for bins_of_group, inside in wide]
            )
            starts = np.concatenate([bins_of_group.starts[inside] for bins_of_group, inside in wide])
            widths = np.concatenate([bins_of_group.widths[inside] for bins_of_group, inside in wide])
            self.bins[0].levels.finer(numbers, starts, widths)
            wide = [(bins_of_group, bins_of_group.cut_by(places[here])) for bins_of_group, here in members]
        below = np.empty(groups.shape, np.int64)
        for bins_of_group, here in members:
            below[here] = bins_of_group.count_below(places[here])
        return below
