from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from sourdine import learning
from sourdine.core.errors import InvalidParameter
from sourdine.learning import dataloader
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


class Odd(Dataset[tuple[Tensor, int]]):
    """Of twenty examples four are unlike the others, or cannot be read."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, place: int) -> tuple[Tensor, Any]:
        if place == 9:
            raise OSError("The file of somebody cannot be read.")
        x = torch.full((5 if place == 7 else 3,), float(place))
        return x.double() if place == 11 else x, 0.5 if place == 13 else place % 2


class OddAtOnce(Odd):
    def __getitems__(self, places: list[int]) -> list[tuple[Tensor, Any]]:
        return [self[place] for place in places]


def stacked(examples: list[tuple[Tensor, Any]]) -> tuple[Tensor, Tensor]:
    return torch.stack([x for x, _ in examples]), torch.tensor([int(y) for _, y in examples])


@pytest.mark.parametrize("dataset", [Odd(), OddAtOnce()])
@pytest.mark.parametrize("num_workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_what_does_not_fit_is_left_out_and_nothing_tells_of_it(dataset: Odd, num_workers: int) -> None:
    plan = priced(20, 10)
    drawn = [places.tolist() for places in plan.draw(SeededBits(2))]
    assert {7, 9, 11, 13} <= {place for places in drawn for place in places}
    batches = list(learning.loader(dataset, plan, num_workers=num_workers, bits=SeededBits(2)))
    for places, (x, y) in zip(drawn, batches, strict=True):
        assert x.dtype == torch.float32
        assert y.dtype == torch.int64
        assert x[:, 0].tolist() == [place for place in places if place not in (7, 9, 11, 13)]


def test_what_a_collate_function_cannot_take_is_left_out() -> None:
    plan = priced(20, 10)
    drawn = [places.tolist() for places in plan.draw(SeededBits(2))]
    batches = list(learning.loader(Odd(), plan, collate_fn=stacked, bits=SeededBits(2)))
    for places, (x, _) in zip(drawn, batches, strict=True):
        assert x[:, 0].tolist() == [place for place in places if place not in (7, 9)]


def test_a_collate_function_that_fails_is_told_of_before_anything_is_drawn() -> None:
    def never(examples: list[object]) -> object:
        raise ValueError("it takes nothing")

    with pytest.raises(ValueError, match="takes nothing"):
        learning.loader(Named(), priced(12, 1), collate_fn=never)


def test_none_decides_whether_another_is_left_out() -> None:
    """A function that takes every example beside the first, and fails where two marked ones meet."""

    def wary(examples: list[Tensor]) -> Tensor:
        if sum(bool(each[0] == 9) for each in examples) > 1:
            raise ValueError("two of them")
        return torch.stack(examples)

    values = torch.zeros(6, 2)
    values[2:4] = 9
    rows = [each.clone() for each in values]
    collate = dataloader._Collate(rows[0], wary)
    assert torch.equal(collate(rows[1:]), values[1:])
    assert torch.equal(collate([rows[2], rows[4]]), values[[2, 4]])
    odd = torch.zeros(3)
    assert torch.equal(collate([rows[2], odd, rows[3]]), values[2:4])
