import math

import pytest
import torch
from torch import Tensor, nn

from sourdine.learning import Engine, Flat
from tests.learning import reference
from tests.learning.sums import check


def test_half_precision_is_summed_in_float32() -> None:
    torch.manual_seed(1)
    model, x = nn.Linear(6, 3).to(torch.bfloat16), torch.randn(5, 6).to(torch.bfloat16)
    found = Engine(model, Flat(norm=0.5)).clipped_sum(lambda: model(x).float().square().sum(1))
    assert {value.dtype for value in found.values()} == {torch.float32}
    length = math.sqrt(sum(float(value.double().square().sum()) for value in found.values()))
    assert 0 < length <= 2.5


def test_parts_in_unlike_precision() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 3), nn.Linear(3, 2).double()

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.first(x).double())

    check(Both(), torch.randn(5, 4))


def test_under_autocast() -> None:
    torch.manual_seed(1)
    model, x = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(5, 6)

    def losses() -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x).float().square().sum(1)

    found = Engine(model, Flat(norm=0.5)).clipped_sum(losses)
    plain = Engine(model, Flat(norm=0.5)).clipped_sum(lambda: model(x).square().sum(1))
    assert {value.dtype for value in found.values()} == {torch.float32}
    assert reference.distance(found, plain) < 0.05


class Scaled(nn.Module):
    """A parameter of its own, and a layer in it."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.inner = nn.Parameter(torch.rand(40)), nn.Linear(40, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x * self.scale)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_sums_of_models_in_half_precision_are_in_single(kind: torch.dtype) -> None:
    torch.manual_seed(1)
    model = Scaled().to(kind)
    x = torch.randn(300, 40).to(kind)
    sums = Engine(model, Flat(norm=1.0)).clipped_sum(lambda: model(x).float()[:, 0])
    assert {each.dtype for each in sums.values()} == {torch.float32}
    one = Engine(model, Flat(norm=1e-3)).clipped_sum(lambda: model(x[:1]).float()[:, 0])
    length = float(torch.stack([each.double().square().sum() for each in one.values()]).sum().sqrt())
    assert length == pytest.approx(1e-3 * (1 - 2.0**-18), rel=1e-6)
