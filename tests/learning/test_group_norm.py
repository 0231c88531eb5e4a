import pytest
import torch
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Engine, Flat, with_group_norm


def net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 12, 3), nn.BatchNorm2d(12), nn.Sequential(nn.ReLU(), nn.BatchNorm2d(12, affine=False))
    )


def test_every_batch_norm_is_replaced_and_the_original_is_not() -> None:
    model = net()
    made = with_group_norm(model, groups=5)
    assert isinstance(model[1], nn.BatchNorm2d)
    outer, inner = made.get_submodule("1"), made.get_submodule("2.1")
    assert isinstance(outer, nn.GroupNorm)
    assert isinstance(inner, nn.GroupNorm)
    assert outer.num_groups == 4
    assert list(inner.parameters()) == []
    assert made(torch.randn(2, 3, 6, 6)).shape == (2, 12, 4, 4)


def test_scale_and_shift_are_kept() -> None:
    model = net()
    nn.init.constant_(model.get_parameter("1.weight"), 3.0)
    assert torch.equal(with_group_norm(model).get_parameter("1.weight"), torch.full((12,), 3.0))


def test_one_layer_used_twice_stays_one() -> None:
    shared = nn.BatchNorm1d(8)
    made = with_group_norm(nn.Sequential(nn.Linear(8, 8), shared, nn.Linear(8, 8), shared))
    assert made.get_submodule("1") is made.get_submodule("3")


def test_the_model_itself_may_be_one() -> None:
    assert isinstance(with_group_norm(nn.BatchNorm1d(7)), nn.GroupNorm)


def test_the_engine_offers_it_and_takes_it() -> None:
    with pytest.raises(InvalidParameter, match=r"layer '1' is a BatchNorm2d.*with_group_norm"):
        Engine(net(), Flat())
    Engine(with_group_norm(net()), Flat())


@pytest.mark.parametrize(("channels", "groups"), [(16, 2), (64, 8), (7, 1), (8, 1), (512, 32)])
def test_rows_of_numbers_keep_something_to_learn(channels: int, groups: int) -> None:
    made = with_group_norm(nn.BatchNorm1d(channels))
    assert made.num_groups == groups
    row = made(torch.randn(1, channels))  # a batch of one, as a run may draw
    assert row.abs().max() > 0.1
