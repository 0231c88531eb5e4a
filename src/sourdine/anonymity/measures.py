"""All measures of a table together, and which combinations of quasi-identifiers single people out.

They describe the raw table and are not for publication: a k of 1 tells that somebody can be singled out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from types import MappingProxyType

import numpy as np

from sourdine.anonymity.diversity import (
    Ground,
    ValueDistance,
    alpha_of,
    delta_of,
    distances_of,
    distinct_of,
    entropy_of,
    recursive_of,
)
from sourdine.anonymity.equivalence import Classes, cells_of, classes_of, weighed
from sourdine.anonymity.hierarchy import GeneralisationHierarchy
from sourdine.anonymity.records import Coded, Codes, Missing, Records, number_tuples
from sourdine.anonymity.risk import Risk, journalist_risk, risk_of
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.schema import Schema
from sourdine.frames.source import AS_IT_IS


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
    >>> subsets = uniqueness(Records.read(people, quasi=["age", "sex"]))
    >>> subsets[0].columns, subsets[0].unique
    (('age', 'sex'), 3)
    """
    largest = check.integer("uniqueness", "largest", largest, 1, 1 << 10)
    subsets = [
        _uniqueness_of(records, subset)
        for size in range(1, min(largest, len(records.quasi)) + 1)
        for subset in combinations(range(len(records.quasi)), size)
    ]
    return tuple(
        sorted(subsets, key=lambda each: (-each.unique, -each.classes, len(each.columns), each.columns))
    )


def _uniqueness_of(records: Records, subset: Sequence[int]) -> Uniqueness:
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


