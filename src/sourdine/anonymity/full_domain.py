"""The best full-domain generalisation: one level for each column, chosen together.

A node of the lattice is a level for each quasi-identifier. At a node, classes that fail the demand are left
out; where a demand compares classes with the table (t), the table is what remains, so leaving out is repeated
until everything that remains satisfies the demand. A node is good if no more is left out than is allowed.

Three facts are used, and nothing else is assumed:

1. A record costs at least its own penalty at the node, also when it is left out, since that costs 1. So the
   mean penalty of all records, a sum of one number a column, bounds the loss of a node from below.
2. Whoever is in a class of fewer than k records is in such a one at every node below, and whoever has a known
   value in a class of fewer than l distinct ones too. So these records become fewer on the way up, and where
   they are too many to be left out they are so at every node below. Those whose value is not known do not
   count here: below, they may be in a class of which nothing is known, and that is perfect.
3. If nothing may be left out, a good node has only good nodes above it, whatever is asked: mixtures of laws
   that are t-close, entropy or recursively l-diverse, or of at most alpha, are so too (Li et al. 2007;
   Machanavajjhala et al. 2007). If something may be left out this fails: a class that was left out below may
   spoil the one it is merged into. Then only fact 2 prunes.

The search takes the candidate with the least bound, climbs from it, and halves its way to where fact 2 or 3
changes. Everything below the last bad node is struck off at once. It ends when no bound is below the best
loss found, which is then the least there is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity.diversity import ValueDistance
from sourdine.anonymity.equivalence import Cells, cells_from, weighed
from sourdine.anonymity.hierarchy import Ladder
from sourdine.anonymity.records import Codes, Records, number_tuples
from sourdine.anonymity.requirement import Demand
from sourdine.core.errors import InvalidParameter

Node = tuple[int, ...]
Watch = Callable[[float], None]
MOST_CANDIDATES = 4_000_000
_WORTH_PAIRS = 20_000  # nodes from which it pays to look at pairs of columns first


@dataclass(frozen=True, kw_only=True)
class FoundNode:
    """A node, what is left out there, and its loss. `proven` says that no node has a smaller loss."""

    node: Node
    suppressed: int
    ncp: float
    mask: NDArray[np.bool_] = field(repr=False)  # by distinct record
    evaluated: int
    nodes: int
    proven: bool


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What came out at a node."""

    enough: bool  # whether fact 2 (or 3) allows the node
    ncp: float = math.inf
    suppressed: int = 0
    mask: NDArray[np.bool_] | None = None  # by tuple of quasi-identifiers


