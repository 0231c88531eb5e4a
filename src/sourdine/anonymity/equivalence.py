"""Equivalence classes: the records that agree on every quasi-identifier.

Whoever knows only the quasi-identifiers of a person finds the class, and no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity.records import Coded, Codes, Records, number_tuples


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of each distinct record, and how many records each class holds."""

    of: Codes = field(repr=False)
    sizes: Codes = field(repr=False)

    def __len__(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True, eq=False)
class Cells:
    """How often each sensitive value occurs in each class, for those that do; by class, then by value.

    `known` counts the records of a class whose value is known, `totals` the records of the table by value.
    """

    place: Codes = field(repr=False)
    value: Codes = field(repr=False)
    count: Codes = field(repr=False)
    known: Codes = field(repr=False)
    totals: Codes = field(repr=False)

    @property
    def size(self) -> int:
        """The records whose value is known."""
        return int(self.totals.sum())

    @property
    def share(self) -> NDArray[np.float64]:
        """The share of each value in its class."""
        return self.count / self.known[self.place]

    def only(self, mask: NDArray[np.bool_]) -> "Cells":
        """The cells of some classes; the table is then what remains."""
        inside = mask[self.place]
        place, value, count = self.place[inside], self.value[inside], self.count[inside]
        return Cells(
            place, value, count, np.where(mask, self.known, 0), weighed(value, count, len(self.totals))
        )

    def sums(self, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of an amount over the cells of each class."""
        return np.bincount(self.place, amounts, len(self.known)).astype(np.float64)


def classes_of(records: Records, names: Sequence[str] | None = None) -> Classes:
    """The classes of a table by its quasi-identifiers, or by some of them.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 54, 31], "sex": ["f", "m", "f"]})
    >>> classes_of(Records.read(people, quasi=["age", "sex"])).sizes
    array([2, 1])
    """
    columns = records.quasi if names is None else [records.column(name) for name in names]
    # a value left out of a column that is no quasi-identifier has the code -1, and is one of its own here
    ids, many = number_tuples(
        [each.codes + 1 for each in columns], [len(each.labels) + 1 for each in columns]
    )
    return Classes(ids, weighed(ids, records.counts, many))


def cells_of(classes: Classes, column: Coded, counts: Codes) -> Cells:
    """The cells of a sensitive column; values left out are in none."""
    many = len(column.labels)
    present = column.codes >= 0
    whole = bool(present.all())
    place, codes, counts = (each if whole else each[present] for each in (classes.of, column.codes, counts))
    return cells_from(place * many + codes, counts, len(classes), many)


def cells_from(key: Codes, counts: Codes, classes: int, values: int) -> Cells:
    """The cells from the number class * values + value of each record."""
    if not len(key) or classes * values <= max(8 * len(key), 1 << 16):
        dense = weighed(key, counts, classes * values)
        keys = np.flatnonzero(dense)
        count = dense[keys]
    else:
        order = np.argsort(key)
        ranked = key[order]
        starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
        keys, count = ranked[starts], np.add.reduceat(counts[order], starts)
    place, value = keys // values, keys % values
    return Cells(place, value, count, weighed(place, count, classes), weighed(value, count, values))


def weighed(ids: Codes, counts: Codes, many: int) -> Codes:
    """The sum of counts by number. Doubles hold it exactly, since no table has 2^53 records."""
    return np.bincount(ids, counts, many).astype(np.int64)
