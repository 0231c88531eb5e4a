"""A ladder of ever coarser labels for the values of one column, from the value itself up to '*'."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity.records import Codes, Label
from sourdine.core.errors import InvalidParameter

TOP = "*"
Losses = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ladder:
    """The label of each value at each level, as codes, and what is lost by saying no more than the label.

    Level 0 is the value, and at the last level all share one label, as a rule '*'. Who shares a label at one
    level shares it at all levels above. A loss is 0 for a value and 1 at the last level, and does not fall
    from level to level.
    """

    labels: tuple[tuple[Label, ...], ...] = field(repr=False)
    codes: Codes = field(repr=False)  # by level and value
    losses: Losses = field(repr=False)  # by level and value

    @property
    def height(self) -> int:
        """The number of levels above the values."""
        return len(self.codes) - 1

    def label(self, level: int) -> list[Label]:
        """The label of each value at a level."""
        return [self.labels[level][code] for code in self.codes[level]]


def raise_ladder(
    name: str, steps: Sequence[Sequence[Label]], leaves: Sequence[Sequence[Label]] | None = None
) -> Ladder:
    """The ladder of a column from the labels of its values, level by level, the values first.

    What is lost by a label is the share of other values it may stand for, (leaves - 1) / (all leaves - 1),
    the normalised certainty penalty (Xu et al. 2006). Leaves are the values themselves, or those
    of a whole hierarchy.
    """
    return with_losses(name, steps, [_penalties(*pair) for pair in zip(steps, leaves or steps, strict=True)])


def with_losses(name: str, steps: Sequence[Sequence[Label]], losses: Sequence[Losses]) -> Ladder:
    """The ladder of a column from labels and losses; at the last step all labels are the same."""
    labels, codes = zip(*(_numbered(step) for step in steps), strict=True)
    for below, above in pairwise(codes):
        if len(set(zip(below, above, strict=True))) != len(set(below)):
            raise InvalidParameter(
                f"The hierarchy of '{name}' is no tree: values that share a label differ further up. "
                "Write it so that every label has one label above it."
            )
    held = np.array(losses, np.float64)
    held[0], held[-1] = 0.0, 1.0
    return Ladder(labels, np.array(codes, np.int64), np.maximum.accumulate(held, axis=0))


def _numbered(step: Sequence[Label]) -> tuple[tuple[Label, ...], list[int]]:
    """Labels in the order in which they first come, and the code of each value."""
    places: dict[Label, int] = {}
    codes = [places.setdefault(label, len(places)) for label in step]
    return tuple(places), codes


def _penalties(step: Sequence[Label], leaves: Sequence[Label]) -> Losses:
    counts: dict[Label, int] = {}
    for leaf in leaves:
        counts[leaf] = counts.get(leaf, 0) + 1
    return np.array([(counts.get(label, 1) - 1) / max(len(leaves) - 1, 1) for label in step], np.float64)
