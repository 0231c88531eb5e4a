"""Keys of groups in columns: of each column its different keys, and the place of each group's among them.

A million groups are a few arrays, and no Python object stands for any of them. Read one by one they are
tuples, as people write them.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

Cell = str | int | float | bool | None
Combination = tuple[Cell, ...]
_BLOCK, _SHOWN = 1 << 16, 4
_TYPES: dict[type, type[np.generic]] = {bool: np.bool_, int: np.int64, float: np.float64}
TEXT = np.dtypes.StringDType()


def values_of(cells: Sequence[Cell] | NDArray[Any]) -> NDArray[Any]:
    """Cells as an array of their one type; texts, and cells of several types, stay what they are.

    >>> values_of([True, False]).dtype, values_of(["all", 3]).tolist()
    (dtype('bool'), ['all', 3])
    """
    if isinstance(cells, np.ndarray):
        return cells
    if isinstance(cells, range):
        return np.arange(cells.start, cells.stop, cells.step, dtype=np.int64)
    for known, values in tuple(_recent):  # another thread may add to it
        if known is cells:
            return values
    values = _values(cells)
    if isinstance(cells, tuple) and len(cells) > _BLOCK:
        _recent.append((cells, values))
    return values


_recent: deque[tuple[Sequence[Cell], NDArray[Any]]] = deque(maxlen=4)
"""Long lists of declared keys, which many a step of a release looks at."""


def types_of(cells: Sequence[object]) -> frozenset[type]:
    """The types that there are among cells.

    >>> types_of((1, 2, 3))
    frozenset({<class 'int'>})
    """
    for known, types in tuple(_recent_types):
        if known is cells:
            return types
    types = frozenset(map(type, cells))
    if isinstance(cells, tuple) and len(cells) > _BLOCK:
        _recent_types.append((cells, types))
    return types


_recent_types: deque[tuple[Sequence[object], frozenset[type]]] = deque(maxlen=4)


def _values(cells: Sequence[Cell]) -> NDArray[Any]:
    kinds = types_of(cells)
    if len(kinds) == 1 and (kind := next(iter(kinds))) in _TYPES:
        return np.array(cells, dtype=_TYPES[kind])
    result = np.empty(len(cells), dtype=object)
    result[:] = cells
    return result


@dataclass(frozen=True, eq=False)
class KeyColumn:
    """The keys of one column: `values`, and the place of each group's key among them."""

    values: NDArray[Any]
    places: NDArray[np.int32]

    @classmethod
    def one(cls, key: Cell, groups: int) -> Self:
        """The same key for so many groups."""
        return cls(values_of([key]), np.zeros(groups, np.int32))

    @classmethod
    def joined(cls, parts: Sequence["KeyColumn"]) -> Self:
        """The groups of several columns, one after the other."""
        first = parts[0].values
        if all(part.values is first for part in parts):
            return cls(first, np.concatenate([part.places for part in parts]))
        starts = np.cumsum([0, *(part.values.size for part in parts)])
        moved = [(part.places + start).astype(np.int32) for part, start in zip(parts, starts, strict=False)]
        return cls(_side_by_side([part.values for part in parts]), np.concatenate(moved))

    def take(self, groups: Any) -> "KeyColumn":
        """The column of some groups."""
        return KeyColumn(self.values, self.places[groups])

    def cells(self, groups: Any = slice(None)) -> NDArray[Any]:
        """The key of each group."""
        cells: NDArray[Any] = self.values[self.places[groups]]
        return cells

    def holds(self, key: object) -> NDArray[np.bool_]:
        """Which groups have a key."""
        kind, text = self.values.dtype.kind, isinstance(key, str)
        # an array of one type is not asked for what it cannot hold
        like = text if kind == "T" else kind == "O" or not text
        if not like or not (isinstance(key, str | int | float | np.generic) or (key is None and kind == "O")):
            return np.zeros(self.places.size, bool)
        hits: NDArray[np.bool_] = np.asarray(self.values == key, dtype=bool)
        return hits[self.places]

    def changed(self, values: Sequence[Cell]) -> "KeyColumn":
        """The same groups with other words for the same keys."""
        return KeyColumn(values_of(values), self.places)


