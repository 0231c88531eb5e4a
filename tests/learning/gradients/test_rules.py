import itertools
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from sourdine.learning.gradients import cost
from sourdine.learning.gradients.per_example import GradientRows, Outer, PerExample
from sourdine.learning.gradients.rules import RULES

EXAMPLES = 4


def expected(layer: nn.Module, x: Tensor, g: Tensor) -> dict[str, Tensor]:
    """Gradients by a backward pass for each example."""
    each = [
        torch.autograd.grad((layer(x[i : i + 1]) * g[i : i + 1]).sum(), list(layer.parameters()))
        for i in range(len(x))
    ]
    names = [name for name, _ in layer.named_parameters()]
    return {name: torch.stack(values) for name, values in zip(names, zip(*each, strict=True), strict=True)}


def found(layer: nn.Module, x: Tensor, g: Tensor) -> dict[str, PerExample]:
    with torch.no_grad():
        return dict(RULES[type(layer)](layer, x, g))


def check(layer: nn.Module, x: Tensor) -> dict[str, PerExample]:
    g = torch.randn_like(layer(x))
    parts = found(layer, x, g)
    for name, wanted in expected(layer, x, g).items():
        atol = max(1e-5, 1e-6 * float(wanted.abs().max()))  # sums of floats round by their largest terms
        assert torch.allclose(parts[name].whole().reshape(wanted.shape), wanted, rtol=1e-4, atol=atol), name
        assert torch.allclose(parts[name].squares(), wanted.flatten(1).square().sum(1), rtol=1e-4, atol=1e-6)
    return parts


@pytest.mark.parametrize("axes", [(), (3,), (2, 3), (2, 1, 3)])
def test_linear(axes: tuple[int, ...]) -> None:
    check(nn.Linear(5, 4), torch.randn(EXAMPLES, *axes, 5))


SHAPES = {1: (9,), 2: (7, 8), 3: (5, 4, 6)}
CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
Mode = Literal["zeros", "reflect", "replicate", "circular"]


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_convolutions(axes: int, groups: int, mode: Mode) -> None:
    for stride, dilation, padding in itertools.product((1, 2), (1, 2), (0, 1, 2)):
        layer = CONVOLUTIONS[axes](
            4, 8, 2, stride=stride, dilation=dilation, padding=padding, groups=groups, padding_mode=mode
        )
        check(layer, torch.randn(EXAMPLES, 4, *SHAPES[axes]))


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("mode", ["zeros", "circular"])
@pytest.mark.parametrize("size", [2, 3])
def test_convolutions_padded_by_name(axes: int, padding: str, mode: Mode, size: int) -> None:
    layer = CONVOLUTIONS[axes](2, 3, size, padding=padding, padding_mode=mode)
    check(layer, torch.randn(EXAMPLES, 2, *SHAPES[axes]))


def test_uneven_windows() -> None:
    layer = nn.Conv2d(3, 6, (1, 4), stride=(3, 1), padding=(2, 0), dilation=(1, 2), groups=3, bias=False)
    check(layer, torch.randn(EXAMPLES, 3, 5, 11))


def test_a_large_convolution_keeps_its_windows_and_a_small_one_its_gradients() -> None:
    assert isinstance(check(nn.Conv2d(30, 60, 3), torch.randn(EXAMPLES, 30, 4, 4))["weight"], Outer)
    assert isinstance(check(nn.Conv2d(3, 4, 3), torch.randn(EXAMPLES, 3, 9, 9))["weight"], GradientRows)


def test_many_examples_are_cut_out_by_chunks() -> None:
    check(nn.Conv2d(2, 3, 5), torch.randn(50, 2, 40, 40))


@pytest.mark.parametrize("padding", [None, 0, -1])
@pytest.mark.parametrize("shape", [(), (6,), (2, 3)])
def test_embedding(padding: int | None, shape: tuple[int, ...]) -> None:
    check(nn.Embedding(5, 3, padding_idx=padding), torch.randint(0, 5, (EXAMPLES, *shape)))


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("over", [1, 2])
def test_layer_norm(shape: tuple[int, ...], over: int) -> None:
    check(nn.LayerNorm(shape[-over:]), torch.randn(EXAMPLES, *shape))
    check(nn.LayerNorm(shape[-over:], bias=False, eps=0.1), torch.randn(EXAMPLES, *shape))


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 3, 2)])
@pytest.mark.parametrize("groups", [1, 2])
def test_group_norm(shape: tuple[int, ...], groups: int) -> None:
    check(nn.GroupNorm(groups, 4, eps=0.1), torch.randn(EXAMPLES, *shape))


@pytest.mark.parametrize("layer", [nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d])
def test_instance_norm(layer: type[nn.InstanceNorm1d]) -> None:
    axes = int(layer.__name__[-2])
    check(layer(4, affine=True, eps=0.1), torch.randn(EXAMPLES, 4, *range(3, 3 + axes)))


def test_a_subclass_has_no_rule() -> None:
    class Other(nn.Linear):
        pass

    assert type(Other(2, 2)) not in RULES
    assert nn.Linear in RULES


@pytest.mark.parametrize("groups", [1, 4])
def test_a_convolution_gives_the_same_in_every_way(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for axes, route in itertools.product((1, 2, 3), cost.Route):
        monkeypatch.setattr(cost, "quickest", lambda *_, route=route: route)
        layer = CONVOLUTIONS[axes](4, 8, 2, padding=1, stride=2, groups=groups)
        parts = check(layer, torch.randn(EXAMPLES, 4, *(5,) * axes))
        assert isinstance(parts["weight"], Outer if route is cost.Route.GHOST else GradientRows)


def test_what_is_not_finite_in_one_example_stays_there() -> None:
    layer, x = nn.Conv2d(4, 4, 3, groups=4), torch.randn(3, 4, 8, 8)
    x[1, 2, 3, 4] = torch.inf
    rows = found(layer, x, torch.randn(3, 4, 6, 6))["weight"].whole()
    assert [bool(torch.isfinite(each).all()) for each in rows] == [True, False, True]
