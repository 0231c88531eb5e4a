"""Privacy units that own several examples: whose each example is, and which of them count."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning.data.batches import Indices


@dataclass(frozen=True)
class Drawn:
    """Examples of some people, equally many places for each; those that only fill up weigh nothing."""

    places: Indices
    weights: NDArray[np.float32]


class UnitIds:
    """An id for each example: all examples of one id are one unit, and are protected together.

    Each time a person is drawn, at most `max_examples` of their examples count, chosen afresh at random, each
    with a weight of one over their number. So a person moves a sum by one clipped gradient at most.
    Examples without an id (None, NaN) belong to nobody and are left out.

    >>> people = UnitIds(["ann", "bob", "ann", None], max_examples=2)
    >>> len(people), people.draw(np.array([1])).weights.tolist()
    (2, [1.0, 0.0])
    """

    def __init__(self, ids: ArrayLike | Iterable[object], max_examples: int = 1) -> None:
        self.max_examples = check.integer("UnitIds", "max_examples", max_examples, 1, 1 << 20)
        codes: dict[object, int] = {}
        listed = ids.tolist() if hasattr(ids, "tolist") else list(ids)  # type: ignore[arg-type]
        owners = np.array([_code(each, codes) for each in listed], np.int64)
        self.examples = len(owners)
        order = np.argsort(owners, kind="stable")
        self._places = order[np.searchsorted(owners[order], 0) :]
        self._counts = np.bincount(owners[self._places], minlength=len(codes))
        self._starts = np.cumsum(self._counts) - self._counts

    def __len__(self) -> int:
        return len(self._counts)

    def draw(self, people: Indices, bits: Bits = SYSTEM) -> Drawn:
        """The examples that count when these people are drawn."""
        counts = self._counts[people]
        owner = np.repeat(np.arange(len(people)), counts)
        first = np.cumsum(counts) - counts
        rank = np.arange(len(owner)) - first[owner]
        examples = self._places[self._starts[people][owner] + rank]
        order = np.lexsort(
            (bits.words(len(owner)), owner)
        )  # each person's examples stay together, in any order
        within = rank < self.max_examples
        places = np.repeat(examples[order][first], self.max_examples).reshape(len(people), self.max_examples)
        places[owner[within], rank[within]] = examples[order][within]
        taken = np.minimum(counts, self.max_examples)
        filled = np.arange(self.max_examples) < taken[:, None]
        weights = np.where(filled, 1 / taken[:, None], 0.0).astype(np.float32)
        return Drawn(places.ravel(), weights.ravel())


def _code(one: object, codes: dict[object, int]) -> int:
    if one is None or (isinstance(one, float) and math.isnan(one)):
        return -1
    return codes.setdefault(one, len(codes))
