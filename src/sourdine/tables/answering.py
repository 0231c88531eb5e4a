"""From the noisy numbers of a plan to its answers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sourdine.core.bits import Bits
from sourdine.frames.counting import Keys
from sourdine.frames.expression import span
from sourdine.frames.ranks import RankSource
from sourdine.frames.schema import Number
from sourdine.mechanisms import TopK
from sourdine.tables.aggregate import (
    Aggregate,
    Contingency,
    Count,
    Deviation,
    Histogram,
    Mean,
    Proportion,
    Quantiles,
    Sum,
    Top,
    Variance,
)
from sourdine.tables.answer import ALL, Answer
from sourdine.tables.consistent.structure import agreed, keys_of
from sourdine.tables.hierarchy import Hierarchy
from sourdine.tables.measurement import Kind
from sourdine.tables.plan import Line, Plan
from sourdine.tables.quantiles.method import QuantileMethod
from sourdine.tables.reading import Estimate, Noisy, NoisyMoments
from sourdine.tables.tree import read_quantiles


def answer_of(each: Aggregate, line: Line, plan: Plan, noisy: Noisy) -> Answer:
    """One aggregate read off the numbers of its measurement."""
    measured = line.measurement
    columns, keys = measured.query.by, measured.keys(plan.schema)
    if measured.kind is Kind.MARGINS:
        return _agreed(each, line, plan, noisy)
    if isinstance(each, Contingency):
        columns = (*columns, *each.columns)
        estimate, keys = _with_margins(noisy, keys, [len(plan.schema.keys(name)) for name in each.columns])
    elif isinstance(each, Histogram):
        columns, estimate = (*columns, each.column), _counted(noisy)
        keys = tuple((*key[:-1], each.bins[int(key[-1])]) for key in keys)
    elif measured.kind in (Kind.RECORDS, Kind.UNITS):
        estimate = _counted(noisy)
    elif measured.kind is Kind.TOTAL:
        estimate = noisy.linear([1.0]).scaled(float(measured.number(plan.schema).step))
    else:
        estimate = _off_moments(each, line, plan, noisy)
    whole = measured.kind in (Kind.RECORDS, Kind.UNITS, Kind.BINS, Kind.CELLS)
    return Answer(
        chosen=measured.open,
        query=measured.query.name,
        statistic=each.label,
        kind=each.kind,
        columns=columns,
        keys=keys,
        estimate=_published(estimate, whole, span_of(each, plan)),
        measure=plan.measure(each),
        whole=whole,
        span=span_of(each, plan),
    )


def _agreed(each: Aggregate, line: Line, plan: Plan, noisy: Noisy) -> Answer:
    """A table and its sums, as whole numbers that add up."""
    assert isinstance(each, Contingency | Hierarchy)
    measured, held = line.measurement, line.measurement.structure(plan.schema)
    outer = [key[: len(measured.query.by)] for key in measured.keys(plan.schema)[:: held.cells]]
    inner = keys_of(each, plan.schema)
    return Answer(
        query=measured.query.name,
        statistic=each.label,
        kind=each.kind,
        columns=(*measured.query.by, *(each.levels if isinstance(each, Hierarchy) else each.columns)),
        keys=tuple((*key, *part) for key in outer for part in inner),
        estimate=agreed(held, noisy),
        measure=plan.measure(each),
        whole=True,
        chosen=measured.open,
    )


def quantiles_of(
    each: Aggregate, line: Line, plan: Plan, groups: Mapping[Keys, RankSource], bits: Bits
) -> Answer:
    """The quantiles of each group: by walking down its noisy tree, or as the line's method chooses them."""
    assert isinstance(each, Quantiles)
    if isinstance(line.mechanism, QuantileMethod):
        places = [_chosen(line.mechanism, values, bits) for values in groups.values()]
    else:
        tree = line.measurement.tree(plan.schema)
        places = [
            read_quantiles(
                values, tree, mechanism=line.mechanism, at=each.at, confidence=plan.confidence, bits=bits
            )
            for values in groups.values()
        ]
    column = line.measurement.number(plan.schema)
    ends = ("value", "lower", "upper")
    joined = (np.concatenate([np.zeros(0), *(getattr(part, end) for part in places)]) for end in ends)
    on_grid = Estimate(*(_steps(part, column) for part in joined))
    return Answer(
        chosen=line.measurement.open,
        query=line.measurement.query.name,
        statistic=each.label,
        kind=each.kind,
        columns=(*line.measurement.query.by, "quantile"),
        keys=tuple((*key, level) for key in line.measurement.keys(plan.schema) for level in each.at),
        estimate=_published(on_grid, False, span_of(each, plan)),
        measure=plan.measure(each),
        span=span_of(each, plan),
    )


