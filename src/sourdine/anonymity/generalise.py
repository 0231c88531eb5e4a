"""Tables made coarser until they satisfy a requirement, and what that has cost them.

This hides people among those who share their labels. It is no differential privacy and claims no loss.
"""

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity.diversity import Ground, ValueDistance, distances_of
from sourdine.anonymity.equivalence import Classes, cells_of, classes_of
from sourdine.anonymity.full_domain import Lattice, search
from sourdine.anonymity.hierarchy import GeneralisationHierarchy, usual_hierarchy
from sourdine.anonymity.measures import EQUAL
from sourdine.anonymity.mondrian import cut
from sourdine.anonymity.records import Coded, Codes, Label, Missing, Records, rows_of
from sourdine.anonymity.requirement import Demand
from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.schema import Schema
from sourdine.frames.source import AS_IT_IS


@dataclass(frozen=True, kw_only=True)
class InformationLoss:
    """Three measures of what is lost; a record left out counts as lost altogether.

    - `ncp`: the normalised certainty penalty, from 0 (nothing) to 1 (everything is '*'): the mean over
      records and quasi-identifiers of the share of other values a label may stand for (Xu et al. 2006;
      Ghinita et al. 2007).
    - `discernibility`: sum of squared class sizes, and the size of the table for each record left out
      (Bayardo, Agrawal 2005).
    - `average_class`: records in a class on average; over k it is the C_AVG of LeFevre et al. 2006.
    """

    ncp: float
    discernibility: int
    average_class: float

    @classmethod
    def of(cls, ncp: float, sizes: Codes, suppressed: int) -> "InformationLoss":
        """The loss of a table by the sizes of its classes and the number of records left out."""
        total = int(sizes.sum())
        squares = int((sizes.astype(object) ** 2).sum()) if total >= 1 << 31 else int((sizes**2).sum())
        return cls(
            ncp=ncp,
            discernibility=squares + suppressed * (total + suppressed),
            average_class=total / len(sizes),
        )


Watch = Callable[[float], None]
NONE: Mapping[str, GeneralisationHierarchy] = MappingProxyType({})