class Lattice:
    """All generalisations of some records, and what comes out at each."""

    def __init__(
        self,
        records: Records,
        ladders: Sequence[Ladder],
        demand: Demand,
        distances: Sequence[ValueDistance],
        suppress: Fraction,
    ) -> None:
        self.ladders, self.demand, self.distances = ladders, demand, distances
        columns = records.quasi
        self.tuple_of, many = number_tuples([c.codes for c in columns], [len(c.labels) for c in columns])
        first = np.empty(many, np.int64)
        first[self.tuple_of] = np.arange(len(self.tuple_of))
        self.counts = weighed(self.tuple_of, records.counts, many)
        self.size = records.size
        self.allowed = math.floor(suppress * self.size)
        codes = [column.codes[first] for column in columns]
        self.codes = [
            [step[places] for step in ladder.codes] for ladder, places in zip(ladders, codes, strict=True)
        ]
        self.spans = [[len(step) for step in ladder.labels] for ladder in ladders]
        share = 1 / len(columns)
        self.losses = [
            [share * step[places] for step in ladder.losses]
            for ladder, places in zip(ladders, codes, strict=True)
        ]
        weights = self.counts / self.size
        self.base = [np.array([step @ weights for step in steps]) for steps in self.losses]
        self.cells = [
            _Pieces.of(self.tuple_of, c.codes, len(c.labels), records.counts) for c in records.sensitive
        ]
        self.evaluated = 0

    @property
    def heights(self) -> list[int]:
        """The highest level of each column."""
        return [ladder.height for ladder in self.ladders]

    def bound(self, node: Sequence[int]) -> float:
        """A loss that no outcome at the node is below: fact 1."""
        return float(sum(base[level] for base, level in zip(self.base, node, strict=True)))

    def failing(self, node: Sequence[int]) -> int:
        """How many records fail at least, at a node and at every one below it: fact 2."""
        ids, many = self._classes(node)
        sizes = weighed(ids, self.counts, many)
        return int(self.demand.beyond_help(sizes, self._cells(ids, many)).sum())

    def evaluate(self, node: Sequence[int], best: float = math.inf) -> _Outcome:
        """What comes out at a node; nothing more is told of one that cannot be better than the best."""
        self.evaluated += 1
        ids, many = self._classes(node)
        sizes = weighed(ids, self.counts, many)
        good = sizes >= self.demand.k
        if int(sizes[~good].sum()) > self.allowed:
            return _Outcome(False)
        if self.demand.of_sensitive:
            columns = self._cells(ids, many)
            if int(self.demand.beyond_help(sizes, columns).sum()) > self.allowed:
                return _Outcome(False)
            good = self.demand.may_satisfy(sizes, columns)
            if not self.demand.keeps_growing:
                good = self._remaining(sizes, columns)
        suppressed = int(sizes[~good].sum())
        if suppressed > self.allowed or suppressed == self.size:
            return _Outcome(self.allowed > 0)
        mask = good[ids]
        ncp = self.bound(node)
        if ncp < best and suppressed:
            left = np.flatnonzero(~mask)
            penalty = sum(loss[level][left] for loss, level in zip(self.losses, node, strict=True))
            ncp += float((1 - penalty) @ self.counts[left]) / self.size
        return _Outcome(True, ncp, suppressed, mask)

    def _remaining(self, sizes: Codes, columns: Sequence[Cells]) -> NDArray[np.bool_]:
        """The classes that satisfy the demand among themselves: those that fail go, until none does."""
        mask = sizes > 0
        while mask.any():
            good = mask & self.demand.satisfies(sizes, columns, self.distances)
            if np.array_equal(good, mask):
                break
            mask = good
            columns = [cells.only(mask) for cells in columns]
        return mask

    def _classes(self, node: Sequence[int]) -> tuple[Codes, int]:
        picked = [codes[level] for codes, level in zip(self.codes, node, strict=True)]
        return number_tuples(picked, [spans[level] for spans, level in zip(self.spans, node, strict=True)])

    def _cells(self, ids: Codes, many: int) -> list[Cells]:
        if not self.demand.of_sensitive:
            return []
        return [each.cells(ids, many) for each in self.cells]