NOT_FOR_PUBLICATION = "Measured on raw data: not for publication."
EQUAL: Mapping[str, Ground | GeneralisationHierarchy] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """What the classes reveal about one sensitive column, each figure that of the worst class.

    `c` belongs to recursive (c, l)-diversity with the l of `diversity`: it holds for every c above.
    """

    column: str
    values: int
    alpha: float
    diversity: int
    entropy_diversity: float
    c: float
    closeness: float
    ground: Ground
    delta: float
    homogeneous: int
    """Records in classes of a single value: whoever finds the class knows it."""


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Every measure of a table. They describe raw data: not for publication.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [30, 30, 50, 50], "ill": ["flu", "none", "flu", "flu"]})
    >>> measures = measure(people, quasi=["age"], sensitive=["ill"])
    >>> measures.k, measures.sensitive[0].diversity, measures.sensitive[0].closeness
    (2, 1, 0.25)
    """

    quasi: tuple[str, ...]
    records: int
    dropped: int
    classes: int
    k: int
    average_class: float
    sizes: tuple[tuple[int, int], ...]
    """Each class size that occurs, and the number of classes of that size."""
    sensitive: tuple[Sensitivity, ...]
    prosecutor: Risk
    journalist: Risk | None
    unique: int
    subsets: tuple[Uniqueness, ...]

    @property
    def l(self) -> int | None:  # noqa: E743 - its name everywhere
        """The least number of distinct values in a class, over all sensitive columns."""
        return min((each.diversity for each in self.sensitive), default=None)

    @property
    def t(self) -> float | None:
        """The largest distance of a class from the table, over all sensitive columns."""
        return max((each.closeness for each in self.sensitive), default=None)


def measure(
    table: object,
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    distances: Mapping[str, Ground | GeneralisationHierarchy] = EQUAL,
    population: object = None,
    threshold: Fraction | float = Fraction(1, 5),
    subsets: int = 0,
    columns: Mapping[str, object] | Schema | None = None,
    missing: Missing = Missing.VALUE,
    text: TextFormat | Mapping[str, object] = AS_IT_IS,
) -> Measures:
    """Every measure of a table, from one reading of it.

    `distances` says how far apart values of a sensitive column are, if not all equally: in order, or by a
    tree. `subsets` says up to which size combinations of quasi-identifiers are looked at. With a `population`
    there is a journalist's risk.
    """
    records = Records.read(
        table, quasi=quasi, sensitive=sensitive, columns=columns, missing=missing, text=text
    )
    whole = None
    if population is not None:
        whole = Records.read(population, quasi=quasi, columns=columns, missing=missing, text=text)
    return measure_records(
        records, distances=distances, population=whole, threshold=threshold, subsets=subsets
    )


def measure_records(
    records: Records,
    *,
    distances: Mapping[str, Ground | GeneralisationHierarchy] = EQUAL,
    population: Records | None = None,
    threshold: Fraction | float = Fraction(1, 5),
    subsets: int = 0,
) -> Measures:
    """Every measure of records that were read before."""
    grounds = distances_of(records.sensitive, distances)
    classes = classes_of(records)
    sizes, many = np.unique(classes.sizes, return_counts=True)
    return Measures(
        quasi=tuple(each.name for each in records.quasi),
        records=records.size,
        dropped=records.dropped,
        classes=len(classes),
        k=int(sizes[0]),
        average_class=records.size / len(classes),
        sizes=tuple(zip(sizes.tolist(), many.tolist(), strict=True)),
        sensitive=tuple(
            _sensitivity(records, classes, each, ground)
            for each, ground in zip(records.sensitive, grounds, strict=True)
        ),
        prosecutor=risk_of(classes.sizes, classes.sizes, threshold),
        journalist=None if population is None else journalist_risk(records, population, threshold),
        unique=int(np.count_nonzero(classes.sizes == 1)),
        subsets=uniqueness(records, subsets) if subsets else (),
    )


def k_anonymity(table: object, quasi: Sequence[str]) -> int:
    """The size of the smallest class: k (Sweeney 2002).

    >>> import pyarrow as pa
    >>> k_anonymity(pa.table({"age": [30, 30, 50]}), ["age"])
    1
    """
    return int(classes_of(Records.read(table, quasi=quasi)).sizes.min())


def l_diversity(table: object, quasi: Sequence[str], sensitive: Sequence[str]) -> int:
    """The least number of distinct sensitive values in a class (Machanavajjhala et al. 2007)."""
    return min(each.diversity for each in _with(table, quasi, sensitive, EQUAL))


def t_closeness(
    table: object,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    distances: Mapping[str, Ground | GeneralisationHierarchy] = EQUAL,
) -> float:
    """The largest distance of a class from the table (Li, Li, Venkatasubramanian 2007)."""
    return max(each.closeness for each in _with(table, quasi, sensitive, distances))


def delta_disclosure(table: object, quasi: Sequence[str], sensitive: Sequence[str]) -> float:
    """The largest |log ratio| of a value's shares in a class and in the table (Brickell, Shmatikov 2008)."""
    return max(each.delta for each in _with(table, quasi, sensitive, EQUAL))


def _with(
    table: object,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    distances: Mapping[str, Ground | GeneralisationHierarchy],
) -> tuple[Sensitivity, ...]:
    if not sensitive:
        raise InvalidParameter("At least one sensitive column is needed. Name what must not be learnt.")
    return measure(table, quasi=quasi, sensitive=sensitive, distances=distances).sensitive


def _sensitivity(records: Records, classes: Classes, column: Coded, distance: ValueDistance) -> Sensitivity:
    cells = cells_of(classes, column, records.counts)
    distinct = distinct_of(cells)
    least = distinct.min()
    diversity = int(least) if math.isfinite(least) else 0
    single: Codes = classes.sizes[distinct == 1]
    return Sensitivity(
        column=column.name,
        values=int(np.count_nonzero(cells.totals)),
        alpha=float(alpha_of(cells).max()),
        diversity=diversity,
        entropy_diversity=float(entropy_of(cells).min()),
        c=float(recursive_of(cells, max(diversity, 1)).max()),
        closeness=float(distance.of(cells).max()),
        ground=distance.ground,
        delta=float(delta_of(cells).max()),
        homogeneous=int(single.sum()),
    )
