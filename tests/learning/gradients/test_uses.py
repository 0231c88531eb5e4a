from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Engine, Flat
from tests.learning import architectures
from tests.learning.sums import check


class Again(nn.Module):
    """Uses a weight once by its layer and once more by a function."""

    def __init__(self, inner: nn.Module, *, first: bool) -> None:
        super().__init__()
        self.inner, self.first = inner, first

    def forward(self, x: Tensor) -> Tensor:
        weight = next(self.inner.parameters())
        if self.first:
            return self.inner((x * weight.sum()).tanh())
        return self.inner(x) * weight.sum()


class Leaking(nn.Module):
    """Has a parameter of its own, and hands something out that is not among its results."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.inner = nn.Parameter(torch.ones(3)), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.aside = (x * self.scale).square().sum(1)
        return self.inner(x * self.scale)


def run(model: nn.Module, losses: Callable[[Tensor], Tensor], x: Tensor) -> None:
    Engine(model, Flat()).clipped_sum(lambda: losses(x))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "inner", [nn.Linear(3, 3), nn.RMSNorm(3), architectures.Scaled(nn.Linear(3, 3), tied=False)]
)
def test_a_weight_used_by_a_function_too_is_refused_wherever(inner: nn.Module, first: bool) -> None:
    model, x = Again(inner, first=first), torch.randn(5, 3)
    with pytest.raises(InvalidParameter, match=r"'inner\.\w+(\.\w+)?' is used outside"):
        run(model, lambda x: model(x).sum(1), x)


@pytest.mark.parametrize("first", [True, False])
def test_a_weight_used_by_a_function_too_is_refused_under_autocast(first: bool) -> None:
    # autocast keeps the weight it cast for the layer, and hands the same to the function
    model, x = nn.Linear(3, 3), torch.randn(5, 3)

    def losses(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = nn.functional.linear(x, model.weight) if first else model(x)
            out = out + (model(x) if first else nn.functional.linear(x, model.weight))
        return out.float().sum(1)

    with pytest.raises(InvalidParameter, match=r"'weight' is used outside|without being one of its outputs"):
        run(model, losses, x)


def test_what_a_layer_hands_out_aside_is_refused_and_the_advice_works() -> None:
    model, x = Leaking(), torch.randn(5, 3)
    with pytest.raises(InvalidParameter, match="'the model itself' made is used without being one"):
        run(model, lambda x: model(x).sum(1) + model.aside, x)

    class Telling(Leaking):
        def forward(self, x: Tensor) -> Tensor:
            out = super().forward(x)
            return torch.cat([out, self.aside.unsqueeze(1)], dim=1)

    check(Telling(), x)


def test_a_frozen_part_of_a_loss_may_have_parameters() -> None:
    model, judge, x = nn.Linear(3, 3), nn.Linear(3, 1), torch.randn(5, 3)
    with pytest.raises(InvalidParameter, match="freeze it"):
        run(model, lambda x: judge(model(x)).squeeze(1), x)
    judge.requires_grad_(False)
    run(model, lambda x: judge(model(x)).squeeze(1), x)
