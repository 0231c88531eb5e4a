import pytest
import torch
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Execution, TrainingPlan, fit, measure
from sourdine.learning.devices.placement import Placement
from sourdine.testing import SeededBits

X = torch.randn(60, 5, generator=torch.Generator().manual_seed(1))
Y = (X[:, 0] > 0).long()
PLAN = TrainingPlan(noise_multiplier=2, delta=1e-3, epochs=2, batch_size=20)


def network() -> nn.Module:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2))


def values(execution: Execution, model: nn.Module | None = None) -> torch.Tensor:
    trained = fit(
        network() if model is None else model,
        (X, Y),
        PLAN,
        execution=execution,
        bits=SeededBits(3),
    )
    return torch.cat([value.flatten() for value in trained.model.parameters()])


def test_other_numbers_learn_nearly_the_same_and_are_handed_over_as_they_came() -> None:
    plain = values(Execution(physical_batch_size=8))
    for dtype, close in (("float64", 1e-5), ("bfloat16", 0.02), (torch.bfloat16, 0.02)):
        other = values(Execution(physical_batch_size=8, device="cpu", dtype=dtype))
        assert other.dtype == torch.float32
        assert torch.allclose(other, plain, atol=close)
        assert not torch.equal(other, plain)


def test_a_model_of_bfloat16_is_trained_as_it_is_or_on_float32_parameters() -> None:
    few = Execution(physical_batch_size=8)
    plain = values(few)
    rough = values(few, network().to(torch.bfloat16))
    fine = values(Execution(physical_batch_size=8, dtype="bfloat16"), network().to(torch.bfloat16))
    assert rough.dtype == fine.dtype == torch.bfloat16
    assert (fine.float() - plain).abs().max() < 0.03
    assert (rough.float() - plain).abs().max() < 0.1


def test_noise_and_sums_are_float32_where_layers_compute_in_bfloat16() -> None:
    gradients: list[torch.Tensor] = []

    class Watched(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            gradients.extend(value.grad for group in self.param_groups for value in group["params"])
            super().step()

    fit(
        network(),
        (X, Y),
        PLAN,
        optimizer=lambda some: Watched(some, lr=0.1),
        execution=Execution(physical_batch_size=8, dtype="bfloat16"),
    )
    assert {each.dtype for each in gradients} == {torch.float32}
    assert not torch.equal(gradients[0], gradients[0].to(torch.bfloat16).float())  # which has more digits


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"device": "nowhere"}, "must be a device of torch"),
        ({"device": 1.5}, "must be a device of torch"),
        ({"device": "meta"}, "must have numbers"),
        ({"dtype": "float16"}, "take bfloat16"),
        ({"dtype": torch.int64}, "must be one of float32, bfloat16, float64"),
    ],
)
def test_what_is_no_place_to_train_is_refused(setting: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Execution(**setting)  # type: ignore[arg-type]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there_is_said_before_anything_is_paid() -> None:
    with pytest.raises(InvalidParameter, match="There is no device cuda:1 here"):
        fit(network(), (X, Y), PLAN, execution=Execution(device="cuda:1"))
    with pytest.raises(InvalidParameter, match="Take device='cpu'"):
        measure(network(), (X, Y), device="cuda")


def test_a_model_without_numbers_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="to_empty"):
        fit(network().to("meta"), (X, Y), PLAN)


def test_a_placement_says_what_layers_compute_in() -> None:
    assert Placement().autocast is None
    assert Placement(dtype=torch.float64).autocast is None
    assert Placement(device="cpu").device == torch.device("cpu")
