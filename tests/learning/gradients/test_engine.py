import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from sourdine.learning import Clipping, Engine, Flat
from tests.learning import architectures
from tests.learning.sums import CLIPPINGS, check, losses_of

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")


def check_drawn(seed: int) -> None:
    found = architectures.drawn(seed)
    source = random.Random(seed)
    dtype = source.choice([torch.float32, torch.float64])
    examples_per_unit = source.choice([1, 1, 2])
    x = found.inputs(6, dtype)
    check(found.model.to(dtype), x, source.choice(CLIPPINGS), examples_per_unit)


@pytest.mark.parametrize("seed", range(20))
def test_random_models(seed: int) -> None:
    check_drawn(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 200))
def test_more_random_models(seed: int) -> None:
    check_drawn(seed)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (architectures.First(nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True, proj_size=2)), (5, 3)),
        (architectures.First(nn.RNN(3, 4, nonlinearity="relu", batch_first=True)), (5, 3)),
        (architectures.First(nn.GRU(3, 4, 2, batch_first=True, bias=False)), (5, 3)),
        (nn.Sequential(nn.GRUCell(3, 4), nn.Tanh(), nn.RNNCell(4, 2)), (3,)),
        (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), (5, 4)),
        (nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2)), (4, 5, 5)),
        (nn.Sequential(nn.Linear(4, 3), nn.RMSNorm(3)), (5, 4)),
        (nn.Sequential(nn.Conv2d(4, 64, 2), nn.Flatten(), nn.Linear(256, 80)), (4, 3, 3)),
        (nn.Sequential(nn.Linear(70, 90), nn.Tanh(), nn.Linear(90, 70)), (3, 70)),
        (parametrizations.weight_norm(nn.Conv1d(3, 4, 2)), (3, 6)),
        (nn.Sequential(parametrizations.orthogonal(nn.Linear(4, 4))), (4,)),
    ],
)
@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_layers(layer: nn.Module, shape: tuple[int, ...], clipping: Callable[[float], Clipping]) -> None:
    torch.manual_seed(1)
    check(layer, torch.randn(6, *shape), clipping)


def test_a_batch_of_one() -> None:
    model = nn.Linear(3, 2)
    check(model, torch.randn(1, 3))


