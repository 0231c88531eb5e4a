import math
import random
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from sourdine.core.errors import InvalidParameter
from sourdine.learning.clipping import Automatic, Clipping, Flat, PerLayer
from sourdine.learning.engine import Engine
from tests.learning import architectures, reference

CLOSE = 1e-5
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
CLIPPINGS: tuple[Callable[[float], Clipping], ...] = (
    lambda norm: Flat(norm=norm),
    lambda norm: PerLayer(norm=norm),
    lambda norm: Automatic(norm=norm, stability=0.1),
)


def losses_of(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """A loss that is neither linear nor symmetric in the outputs."""

    def losses(x: Tensor) -> Tensor:
        out = model(x).flatten(1)
        return (out * torch.linspace(0.5, 1.5, out.shape[1], dtype=out.dtype)).sin().sum(
            1
        ) + out.square().mean(1)

    return losses


def layer_of(name: str) -> str:
    """The layer of a parameter; weights made of others and parts of attention count with the whole."""
    return re.sub(r"(^|\.)(parametrizations\.\w+|out_proj)$", "", name.rpartition(".")[0])


def check(
    model: nn.Module, x: Tensor, clipping: Callable[[float], Clipping] | None = None, per_unit: int = 1
) -> None:
    """The engine's sum is that of the definitions, with a norm that clips about half of the examples."""
    losses = losses_of(model)
    each = reference.merged(reference.gradients(model, losses, x), per_unit)
    norms = [math.sqrt(sum(float(value.square().sum()) for value in one.values())) for one in each]
    made = (clipping or CLIPPINGS[0])(sorted(norms)[len(norms) // 2] or 1.0)
    found = Engine(model, made).clipped_sum(lambda: losses(x), per_unit=per_unit)
    expected = reference.clipped(each, made, {name: layer_of(name) for name in each[0]})
    assert reference.distance(found, expected) < CLOSE
    assert all(value.grad is None for value in model.parameters())


def check_drawn(seed: int) -> None:
    found = architectures.drawn(seed)
    source = random.Random(seed)
    dtype = source.choice([torch.float32, torch.float64])
    per_unit = source.choice([1, 1, 2])
    x = found.inputs(6, dtype)
    check(found.model.to(dtype), x, source.choice(CLIPPINGS), per_unit)


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


def test_hooks_of_others_see_one_run_and_may_change_it() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.RMSNorm(3))
    seen = []
    for layer in model:
        layer.register_forward_hook(lambda layer, args, out: seen.append(1) or out * 2)
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
    model.forward = lambda x: layer(x)[0]  # type: ignore[method-assign, assignment]
    held = []
    Engine(model, Flat()).clipped_sum(
        lambda: held.append(model(torch.ones(64, 1, 2))) or held[0].flatten(1).sum(1)
    )
    assert 2 < len(held[0].detach().unique(dim=0)) <= 64


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
    with pytest.raises(InvalidParameter, match="'0' makes its weights of others by a hook"):
        Engine(nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 2))), Flat())


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
    for made in (Turned(inner), Folded(inner), Centred(inner)):
        with pytest.raises(
            InvalidParameter, match=r"'inner' (has inputs or outputs|makes of one example moves)"
        ):
            Engine(made, Flat()).clipped_sum(lambda made=made: made(x).flatten(1).sum(1))


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
            Engine(model, Flat()).clipped_sum(lambda call=call: losses(call))


@pytest.mark.parametrize(
    ("losses", "per_unit", "message"),
    [
        (lambda out: out.mean(), 1, "reduction='none'"),
        (lambda out: out, 1, "one number for each example"),
        (lambda out: out[:0, 0], 1, "one number for each example"),
        (lambda out: out.detach()[:, 0], 1, "does not depend on any trainable"),
        (lambda out: out[:, 0], 2, "2 examples for each person"),
    ],
)
def test_losses_that_are_refused(losses: Callable[[Tensor], Tensor], per_unit: int, message: str) -> None:
    model, x = nn.Linear(2, 2), torch.randn(3, 2)
    with pytest.raises(InvalidParameter, match=message):
        Engine(model, Flat()).clipped_sum(lambda: losses(model(x)), per_unit=per_unit)


def layers_for_bad_examples() -> list[tuple[nn.Module, tuple[int, ...]]]:
    return [
        (nn.Linear(3, 2), (3,)),
        (nn.Linear(3, 2), (4, 3)),
        (nn.Linear(80, 90), (2, 80)),
        (nn.Conv1d(2, 4, 2, groups=2, padding=1, padding_mode="circular"), (2, 5)),
        (nn.Conv2d(2, 40, 2, padding=1), (2, 2, 2)),
        (nn.Conv2d(40, 40, 3), (40, 4, 4)),
        (nn.Conv3d(1, 2, 2), (1, 3, 3, 3)),
        (nn.LayerNorm(3), (4, 3)),
        (nn.GroupNorm(2, 4), (4, 3)),
        (nn.InstanceNorm1d(2, affine=True), (2, 5)),
        (nn.RMSNorm(3), (4, 3)),
        (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), (3, 4)),
        (architectures.First(nn.GRU(3, 2, batch_first=True)), (4, 3)),
        (architectures.Scaled(nn.Linear(3, 3), tied=True), (4, 3)),
    ]


