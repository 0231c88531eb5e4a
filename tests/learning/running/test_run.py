from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau
from torch.utils.data import Dataset

from sourdine import learning
from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter
from sourdine.learning import FixedBatches, PoissonBatches, ShuffledBatches
from sourdine.testing import SeededBits


def test_only_those_present_are_drawn_at_the_declared_rate() -> None:
    drawn = list(PoissonBatches(size=1000, batch_size=100, epochs=40, present=300).draw(SeededBits(1)))
    assert len(drawn) == 400
    assert max(int(each.max(initial=0)) for each in drawn) < 300
    assert abs(np.mean([len(each) for each in drawn]) - 30) < 5 * np.sqrt(300 * 0.1 * 0.9 / 400)


@pytest.mark.parametrize("kind", [PoissonBatches, FixedBatches, ShuffledBatches])
def test_the_rest_of_a_run_follows_what_was_drawn(kind: type) -> None:
    assert len(list(kind(size=100, batch_size=30, epochs=3).draw(SeededBits(1), after=8))) == 4


def test_a_shuffled_epoch_is_not_cut() -> None:
    with pytest.raises(InvalidParameter, match="'after'"):
        next(ShuffledBatches(size=100, batch_size=30, epochs=3).draw(after=3))


class Odd(Dataset[tuple[Tensor, int]]):
    """Items of which some have another shape or another type, and one cannot be read at all."""

    def __init__(self, inputs: Tensor, odd: bool) -> None:
        self.inputs, self.odd = inputs, odd

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        one = self.inputs[place]
        if self.odd and place in (3, 7, 11):
            if place == 11:
                raise OSError("a file that is cut off")
            return one[:2] if place == 3 else one.double(), place % 2
        return one, place % 2


def fitted(data: object, **more: Any) -> learning.Trained:
    plan = learning.TrainingPlan(noise_multiplier=1.0, delta=1e-2, steps=3, batch_size=10)
    torch.manual_seed(1)
    given = {"execution": learning.Execution(physical_batch_size=8), "bits": SeededBits(1), **more}
    return learning.fit(nn.Linear(4, 2), data, plan, **given)


@pytest.mark.parametrize("units", [None, torch.arange(20) // 2])
def test_items_that_do_not_fit_add_exactly_nothing(units: Tensor | None) -> None:
    x = torch.randn(20, 4, generator=torch.Generator().manual_seed(2))
    whole, odd = (fitted(Odd(x, each), units=units) for each in (False, True))
    # a label that names no class counts nothing either
    targets = torch.where(torch.isin(torch.arange(20), torch.tensor([3, 7, 11])), -1, torch.arange(20) % 2)
    without = fitted((x, targets), units=units)
    assert torch.allclose(odd.model.get_parameter("weight"), without.model.get_parameter("weight"), atol=1e-6)
    assert not torch.allclose(
        odd.model.get_parameter("weight"), whole.model.get_parameter("weight"), atol=1e-6
    )


def test_an_index_that_no_table_has_adds_exactly_nothing() -> None:
    words = torch.randint(0, 5, (20, 3), generator=torch.Generator().manual_seed(2))
    plan = learning.TrainingPlan(noise_multiplier=1.0, delta=1e-2, steps=3, batch_size=10)
    y, models = torch.arange(20) % 2, []
    for bad in (99, 1):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(12, 2))
        x, targets = words.clone(), y.clone()
        x[4, 1], targets[4] = bad, -1
        models.append(learning.fit(model, (x, targets), plan, bits=SeededBits(1)).model)
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def steps_of_others(parameters: object) -> torch.optim.Optimizer:
    return torch.optim.SGD(nn.Linear(4, 2).parameters(), lr=0.1)


class Unable(torch.optim.SGD):
    """Makes itself, and cannot step."""

    def step(self, closure: Any = None) -> Any:
        raise RuntimeError("no closure was given")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"optimizer": partial(Unable, lr=0.1)}, "no closure was given"),
        ({"optimizer": steps_of_others}, "it steps others"),
        ({"schedule": ReduceLROnPlateau}, "3 steps of the run: .*metrics"),
        ({"schedule": lambda made: OneCycleLR(made, max_lr=1.0, total_steps=2)}, "3 steps of the run: .*2"),
        ({"public": (torch.zeros(3, 5), torch.zeros(3, dtype=torch.int64))}, "public examples cannot"),
    ],
)
def test_nothing_is_paid_for_a_mistake(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "people.ledger", order=8, divergence=40, delta=1e-2)
    data = torch.randn(20, 4), torch.zeros(20, dtype=torch.int64)
    with pytest.raises(InvalidParameter, match=message):
        fitted(data, ledger=ledger, checkpoint=tmp_path / "run.pt", **given)
    assert ledger.status().blocks == 0
    assert fitted(data, ledger=ledger, checkpoint=tmp_path / "run.pt").receipt is not None


class OddAtTheEnd(Dataset[tuple[torch.Tensor, int]]):
    """Public examples of which the last is of another shape."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        return torch.zeros(3 if place < 4 else 2), 0


def test_an_odd_public_example_is_found_before_anything_is_paid(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "people.ledger", order=8, divergence=50, delta=1e-3)
    plan = learning.TrainingPlan(noise_multiplier=2.0, delta=1e-3, epochs=1, batch_size=5)
    data = torch.zeros(20, 3), torch.zeros(20, dtype=torch.int64)
    with pytest.raises(InvalidParameter, match="one shape"):
        learning.fit(nn.Linear(3, 2), data, plan, public=OddAtTheEnd(), ledger=ledger)
    assert ledger.status().blocks == 0