def test_states_handed_to_a_recurrent_layer() -> None:
    class Started(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.inner = nn.Linear(3, 2), nn.LSTM(3, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            start = self.first(x[:, 0]).unsqueeze(0)
            told, (last, inside) = self.inner(x, hx=(start, start.tanh()))
            return torch.cat([told.flatten(1), last[0], inside[0]], dim=1)

    check(Started(), torch.randn(5, 4, 3))


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("sizes", [(4, 4), (40, 40)])
def test_one_weight_in_several_kinds_of_layers(
    clipping: Callable[[float], Clipping], sizes: tuple[int, int]
) -> None:
    class Shared(nn.Module):
        """A table, a matrix, a module with a matrix in it and the product by hand, with the same numbers."""

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(*sizes)
            self.linear = nn.Linear(sizes[1], sizes[0])
            self.linear.weight = self.table.weight
            self.scaled = architectures.Scaled(nn.Linear(sizes[1], sizes[0]), tied=True)
            self.scaled.inner.weight = self.scaled.again = self.table.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.scaled(self.linear(self.table(x)).tanh())

    torch.manual_seed(2)
    model = Shared()
    assert len(list(model.parameters())) == 4
    check(model, torch.randint(0, 4, (6, 3)), clipping)


def test_a_layer_called_twice_counts_twice_and_without_gradients_not_at_all() -> None:
    class Twice(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                target = self.inner(x)
            return self.inner(self.inner(x).tanh()) - target

    for inner in (nn.Linear(3, 3), architectures.Scaled(nn.Linear(3, 3), tied=True), nn.RMSNorm(3)):
        check(Twice(inner), torch.randn(5, 3))


def test_a_layer_that_is_given_a_list_of_one() -> None:
    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.inner = nn.Parameter(torch.rand(3)), nn.Linear(3, 3)

        def forward(self, given: list[Tensor]) -> Tensor:
            return self.inner(torch.cat(given, dim=1) * self.scale)

    class Outside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.listed = Listed()

        def forward(self, x: Tensor) -> Tensor:
            return self.listed([x])

    check(Outside(), torch.randn(5, 3))


def test_changes_in_place_after_a_layer() -> None:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            made = self.first(x)
            made[:, :2].mul_(3.0)
            made[:, 2:] = 0.0
            return self.last(made)

    check(Cut(), torch.randn(5, 4))


def test_changes_in_place_of_a_layer_that_gives_a_view() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
    assert model[0](torch.randn(2, 3, 2, 4))._is_view()
    check(model, torch.randn(5, 3, 2, 4))


def test_hooks_of_others_see_one_run_and_may_change_it() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.RMSNorm(3))
    seen = []

    def double(layer: nn.Module, args: object, out: Tensor) -> Tensor:
        seen.append(1)
        return out * 2

    for layer in model:
        layer.register_forward_hook(double)
    x = torch.randn(5, 3)
    Engine(model, Flat()).clipped_sum(lambda: losses_of(model)(x))
    assert len(seen) == 2
    check(model, x)


def test_dropout_is_drawn_once() -> None:
    class Same(nn.Module):
        """Two runs of a random layer that must draw the same if the second is a replay of the first."""

        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Tensor) -> Tensor:
            made = (
                self.inner(x, x, x)[0] if isinstance(self.inner, nn.MultiheadAttention) else self.inner(x)[0]
            )
            self.told = made.detach().clone()
            made.retain_grad()
            self.made = made
            return made

    x = torch.randn(6, 5, 4)
    for inner in (
        nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True),
        nn.LSTM(4, 4, 2, dropout=0.5, batch_first=True),
    ):
        model = Same(inner)
        total = Engine(model, Flat(norm=1e9)).clipped_sum(lambda: model(x).square().flatten(1).sum(1) / 2)  # noqa: B023
        last = "inner.out_proj.bias" if isinstance(inner, nn.MultiheadAttention) else None
        if last is not None:  # the gradient of an output bias is that of the outputs, which were drawn once
            assert torch.allclose(total[last], model.told.sum((0, 1)), rtol=1e-4, atol=1e-5)
        spread = torch.stack([model(x).detach() for _ in range(2)])
        assert not torch.equal(spread[0], spread[1])


def test_dropout_of_examples_is_independent() -> None:
    layer = nn.LSTM(2, 2, 2, dropout=0.5, batch_first=True)
    model = nn.Sequential()
    model.add_module("inner", layer)
    model.forward = lambda x: layer(x)[0]  # type: ignore[method-assign]
    held = []

    def losses() -> Tensor:
        held.append(model(torch.ones(64, 1, 2)))
        return held[0].flatten(1).sum(1)

    Engine(model, Flat()).clipped_sum(losses)
    assert 2 < len(held[0].detach().unique(dim=0)) <= 64


def test_nothing_stays_on_the_model() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.RMSNorm(3), nn.Linear(3, 1))
    before = [set(layer.__dict__) for layer in model.modules()]
    Engine(model, Flat()).clipped_sum(lambda: model(torch.randn(4, 3)).squeeze(1))
    assert [set(layer.__dict__) for layer in model.modules()] == before
    assert not any(layer._forward_hooks for layer in model.modules())
    with pytest.raises(ZeroDivisionError):
        Engine(model, Flat()).clipped_sum(lambda: model(torch.randn(4, 3)) / (1 // 0))
    assert [set(layer.__dict__) for layer in model.modules()] == before


def test_a_frozen_part_is_left_alone() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    model[2].bias.requires_grad_(False)
    x = torch.randn(5, 3)
    check(model, x)
    assert list(Engine(model, Flat()).clipped_sum(lambda: model(x).sum(1))) == ["2.weight"]
