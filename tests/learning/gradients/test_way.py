import pytest
import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Flat, PerLayer
from sourdine.learning.gradients.way import ClippedSums, GradientWay, way_of


class Experts(nn.Module):
    """Asks one of two layers, by the sign of the first number of each example."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        out = x.new_zeros(len(x), 1)
        for layer, chosen in ((self.low, x[:, 0] < 0), (self.high, x[:, 0] >= 0)):
            if bool(chosen.any()):
                out = out + torch.where(chosen.unsqueeze(1), layer(x), 0.0)
        return out


@pytest.mark.parametrize("way", [GradientWay(), GradientWay(reason="as a test")])
def test_a_layer_that_a_batch_leaves_out_changes_nothing_for_the_others(way: GradientWay) -> None:
    model = Experts()
    sums = ClippedSums(model, PerLayer(norm=1e-3), way)
    losses = lambda x: model(x).squeeze(1)
    low, high = -torch.rand(3, 3), torch.rand(2, 3)
    both = sums.add_up(losses, (torch.cat([low, high]),), strict=False)
    alone = sums.add_up(losses, (low,), strict=False)
    assert torch.allclose(both["low.weight"], alone["low.weight"], atol=1e-9)
    assert "high.weight" not in alone or not bool(alone["high.weight"].any())


def test_what_cannot_be_taken_apart_later_is_run_alone_and_no_error_tells() -> None:
    class Sometimes(nn.Module):
        """Uses its weight by a function for some inputs, which made-up ones may not show."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.inner(x)
            return out + x @ self.inner.weight.T if bool((x > 9).any()) else out

    model = Sometimes()
    losses = lambda x: model(x).squeeze(1)
    x = torch.randn(4, 3)
    x[1, 0] = 10.0
    way = way_of(model, losses, (torch.randn(6, 3),))
    assert way.reason is None
    with pytest.raises(InvalidParameter, match="used outside"):
        ClippedSums(model, Flat(), way).add_up(losses, (x,))
    found = ClippedSums(model, Flat(), way).add_up(losses, (x,), strict=False)
    expected = ClippedSums(model, Flat(), GradientWay(reason="as a test")).add_up(losses, (x,))
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_losses_that_are_not_one_for_each_example_add_nothing_once_paid() -> None:
    model = nn.Linear(3, 1)
    sums = ClippedSums(model, Flat(), GradientWay())
    with pytest.raises(InvalidParameter, match="2 numbers for 4 examples"):
        sums.add_up(lambda x: model(x)[:2, 0], (torch.randn(4, 3),))
    found = sums.add_up(lambda x: model(x).repeat(2, 1).squeeze(1), (torch.randn(4, 3),), strict=False)
    assert not any(bool(each.any()) for each in found.values())
