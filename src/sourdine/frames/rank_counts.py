"""The values of a column in their order, group by group, in one pass over the table."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.frames.aggregate import check_groups, combinations, index_of, secret_order
from sourdine.frames.cells import Grouping
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.keys import Combination
from sourdine.frames.schema import PrivacyUnit
from sourdine.frames.source import Source

# Values in their order, group by group: how many lie below a place, for many groups and places at once.

Ints = NDArray[np.int64]


class RankSource(Protocol):
    """All that a method for quantiles may ask of values on a grid."""

    @property
    def size(self) -> int:
        """How many values there are."""

    def count_below(self, places: ArrayLike) -> NDArray[np.int64]:
        """How many values lie below each place."""

    def values_between(self, first: int, last: int) -> NDArray[np.int64]:
        """The values of these ranks, counted from 0, the last left out."""


@dataclass(frozen=True)
class CountedValues:
    """Distinct values in rising order, with how many lie up to each.

    >>> ranks = CountedValues(np.array([3, 5]), np.array([2, 3]))
    >>> ranks.count_below([3, 4, 6]).tolist(), ranks.values_between(1, 3).tolist()
    ([0, 2, 3], [3, 5])
    """

    values: NDArray[np.int64]
    cumulative: NDArray[np.int64]

    @property
    def size(self) -> int:
        return int(self.cumulative[-1]) if self.cumulative.size else 0

    def count_below(self, places: ArrayLike) -> NDArray[np.int64]:
        before = np.concatenate([np.zeros(1, np.int64), self.cumulative])
        return before[np.searchsorted(self.values, np.asarray(places, np.int64), side="left")]

    def values_between(self, first: int, last: int) -> NDArray[np.int64]:
        ranks = np.arange(max(first, 0), min(last, self.size))
        return self.values[np.searchsorted(self.cumulative, ranks, side="right")]


@dataclass(frozen=True)
class SortedPlaces:
    """Places in rising order, counted from `origin`.

    >>> SortedPlaces(np.array([3, 3, 5])).count_below([3, 4, 6]).tolist()
    [0, 2, 3]
    """

    places: NDArray[Any]
    origin: int = 0

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.places.size)

    def count_below(self, places: ArrayLike) -> Ints:
        """How many lie below each place."""
        wanted = np.asarray(places, np.int64) + self.origin
        kind = np.iinfo(self.places.dtype)  # a search in another type would copy all places
        near = np.clip(wanted, kind.min, kind.max).astype(self.places.dtype)
        below = np.searchsorted(self.places, near, side="left")
        return np.where(wanted > kind.max, self.size, below).astype(np.int64)

    def values_between(self, first: int, last: int) -> Ints:
        """The places of these ranks, counted from 0, the last left out."""
        return self.places[max(first, 0) : max(last, 0)].astype(np.int64) - self.origin


@dataclass(frozen=True)
class GroupRanks(Mapping[Combination, RankSource], ABC):
    """The values of each combination of known keys, in their declared order: a mapping by those keys.

    Whatever is asked of many groups goes by their numbers, so that no key is looked at.
    """

    by: tuple[Grouping, ...]

    @abstractmethod
    def part(self, group: int) -> RankSource:
        """The values of one group by its number."""

    @abstractmethod
    def count_below(self, groups: Ints, places: Ints) -> Ints:
        """How many values of each group lie below the place beside it."""

    @cached_property
    @abstractmethod
    def sizes(self) -> Ints:
        """How many values each group has."""

    @abstractmethod
    def values_between(self, groups: Ints, first: Ints, last: Ints) -> Ints:
        """The values of these ranks of each group, one group after another.

        Ranks are counted from 0, and the last is left out. The first is no less than 0 and the last no more
        than the group's size.
        """

    def values_of(self, groups: Ints) -> Ints:
        """All values of some groups, each group's in rising order, one group after the other."""
        return self.values_between(groups, np.zeros_like(groups), self.sizes[groups])

    @cached_property
    def _numbers(self) -> dict[Combination, int]:
        return {key: number for number, key in enumerate(combinations(self.by))}

    def __len__(self) -> int:
        return prod(len(each.keys) for each in self.by)

    def __iter__(self) -> Iterator[Combination]:
        return iter(self._numbers)

    def __getitem__(self, key: Combination) -> RankSource:
        return self.part(self._numbers[key])

    def parts(self) -> Iterator[RankSource]:
        """The values of each group in turn."""
        return map(self.part, range(len(self)))


