"""Bits, types and layouts of answers: none of them may tell what the values of answers do not.

A mechanism's law is about values. A bit below its grid, the sign of a zero, or a type that depends on the
input lies outside the law and reaches whoever gets the answer. Nothing here is left to chance: an honest
mechanism is never accused.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.mechanism import Example, Mechanism
from sourdine.mechanisms.bounded import IntervalNoise


class Inspection:
    """Layouts of all answers to one value, and how many of them lie off the grid."""

    def __init__(self, declared: Mechanism) -> None:
        self._declared = declared
        self.layouts: Counter[tuple[object, ...]] = Counter()
        self.off_grid = 0

    def of(self, example: Example) -> Example:
        """Return the example with every answer inspected before it is coded."""

        def inspected(answers: NDArray[Any]) -> NDArray[np.int64]:
            self.layouts[_layout(answers)] += 1
            self.off_grid += _off_grid(self._declared, answers)
            return example.code(answers)

        return replace(example, code=inspected)


def representation_fault(one: Inspection, other: Inspection) -> str:
    """Name what tells neighbours apart beside the values of answers; empty if nothing does.

    Both inspections must have seen as many answers, asked for in the same calls.
    """
    if one.off_grid or other.off_grid:
        return f"{one.off_grid + other.off_grid:,} answers off the declared grid"
    return "" if one.layouts == other.layouts else "type, shape or strides depend on the value"


def _layout(answers: Any) -> tuple[object, ...]:
    if not isinstance(answers, np.ndarray):
        return (type(answers),)
    items = frozenset(map(type, answers.flat)) if answers.dtype == np.object_ else None
    # dtype.str has the order of bytes
    flags = answers.flags
    return (
        type(answers),
        answers.dtype.str,
        answers.shape,
        answers.strides,
        flags.writeable,
        flags.aligned,
        items,
    )


def _off_grid(declared: Mechanism, answers: Any) -> int:
    """Count answers that are no points of the grid, or not with the bits that the point has."""
    if not isinstance(answers, np.ndarray):
        return 0  # the layout tells
    if isinstance(declared, IntervalNoise):
        step = float((declared.upper - declared.lower) / declared.cells)
        points = float(declared.lower) + np.arange(declared.cells + 1) * step
        points = np.clip(points, float(declared.lower), float(declared.upper))
        return _not_among(points, answers)
    if not hasattr(declared, "granularity"):
        return 0
    granularity = declared.granularity
    if granularity is None:
        return 0 if answers.dtype.kind in "iub" else answers.size
    if answers.dtype != np.float64:
        return answers.size
    # a power of two divides without error; whole numbers beyond 2^53 steps have no bits below the grid
    with np.errstate(invalid="ignore", over="ignore"):
        units = answers / float(granularity)
        whole = (np.rint(units) == units) & np.isfinite(answers)
    return int(np.count_nonzero(~whole | ((answers == 0) & np.signbit(answers))))


def _not_among(points: NDArray[np.float64], answers: NDArray[Any]) -> int:
    if answers.dtype != np.float64:
        return answers.size
    # equal bits, since 0.0 equals -0.0
    return int(np.count_nonzero(~np.isin(answers.view(np.int64), points.view(np.int64))))
