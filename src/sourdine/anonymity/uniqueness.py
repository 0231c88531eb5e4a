"""Which combinations of quasi-identifiers single people out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sourdine.anonymity.classes import weighed
from sourdine.anonymity.records import Records, number_tuples
from sourdine.core import check


@dataclass(frozen=True, kw_only=True)
class Uniqueness:
    """What some quasi-identifiers tell by themselves."""

    columns: tuple[str, ...]
    classes: int
    unique: int
    """The records that nobody else is like."""
    share: float
    """Of records that are unique."""
    average_risk: float
    """The share of records that would be linked rightly: classes over records."""


def uniqueness(records: Records, largest: int = 2) -> tuple[Uniqueness, ...]:
    """Every subset of quasi-identifiers up to a size, those that identify most first.

    A record is unique if its class has one member; uniques(A) <= uniques(B) for A within B (Sweeney 2000).
    Where as many are unique, the larger average risk comes first, then fewer columns.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 54, 31], "sex": ["f", "m", "m"]})
    >>> found = uniqueness(Records.read(people, quasi=["age", "sex"]))
    >>> found[0].columns, found[0].unique
    (('age', 'sex'), 3)
    """
    largest = check.integer("uniqueness", "largest", largest, 1, 1 << 10)
    found = [
        _told(records, subset)
        for size in range(1, min(largest, len(records.quasi)) + 1)
        for subset in combinations(range(len(records.quasi)), size)
    ]
    return tuple(
        sorted(found, key=lambda each: (-each.unique, -each.classes, len(each.columns), each.columns))
    )


def _told(records: Records, subset: Sequence[int]) -> Uniqueness:
    columns = [records.quasi[place] for place in subset]
    ids, many = number_tuples([each.codes for each in columns], [len(each.labels) for each in columns])
    unique = int(np.count_nonzero(weighed(ids, records.counts, many) == 1))
    return Uniqueness(
        columns=tuple(each.name for each in columns),
        classes=many,
        unique=unique,
        share=unique / records.size,
        average_risk=many / records.size,
    )