def runs(begins: Ints, sizes: Ints) -> Ints:
    """Whole numbers from each beginning on, so many of each, one run after the other."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(begins - before, sizes) + np.arange(sizes.sum())


def between_each(sources: Sequence[RankSource], groups: Ints, first: Ints, last: Ints) -> Ints:
    """The values of some ranks of one after the other."""
    ranges = zip(groups.tolist(), first.tolist(), last.tolist(), strict=True)
    values = [sources[group].values_between(begin, end) for group, begin, end in ranges]
    return np.concatenate([np.zeros(0, np.int64), *values])


@dataclass(frozen=True)
class SeparateRanks(GroupRanks):
    """Groups that are held one by one."""

    sources: tuple[RankSource, ...]

    @classmethod
    def alone(cls, source: RankSource) -> "SeparateRanks":
        """One group that is all there is."""
        return cls((), (source,))

    def __len__(self) -> int:
        return len(self.sources)

    def part(self, group: int) -> RankSource:
        return self.sources[group]

    @cached_property
    def sizes(self) -> Ints:
        return np.array([each.size for each in self.sources], np.int64)

    def values_between(self, groups: Ints, first: Ints, last: Ints) -> Ints:
        return between_each(self.sources, groups, first, last)

    def count_below(self, groups: Ints, places: Ints) -> Ints:
        below = np.empty(groups.shape, np.int64)
        for number in np.unique(groups).tolist():
            here = groups == number
            below[here] = self.sources[number].count_below(places[here])
        return below


@dataclass(frozen=True)
class SortedGroups(GroupRanks):
    """One sorted array of all values, each as group * places + value; what does not count is negative."""

    codes: NDArray[Any]
    places: int

    @cached_property
    def _edges(self) -> Ints:
        # in their own type, or the search would copy them all
        firsts = (np.arange(len(self) + 1) * self.places).astype(self.codes.dtype)
        return np.searchsorted(self.codes, firsts)

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self._edges)

    def values_between(self, groups: Ints, first: Ints, last: Ints) -> Ints:
        places = self.codes[runs(self._edges[groups] + first, last - first)].astype(np.int64)
        return places - np.repeat(groups * self.places, last - first)

    def part(self, group: int) -> SortedPlaces:
        begin, end = self._edges[group : group + 2].tolist()
        return SortedPlaces(self.codes[begin:end], group * self.places)

    def count_below(self, groups: Ints, places: Ints) -> Ints:
        wanted = groups * self.places + np.clip(places, 0, self.places)
        return np.searchsorted(self.codes, wanted.astype(self.codes.dtype)) - self._edges[groups]


@dataclass(frozen=True)
class CountedGroups(GroupRanks):
    """The distinct values of all groups, as group * places + value, and how many lie up to each."""

    codes: Ints
    cumulative: Ints
    places: int

    @classmethod
    def of(cls, by: Sequence[Grouping], codes: Ints, records: Ints, places: int) -> "CountedGroups":
        """The groups of codes that differ, in any order, and how many records hold each."""
        order = np.argsort(codes)
        return cls(tuple(by), codes[order], np.cumsum(records[order]), places)

    @cached_property
    def _before(self) -> Ints:
        return np.concatenate([np.zeros(1, np.int64), self.cumulative])

    def _below(self, codes: Ints) -> Ints:
        return self._before[np.searchsorted(self.codes, codes)]

    @cached_property
    def _edges(self) -> Ints:
        return np.searchsorted(self.codes, np.arange(len(self) + 1) * self.places)

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self._before[self._edges])

    def values_between(self, groups: Ints, first: Ints, last: Ints) -> Ints:
        ranks = runs(self._before[self._edges[groups]] + first, last - first)
        codes = self.codes[np.searchsorted(self.cumulative, ranks, side="right")]
        return codes - np.repeat(groups * self.places, last - first)

    def part(self, group: int) -> CountedValues:
        begin, end = self._edges[group : group + 2].tolist()
        return CountedValues(
            self.codes[begin:end] - group * self.places, self.cumulative[begin:end] - self._before[begin]
        )

    def count_below(self, groups: Ints, places: Ints) -> Ints:
        first = groups * self.places
        return self._below(first + np.clip(places, 0, self.places)) - self._below(first)


_QUICK = 1 << 14  # different keys and values that an engine counts more quickly than it hands out records


def ranks(
    source: Source,
    *,
    by: Sequence[Grouping],
    value: str,
    unit: PrivacyUnit,
    bits: Bits,
    where: str = "TRUE",
    places: int | None = None,
    cuts: Sequence[int] = (),
    near: Sequence[float] = (),
) -> GroupRanks:
    """The values of each group of known keys, in one pass, each unit counting as much as it may.

    Of a unit with more records in a group those count that have the least hash of a secret, the unit, the
    group and the value. `places` is how many values there may be, if that is known: few are counted by the
    engine, many are sorted here, which is quicker than to group by nearly every record. On a cluster many
    values are counted in bins as wide as `cuts`, the widest first, and most finely where the ranks are that
    are looked for, given as shares: `near`.
    """
    groups = math.prod(len(each.keys) for each in by)
    check_groups(groups)
    marks = [f"key_{i}" for i in range(len(by))]
    known = [f"{_mark(each)} AS {mark}" for each, mark in zip(by, marks, strict=True)]
    whose = [] if unit.column is None else [f"{source.unit(unit.column)} AS unit"]
    listed = ", ".join([*whose, *known, f"{value} AS value"])
    rows = f"SELECT {listed} FROM {source.view_for(listed, where)} WHERE {where}"
    if unit.column is not None:
        present = " AND ".join(["value >= 0", "unit IS NOT NULL", *(f"{name} IS NOT NULL" for name in marks)])
        rows = _bounded(f"SELECT * FROM ({rows}) WHERE {present}", marks, unit, bits, source.dialect)
    listed = ", ".join([*marks, "value"])
    few = places is not None and groups * places <= MOST_ROWS
    if places is not None and not few and not source.dialect.near:
        levels = Levels(source, rows, by, cuts or [1], groups)
        return BinnedGroups(tuple(by), tuple(levels.open(places, near)))
    codes = None if places is None or not source.dialect.near else _codes(by, marks)
    if places is not None and codes is not None and groups * places > _QUICK:
        answer = source.columns(_coded(rows, codes, places, groups))
        return _sorted(by, np.ma.getdata(answer["code"]), places)
    question = f"SELECT {listed} FROM ({rows})"
    if few or not source.dialect.near:
        question = f"SELECT {listed}, count(*) AS records FROM ({rows}) GROUP BY {listed}"
    answer = source.columns(question)
    # what does not count is left out here: an engine would work out conditions on keys once more
    values = np.ma.filled(answer["value"], -1)
    group = np.zeros(values.size, np.int64)
    counts = values >= 0
    for mark, each in zip(marks, by, strict=True):
        index = index_of(answer[mark], each)
        counts &= index >= 0
        group *= len(each.keys)
        group += index
    codes_of_values = values[counts].astype(np.int64)
    most = int(codes_of_values.max(initial=0)) + 1  # at most 2^31 for at most 2^24 groups, so that codes fit
    code = group[counts] * most + codes_of_values
    if "records" not in answer:
        return _sorted(by, code, most)
    records = np.ma.filled(answer["records"], 0)[counts]
    return CountedGroups.of(by, code, records, most)


def _sorted(by: Sequence[Grouping], codes: NDArray[Any], places: int) -> SortedGroups:
    """The values of each group of records, by one sort of all in their place."""
    codes.sort()
    return SortedGroups(tuple(by), codes, places)


def _mark(by: Grouping) -> str:
    """The known key of a record, in SQL; of texts the place among the known ones, if it is found quickly."""
    if not isinstance(by.keys[0], str) or not by.dialect.enumerates:
        return by.known(f"({by.raw})")
    listed = ", ".join(map(by.dialect.literal, by.keys))
    code = f"CAST(enum_code(TRY_CAST(({by.raw}) AS ENUM({listed}))) AS INTEGER)"
    return f"coalesce({code}, {by.keys.index(by.missing)})" if by.missing in by.keys else code


def _codes(by: Sequence[Grouping], marks: Sequence[str]) -> str | None:
    """The number of a record's group in SQL, of marks; None where it takes a search among the known keys."""
    code = "0"
    for each, mark in zip(by, marks, strict=True):
        code_sql, first = mark, each.keys[0]
        if isinstance(first, bool):
            code_sql = f"CAST({mark} AS INTEGER)"
        elif isinstance(first, int):
            if not each.unbroken:
                return None
            code_sql = f"({mark} - ({first}))"
        code = f"({code} * {len(each.keys)} + {code_sql})"
    return code


