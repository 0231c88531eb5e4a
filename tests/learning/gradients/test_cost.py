from dataclasses import replace

import pytest
import torch
from torch import nn

from sourdine.learning import Engine, Flat
from sourdine.learning.gradients import cost
from sourdine.learning.gradients.cost import MatrixUse, Route, quickest
from tests.learning import reference
from tests.learning.sums import CLOSE


def test_places_decide_between_copies_and_ghost_norms() -> None:
    routes = [quickest(MatrixUse(16, 1, places, 256, 1024)) for places in (1, 8, 64, 128, 256)]
    assert routes == [Route.GHOST] * 3 + [Route.COPIES] * 2


@pytest.mark.parametrize("inputs", [8, 64, 1000])
@pytest.mark.parametrize("outputs", [8, 64, 1000])
@pytest.mark.parametrize("places", [1, 16, 256])
def test_copies_are_made_only_where_memory_stays_in_proportion(
    inputs: int, outputs: int, places: int
) -> None:
    use = MatrixUse(32, 1, places, inputs, outputs)
    if quickest(use) is Route.COPIES:
        assert inputs * outputs <= 2 * places * (inputs + outputs)


def test_convolutions_have_examples_as_groups_where_windows_are_most_of_the_work() -> None:
    def chosen(channels: int, outputs: int, groups: int = 1) -> Route:
        use = MatrixUse(32, groups, 256, 9 * channels // groups, outputs // groups, 9)
        return quickest(use, tuple(Route))

    assert chosen(64, 64, groups=64) is Route.GROUPS
    assert chosen(64, 64, groups=8) is Route.GROUPS
    assert chosen(3, 32) is Route.COPIES
    assert chosen(96, 128) is Route.COPIES


def test_a_way_takes_longer_for_more_of_anything() -> None:
    for route in Route:
        base = MatrixUse(8, 2, 9, 50, 30, 5)
        for name in ("examples", "groups", "places", "inputs", "outputs"):
            more = replace(base, **{name: 2 * getattr(base, name)})
            assert more.seconds(route) > base.seconds(route) > 0


def layers() -> list[tuple[nn.Module, tuple[int, ...]]]:
    return [
        (nn.Linear(6, 5), (7, 6)),
        (nn.Conv1d(4, 6, 3, padding=1, groups=2), (4, 9)),
        (nn.Conv2d(2, 5, 2, stride=2, padding=1), (2, 6, 7)),
        (nn.Conv2d(4, 4, 3, groups=4, dilation=2), (4, 8, 8)),
        (nn.Conv3d(2, 3, 2), (2, 4, 3, 5)),
    ]


@pytest.mark.parametrize("case", range(5))
@pytest.mark.parametrize("route", list(Route))
def test_sums_are_the_same_in_every_way(case: int, route: Route, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(case)
    layer, shape = layers()[case]
    if route is Route.GROUPS and isinstance(layer, nn.Linear):
        return
    x = torch.randn(5, *shape)
    losses = lambda one: layer(one).flatten(1).square().sum(1)
    gradients = reference.gradients(layer, losses, x)
    expected = reference.clipped(gradients, Flat(norm=0.7), {"weight": "", "bias": ""})
    monkeypatch.setattr(cost, "quickest", lambda *_: route)
    found = Engine(layer, Flat(norm=0.7)).clipped_sum(lambda: losses(x))
    assert reference.distance(found, expected) < CLOSE
