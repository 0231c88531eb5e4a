"""Values in their order, group by group: how many lie below a place, for many groups and places at once."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.frames.expression import Grouping
from sourdine.frames.keys import Combination
from sourdine.frames.statistics.totals import combinations

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