def _coded(rows: str, group: str, places: int, groups: int) -> str:
    """One number for a record's group and value, -1 for what does not count: one column comes quickest."""
    whole = "INTEGER" if groups * places < 1 << 31 else "BIGINT"
    code = f"CAST({group} AS {whole}) * {places} + value"
    return f"SELECT CAST(coalesce(CASE WHEN value >= 0 THEN {code} END, -1) AS {whole}) AS code FROM ({rows})"


def _bounded(rows: str, marks: Sequence[str], unit: PrivacyUnit, bits: Bits, dialect: Dialect) -> str:
    """At most `rows` records of a unit in each of at most `groups` groups.

    Equal values of a unit are told apart by their number, so that each has its own chance.
    """
    inside = ", ".join(["unit", *marks])
    copy = f"row_number() OVER (PARTITION BY {inside}, value ORDER BY value)"
    turn = secret_order([*marks, "value", "copy"], bits, dialect)
    numbered = f"SELECT *, {copy} AS copy FROM ({rows})"
    place = f"row_number() OVER (PARTITION BY {inside} ORDER BY {turn}, value, copy)"
    few = f"SELECT * FROM (SELECT *, {place} AS place FROM ({numbered})) WHERE place <= {unit.max_rows}"
    if not marks:
        return few
    order = ", ".join([secret_order(marks, bits, dialect), *marks])  # the keys set apart what would tie
    group = f"dense_rank() OVER (PARTITION BY unit ORDER BY {order})"
    return f"SELECT * FROM (SELECT *, {group} AS nth FROM ({few})) WHERE nth <= {unit.max_groups}"