@dataclass(frozen=True, eq=False)
class Keys(Sequence[Combination]):
    """The keys of so many groups, one combination of keys a group.

    >>> keys = Keys.product([["f", "m"], [1, 2]])
    >>> len(keys), keys[1], keys[2:] == [("m", 1), ("m", 2)]
    (4, ('f', 2), True)
    """

    columns: tuple[KeyColumn, ...]
    size: int

    @classmethod
    def product(cls, keys: Sequence[Sequence[Cell] | NDArray[Any]]) -> Self:
        """Every combination of the keys of some columns, the last changing quickest."""
        sizes = [len(each) for each in keys]
        size, result, inner = int(np.prod(sizes, dtype=np.int64)), [], 1
        for each, many in zip(reversed(keys), reversed(sizes), strict=True):
            run = np.repeat(np.arange(many, dtype=np.int32), inner)
            result.append(KeyColumn(values_of(each), np.tile(run, size // max(run.size, 1))))
            inner *= many
        return cls(tuple(reversed(result)), size)

    @classmethod
    def of_columns(cls, *columns: Sequence[Cell] | NDArray[Any]) -> Self:
        """Keys that stand in columns already, one cell a group; there is at least one column."""
        values = [values_of(each) for each in columns]
        return cls(
            tuple(KeyColumn(each, np.arange(each.size, dtype=np.int32)) for each in values), values[0].size
        )

    @classmethod
    def of(cls, rows: Iterable[Sequence[Cell]], width: int) -> Self:
        """Keys that come one by one, each of so many cells."""
        listed = list(rows)
        if any(len(row) != width for row in listed):
            raise ValueError("unlike keys")
        if not width:
            return cls((), len(listed))
        columns = list(zip(*listed, strict=True)) if listed else [()] * width
        return cls(tuple(_coded(column) for column in columns), len(listed))

    @classmethod
    def joined(cls, parts: Sequence["Keys"]) -> Self:
        """The groups of several, one after the other, of like columns."""
        columns = zip(*(part.columns for part in parts), strict=True)
        return cls(tuple(map(KeyColumn.joined, columns)), sum(len(part) for part in parts))

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, place: int) -> Combination: ...
    @overload
    def __getitem__(self, place: slice) -> "Keys": ...
    def __getitem__(self, place: int | slice) -> "Combination | Keys":
        if isinstance(place, slice):
            return self.take(np.arange(*place.indices(self.size)))
        at = range(self.size)[place]
        return next(iter(self.take(np.array([at]))))

    def __iter__(self) -> Iterator[Combination]:
        if not self.columns:
            yield from (() for _ in range(self.size))
        for start, end in pairwise([*range(0, self.size, _BLOCK), self.size]):
            block = slice(start, end)
            yield from zip(*(column.cells(block).tolist() for column in self.columns), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str) or len(other) != self.size:
            return False
        if isinstance(other, Keys) and len(other.columns) == len(self.columns):
            pairs = zip(self.columns, other.columns, strict=True)
            if all(a.values is b.values and np.array_equal(a.places, b.places) for a, b in pairs):
                return True
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash((self.size, len(self.columns)))

    def __repr__(self) -> str:
        few = ", ".join(map(repr, self[:_SHOWN]))
        return f"<Keys {few}{', …' if self.size > _SHOWN else ''}>"

    def take(self, groups: NDArray[Any]) -> "Keys":
        """Some of the groups, by their places or by a mask."""
        count = int(np.count_nonzero(groups)) if groups.dtype == np.bool_ else groups.size
        return Keys(tuple(column.take(groups) for column in self.columns), count)

    def each_with(self, other: "Keys") -> "Keys":
        """Every group once for each of other keys, which stand beside its own and change quickest."""
        mine = self.take(np.repeat(np.arange(self.size, dtype=np.int64), other.size))
        theirs = other.take(np.tile(np.arange(other.size, dtype=np.int64), self.size))
        return Keys((*mine.columns, *theirs.columns), mine.size)

    def find(self, key: Sequence[object]) -> int | None:
        """The place of the first group with a key."""
        if len(key) != len(self.columns):
            return None
        result = np.ones(self.size, bool)
        for column, part in zip(self.columns, key, strict=True):
            result &= column.holds(part)
        first = int(result.argmax()) if self.size else 0
        return first if self.size and result[first] else None


def _coded(cells: Sequence[Cell]) -> KeyColumn:
    """Cells by their places among those that differ; 1, 1.0 and True are not alike."""
    known: dict[tuple[type, Cell], int] = {}
    places = np.fromiter((known.setdefault((type(c), c), len(known)) for c in cells), np.int32, len(cells))
    return KeyColumn(values_of([cell for _, cell in known]), places)


def _side_by_side(values: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Values of several columns in one, each of its own type."""
    kinds = {each.dtype for each in values}
    if len(kinds) == 1:
        return np.concatenate(values)
    return np.concatenate([_objects(each) for each in values])


def _objects(values: NDArray[Any]) -> NDArray[np.object_]:
    result = np.empty(values.size, dtype=object)
    result[:] = values.tolist()
    return result