class GeneralisationMethod(StrEnum):
    """How a table is made coarser."""

    FULL = "full"
    """Every value of a column at one level, the same everywhere; the best such choice of levels."""
    MONDRIAN = "mondrian"
    """Each class as coarse as it has to be, by halving; equal values stay together."""
    RELAXED = "relaxed"
    """Halving, in which equal numbers may go to either half."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Generalised:
    """A table that satisfies a demand, and what that has cost.

    `levels` and `proven` belong to full-domain generalisation: the level of each column, and whether no other
    choice of levels loses less.
    """

    records: Records = field(repr=False)
    demand: Demand
    method: GeneralisationMethod
    size: int
    suppressed: int
    loss: InformationLoss
    penalties: Mapping[str, float]
    """The normalised certainty penalty of each column; their mean is that of the table."""
    levels: Mapping[str, int] | None = None
    heights: Mapping[str, int] | None = None
    proven: bool = False
    evaluated: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        return tuple(each.name for each in self._columns)

    def rows(self) -> Iterator[tuple[Label, ...]]:
        """The rows, in the order of their labels: nothing of the order they had is left."""
        order = np.lexsort([_ranks(each) for each in reversed(self._columns)])
        texts = [np.array([*each.labels, None], object)[each.codes[order]] for each in self._columns]
        counts = self.records.counts[order].tolist()
        for row, count in zip(zip(*texts, strict=True), counts, strict=True):
            for _ in range(count):
                yield row

    def columns(self) -> dict[str, list[Label]]:
        """The table by columns, as any library of frames takes it."""
        return dict(zip(self.names, map(list, zip(*self.rows(), strict=True)), strict=True))

    def write(self, path: Path | str) -> None:
        """Keep the table as CSV. It appears whole or not at all, and is for its owner."""
        with disk.whole_file(Path(path)) as place, place.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.names)
            writer.writerows(self.rows())

    @property
    def _columns(self) -> tuple[Coded, ...]:
        records = self.records
        return (*records.quasi, *records.sensitive, *records.others)


def generalise(
    table: object,
    demand: Demand,
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    others: Sequence[str] = (),
    hierarchies: Mapping[str, GeneralisationHierarchy] = NONE,
    distances: Mapping[str, Ground | GeneralisationHierarchy] = EQUAL,
    suppress: Fraction | float = 0,
    method: GeneralisationMethod = GeneralisationMethod.FULL,
    columns: Mapping[str, object] | Schema | None = None,
    missing: Missing = Missing.VALUE,
    text: TextFormat | Mapping[str, object] = AS_IT_IS,
    watch: Watch | None = None,
) -> Generalised:
    """A table made coarser until it satisfies a demand, with as little loss as can be.

    At most the share `suppress` of its records is left out, and by halving none. Only quasi-identifiers,
    sensitive columns and `others` are in it. A quasi-identifier without a hierarchy gets a usual one; halving
    needs none, and says numbers by the ends of their range.

    >>> import pyarrow as pa
    >>> from sourdine.anonymity.hierarchy import Intervals
    >>> people = pa.table({"age": [31, 34, 52, 58], "ill": ["flu", "none", "flu", "none"]})
    >>> ages = {"age": Intervals(0, 100, (10, 20))}
    >>> coarse = generalise(people, Demand(k=2, l=2), quasi=["age"], sensitive=["ill"], hierarchies=ages)
    >>> list(coarse.rows())
    [('30-39', 'flu'), ('30-39', 'none'), ('50-59', 'flu'), ('50-59', 'none')]
    """
    records = Records.read(
        table,
        quasi=quasi,
        sensitive=sensitive,
        others=others,
        columns=columns,
        missing=missing,
        text=text,
    )
    return generalise_records(
        records,
        demand,
        hierarchies=hierarchies,
        distances=distances,
        suppress=suppress,
        method=method,
        watch=watch,
    )


def generalise_records(
    records: Records,
    demand: Demand,
    *,
    hierarchies: Mapping[str, GeneralisationHierarchy] = NONE,
    distances: Mapping[str, Ground | GeneralisationHierarchy] = EQUAL,
    suppress: Fraction | float = 0,
    method: GeneralisationMethod = GeneralisationMethod.FULL,
    watch: Watch | None = None,
) -> Generalised:
    """Records that were read before, made coarser until they satisfy a demand."""
    share = check.share("generalise", "suppress", suppress)
    check.member("generalise", "method", method, GeneralisationMethod)
    grounds = distances_of(records.sensitive, distances)
    full = method is GeneralisationMethod.FULL
    _check_possible(records, demand, grounds, all_stay=not full or share * records.size < 1)
    if full:
        return _full(records, demand, hierarchies=hierarchies, distances=grounds, suppress=share, watch=watch)
    return _local(records, demand, hierarchies=hierarchies, distances=grounds, method=method, watch=watch)


def _check_possible(
    records: Records, demand: Demand, distances: Sequence[ValueDistance], *, all_stay: bool
) -> None:
    """Refuse a demand that one class of everybody does not satisfy, where no record may be left out."""
    if demand.k > records.size:
        raise InvalidParameter(
            f"A k of {demand.k:,} is more than the {records.size:,} records of the table. Ask for less."
        )
    if demand.of_sensitive and not records.sensitive:
        raise InvalidParameter(
            "A demand on sensitive values needs a sensitive column. Name one, or ask for k alone."
        )
    if not all_stay:  # without some of its records the table may satisfy what it does not as a whole
        return
    everybody = Classes(np.zeros(len(records.counts), np.int64), np.array([records.size]))
    columns = [cells_of(everybody, each, records.counts) for each in records.sensitive]
    if demand.of_sensitive and not demand.satisfies(everybody.sizes, columns, distances)[0]:
        raise InvalidParameter(
            f"Even the whole table as one class does not satisfy {demand.words}: its sensitive values are "
            "not varied enough. Ask for less."
        )


def _full(
    records: Records,
    demand: Demand,
    *,
    hierarchies: Mapping[str, GeneralisationHierarchy],
    distances: Sequence[ValueDistance],
    suppress: Fraction,
    watch: Watch | None,
) -> Generalised:
    ladders = [(hierarchies.get(each.name) or usual_hierarchy(each)).ladder(each) for each in records.quasi]
    choice = search(Lattice(records, ladders, demand, distances, suppress), watch)
    quasi = tuple(
        Coded(each.name, ladder.labels[level], ladder.codes[level][each.codes])
        for each, ladder, level in zip(records.quasi, ladders, choice.node, strict=True)
    )
    coarse = Records(quasi, records.sensitive, records.others, records.counts, records.dropped).only(
        choice.mask
    )
    names = [each.name for each in records.quasi]
    return Generalised(
        records=coarse,
        demand=demand,
        method=GeneralisationMethod.FULL,
        size=records.size,
        suppressed=choice.suppressed,
        loss=_loss(choice.ncp, coarse, choice.suppressed),
        penalties={
            each.name: _penalty(ladder.losses[level][each.codes], records, choice.mask)
            for each, ladder, level in zip(records.quasi, ladders, choice.node, strict=True)
        },
        levels=dict(zip(names, choice.node, strict=True)),
        heights=dict(zip(names, (ladder.height for ladder in ladders), strict=True)),
        proven=choice.proven,
        evaluated=choice.evaluated,
    )


def _local(
    records: Records,
    demand: Demand,
    *,
    hierarchies: Mapping[str, GeneralisationHierarchy],
    distances: Sequence[ValueDistance],
    method: GeneralisationMethod,
    watch: Watch | None,
) -> Generalised:
    ladders = [
        hierarchies[each.name].ladder(each) if each.name in hierarchies and each.numbers is None else None
        for each in records.quasi
    ]
    partition = cut(
        records, ladders, demand, distances, relaxed=method is GeneralisationMethod.RELAXED, watch=watch
    )
    others = rows_of(records.sensitive, partition.rows), rows_of(records.others, partition.rows)
    coarse = Records(partition.columns, *others, np.ones(len(partition.rows), np.int64), records.dropped)
    return Generalised(
        records=coarse,
        demand=demand,
        method=method,
        size=records.size,
        suppressed=0,
        loss=_loss(float(np.mean(partition.penalties)), coarse, 0),
        penalties={each.name: lost for each, lost in zip(records.quasi, partition.penalties, strict=True)},
    )


def _penalty(losses: NDArray[np.float64], records: Records, mask: NDArray[np.bool_]) -> float:
    """The mean penalty of a column, 1 for every record left out."""
    return float(np.where(mask, losses, 1.0) @ records.counts / records.size)


def _loss(ncp: float, records: Records, suppressed: int) -> InformationLoss:
    return InformationLoss.of(ncp, classes_of(records).sizes, suppressed)


def _ranks(column: Coded) -> Codes:
    """The codes of a column by the order of its labels: those that begin with a number by that."""
    order = sorted(range(len(column.labels)), key=lambda code: _natural(column.labels[code]))
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = len(order)
    return rank[column.codes]


def _natural(label: Label) -> tuple[bool, float, str]:
    if label is None:
        return True, 0.0, ""
    number = re.match(r"-?\d{1,30}(\.\d{1,30})?", label)
    return False, float(number[0]) if number else math.inf, label