# Values in order where the records are far away: counts in bins, cut finer where somebody looks.
#
# Only counts come back: at most MOST_ROWS rows a question, or one for each group if there are more groups.
# What is cut finer beforehand, and what only when it is looked at, makes no difference to any answer.


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


# A ladder of round numbers, each with two digits, that every number has its place on, however large.


_PER_DECADE = 90  # 1.1, 1.2 ... 9.9, 10
_ALMOST = 1 - 1e-12  # so that a float just above a round number does not count as the next


@dataclass(frozen=True)
class NumberLadder:
    """Rungs 0 and, on both sides of it, all numbers with two digits from 10^first to 10^last.

    Places rise with the numbers. A place above the middle holds the numbers up to its rung and above the one
    before; below it the mirror image; what lies beyond the ends belongs to the last place. So the place of -x
    is as far from the middle as that of x, on the other side.

    >>> ladder = NumberLadder(0, 3)
    >>> ladder.places, [str(ladder.below(place)) for place in (0, 270, 271, 272, 362, 542)]
    (543, ['-990', '0', '0', '1', '10', '1000'])
    """

    first: int
    last: int

    @property
    def _side(self) -> int:
        return _PER_DECADE * (self.last - self.first) + 1

    @property
    def places(self) -> int:
        """How many places there are."""
        return 2 * self._side + 1

    def below(self, place: int) -> Fraction:
        """The number that all at this place or before lie at or below, but for what is beyond the ends."""
        up = place - self._side
        if up >= 0:
            return Fraction(0) if up == 0 else self._rung(up - 1)
        return -self._rung(-up - 2) if up < -1 else Fraction(0)

    def _rung(self, step: int) -> Fraction:
        decade, digits = divmod(step - 1, _PER_DECADE)
        if step == 0:
            return Fraction(10) ** self.first
        return (digits + 11) * Fraction(10) ** (self.first + decade - 1)

    def place(self, source: Source, name: str) -> str:
        """The place of a column's number in SQL, and -1 for what is none; it never raises.

        A number is brought to the end of its decade at most before it is rounded, so that nothing overflows.
        """
        dialect = source.dialect
        value = dialect.double(dialect.quoted(name), source.types[name])
        low, high = dialect.literal(float("-inf")), dialect.literal(float("inf"))
        size, almost = f"abs({value})", dialect.literal(_ALMOST)
        steps = f"CASE WHEN {size} <= {dialect.literal(10.0**self.first)} THEN 0 "
        for decade in range(self.last - self.first):
            end, tenth = (dialect.literal(10.0 ** (self.first + decade + i)) for i in (1, -1))
            digits = dialect.nearest(f"ceil(least({size}, {end}) / {tenth} * {almost})", "INTEGER")
            steps += f"WHEN {size} <= {end} THEN {_PER_DECADE * decade - 10} + {digits} "
        steps += f"ELSE {self._side - 1} END"
        return (
            f"CASE WHEN {value} > {low} AND {value} < {high} THEN "
            f"{self._side} + CAST(sign({value}) AS INTEGER) * (1 + {steps}) ELSE -1 END"
        )
