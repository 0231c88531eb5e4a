from collections import UserDict
from typing import Any

import pytest
import torch

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.trees import count_of, made_up, part_of, tree_of


def test_examples_are_counted_and_cut_in_any_form() -> None:
    batch = tree_of((torch.arange(5), [UserDict({"a": torch.zeros(5, 2)}), torch.tensor(7)], "name"))
    assert count_of(batch) == 5
    found: Any = part_of(batch, 1, 3)
    x, (inner, shared), name = found
    assert x.tolist() == [1, 2]
    assert type(inner) is dict
    assert inner["a"].shape == (2, 2)
    assert (int(shared), name) == (7, "name")


@pytest.mark.parametrize("batch", [(), (torch.tensor(1.0),), (torch.zeros(2), torch.zeros(3))])
def test_batches_without_a_count_are_refused(batch: tuple[torch.Tensor, ...]) -> None:
    with pytest.raises(InvalidParameter, match="first axis counts examples"):
        count_of(batch)


def test_made_up_examples_have_the_shapes_and_types_and_nothing_else() -> None:
    batch = ({"x": torch.full((2, 3), 9.0, dtype=torch.float64), "y": torch.full((2,), 9)},)
    (made,) = made_up(batch, 6)
    assert isinstance(made, dict)
    assert (made["x"].shape, made["x"].dtype) == ((6, 3), torch.float64)
    assert set(made["y"].tolist()) <= {0, 1}
