"""Columns of texts that nobody listed: their keys are chosen privately, and are their cells from then on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits
from sourdine.frames.cells import Grouping
from sourdine.frames.contributions import by_chosen_keys, key_counts
from sourdine.frames.schema import PrivacyUnit
from sourdine.frames.source import Source
from sourdine.mechanisms import PartitionThreshold
from sourdine.tables.synthetic.cells import CategoryCells, Places

MOST_KEYS = 1 << 10
"""Chosen keys of one column; more are others."""
_BLOCK = 1 << 22  # keys that are decided on at once


@dataclass(frozen=True, kw_only=True)
class TextCells(CategoryCells):
    """A cell for each key that was chosen, one for the `other` ones if that has a name, one for all else.

    Before keys are chosen it has none.
    """

    other: str | None = None

    @property
    def _all(self) -> tuple[str, ...]:
        return (*map(str, self.keys), *(() if self.other is None else (self.other,)))

    @property
    def known(self) -> Sequence[str]:
        return self._all

    def grouping(self, source: Source) -> Grouping:
        keys = tuple(map(str, self.keys))
        return by_chosen_keys(source, self.name, keys, other=self.other, lost=self.missing)

    def draw(self, places: Places, bits: Bits) -> NDArray[Any]:
        return np.array([*self._all, ""], object)[places]


def choose_keys(
    selections: Mapping[str, PartitionThreshold], source: Source, unit: PrivacyUnit, bits: Bits
) -> dict[str, tuple[str, ...]]:
    """The keys of each column that enough units have: private, and what `selections` cost.

    A unit counts for one key of a column, chosen by a secret hash of its own records alone.
    """
    once = unit if unit.column is None else replace(unit, max_groups=1)
    chosen = {}
    for name, mechanism in selections.items():
        counts, shown = key_counts(source, [name], unit=once, bits=bits), [np.zeros(0, np.int64)]
        for first in range(0, counts.size, _BLOCK):
            shown.append(first + np.flatnonzero(mechanism.sample(counts.of(first, first + _BLOCK), bits)))
        keys = counts.chosen(np.concatenate(shown))[:MOST_KEYS]
        chosen[name] = tuple(str(key[0]) for key in keys)
    return chosen