@pytest.mark.parametrize("case", range(len(layers_for_bad_examples())))
@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_examples_that_are_not_finite_add_exactly_nothing(
    case: int, clipping: Callable[[float], Clipping]
) -> None:
    torch.manual_seed(case)
    layer, shape = layers_for_bad_examples()[case]
    x = torch.randn(7, *shape)
    factors = torch.ones(7)
    x[1], x[2], x[3] = math.inf, math.nan, 1e38
    x[4].view(-1)[0] = -math.inf
    factors[5] = math.nan
    good = torch.tensor([0, 6])

    def losses(x: Tensor, factors: Tensor) -> Tensor:
        return layer(x).flatten(1).square().sum(1) * factors

    engine = Engine(layer, clipping(0.1))
    found = engine.clipped_sum(lambda: losses(x, factors))
    expected = engine.clipped_sum(lambda: losses(x[good], factors[good]))
    assert all(bool(torch.isfinite(value).all()) for value in found.values())
    largest = max(float(value.abs().max()) for value in expected.values())
    # a norm layer shrinks 1e38 to an ordinary gradient, which counts
    kept = engine.clipped_sum(lambda: losses(x[[0, 3, 6]], factors[[0, 3, 6]]))
    differs = [max(float((found[n] - each[n]).abs().max()) for n in found) for each in (expected, kept)]
    assert min(differs) < 1e-5 * largest


def test_rows_of_a_table_get_nothing_from_a_bad_example() -> None:
    model = architectures.Tied(30, 4, 0, nn.Identity())
    words, factors = torch.randint(0, 30, (5, 3)), torch.tensor([1.0, math.inf, 1.0, math.nan, 1.0])
    engine = Engine(model, Flat(norm=0.1))
    found = engine.clipped_sum(lambda: model(words).flatten(1).square().sum(1) * factors)
    good = torch.tensor([0, 2, 4])
    expected = engine.clipped_sum(lambda: model(words[good]).flatten(1).square().sum(1))
    assert reference.distance(found, expected) < CLOSE


def test_all_examples_bad_is_zero() -> None:
    model, x = nn.Linear(3, 2), torch.full((4, 3), math.nan)
    found = Engine(model, Flat()).clipped_sum(lambda: model(x).sum(1))
    assert all(not bool(value.any()) for value in found.values())


def test_a_bad_example_of_a_person_silences_the_person() -> None:
    model, x = nn.Linear(3, 1), torch.randn(6, 3)
    x[3] = math.inf
    engine = Engine(model, Flat(norm=0.5))
    found = engine.clipped_sum(lambda: model(x).squeeze(1), per_unit=2)
    good = torch.tensor([0, 1, 4, 5])
    expected = engine.clipped_sum(lambda: model(x[good]).squeeze(1), per_unit=2)
    assert reference.distance(found, expected) < CLOSE


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("seed", range(6))
def test_one_example_moves_the_sum_by_no_more_than_the_norm(
    seed: int, clipping: Callable[[float], Clipping]
) -> None:
    found = architectures.drawn(seed)
    x = found.inputs(5, torch.float32)
    losses = losses_of(found.model)
    for norm in (1e-3, 0.3):
        engine = Engine(found.model, clipping(norm))
        for i in range(len(x)):
            one = engine.clipped_sum(lambda i=i: 1e4 * losses(x[i : i + 1]))
            length = math.sqrt(sum(float(value.double().square().sum()) for value in one.values()))
            assert length <= norm
            assert length > 0.3 * norm or isinstance(engine.clipping, PerLayer)


def test_terms_that_cancel_do_not_hide_a_long_gradient() -> None:
    # float32 sees the places of an example cancel, and what it leaves of them must still be short
    torch.manual_seed(3)
    layer = nn.Linear(200, 200, bias=False)
    half = torch.randn(5, 16, 200) * 1e3
    x = torch.cat([half, half], dim=1)
    noise = torch.randn(16, 200) * 1e3
    factors = torch.cat([noise, -noise * (1 + 1e-6)], dim=0)
    engine = Engine(layer, Flat(norm=1.0))
    for i in range(5):
        (one,) = engine.clipped_sum(lambda i=i: (layer(x[i : i + 1]) * factors).flatten(1).sum(1)).values()
        assert float(one.double().norm()) <= 1.001


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
