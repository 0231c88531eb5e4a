"""A place of its own for each unit of a batch: what is computed of it does not depend on others drawn.

Floats are added up in an order that depends on the shape of a batch and on the place of an example in it. So
that the last digits of one gradient tell nothing of others, every batch that a model sees has one fixed
number of places, and each unit takes one that is drawn for it alone; free places hold made-up examples,
which do not count. Then a unit's gradient depends on the unit and its place, if a batch of a fixed shape is
computed place by place, which is tried before anything is paid (`Step.check`).
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.core.random.samplers import uniform
from sourdine.learning.data.batches import Indices
from sourdine.learning.data.trees import Tree, count_of, made_up


class SeparatePlaces:
    """Puts units at places drawn for each of them, in as many batches of a fixed shape as it takes."""

    def __init__(self, places: int, examples_per_unit: int, like: Tree) -> None:
        self.places, self.examples_per_unit = places, examples_per_unit
        self._spare = made_up(like, places * examples_per_unit)

    def batches(self, batch: Tree, bits: Bits) -> Iterator[tuple[Tree, Tensor]]:
        """The units of a batch, each at a place of its own draw, and which places count."""
        units = count_of(batch) // self.examples_per_unit
        drawn = uniform(self.places, units, bits)
        order = np.argsort(drawn, kind="stable")
        first = np.searchsorted(drawn[order], np.arange(self.places))
        turn = np.empty(units, np.int64)
        turn[order] = np.arange(units) - first[drawn[order]]
        for number in range(int(turn.max(initial=-1)) + 1):
            some = np.flatnonzero(turn == number)
            yield self._placed(batch, some, drawn[some])

    def alone(self, batch: Tree, place: int) -> tuple[Tree, Tensor]:
        """One unit of a batch of this shape, at the place where it stands, beside made-up examples."""
        return self._placed(batch, np.array([place]), np.array([place]))

    def _placed(self, batch: Tree, units: Indices, places: Indices) -> tuple[Tree, Tensor]:
        inside = np.arange(self.examples_per_unit)
        source = torch.from_numpy((units[:, None] * self.examples_per_unit + inside).ravel())
        target = torch.from_numpy((places[:, None] * self.examples_per_unit + inside).ravel())

        def put(spare: object, each: object) -> object:
            if not isinstance(each, Tensor) or not isinstance(spare, Tensor) or not each.ndim:
                return each
            if spare.shape[1:] != each.shape[1:] or spare.dtype != each.dtype:
                raise InvalidParameter(
                    "The examples of all batches must have one shape and type, since the last digits of a "
                    "gradient depend on them. Pad each to a stated length, not to that of others."
                )
            filled = spare.clone()
            filled[target.to(each.device)] = each[source.to(each.device)]
            return filled

        counted = torch.zeros(self.places, dtype=torch.bool)
        counted[torch.from_numpy(places)] = True
        placed: Tree = tree_map(put, self._spare, batch)
        return placed, counted
