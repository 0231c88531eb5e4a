"""Local recoding: classes are cut in two as long as both halves satisfy the demand (LeFevre et al. 2006).

All classes are cut at once, round by round. A class is cut along the column in which it is widest, else along
the next; numbers at the median, values of a tree between the branches below what they have in common. Nothing
is left out. Merging classes that satisfy the demand gives one that does, so that classes whose labels turn
out alike do no harm.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity.diversity import ValueDistance
from sourdine.anonymity.equivalence import Cells, cells_from, weighed
from sourdine.anonymity.hierarchy import TOP, Ladder
from sourdine.anonymity.records import Coded, Codes, Label, Records
from sourdine.anonymity.requirement import Demand

Watch = Callable[[float], None]
_MOST_LISTED = 4  # values of a column without a tree that a label names


@dataclass(frozen=True, eq=False)
class Cut:
    """The class of each row and what its classes say; rows are distinct records, as often as they occur."""

    rows: Codes = field(repr=False)  # the distinct record of each row
    classes: Codes = field(repr=False)
    columns: tuple[Coded, ...]  # by row
    penalties: tuple[float, ...]  # by column


@dataclass(frozen=True, eq=False)
class _Axis:
    """A column as something to cut: codes in an order in which branches of a tree lie together."""

    column: Coded
    ladder: Ladder | None  # of a column that is said by its tree
    order: Codes  # the place of each label
    width: NDArray[np.float64]  # the position of each place, in [0, 1]
    steps: Codes  # by level and place, the code of the branch

    @classmethod
    def of(cls, column: Coded, ladder: Ladder | None) -> "_Axis":
        many = len(column.labels)
        numbers = column.numbers
        if ladder is not None:
            ranked = np.lexsort(ladder.codes)  # the last key, which is the root, counts most
            order = np.empty(many, np.int64)
            order[ranked] = np.arange(many)
            return cls(column, ladder, order, _even(many), ladder.codes[:, ranked])
        order = np.arange(many)
        width = _even(many)
        if numbers is not None and not np.isnan(numbers).any() and many > 1:
            width = (numbers - numbers[0]) / (numbers[-1] - numbers[0])
        return cls(column, None, order, width, np.zeros((0, many), np.int64))

    @property
    def is_number(self) -> bool:
        """Whether a range of values is said by its ends."""
        return self.ladder is None and self.column.numbers is not None and None not in self.column.labels


def _even(many: int) -> NDArray[np.float64]:
    return np.arange(many) / max(many - 1, 1)


def cut(
    records: Records,
    ladders: Sequence[Ladder | None],
    demand: Demand,
    distances: Sequence[ValueDistance],
    *,
    relaxed: bool = False,
    watch: Watch | None = None,
) -> Cut:
    """Classes as small as halving makes them; with `relaxed`, equal numbers may go to either half.

    Columns with a ladder are said by labels of their tree, numbers by the ends of their range, and others by
    the values that occur.
    """
    every_column = (*records.quasi, *records.sensitive, *records.others)
    order = np.lexsort([column.codes for column in every_column])  # whatever order the records came in
    rows = np.repeat(order, records.counts[order])
    axes = [_Axis.of(column, ladder) for column, ladder in zip(records.quasi, ladders, strict=True)]
    places = np.array([axis.order[axis.column.codes[rows]] for axis in axes])
    secret = [(column.codes[rows], len(column.labels)) for column in records.sensitive]
    work = _Work(axes, places, secret, demand, distances, relaxed, records.size)
    classes = work.run(watch)
    columns, penalties = zip(
        *(_label_rows(axis, places[i], classes) for i, axis in enumerate(axes)), strict=True
    )
    return Cut(rows, classes, columns, tuple(float(each[classes].mean()) for each in penalties))


@dataclass(eq=False)
class _Work:
    axes: Sequence[_Axis]
    places: NDArray[np.int64]  # by column and row
    secret: Sequence[tuple[Codes, int]]
    demand: Demand
    distances: Sequence[ValueDistance]
    relaxed: bool
    size: int

    def run(self, watch: Watch | None) -> Codes:
        """The class of each row in the end."""
        self.totals = [
            weighed(codes[codes >= 0], np.ones(int((codes >= 0).sum()), np.int64), many)
            for codes, many in self.secret
        ]
        classes = np.zeros(self.size, np.int64)
        active = np.arange(self.size)  # the rows of classes that may be cut further
        many = 1
        while len(active):
            names, local = np.unique(classes[active], return_inverse=True)
            halves = self._halve(active, local, len(names))
            split = halves >= 0
            right = split & (halves == 1)
            fresh = np.full(len(names), -1, np.int64)
            cut_now = np.unique(local[split])
            fresh[cut_now] = many + np.arange(len(cut_now))
            classes[active[right]] = fresh[local[right]]
            many += len(cut_now)
            active = active[split]
            if watch is not None:
                watch(1 - len(active) / self.size)
        return np.unique(classes, return_inverse=True)[1].astype(np.int64)

    def _halve(self, rows: Codes, local: Codes, many: int) -> NDArray[np.int8]:
        """Which half each row goes to, and -1 where the class stays whole."""
        halves = np.full(len(rows), -1, np.int8)
        spread = np.array(
            [_spread(axis, self.places[i, rows], local, many) for i, axis in enumerate(self.axes)]
        )
        order = np.argsort(-spread, axis=0, kind="stable")
        waiting = np.bincount(local, minlength=many) >= 2 * self.demand.k
        for turn in order:
            waiting &= spread[turn, np.arange(many)] > 0
            for place, axis in enumerate(self.axes):
                chosen = np.flatnonzero((waiting & (turn == place))[local])
                if not len(chosen):
                    continue
                names, inside = np.unique(local[chosen], return_inverse=True)
                side = self._cut_along(axis, self.places[place, rows[chosen]], inside, len(names))
                good = self._good(rows[chosen], inside, side, len(names))
                done = good[inside]
                halves[chosen[done]] = side[done]
                waiting[names[good]] = False
        return halves

    def _cut_along(self, axis: _Axis, places: Codes, local: Codes, many: int) -> NDArray[np.int8]:
        """The half of each row by a cut of its class along one column, as even as it can be."""
        key = places if axis.ladder is None else _branches(axis, places, local, many)
        order = np.lexsort((places, local)) if axis.ladder is None else np.lexsort((places, key, local))
        sizes = np.bincount(local, minlength=many)
        starts = np.cumsum(sizes) - sizes
        rank = np.arange(len(order)) - starts[local[order]]
        if self.relaxed and axis.ladder is None:
            first = rank < (sizes[local[order]] + 1) // 2
        else:
            # every place where the key changes is a possible cut; the one nearest the middle is taken
            keys, of = key[order], local[order]
            change = np.flatnonzero((rank > 0) & (keys != np.concatenate([[0], keys[:-1]])))
            off = np.abs(2 * rank[change] - sizes[of[change]])
            best = np.zeros(many, np.int64)
            ranked = np.lexsort((off, of[change]))
            heads = np.flatnonzero(np.concatenate([[True], np.diff(of[change][ranked]) != 0]))
            picked = change[ranked[heads]] if len(change) else change
            best[of[picked]] = rank[picked]
            first = rank < best[of]
        side = np.empty(len(order), np.int8)
        side[order] = np.where(first, 0, 1)
        return side

    def _good(self, rows: Codes, local: Codes, side: NDArray[np.int8], many: int) -> NDArray[np.bool_]:
        """Which classes may be cut so: both halves satisfy the demand."""
        half = 2 * local + side
        sizes = np.bincount(half, minlength=2 * many)
        columns: list[Cells] = []
        if self.demand.of_sensitive:
            for (codes, values), totals in zip(self.secret, self.totals, strict=True):
                present = codes[rows] >= 0
                key = half[present] * values + codes[rows][present]
                cells = cells_from(key, np.ones(len(key), np.int64), 2 * many, values)
                columns.append(Cells(cells.place, cells.value, cells.count, cells.known, totals))
            good = self.demand.satisfies(sizes, columns, self.distances)
        else:
            good = sizes >= self.demand.k
        return good[::2] & good[1::2]


def _spread(axis: _Axis, places: Codes, local: Codes, many: int) -> NDArray[np.float64]:
    """How wide each class is along a column: its share of the range, or the loss of its common branch."""
    low, high = _ends(places, local, many)
    if axis.ladder is None:
        return axis.width[high] - axis.width[low]
    level = _common(axis, low, high)
    return _loss_at(axis, level, low)


def _ends(places: Codes, local: Codes, many: int) -> tuple[Codes, Codes]:
    low = np.full(many, np.iinfo(np.int64).max)
    high = np.full(many, -1, np.int64)
    np.minimum.at(low, local, places)
    np.maximum.at(high, local, places)
    return low, high


def _common(axis: _Axis, low: Codes, high: Codes) -> Codes:
    """The lowest level at which all places from low to high are one branch, since branches lie together."""
    level = np.full(len(low), len(axis.steps) - 1)
    for each in range(len(axis.steps) - 1, -1, -1):
        level[axis.steps[each, low] == axis.steps[each, high]] = each
    return level


def _loss_at(axis: _Axis, level: Codes, place: Codes) -> NDArray[np.float64]:
    assert axis.ladder is not None
    label = np.empty(len(axis.order), np.int64)
    label[axis.order] = np.arange(len(axis.order))
    return axis.ladder.losses[level, label[place]]


def _branches(axis: _Axis, places: Codes, local: Codes, many: int) -> Codes:
    """The branch of each row one level below what its class has in common, in order."""
    low, high = _ends(places, local, many)
    below = np.maximum(_common(axis, low, high) - 1, 0)[local]
    # the first place of a branch stands for it, which keeps their order
    firsts = np.array([_first_places(step) for step in axis.steps])
    return firsts[below, places]


def _first_places(step: Codes) -> Codes:
    starts = np.concatenate([[True], step[1:] != step[:-1]])
    return np.maximum.accumulate(np.where(starts, np.arange(len(step)), 0))


def _label_rows(axis: _Axis, places: Codes, classes: Codes) -> tuple[Coded, NDArray[np.float64]]:
    """What is said of each row, and the penalty of each class."""
    many = int(classes.max()) + 1
    low, high = _ends(places, classes, many)
    label = [axis.column.labels[place] for place in np.argsort(axis.order)]
    if axis.ladder is not None:
        level = _common(axis, low, high)
        steps, labels = axis.steps, axis.ladder.labels
        texts = [labels[up][steps[up, at]] for up, at in zip(level.tolist(), low.tolist(), strict=True)]
        return _coded(axis, texts, classes), _loss_at(axis, level, low)
    if axis.is_number:
        texts = [label[a] if a == b else f"{label[a]}-{label[b]}" for a, b in zip(low, high, strict=True)]
        return _coded(axis, texts, classes), axis.width[high] - axis.width[low]
    key = np.unique(classes * len(label) + places)
    of, values = key // len(label), key % len(label)
    counts = np.bincount(of, minlength=many)
    sets = np.split(values, np.cumsum(counts)[:-1])
    texts = [_listed([label[place] for place in each]) for each in sets]
    starred = np.array([text == TOP for text in texts])
    penalty = (counts - 1) / max(len(label) - 1, 1)
    return _coded(axis, texts, classes), np.where(starred & (counts > 1), 1.0, penalty)


def _listed(labels: Sequence[Label]) -> Label:
    """Values one after the other; '*' where they are many."""
    if len(labels) == 1:
        return labels[0]
    if len(labels) > _MOST_LISTED:
        return TOP
    return "|".join("" if label is None else label for label in labels)


def _coded(axis: _Axis, texts: Sequence[Label], classes: Codes) -> Coded:
    known: dict[Label, int] = {}
    codes = np.array([known.setdefault(text, len(known)) for text in texts], np.int64)
    return Coded(axis.column.name, tuple(known), codes[classes])
