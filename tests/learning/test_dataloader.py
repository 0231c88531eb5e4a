from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from sourdine import learning
from sourdine.core.errors import InvalidParameter
from sourdine.testing import SeededBits


def priced(size: int, batch_size: int, sampler: str = "poisson") -> learning.PricedPlan:
    plan = learning.TrainingPlan(
        noise_multiplier=2.0, delta=1e-3, epochs=2, batch_size=batch_size, sampler=sampler
    )
    return learning.plan(plan, size=size)


class Named(Dataset[dict[str, Any]]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, place: int) -> dict[str, Any]:
        return {"inputs": torch.full((3,), float(place)), "labels": place % 2}


def test_batches_are_those_that_the_plan_draws() -> None:
    plan, rows = priced(40, 8), torch.arange(40)
    found = [batch.tolist() for (batch,) in learning.loader((rows,), plan, bits=SeededBits(3))]
    assert found == [places.tolist() for places in plan.draw(SeededBits(3))]
    assert len(found) == plan.steps == 10
    assert len({len(each) for each in found}) > 1


def test_a_batch_of_nobody_has_tensors_without_rows() -> None:
    found = list(learning.loader(Named(), priced(12, 1), bits=SeededBits(1)))
    empty = [each for each in found if not len(each["labels"])]
    assert empty
    assert all(each["inputs"].shape == (0, 3) for each in empty)


def test_examples_that_were_not_declared_are_drawn_too() -> None:
    drawn: list[Tensor] = [row for (row,) in learning.loader((torch.arange(50),), priced(40, 30))]
    assert int(torch.cat(drawn).max()) >= 40
    with pytest.raises(InvalidParameter, match="'plan' of loader"):
        learning.loader((torch.arange(50),), priced(40, 8, "fixed"))


def test_other_loaders_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="pass its dataset"):
        learning.loader(DataLoader(Named()), priced(12, 1))


def test_examples_with_names() -> None:
    batches = list(learning.loader([{"x": torch.ones(3), "y": 1}] * 20, priced(20, 5)))
    assert len(batches) == 8
    assert all(batch["x"].shape == (len(batch["y"]), 3) for batch in batches)
