"""Many groups with the same records: one release is then as many independent ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sourdine.tables import Answers, ReleasePlan, Table
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits

PLACES = (0, 1, 2)
UPPER = 100


def table_of(values: Sequence[float] | NDArray[np.float64], groups: int) -> Table:
    """A table of so many groups that hold these values each, and two columns of keys that repeat."""
    held, size = np.asarray(values, dtype=float), len(values)
    columns = {
        "group": np.repeat(np.arange(groups), size),
        "x": np.tile(held, groups),
        "place": np.tile(np.arange(size) % 3, groups),
        "half": np.tile(np.arange(size) % 2, groups),
    }
    declared: dict[str, Any] = {
        "group": {"type": "category", "keys": list(range(groups))},
        "x": {"type": "real", "lower": 0.0, "upper": float(UPPER), "granularity": 1.0},
        "place": {"type": "category", "keys": list(PLACES)},
        "half": {"type": "category", "keys": [0, 1]},
    }
    return Table(pa.table(columns), unit="person", columns=declared, size=max(groups * size, 1))


def plan_of(table: Table, asks: Sequence[Any], epsilon: float, delta: float | None = None) -> ReleasePlan:
    """A plan with one query an ask, each at this epsilon when it is pure; with a delta it is Gaussian."""
    queries = [{"name": str(i), "ask": [ask], "by": ["group"]} for i, ask in enumerate(asks)]
    return table.plan(
        *queries,
        epsilon=epsilon * len(asks),
        delta=delta,
        quality=False,
        noise=None if delta is None else "gaussian",
    )


def answers(table: Table, plan: ReleasePlan, seed: int) -> Answers:
    """A seeded release."""
    return _carry_out(plan, table.source, bits=SeededBits(seed)).values


def truths(values: Sequence[float] | NDArray[np.float64]) -> dict[str, Any]:
    """What the exact computation on the grid gives, by kind; a list where an answer has several values."""
    held = np.rint(np.asarray(values, dtype=float))
    size = len(held)
    cells = np.zeros((3, 2), dtype=int)
    for i in range(size):
        cells[i % 3, i % 2] += 1
    found: dict[str, Any] = {
        "count": size,
        "sum": held.sum(),
        "histogram": np.histogram(held, [0, 10, 50, 100])[0],
        "contingency": np.concatenate([cells.ravel(), cells.sum(0), cells.sum(1), [size]]),
    }
    if size:
        ranked = np.sort(held)
        found |= {
            "mean": held.mean(),
            "variance": held.var(),
            "deviation": held.std(),
            "proportion": (held >= 30).mean(),
            "quantiles": [ranked[max(int(np.ceil(q * size)) - 1, 0)] for q in (0.25, 0.5, 0.75)],
        }
    return found


ASKS: dict[str, Any] = {
    "count": "count",
    "sum": {"sum": "x"},
    "mean": {"mean": "x"},
    "variance": {"variance": "x"},
    "deviation": {"deviation": "x"},
    "proportion": {"proportion": "x", "at_least": 30},
    "histogram": {"histogram": "x", "edges": [0, 10, 50, 100]},
    "contingency": {"contingency": ["place", "half"]},
    "quantiles": {"quantiles": "x", "levels": [0.25, 0.5, 0.75], "method": "tree"},
}
