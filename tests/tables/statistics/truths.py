"""What every statistic is, by its definition, computed once more from plain records: none is listed without.

A function takes the records of one group and the statistic, and gives its value for each key that it adds.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from sourdine.frames.expressions import TruthKind
from tests.frames.expressions.reference import value_of

Records = Sequence[Mapping[str, Any]]
Truth = Callable[[Records, Any], dict[tuple[Any, ...], float]]
KEYS: dict[str, list[Any]] = {"site": ["n", "s", "e"], "well": [False, True]}


def _holds(record: Mapping[str, Any], of: Any) -> bool:
    found = value_of(of, record, {name: TruthKind() for name in record})
    assert isinstance(found, bool)
    return found


def _bins(records: Records, asked: Any) -> dict[tuple[Any, ...], float]:
    """Each bin holds its lower edge, and the last one both."""
    values = np.array([record[asked.column] for record in records])
    counts, _ = np.histogram(values, bins=asked.edges)
    return {(name,): float(count) for name, count in zip(asked.bins, counts, strict=True)}


def _cells(records: Records, asked: Any) -> dict[tuple[Any, ...], float]:
    """Every cell, and every sum over some of the columns that is told."""
    found = {}
    for key in product(*([*KEYS[name], "all"] for name in asked.columns)):
        kept = tuple(name for name, part in zip(asked.columns, key, strict=True) if part != "all")
        if not asked.consistent or kept in (asked.columns, *asked.summed):
            pairs = [(name, part) for name, part in zip(asked.columns, key, strict=True) if part != "all"]
            found[key] = float(sum(all(each[name] == part for name, part in pairs) for each in records))
    return found


def _levels(records: Records, asked: Any) -> dict[tuple[Any, ...], float]:
    found: Counter[tuple[Any, ...]] = Counter()
    paths = {row[-1]: row for row in asked.rows}
    for path in paths.values():
        for deep in range(len(path) + 1):
            found[(*path[:deep], *["all"] * (len(path) - deep))] += 0
    for record in records:
        path = paths[record[asked.column]]
        for deep in range(len(path) + 1):
            found[(*path[:deep], *["all"] * (len(path) - deep))] += 1
    return {key: float(count) for key, count in found.items()}


def _quantiles(records: Records, asked: Any) -> dict[tuple[Any, ...], float]:
    values = np.sort([record[asked.column] for record in records])
    return {(level,): float(values[int(np.ceil(level * len(values))) - 1]) for level in asked.levels}


def _order(records: Records, asked: Any) -> dict[tuple[Any, ...], float]:
    counts = Counter(record[asked.column] for record in records).most_common(asked.k)
    return {(key,): float(rank) for rank, (key, _) in enumerate(counts, start=1)}


def _alone(of: Callable[[Any], float]) -> Truth:
    """One number, of the values of a column."""
    return lambda records, asked: {(): float(of(np.array([record[asked.column] for record in records])))}


def _line(records: Records, asked: Any) -> dict[tuple[Any, ...], float]:
    """By NumPy's polynomials."""
    slope, intercept = np.polyfit(_of(records, asked.other), _of(records, asked.column), 1)
    return {("intercept",): float(intercept), ("slope",): float(slope)}


def _of(records: Records, name: str) -> list[float]:
    return [float(record[name]) for record in records]


def _both(compute: Callable[[list[float], list[float]], Any], other: str) -> Truth:
    return lambda records, asked: {
        (): float(compute(_of(records, asked.column), _of(records, getattr(asked, other))))
    }


TRUTHS: dict[str, Truth] = {
    "covariance": _both(lambda x, y: np.cov(x, y, bias=True)[0, 1], "other"),
    "correlation": _both(lambda x, y: np.corrcoef(x, y)[0, 1], "other"),
    "regression": _line,
    "weighted_mean": _both(lambda x, w: np.average(x, weights=w), "weight"),
    "weighted_sum": _both(np.dot, "weight"),
    "count": lambda records, _: {(): float(len(records))},
    "units": lambda records, _: {(): float(len({record["who"] for record in records}))},
    "sum": _alone(np.sum),
    "mean": _alone(np.mean),
    "variance": _alone(np.var),
    "deviation": _alone(np.std),
    "proportion": lambda records, asked: {(): float(np.mean([_holds(each, asked.of) for each in records]))},
    "histogram": _bins,
    "contingency": _cells,
    "quantiles": _quantiles,
    "top": _order,
    "hierarchy": _levels,
}