def ranked(each: Aggregate, line: Line, plan: Plan, scores: NDArray[np.float64], bits: Bits) -> Answer:
    """The top keys of each group, by a row of scores for each: a key's value is its rank.

    Keys that were chosen privately may be fewer than are asked for. Then the places of those that are missing
    are filled by candidates that nobody has, which come last and are left out.
    """
    measured, mechanism = line.measurement, line.mechanism
    assert isinstance(mechanism, TopK)
    assert isinstance(each, Top)
    groups, size = scores.shape
    if measured.open:
        filled = np.full((groups, max(size, each.k)), -np.inf)
        filled[:, :size] = scores
        scores, mechanism = filled, replace(mechanism, candidates=filled.shape[1])
    chosen = mechanism.sample(scores, bits)
    keys = measured.keys(plan.schema)
    found = [
        (keys[group * size + place], rank + 1)
        for group, places in enumerate(chosen.tolist())
        for rank, place in enumerate(places)
        if place < size
    ]
    unknown = np.full(len(found), np.nan)
    return Answer(
        query=measured.query.name,
        statistic=each.label,
        kind=each.kind,
        columns=(*measured.query.by, each.column),
        keys=tuple(key for key, _ in found),
        estimate=Estimate(np.array([float(rank) for _, rank in found]), unknown, unknown),
        measure=plan.measure(each),
        whole=True,
        chosen=measured.open,
    )


def _chosen(mechanism: QuantileMethod, values: RankSource, bits: Bits) -> Estimate:
    """Places of quantiles, without intervals."""
    found = mechanism.sample(values, bits).astype(float)
    return Estimate(found, np.full(found.shape, np.nan), np.full(found.shape, np.nan))


def _steps(places: np.ndarray, column: Number) -> np.ndarray:
    """Places as values of the column, each the nearest float; what is not known stays so."""
    low, step = span(column)[0], column.step
    exact = [math.nan if math.isnan(p) else float((low + int(p)) * step) for p in places.tolist()]
    return np.array(exact)


def span_of(each: Aggregate, plan: Plan) -> tuple[float, float] | None:
    """The least and the most that an aggregate can be, whatever the table holds; None if not known."""
    if isinstance(each, Proportion):
        return 0.0, 1.0
    if not isinstance(each, Mean | Quantiles | Variance | Deviation):
        return None
    column = plan.schema.number(each.kind, each.column)
    step, (low, high) = float(column.step), span(column)
    if isinstance(each, Mean | Quantiles):
        return max(low * step, float(column.lower)), min(high * step, float(column.upper))
    half = (high - low) * step / 2
    return 0.0, half if isinstance(each, Deviation) else half**2


def _published(found: Estimate, whole: bool, span: tuple[float, float] | None) -> Estimate:
    """Numbers as they are published: rounded once, and within what is possible."""
    rounded = found.rounded(whole)
    return rounded if span is None else rounded.within(*span)


def _counted(noisy: Noisy) -> Estimate:
    """A count with its noise, even below 0: to cut it or its interval off would shift sums."""
    return noisy.linear([1.0])


def _off_moments(each: Aggregate, line: Line, plan: Plan, noisy: Noisy) -> Estimate:
    """What the sums of Bernstein polynomials tell of a column."""
    measured = line.measurement
    width = measured.width(plan.schema)
    moments = NoisyMoments(noisy=noisy, width=width, degree=measured.degree)
    if isinstance(each, Proportion):
        return moments.mean()
    if isinstance(each, Count):
        return moments.count()
    column = measured.number(plan.schema)
    step, low = float(column.step), span(column)[0]
    if isinstance(each, Sum):
        return moments.total(low).scaled(step)
    if isinstance(each, Mean):
        return moments.mean().scaled(width * step, low * step)
    if isinstance(each, Variance):
        return moments.variance().scaled((width * step) ** 2)
    return moments.deviation().scaled(width * step)


def _with_margins(
    noisy: Noisy, keys: tuple[Keys, ...], sizes: Sequence[int]
) -> tuple[Estimate, tuple[Keys, ...]]:
    """The cells, then the sums over each set of columns, whose intervals allow for all their noises."""
    if not keys:
        return _counted(noisy), ()
    cells, shape = noisy.numbers[:, 0], (-1, *sizes)
    named = np.empty(len(keys), dtype=object)
    named[:] = keys
    parts, names = [_counted(noisy)], list(keys)
    outer = len(keys[0]) - len(sizes)
    for gone in (set_ for many in range(1, len(sizes) + 1) for set_ in combinations(range(len(sizes)), many)):
        value = cells.reshape(shape).sum(axis=tuple(axis + 1 for axis in gone)).ravel()
        reach = noisy.reach(np.ones(int(np.prod([sizes[axis] for axis in gone]))))
        parts.append(Estimate(value, value - reach, value + reach))
        first = tuple(0 if axis in gone else slice(None) for axis in range(len(sizes)))
        places = [outer + axis for axis in gone]
        for key in named.reshape(shape)[(slice(None), *first)].ravel():
            names.append(tuple(ALL if place in places else part for place, part in enumerate(key)))
    joined = [np.concatenate([getattr(part, end) for part in parts]) for end in ("value", "lower", "upper")]
    return Estimate(*joined), tuple(names)