@dataclass(frozen=True, eq=False)
class _Pieces:
    """How often each sensitive value occurs with each tuple of quasi-identifiers."""

    place: Codes
    value: Codes
    count: Codes
    values: int

    @classmethod
    def of(cls, tuple_of: Codes, codes: Codes, values: int, counts: Codes) -> "_Pieces":
        present = codes >= 0
        key = (tuple_of * values + codes)[present]
        keys, ids = np.unique(key, return_inverse=True)
        return cls(keys // values, keys % values, weighed(ids, counts[present], len(keys)), values)

    def cells(self, ids: Codes, many: int) -> Cells:
        return cells_from(ids[self.place] * self.values + self.value, self.count, many, self.values)


def search(lattice: Lattice, watch: Watch | None = None) -> FoundNode:
    """The good node of the least loss, or a refusal where none is good.

    Where the candidates are too many to list, those of the least bound are searched, and what is found is not
    proven to be the best.
    """
    best = _descend(lattice)
    nodes, bounds, whole = _candidates(lattice, best[1].ncp)
    best = _sweep(lattice, nodes, bounds, best, watch)
    node, outcome = best
    if outcome.mask is None:
        raise InvalidParameter(
            f"With at most {lattice.allowed:,} of the {lattice.size:,} records left out, "
            f"{'no' if whole else 'none of the likeliest'} levels satisfy {lattice.demand.words}. Ask for "
            "less, or allow more to be left out."
        )
    return FoundNode(
        node=node,
        suppressed=outcome.suppressed,
        ncp=outcome.ncp,
        mask=outcome.mask[lattice.tuple_of],
        evaluated=lattice.evaluated,
        nodes=math.prod(height + 1 for height in lattice.heights),
        proven=whole,
    )


def _descend(lattice: Lattice) -> tuple[Node, _Outcome]:
    """A good node by going down from the top, each time to the neighbour of the least loss."""
    node = tuple(lattice.heights)
    best = node, lattice.evaluate(node)
    while any(node):
        below = [(*node[:i], node[i] - 1, *node[i + 1 :]) for i in range(len(node)) if node[i]]
        node, outcome = min(((each, lattice.evaluate(each)) for each in below), key=lambda pair: pair[1].ncp)
        if math.isinf(outcome.ncp):
            break
        best = min(best, (node, outcome), key=lambda pair: pair[1].ncp)
    return best


def _candidates(lattice: Lattice, best: float) -> tuple[NDArray[np.uint8], NDArray[np.float64], bool]:
    """The nodes whose bound is below the best loss and whose pairs of columns do not rule them out already.

    A pair of columns, with all others at the top, is a node above: fact 2 applies. Rows are columns of the
    table, so that a comparison runs along memory.
    """
    heights = lattice.heights
    fits = _pairs(lattice) if math.prod(height + 1 for height in heights) > _WORTH_PAIRS else {}
    nodes = np.zeros((0, 1), np.uint8)
    bounds, whole = np.zeros(1), True
    for place, height in enumerate(heights):
        levels = np.arange(height + 1, dtype=np.uint8)
        many = nodes.shape[1]
        nodes = np.concatenate([np.repeat(nodes, height + 1, 1), np.tile(levels, many)[None]])
        bounds = np.repeat(bounds, height + 1) + np.tile(lattice.base[place], many)
        alive = bounds < best
        for other in range(place if fits else 0):
            alive &= fits[other, place][nodes[other], nodes[place]]
        nodes, bounds = nodes[:, alive], bounds[alive]
        if len(bounds) > MOST_CANDIDATES:
            least = np.argpartition(bounds, MOST_CANDIDATES)[:MOST_CANDIDATES]
            nodes, bounds, whole = nodes[:, least], bounds[least], False
    order = np.argsort(bounds, kind="stable")
    return np.ascontiguousarray(nodes[:, order]), bounds[order], whole


def _pairs(lattice: Lattice) -> dict[tuple[int, int], NDArray[np.bool_]]:
    """For each two columns, which two levels leave few enough records to leave out."""
    heights = lattice.heights
    pairs: dict[tuple[int, int], NDArray[np.bool_]] = {}
    for one, two in combinations(range(len(heights)), 2):
        fits = np.ones((heights[one] + 1, heights[two] + 1), np.bool_)
        for a in range(heights[one], -1, -1):
            for b in range(heights[two], -1, -1):
                above = fits[min(a + 1, heights[one]), b] and fits[a, min(b + 1, heights[two])]
                if above and (a, b) != (heights[one], heights[two]):
                    node = list(heights)
                    node[one], node[two] = a, b
                    above = lattice.failing(node) <= lattice.allowed
                fits[a, b] = above
        pairs[one, two] = fits
    return pairs


def _sweep(
    lattice: Lattice,
    nodes: NDArray[np.uint8],
    bounds: NDArray[np.float64],
    best: tuple[Node, _Outcome],
    watch: Watch | None,
) -> tuple[Node, _Outcome]:
    """Take candidates by their bounds, and strike off what is below a bad one."""
    alive, done, many = np.ones(len(bounds), np.bool_), set[Node](), len(bounds)
    start = 0
    while alive[start:].any():
        start += int(alive[start:].argmax())
        if bounds[start] >= best[1].ncp:
            break
        alive[start] = False
        chain = _climb(lattice, nodes[:, start])
        if chain[0] in done:
            continue
        low, high = 0, len(chain)  # the first node of the chain that is allowed
        while low < high:
            middle = (low + high) // 2
            node = chain[middle]
            if node in done:
                high = middle
                continue
            outcome = lattice.evaluate(node, best[1].ncp)
            if outcome.enough:
                high = middle
                done.add(node)
            else:
                low = middle + 1
            if outcome.ncp < best[1].ncp:
                best = node, outcome
        if low:
            alive &= ~_below(nodes, chain[low - 1])
            left = np.count_nonzero(alive)
            if watch is not None:
                watch(1 - left / many)
            if 2 * left < len(alive):
                nodes, bounds, alive, start = nodes[:, alive], bounds[alive], alive[alive], 0
    return best


def _climb(lattice: Lattice, node: NDArray[np.uint8]) -> list[Node]:
    """Nodes from a candidate to the top, each a level above the one before, the cheapest level first.

    It goes on where bounds are too large: the higher a bad node is, the more is below it.
    """
    now = [int(level) for level in node]
    chain = [tuple(now)]
    while now != lattice.heights:
        steps = [
            (float(base[level + 1] - base[level]), place)
            for place, (base, level) in enumerate(zip(lattice.base, now, strict=True))
            if level + 1 < len(base)
        ]
        now[min(steps)[1]] += 1
        chain.append(tuple(now))
    return chain


def _below(nodes: NDArray[np.uint8], node: Node) -> NDArray[np.bool_]:
    below: NDArray[Any] = np.ones(nodes.shape[1], np.bool_)
    for row, level in zip(nodes, node, strict=True):
        below &= row <= level
    return below
