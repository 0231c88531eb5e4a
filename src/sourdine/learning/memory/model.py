"""What the tensors of training take: a constant and a slope per example, for each stage of a step."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sourdine.core import check

MOST_UNITS = 1 << 24  # at a time


class Stage(StrEnum):
    """The parts of the first step of training, in their order, and what comes after it."""

    MODEL = "model"  # it is loaded
    BATCH = "batch"  # it is loaded
    GRADIENT = "gradient"  # the loss, its backward pass, clipping
    STEP = "step"  # the noise, and the optimizer's step
    AGAIN = "again"  # the gradient of any later step
    MORE = "more"  # the same for a further part of a batch that comes in several
    CLOSE = "close"  # the noise and the optimizer of any later step


FIRST = (Stage.MODEL, Stage.BATCH, Stage.GRADIENT, Stage.STEP)


@dataclass(frozen=True)
class MemoryLine:
    """Bytes that grow with the number of units at a time.

    >>> MemoryLine(100, 2.5).at(3)
    108
    """

    fixed: float
    each: float

    def at(self, units: int) -> int:
        """The bytes of so many units, rounded up."""
        return math.ceil(self.fixed + self.each * units)

    @classmethod
    def through(cls, *points: tuple[int, int]) -> "MemoryLine":
        """The line through the last two of some points (units, bytes); a single point is taken as constant.

        >>> MemoryLine.through((4, 40), (8, 50), (16, 70))
        MemoryLine(fixed=30.0, each=2.5)
        """
        (last, much) = points[-1]
        if len(points) == 1:
            return cls(much, 0.0)
        (before, less) = points[-2]
        each = (much - less) / (last - before)
        return cls(much - each * last, each)


@dataclass(frozen=True)
class Course:
    """The most bytes at once in a stage: between the points that were measured, and beyond them on lines.

    Many moments of a stage have lines of their own, and beyond the last point the highest of them counts.

    >>> course = Course(((4, 40), (8, 48), (16, 80)), (MemoryLine(16, 4), MemoryLine(0, 4.5)))
    >>> course.at(2), course.at(6), course.at(16), course.at(40)
    (36, 44, 80, 180)
    """

    points: tuple[tuple[int, int], ...]
    lines: tuple[MemoryLine, ...]

    def at(self, units: int) -> int:
        """The most bytes at once with so many units at a time."""
        place = bisect_left(self.points, (units, 0))
        if place == len(self.points):
            return max(line.at(units) for line in self.lines)
        return MemoryLine.through(*self.points[: max(place + 1, 2)][-2:]).at(units)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes of tensors against the units at a time: what is left after each stage, and the most within it.

    The batch and the model count; the data that batches are drawn from and what torch itself takes do not.

    >>> flat, steep = Course(((1, 200),), (MemoryLine(200, 0),)), Course(((1, 50),), (MemoryLine(0, 50),))
    >>> most = {stage: flat for stage in Stage} | {Stage.GRADIENT: steep}
    >>> memory = Memory(live={stage: MemoryLine(100, 0) for stage in FIRST}, most=most)
    >>> memory.peak(2), memory.peak(10), memory.largest(1000)
    (200, 500, 20)
    """

    live: Mapping[Stage, MemoryLine]
    most: Mapping[Stage, Course]

    def peak(self, units: int, *, parts: bool = False) -> int:
        """The most bytes there are at once in training, with so many units at a time.

        With `parts`, batches come in several parts, and the sums over the earlier ones are held meanwhile.
        """
        units = check.integer("Memory.peak", "units", units, 0, 1 << 40)
        return max(
            course.at(units) for stage, course in self.most.items() if parts or stage is not Stage.MORE
        )

    def largest(self, limit: int, *, parts: bool = False) -> int:
        """How many units at a time stay within so many bytes; 0 if not even one does."""
        limit = check.integer("Memory.largest", "limit", limit, 0, 1 << 62)
        few, many = 0, MOST_UNITS + 1
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (middle, many) if self.peak(middle, parts=parts) <= limit else (few, middle)
        return few


def highest(lines: Iterable[MemoryLine]) -> tuple[MemoryLine, ...]:
    """Those of some lines that are above all others somewhere, from one unit on.

    >>> highest([MemoryLine(5, 1), MemoryLine(0, 2), MemoryLine(4, 1), MemoryLine(2, 1.5)])
    (MemoryLine(fixed=5, each=1), MemoryLine(fixed=0, each=2))
    """
    hull: list[MemoryLine] = []
    for line in sorted(lines, key=lambda each: (each.each, each.fixed)):
        while hull and line.fixed + line.each >= hull[-1].fixed + hull[-1].each:
            hull.pop()  # never above the new one
        while len(hull) > 1 and _crossing(hull[-2], line) <= _crossing(hull[-2], hull[-1]):
            hull.pop()
        hull.append(line)
    return tuple(hull)


def _crossing(flat: MemoryLine, steep: MemoryLine) -> float:
    """Where the steeper line overtakes the flatter one."""
    return (flat.fixed - steep.fixed) / (steep.each - flat.each)
