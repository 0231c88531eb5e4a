"""Each unit of a batch stands at a place of its own draw, among made-up ones that do not count."""

from collections.abc import Iterable
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.places import SeparatePlaces
from sourdine.learning.data.trees import Tree
from sourdine.testing import SeededBits


def units(count: int, each: int = 1) -> tuple[torch.Tensor]:
    return (torch.arange(100, 100 + count * each).float().reshape(-1, 1),)


def _tensors(batches: Iterable[tuple[Tree, Tensor]]) -> list[tuple[tuple[Tensor], Tensor]]:
    return cast(list[tuple[tuple[Tensor], Tensor]], list(batches))


@pytest.mark.parametrize("count", [0, 1, 5, 40])
@pytest.mark.parametrize("each", [1, 3])
def test_every_unit_comes_once_with_its_examples_in_order(count: int, each: int) -> None:
    places = SeparatePlaces(4, each, units(1, each))
    seen: list[float] = []
    for (batch,), counted in _tensors(places.batches(units(count, each), SeededBits(1))):
        assert batch.shape == (4 * each, 1)
        assert counted.shape == (4,)
        groups = batch.reshape(4, each)
        assert all(float(one) < 100 for one in groups[~counted].flatten())  # made up
        for group in groups[counted]:
            assert group.tolist() == [float(group[0]) + i for i in range(each)]
            seen.append(float(group[0]))
    assert sorted(seen) == [100.0 + each * i for i in range(count)]


def test_a_unit_more_moves_no_other_one() -> None:
    """Under the same draws, everybody else stands where they stood."""

    def stands(count: int) -> dict[float, int]:
        found: dict[float, int] = {}
        for (batch,), counted in _tensors(
            SeparatePlaces(8, 1, units(1)).batches(units(count), SeededBits(3))
        ):
            found |= {float(batch[place]): place for place in np.flatnonzero(counted.numpy()).tolist()}
        return found

    with_one, without = stands(41), stands(40)
    assert {unit: place for unit, place in with_one.items() if unit in without} == without


def test_a_unit_alone_stays_where_it_stands() -> None:
    places = SeparatePlaces(4, 1, units(1))
    [((batch,), counted)] = _tensors([places.alone(units(4), 2)])
    assert counted.tolist() == [False, False, True, False]
    assert float(batch[2]) == 102
    assert all(float(batch[i]) < 100 for i in (0, 1, 3))


def test_another_shape_is_refused() -> None:
    places = SeparatePlaces(2, 1, (torch.zeros(1, 3),))
    with pytest.raises(InvalidParameter, match="one shape and type"):
        list(places.batches((torch.zeros(1, 4),), SeededBits(1)))
