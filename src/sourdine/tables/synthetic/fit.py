"""A tree of tables that agree, from noisy ones: measured for it, or published before."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.tables.synthetic.agreement import mean_total, on_simplex, weighted_mean, with_margins
from sourdine.tables.synthetic.measure import Pair, PartMeasurement, SynthesisNoise

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Allowed = Mapping[Pair, NDArray[np.bool_]]
# Noise alone passes 3 deviations once in 741 times, so that rows lack values only where records do
# (docs/guarantees/synthetic.md, "What is missing").
_SUPPORTED = 3.0


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTable:
    """Noisy counts by one or two columns, and the variance of each; infinite where nothing is known.

    `joined` says that its cells are those of the tree, where rare ones are one.
    """

    columns: tuple[int, ...]
    values: Floats
    variances: Floats
    joined: bool = False

    def margin(self, column: int) -> tuple[Floats, Floats]:
        """The sums by one of its columns, and their variances."""
        if len(self.columns) == 1:
            return self.values, self.variances
        axis = 1 - self.columns.index(column)
        return self.values.sum(axis), self.variances.sum(axis)

    def by(self, cells: Sequence[Places]) -> "NoisyTable":
        """The same by joined cells."""
        if self.joined:
            return self
        values, variances = (
            _join(each, [cells[column] for column in self.columns]) for each in (self.values, self.variances)
        )
        return NoisyTable(columns=self.columns, values=values, variances=variances, joined=True)


@dataclass(frozen=True, kw_only=True)
class PartModel:
    """A tree of tables that agree: how many records there are, by column and by pair.

    `margins` are by the declared cells, `tables` by joined ones.
    """

    total: float
    margins: tuple[Floats, ...]
    cells: tuple[Places, ...]
    edges: tuple[Pair, ...]
    tables: tuple[Floats, ...]

    def joined(self, column: int) -> Floats:
        """The margin of a column by joined cells."""
        return _join(self.margins[column], [self.cells[column]])


def noisy_tables(measured: PartMeasurement, noise: SynthesisNoise) -> tuple[NoisyTable, ...]:
    """What was measured, with its variances."""
    together = float(noise.pairs.sigma) ** 2
    singles = [
        NoisyTable(
            columns=(column,),
            values=counts.astype(np.float64),
            variances=np.full(counts.shape, float(alone.sigma) ** 2),
        )
        for column, (alone, counts) in enumerate(zip(noise.columns, measured.columns, strict=True))
    ]
    pairs = [
        NoisyTable(
            columns=edge,
            values=counts.astype(np.float64),
            variances=np.full(counts.shape, together),
            joined=True,
        )
        for edge, counts in zip(measured.edges, measured.tables, strict=True)
    ]
    return (*singles, *pairs)


def fit_tree(
    tables: Sequence[NoisyTable],
    cells: Sequence[Places],
    edges: Sequence[Pair],
    allowed: Allowed,
    *,
    total: float | None = None,
    missing: Collection[int] = (),
) -> PartModel:
    """The tree that is nearest to noisy tables: each number a mean by variances, then all made to agree.

    Every column has a table by its declared cells, and every edge has one. The `total` may be known. The last
    cell of a column in `missing` is for what is missing: it holds nobody unless the noisy counts support it.
    """
    if total is None:
        total = estimate_total(tables)[0]
    joined, margins = [], []
    for column, places in enumerate(cells):
        about = [each for each in tables if column in each.columns]
        fine, spread = _mean([each.margin(column) for each in about if not each.joined])
        coarse = [(_join(fine, [places]), _join(spread, [places]))]
        kept = np.ones(len(fine), np.bool_)
        if column in missing and len(fine) > 1:  # whoever is in no other cell is in the only one
            kept[-1] = is_supported(float(fine[-1]), float(spread[-1]))
        mean, variance = _mean([*coarse, *(each.margin(column) for each in about if each.joined)])
        margin, there = np.zeros(len(mean)), np.bincount(places[kept], minlength=len(mean)) > 0
        margin[there] = on_simplex(mean[there], variance[there], total)
        joined.append(margin)
        margins.append(_spread(margin, fine, spread, places, kept))
    fitted = []
    for edge in edges:
        about = [each.by(cells) for each in tables if each.columns == edge]
        table, _ = _mean([(each.values, each.variances) for each in about])
        fitted.append(with_margins(table, joined[edge[0]], joined[edge[1]], allowed.get(edge)))
    return PartModel(
        total=total, margins=tuple(margins), cells=tuple(cells), edges=tuple(edges), tables=tuple(fitted)
    )


def estimate_total(tables: Sequence[NoisyTable]) -> tuple[float, float]:
    """Return about how many records there are, and the variance of that before it is cut off at 0."""
    sums = [(float(each.values.sum()), float(each.variances.sum())) for each in tables]
    return mean_total(sums), 1 / sum(1 / variance for _, variance in sums)


def is_supported(count: float, variance: float) -> bool:
    """Return whether a noisy count is more than noise alone explains.

    >>> is_supported(29.0, 100.0), is_supported(31.0, 100.0)
    (False, True)
    """
    return count >= _SUPPORTED * math.sqrt(variance)


def _mean(estimates: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    return weighted_mean([value for value, _ in estimates], [variance for _, variance in estimates])


def _join(values: Floats, places: Sequence[Places]) -> Floats:
    """Numbers by declared cells, by joined ones."""
    joined = np.zeros([int(each.max()) + 1 for each in places])
    np.add.at(joined, np.ix_(*places), values)
    return joined


def _spread(
    joined: Floats, fine: Floats, variances: Floats, places: Places, kept: NDArray[np.bool_]
) -> Floats:
    """A margin by declared cells: what joined cells hold goes to those kept, by their noisy counts."""
    margin = np.where(kept, joined[places], 0.0)
    for place in np.flatnonzero(np.bincount(places[kept]) > 1):
        among = (places == place) & kept
        margin[among] = on_simplex(fine[among], variances[among], float(joined[place]))
    return np.asarray(margin, np.float64)
