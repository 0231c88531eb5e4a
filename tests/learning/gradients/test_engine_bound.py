import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from sourdine.learning import Clipping, Engine, Flat, PerLayer
from sourdine.learning.gradients.per_example import Outer
from tests.learning import architectures, reference
from tests.learning.sums import CLIPPINGS, CLOSE, losses_of

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")


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
    found = engine.clipped_sum(lambda: model(x).squeeze(1), examples_per_unit=2)
    good = torch.tensor([0, 1, 4, 5])
    expected = engine.clipped_sum(lambda: model(x[good]).squeeze(1), examples_per_unit=2)
    assert reference.distance(found, expected) < CLOSE


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("seed", range(6))
def test_one_example_moves_the_sum_by_no_more_than_the_norm(
    seed: int, clipping: Callable[[float], Clipping]
) -> None:
    found = architectures.drawn(seed)
    x = found.inputs(5, torch.float32)
    losses = losses_of(found.model)
    large = lambda one: 1e4 * losses(one)
    for norm in (1e-3, 0.3):
        engine = Engine(found.model, clipping(norm))
        for i in range(len(x)):
            one = engine.clipped_sum(partial(large, x[i : i + 1]))
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
    losses = lambda one: (layer(one) * factors).flatten(1).sum(1)
    for i in range(5):
        (one,) = engine.clipped_sum(partial(losses, x[i : i + 1])).values()
        assert float(one.double().norm()) <= 1.0


@pytest.mark.parametrize("places", [16, 64, 256])
@pytest.mark.parametrize("left", [2.0**-12, 2.0**-10, 2.0**-8])
def test_no_crafted_example_passes_the_norm(places: int, left: float) -> None:
    # every addition rounds up by half of the last bit, and then nearly all of the sum is taken away again
    a, g = torch.zeros(1, 1, places, 1100), torch.zeros(1, 1, places, 1100)
    a[..., 0], g[..., 0] = 1.0, 2.0**-24 * (1 + 2.0**-10)
    g[0, 0, 0, 0], g[0, 0, -1, 0] = 1.0, left - 1.0
    made = Outer(a, g, torch.Size((1100, 1100)))
    norm = 0.5 * float(made.squares().sqrt()) / (1 - 2.0**-18)  # for which the weight is a half
    weights = Flat(norm=norm).weights({"": made.squares()})[""]
    assert float(weights) == pytest.approx(0.5)
    assert float(made.weighted(weights).double().norm()) <= norm


def test_an_example_that_cancels_leaves_the_sum_of_others_alone() -> None:
    # huge terms that cancel would fill the sum with their rounding, which others would then move
    source = torch.Generator().manual_seed(1)
    layer = nn.Linear(96, 96, bias=False)
    half = torch.randn(40, 8, 96, generator=source) * 1e6
    x = torch.cat([half, half], dim=1)
    noise = torch.randn(8, 96, generator=source)
    factors = torch.cat([noise, -noise], dim=0)
    engine = Engine(layer, Flat(norm=1.0))
    losses = lambda one: (layer(one) * factors).flatten(1).sum(1)
    with_all = engine.clipped_sum(lambda: losses(x))["weight"].double()
    without_one = engine.clipped_sum(lambda: losses(x[1:]))["weight"].double()
    assert float((with_all - without_one).norm()) <= 2e-3


def test_factors_too_long_to_be_squared_add_exactly_nothing() -> None:
    layer, x = nn.Linear(80, 90, bias=False), torch.full((1, 3, 80), 2.0**70)
    losses = lambda: layer(x).flatten(1).sum(1) * 2.0**-80
    (found,) = Engine(layer, Flat(norm=2.0**-40)).clipped_sum(losses).values()
    assert not bool(found.any())
