"""What is measured of one part of the records: counts of columns, a choice of pairs, counts of those.

First come the counts of each column by itself. Cells that they tell nothing about, below five deviations of
their noise, are then one cell together, so that the tables of pairs have few empty ones.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits
from sourdine.mechanisms import Exponential, Gaussian
from sourdine.tables.synthetic.agreement import mean_total, on_simplex
from sourdine.tables.synthetic.pairs import Codes, Counts, Pair, count_cells, pair_table, pair_tables
from sourdine.tables.synthetic.tree import all_pairs, choose_tree, score

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_MOST = 2.0**40
_TELLING = 5  # deviations of noise from which on a cell is kept by itself


@dataclass(frozen=True, kw_only=True)
class SynthesisNoise:
    """The mechanisms of a synthesis: for each column, for the choice of an edge, and for pairs."""

    columns: tuple[Gaussian, ...]
    edges: Exponential
    pairs: Gaussian


@dataclass(frozen=True, kw_only=True)
class PartMeasurement:
    """Noisy counts of a part: of each column, and of the pairs that were chosen, in cells that were joined.

    `cells` gives for each column the place of each of its cells among those of the tables.
    """

    columns: tuple[Counts, ...]
    cells: tuple[Places, ...]
    edges: tuple[Pair, ...]
    tables: tuple[Counts, ...]


def measure_part(
    codes: Sequence[Codes],
    sizes: Sequence[int],
    noise: SynthesisNoise,
    bits: Bits,
    *,
    fixed: Sequence[Pair] = (),
    whole: Collection[int] = (),
) -> PartMeasurement:
    """Noisy counts of a part of the records, given by the cells they lie in; what is chosen is private too.

    A record counts once in each column and once in each table. Edges that are `fixed` need no choice, and no
    cells of columns that are `whole` are joined. Whatever the codes are, nothing is raised.
    """
    singles = tuple(
        of_column.sample(count_cells([code], [size]), bits)
        for of_column, code, size in zip(noise.columns, codes, sizes, strict=True)
    )
    cells = tuple(
        np.arange(sizes[column]) if column in whole else join_cells(single, float(of_column.sigma))
        for column, (of_column, single) in enumerate(zip(noise.columns, singles, strict=True))
    )
    widths = [int(places.max()) + 1 for places in cells]
    records = [narrow(places)[code] for places, code in zip(cells, codes, strict=True)]
    edges = tuple(fixed)
    if len(codes) - 1 > len(fixed):
        scores = _scores(records, widths, _independent(singles, cells, noise))
        edges = choose_tree(scores, len(codes), fixed, noise.edges, bits)
    tables = tuple(noise.pairs.sample(pair_table(records, widths, edge), bits) for edge in edges)
    return PartMeasurement(columns=singles, cells=cells, edges=edges, tables=tables)


def narrow(places: Places) -> Codes:
    """Places in few bytes, for the records that have them."""
    return places.astype(
        np.uint8 if places.max() < 1 << 8 else np.uint16 if places.max() < 1 << 16 else np.int32
    )


def join_cells(noisy: Counts, sigma: float) -> Places:
    """The place of each cell once those that noise hides are one, the last, if they are several.

    >>> join_cells(np.array([90, 2, 70, -4]), 10.0).tolist()
    [0, 2, 1, 2]
    """
    hidden = noisy < _TELLING * sigma
    if hidden.sum() < 2:
        return np.arange(len(noisy))
    return np.where(hidden, (~hidden).sum(), np.cumsum(~hidden) - 1)


def _independent(singles: Sequence[Counts], cells: Sequence[Places], noise: SynthesisNoise) -> list[Floats]:
    """The margins that scores are compared with: of noisy counts alone."""
    variances = [float(of_column.sigma) ** 2 for of_column in noise.columns]
    sums = [
        (float(each.sum()), variance * len(each)) for each, variance in zip(singles, variances, strict=True)
    ]
    total = min(mean_total(sums), _MOST)  # so that scores are whole numbers that floats hold
    margins = []
    for single, variance, places in zip(singles, variances, cells, strict=True):
        alone = on_simplex(single.astype(np.float64), np.full(len(single), variance), total)
        margins.append(np.bincount(places, alone).astype(np.float64))
    return margins


def _scores(records: Sequence[Codes], widths: Sequence[int], margins: Sequence[Floats]) -> list[int]:
    """A score for each pair of columns."""
    total = max(float(margins[0].sum()), 1.0)
    scores = {
        (one, other): score(table, np.outer(margins[one], margins[other]) / total)
        for (one, other), table in pair_tables(records, widths)
    }
    return [scores[pair] for pair in all_pairs(len(records))]
