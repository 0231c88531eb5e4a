from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Engine, Flat
from sourdine.learning.gradients.entangled import Entangled
from tests.learning.sums import check


def test_an_input_changed_in_place_is_refused() -> None:
    class Spoilt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            held = x.clone()
            made = self.first(held)
            held.zero_()
            return made

    model, x = Spoilt(), torch.randn(4, 3)
    with pytest.raises(InvalidParameter, match="'first' was changed in place"):
        Engine(model, Flat()).clipped_sum(lambda: model(x).sum(1))


def test_dropout_beside_a_parameter_of_an_outer_module_is_refused() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Parameter(torch.zeros(3))
            self.inner, self.drop = nn.Linear(3, 2), nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            return self.drop(self.inner(x + self.token))

    model, x = Outer(), torch.randn(4, 3)
    with pytest.raises(InvalidParameter, match=r"'the model itself' .* draws at random"):
        Engine(model, Flat()).clipped_sum(lambda: model(x).sum(1))
    check(model.eval(), x)


@pytest.mark.parametrize(
    ("model", "shape", "message"),
    [
        (nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), (3,), "'1' is a BatchNorm1d"),
        (
            nn.Sequential(nn.InstanceNorm1d(3, affine=True, track_running_stats=True)),
            (3, 4),
            "running statistics",
        ),
        (nn.Sequential(nn.Embedding(5, 2, max_norm=1.0)), (3,), "'max_norm'"),
        (nn.Sequential(nn.Embedding(5, 2, scale_grad_by_freq=True)), (3,), "mixes people"),
        (nn.Sequential(nn.LSTM(3, 2)), (4, 3), "batch_first=True"),
        (nn.Sequential(nn.MultiheadAttention(4, 2)), (4, 3), "batch_first=True"),
        (nn.Linear(2, 1).requires_grad_(False), (2,), "no parameter to train"),
        (nn.Sequential(parametrizations.spectral_norm(nn.Linear(3, 2))), (3,), "one example at a time"),
    ],
)
def test_models_that_are_refused(model: nn.Module, shape: tuple[int, ...], message: str) -> None:
    x = torch.randn(5, *shape)
    with pytest.raises(InvalidParameter, match=message):
        Engine(model, Flat()).clipped_sum(lambda: model(x).flatten(1).sum(1))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weights_made_by_hooks_are_refused() -> None:
    model, x = nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 2))), torch.randn(5, 3)
    with pytest.raises(Entangled, match="'0' makes its weights of others by a hook"):
        Engine(model, Flat()).clipped_sum(lambda: model(x).sum(1))


class Turned(nn.Module):
    """Hands over the examples on the second axis."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.transpose(0, 1)).transpose(0, 1)


class Folded(nn.Module):
    """Takes the places of all examples for examples."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.flatten(0, 1)).unflatten(0, x.shape[:2])


@pytest.mark.parametrize("inner", [nn.Linear(3, 2), nn.RMSNorm(3)])
@pytest.mark.parametrize("examples_per_unit", [1, 2])
def test_places_in_the_axis_of_examples_are_told_apart(inner: nn.Module, examples_per_unit: int) -> None:
    check(Folded(inner), torch.randn(6, 5, 3), examples_per_unit=examples_per_unit)
    check(Folded(inner), torch.randn(1, 5, 3))


class Centred(nn.Module):
    """Mixes examples where no layer with parameters sees it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        made = self.inner(x)
        return made - made.mean(0)


class Averaged(nn.Module):
    """Mixes examples in a layer that has no rule."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale - x.mean(0)


@pytest.mark.parametrize("inner", [nn.Linear(3, 2), nn.RMSNorm(3)])
@pytest.mark.parametrize("places", [4, 5])
def test_examples_on_another_axis_are_refused_even_if_it_is_as_long(inner: nn.Module, places: int) -> None:
    x = torch.randn(5, places, 3)
    losses = lambda model: model(x).flatten(1).sum(1)
    for made in (Turned(inner), Centred(inner)):
        with pytest.raises(Entangled, match=r"'inner' (has inputs or outputs|makes of one example moves)"):
            Engine(made, Flat()).clipped_sum(partial(losses, made))


def test_a_layer_that_mixes_is_named() -> None:
    x = torch.randn(5, 3)
    model = nn.Sequential(nn.Linear(3, 3), Averaged())
    with pytest.raises(InvalidParameter, match=r"'1' \(Averaged\) mixes examples"):
        Engine(model, Flat()).clipped_sum(lambda: model(x).sum(1))


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (nn.Conv2d(5, 2, 2), torch.randn(5, 4, 4)),
        (nn.InstanceNorm1d(5, affine=True), torch.randn(5, 4)),
        (nn.LayerNorm(5), torch.randn(5)),
        (nn.ConvTranspose2d(5, 5, 2), torch.randn(5, 4, 4)),
    ],
)
def test_inputs_without_an_axis_of_examples_are_refused(layer: nn.Module, x: Tensor) -> None:
    model = nn.Sequential(layer)
    with pytest.raises(
        InvalidParameter, match=r"does not count the 5 examples|\(ConvTranspose2d\) mixes examples"
    ):
        Engine(model, Flat()).clipped_sum(lambda: model(x)[:5].reshape(-1)[:5])


@pytest.mark.parametrize("idle", [nn.Linear(2, 1), nn.RMSNorm(2)])
def test_a_parameter_without_a_part_is_named(idle: nn.Module) -> None:
    model = nn.ModuleDict({"used": nn.Linear(2, 1), "idle": idle})
    x = torch.randn(3, 2)

    def losses(call: bool) -> Tensor:
        if call:
            model["idle"](x)
        return model["used"](x).squeeze(1)

    for call in (False, True):
        with pytest.raises(InvalidParameter, match=r"'idle\.\w+' took no part"):
            Engine(model, Flat()).clipped_sum(partial(losses, call))


@pytest.mark.parametrize(
    ("losses", "examples_per_unit", "message"),
    [
        (lambda out: out.mean(), 1, "reduction='none'"),
        (lambda out: out, 1, "one number for each example"),
        (lambda out: out[:0, 0], 1, "one number for each example"),
        (lambda out: out.detach()[:, 0], 1, "does not depend on any trainable"),
        (lambda out: out[:, 0], 2, "2 examples for each person"),
    ],
)
def test_losses_that_are_refused(
    losses: Callable[[Tensor], Tensor], examples_per_unit: int, message: str
) -> None:
    model, x = nn.Linear(2, 2), torch.randn(3, 2)
    with pytest.raises(InvalidParameter, match=message):
        Engine(model, Flat()).clipped_sum(lambda: losses(model(x)), examples_per_unit=examples_per_unit)
