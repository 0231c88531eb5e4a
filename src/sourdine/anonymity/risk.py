"""How likely a record is linked to its person by the quasi-identifiers alone.

Whoever knows that somebody is in the table (the prosecutor) is right with probability 1 / class size. Whoever
knows only that somebody is in a population from which the table was taken (the journalist) is right with
probability 1 / size of the same class in the population. Whoever links every record (the marketer) is right
about the average share of records (El Emam, Dankar 2008; Dankar, El Emam 2010).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity.equivalence import Classes, classes_of
from sourdine.anonymity.records import Coded, Codes, Label, Records, number_tuples
from sourdine.core import check


@dataclass(frozen=True, kw_only=True)
class Risk:
    """The chance that a record is linked to the right person; `threshold` is from where it is at risk."""

    highest: float
    average: float
    threshold: Fraction
    records_at_risk: int
    share_at_risk: float


def prosecutor_risk(records: Records, threshold: Fraction | float = Fraction(1, 5)) -> Risk:
    """The risk of a record whose person is known to be in the table: 1 / class size.

    On average over records this is the number of classes over the number of records, also the share of
    records that a marketer links rightly.

    >>> import pyarrow as pa
    >>> records = Records.read(pa.table({"age": [31, 54, 31], "sex": ["f", "m", "f"]}), quasi=["age", "sex"])
    >>> risk = prosecutor_risk(records)
    >>> risk.highest, round(risk.average, 3), risk.records_at_risk
    (1.0, 0.667, 3)
    """
    classes = classes_of(records)
    return risk_of(classes.sizes, classes.sizes, threshold)


def journalist_risk(
    records: Records, population: Records, threshold: Fraction | float = Fraction(1, 5)
) -> Risk:
    """The risk of a record whose person is known to be in a population: 1 / size of its class there.

    The population is coded by the same quasi-identifiers. It should hold everybody in the table; where its
    class is smaller than the table's all the same, the table's counts.
    """
    here, there = classes_of(records), classes_of(population)
    sizes = np.maximum(_sizes_there(records, here, population, there), here.sizes)
    return risk_of(here.sizes, sizes, threshold)


def risk_of(sizes: Codes, among: Codes, threshold: Fraction | float = Fraction(1, 5)) -> Risk:
    """The risk where a class of some size hides among so many; it is above the threshold or not, exactly."""
    limit = check.share("Risk", "threshold", threshold)
    if limit in (0, 1):
        raise check.fail("Risk", "threshold", "lie strictly between 0 and 1", threshold)
    # 1/n > limit, said of n alone: a product with the digits of the limit may not fit 64 bits
    largest = min((limit.denominator - 1) // limit.numerator, 1 << 62)
    at_risk = int(sizes[among <= largest].sum())
    size = int(sizes.sum())
    return Risk(
        highest=1 / int(among.min()),
        average=float((sizes / among).sum() / size),
        threshold=limit,
        records_at_risk=at_risk,
        share_at_risk=at_risk / size,
    )


def _sizes_there(records: Records, here: Classes, population: Records, there: Classes) -> Codes:
    """The size in the population of each class of the table, and 0 where it has none."""
    columns = [(each, population.column(each.name)) for each in records.quasi]
    ours: list[Codes] = []
    theirs: list[Codes] = []
    sizes: list[int] = []
    for mine, other in columns:
        known = {label: place for place, label in enumerate(mine.labels)}
        more = {label: len(known) + place for place, label in enumerate(_new(known, other))}
        translated = np.array([{**known, **more}[label] for label in other.labels], np.int64)
        ours.append(mine.codes[_firsts(here)])
        theirs.append(translated[other.codes[_firsts(there)]])
        sizes.append(len(known) + len(more))
    both = [np.concatenate(pair) for pair in zip(ours, theirs, strict=True)]
    ids, many = number_tuples(both, sizes)
    counts = np.zeros(many, np.int64)
    counts[ids[len(here) :]] = there.sizes
    return counts[ids[: len(here)]]


def _new(known: dict[Label, int], column: Coded) -> Sequence[Label]:
    return [label for label in column.labels if label not in known]


def _firsts(classes: Classes) -> NDArray[np.int64]:
    """A record of each class."""
    first = np.empty(len(classes), np.int64)
    first[classes.of] = np.arange(len(classes.of))
    return first
