"""A model without BatchNorm, whose statistics mix the people of a batch."""

import copy

from torch import nn

from sourdine.core import check

_MIXING = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_ROW_GROUP = 8  # channels: of two, only which is larger would be left


def with_group_norm(model: nn.Module, *, groups: int = 32) -> nn.Module:
    """A copy of a model in which every BatchNorm is a GroupNorm, of at most so many groups.

    The number of groups divides that of the channels. A BatchNorm1d becomes groups of eight channels or more:
    in rows without a length a channel is one number, which alone would become zero. Scale and shift are kept;
    running statistics are not: they may come from data that nobody paid for.

    >>> with_group_norm(nn.Sequential(nn.Conv2d(3, 48, 3), nn.BatchNorm2d(48)))[1].num_groups
    24
    """
    groups = check.integer("with_group_norm", "groups", groups, 1, 1 << 20)
    made = copy.deepcopy(model)
    if isinstance(made, _MIXING):
        return _grouped(made, groups)
    seen: dict[nn.Module, nn.Module] = {}
    for layer in list(made.modules()):
        for name, inner in list(layer._modules.items()):  # not named_children, which tells twins once
            if isinstance(inner, _MIXING):
                setattr(layer, name, seen.setdefault(inner, _grouped(inner, groups)))
    return made


def _grouped(
    layer: nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm, groups: int
) -> nn.Module:
    channels = layer.num_features
    bound = max(channels // _ROW_GROUP, 1) if isinstance(layer, nn.BatchNorm1d) else channels
    most = max(each for each in range(1, min(groups, bound) + 1) if channels % each == 0)
    made = nn.GroupNorm(most, channels, eps=layer.eps, affine=layer.affine)
    if layer.affine:
        made.weight, made.bias = layer.weight, layer.bias
    return made.train(layer.training)
