from collections.abc import Iterator, Mapping

import pytest
import torch
from torch import Tensor, nn

from sourdine.learning import Engine, Flat, Step
from sourdine.learning.gradients.precision import full_precision
from sourdine.testing import SeededBits

CPU = torch.device("cpu")


@pytest.fixture
def quick_products() -> Iterator[None]:
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_float32_matmul_precision("highest")


class _NotingClipping(Flat):
    """Notes in what products are computed when norms are known."""

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        object.__setattr__(self, "noted", torch.backends.mkldnn.matmul.fp32_precision)  # type: ignore[attr-defined]
        return super().weights(squares)


@pytest.mark.parametrize("places", [1, 64])
@pytest.mark.parametrize("outputs", [16, 512])
def test_no_example_passes_the_norm_under_autocast(places: int, outputs: int) -> None:
    torch.manual_seed(1)
    model = nn.Linear(32, outputs, bias=False)

    def clipped(x: Tensor, w: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            sums = Engine(model, Flat(norm=1.0)).clipped_sum(lambda: (model(x).float() * w).sum((1, 2)))
        return sums["weight"]

    for _ in range(10):
        total = clipped(10 * torch.randn(1, places, 32), torch.randn(1, places, outputs))
        assert total.dtype == torch.float32
        assert float(total.double().norm()) <= 1


def test_steps_under_autocast_move_by_one_example_no_more_than_the_norm() -> None:
    torch.manual_seed(1)
    model = nn.Linear(8, 2, bias=False)

    def summed(x: Tensor) -> Tensor:
        step = Step(model, noise_multiplier=1e-5, batch_size=1, steps=1, bits=SeededBits(1))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            step.add(lambda x: model(x).float().sum(1), x)
            step.close()
        assert model.weight.grad is not None
        return model.weight.grad.double().clone()

    x = 10 * torch.rand(400, 8).round() + 3
    moved = [float((summed(x) - summed(x[place:])).norm()) for place in (1, 2)]
    assert moved[0] < 1.01
    assert moved[1] < 2.01


@pytest.mark.usefixtures("quick_products")
def test_products_allowed_to_be_rounded_are_not_for_sums() -> None:
    model, clipping = nn.Linear(3, 2), _NotingClipping(norm=1.0)
    Engine(model, clipping).clipped_sum(lambda: model(torch.ones(2, 3)).sum(1))
    assert vars(clipping)["noted"] == "ieee"
    assert torch.get_float32_matmul_precision() == "medium"


@pytest.mark.usefixtures("quick_products")
def test_what_was_allowed_is_allowed_again_after_an_error() -> None:
    def fail() -> None:
        with full_precision(CPU):
            assert not torch.is_autocast_enabled("cpu")
            assert torch.backends.cuda.matmul.fp32_precision == "ieee"
            raise KeyError

    with torch.autocast("cpu", dtype=torch.bfloat16):
        with pytest.raises(KeyError):
            fail()
        assert torch.is_autocast_enabled("cpu")
    assert torch.get_float32_matmul_precision() == "medium"
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"
