"""How far the exact numbers of two tables are apart, beside what a plan declares and pays for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Neighbours, Norm
from sourdine.frames.aggregate import Totals
from sourdine.frames.contributions import KeyCounts
from sourdine.frames.keys import Combination
from sourdine.frames.rank_counts import GroupRanks, RankSource
from sourdine.frames.schema import Schema
from sourdine.mechanisms import PartitionThreshold, TopK
from sourdine.tables.consistent import Margins
from sourdine.tables.measurement import Exact, PlannedMeasurement, expect
from sourdine.tables.quantiles.method import QuantileMethod
from sourdine.tables.quantiles.tree import BinTree
from sourdine.tables.statistics.quantiles import Ordered, TreeCounts

FAR = "a unit moves it farther than is paid for"
MANY = "a unit moves more numbers than is declared"
BOTH_WAYS = "a unit moves counts of a group both ways"


@dataclass(frozen=True)
class Movement:
    """Something that a unit moved, how far, and the most that is declared; squares where `squared`."""

    fault: str
    amount: Fraction
    claimed: Fraction
    squared: bool = False

    @property
    def ratio(self) -> float:
        """How far it moved against what was declared: 1 is all that was paid for."""
        if self.claimed == 0:
            return math.inf if self.amount else 0.0
        ratio = float(self.amount / self.claimed)
        return math.sqrt(ratio) if self.squared else ratio


def movements(line: PlannedMeasurement, one: Exact, other: Exact, schema: Schema) -> list[Movement]:
    """How the numbers of a line moved: first how far, then whatever else its mechanism relies on."""
    norm = line.distance.norm
    match norm:
        case Norm.HAMMING:
            return [_in_order(line, _values(one), _values(other))]
        case Norm.LINF:
            keys = isinstance(one, KeyCounts)
            return _keys(line, one, other) if keys else _top(line, one, other, schema)
        case Norm.L1 | Norm.L2:
            return _summed(line, one, other, schema)
        case _:
            assert_never(norm)


def _summed(line: PlannedMeasurement, one: Exact, other: Exact, schema: Schema) -> list[Movement]:
    """All numbers that noise is added to."""
    changes = _changes(line, one, other, schema)
    square = line.distance.norm is Norm.L2
    far = sum(change * change for change in changes) if square else sum(map(abs, changes))
    moves = [Movement(FAR, Fraction(far), line.distance.amount, square)]
    if line.distance.coordinates is not None:
        moves.append(Movement(MANY, Fraction(len(changes)), Fraction(line.distance.coordinates)))
    return moves


def _changes(line: PlannedMeasurement, one: Exact, other: Exact, schema: Schema) -> list[int]:
    """The changes of all numbers that changed."""
    measured = line.measurement
    if isinstance(measured, TreeCounts):
        return _tree(measured.tree(schema), one, other)
    if isinstance(measured, Margins):
        structure = measured.table.structure(schema)
        cells = (_numbers(other) - _numbers(one)).astype(np.int64).reshape(-1, structure.cells)
        return [change for change in structure.exact(cells).ravel().tolist() if change]
    return [change for change in (_numbers(other) - _numbers(one)).ravel().tolist() if change]


def _numbers(exact: Exact) -> NDArray[np.object_]:
    """One row a group, whole numbers of any size."""
    return expect(Totals, exact).sums[0].astype(object)


def _tree(tree: BinTree, one: Exact, other: Exact) -> list[int]:
    """The changes of the counts of all bins of all levels."""
    moves: list[int] = []
    for before, after in zip(_values(one).parts(), _values(other).parts(), strict=True):
        places, changes = _changed(before, after)
        for width in tree.widths:
            bins, where = np.unique(places // width, return_inverse=True)
            moved = np.zeros(bins.size, np.int64)
            np.add.at(moved, where, changes)
            moves += moved[moved != 0].tolist()
    return moves


def _in_order(
    line: PlannedMeasurement,
    one: GroupRanks,
    other: GroupRanks,
) -> Movement:
    """Steps from one list of values to the other, group by group, as the mechanism is proven for.

    Made for replacement, a step is a value replaced, gone or come; otherwise it is one gone or come, and a
    value replaced was paid as two. Where rho is spent, it grows with the squares of a group's steps.
    """
    steps, mechanism = [], line.mechanism
    assert isinstance(mechanism, QuantileMethod)
    swaps = mechanism.neighbours is Neighbours.REPLACE
    for before, after in zip(one.parts(), other.parts(), strict=True):
        _, changes = _changed(before, after)
        come, gone = int(changes[changes > 0].sum()), -int(changes[changes < 0].sum())
        steps.append(max(come, gone) if swaps else come + gone)
    each = line.distance.amount * (2 if line.distance.neighbours is Neighbours.REPLACE and not swaps else 1)
    power = 2 if line.squared else 1
    return Movement(FAR, Fraction(sum(step**power for step in steps)), line.count * each**power, line.squared)


def _keys(line: PlannedMeasurement, one: Exact, other: Exact) -> list[Movement]:
    """Counts of units by key: each moves by one, and only those of the few keys that a unit counts for."""
    mechanism = expect(PartitionThreshold, line.mechanism)
    before, after = expect(KeyCounts, one).by_key(), expect(KeyCounts, other).by_key()
    changes = [after.get(key, 0) - before.get(key, 0) for key in before.keys() | after.keys()]
    twice = 2 if line.distance.neighbours is Neighbours.REPLACE else 1
    return [
        Movement(FAR, Fraction(sum(map(abs, changes))), Fraction(mechanism.keys * twice)),
        Movement(MANY, Fraction(sum(map(bool, changes))), Fraction(mechanism.keys * twice)),
        Movement(FAR, Fraction(max(map(abs, changes), default=0)), line.distance.amount),
    ]


def _top(line: PlannedMeasurement, one: Exact, other: Exact, schema: Schema) -> list[Movement]:
    """Counts that are ranked: each moves by one, in few groups, and in one direction if that was paid for."""
    outer = line.measurement.outer_groups(schema)
    moved = (_numbers(other) - _numbers(one)).reshape(outer, -1).astype(np.int64)
    groups = int((moved != 0).any(axis=1).sum()) if moved.size else 0
    moves = [
        Movement(FAR, Fraction(int(np.abs(moved).max(initial=0))), line.distance.amount),
        Movement(MANY, Fraction(groups), Fraction(line.count)),
    ]
    if expect(TopK, line.mechanism).monotone:
        both = ((moved > 0).any(axis=1) & (moved < 0).any(axis=1)).any() if moved.size else False
        moves.append(Movement(BOTH_WAYS, Fraction(int(both)), Fraction(0)))
    return moves


def _values(exact: Exact) -> GroupRanks:
    return expect(GroupRanks, exact)  # type: ignore[type-abstract]


def _changed(one: RankSource, other: RankSource) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places at which the number of values changed, and by how much."""
    before, after = one.values_between(0, one.size), other.values_between(0, other.size)
    places, where = np.unique(np.concatenate([before, after]), return_inverse=True)
    moved = np.zeros(places.size, np.int64)
    np.add.at(moved, where, np.repeat([-1, 1], [before.size, after.size]))
    return places[moved != 0], moved[moved != 0]


def flaw(line: PlannedMeasurement, exact: Exact, schema: Schema) -> str:
    """What is wrong with the shape of some exact numbers; empty where nothing is.

    Keys and their order, how many numbers a group has and that they are whole must not depend on records.
    """
    if isinstance(exact, KeyCounts):
        return "a key counts fewer than one unit" if (exact.units < 1).any() else ""
    keys = exact.keys if isinstance(exact, Totals) else tuple(exact)
    known = line.measurement.keys(schema)
    if len(keys) != len(known) or (not line.measurement.scope.open and not _alike(keys, known)):
        return "its groups are not the declared ones"
    if isinstance(exact, Totals):
        return _flaw_of_sums(line, exact, len(keys))
    width = expect(Ordered, line.measurement).width(schema)  # type: ignore[type-abstract]
    places = [values.values_between(0, values.size) for values in exact.parts() if values.size]
    if any(part.min() < 0 or part.max() > width for part in places):
        return "a value lies outside the declared bounds"
    return ""


def _alike(keys: Sequence[Combination], known: Sequence[Combination]) -> bool:
    """Whether keys are those that are known, or stand for them one by one in the same order."""
    if tuple(keys) == tuple(known):
        return True
    for place in range(len(known[0]) if known else 0):
        pairs = {(key[place], name[place]) for key, name in zip(keys, known, strict=True)}
        if len(pairs) != len({key for key, _ in pairs}) or len(pairs) != len({name for _, name in pairs}):
            return False
    return True


def _flaw_of_sums(line: PlannedMeasurement, exact: Totals, groups: int) -> str:
    sums = exact.numbers[0]
    if any(type(number) is not int for numbers in sums for number in numbers):
        return "its numbers are not whole"
    if len(sums) != groups or len({len(numbers) for numbers in sums}) > 1:
        return "its groups have unlike many numbers"
    if not line.measurement.signed and any(min(numbers) < 0 for numbers in sums):
        return "a number that counts is below 0"
    return ""
