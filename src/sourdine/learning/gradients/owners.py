"""The layers of a model that have trainable parameters of their own, and those that must be refused."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from sourdine.core.errors import InvalidParameter
from sourdine.learning.gradients.entangled import Entangled
from sourdine.learning.gradients.rules import RULES

_LISTS = (nn.ParameterList, nn.ParameterDict)


@dataclass(frozen=True)
class Owner:
    """A layer with trainable parameters, their names in it and in the model, and whether it has no rule."""

    layer: nn.Module
    where: str
    names: Mapping[str, str]
    copied: bool


def check_model(model: nn.Module) -> None:
    """Refuse a model that cannot be trained privately as it is, and say which part of it is why."""
    for name, layer in model.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise InvalidParameter(
                f"The layer '{name}' is a {type(layer).__name__}, which mixes the examples of a batch, so "
                "that no gradient belongs to one person alone. Use a GroupNorm: "
                "sourdine.learning.with_group_norm(model) makes a copy that does."
            )
        if getattr(layer, "track_running_stats", False):
            raise InvalidParameter(
                f"The layer '{name}' keeps running statistics of the data, which no noise would hide. "
                "Make it with track_running_stats=False."
            )
        if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
            _check_table(name, layer)
    if not any(value.requires_grad for value in model.parameters()):
        raise InvalidParameter(
            "The model has no parameter to train. Unfreeze some with requires_grad_(True)."
        )


def _check_table(name: str, layer: nn.Embedding | nn.EmbeddingBag) -> None:
    if layer.max_norm is not None:
        raise InvalidParameter(
            f"The layer '{name}' has a 'max_norm', by which it changes the rows that the data look up, and "
            "no noise would hide which. Make it without."
        )
    if layer.scale_grad_by_freq:
        raise InvalidParameter(
            f"The layer '{name}' scales gradients by how often a row is looked up in the batch, which mixes "
            "people. Make it with scale_grad_by_freq=False."
        )


def owners_of(model: nn.Module) -> Iterator[Owner]:
    """The layers that have trainable parameters of their own."""
    known = {id(value): name for name, value in model.named_parameters() if value.requires_grad}
    inside: set[nn.Module] = set()
    for name, layer in model.named_modules():
        if layer in inside:
            continue
        # these use the parameters of their parts without calling them
        whole = isinstance(layer, nn.MultiheadAttention) or is_parametrized(layer)
        if whole:
            inside.update(layer.modules())
        lists = [] if whole else [name for name, part in layer.named_children() if isinstance(part, _LISTS)]
        inside.update(layer.get_submodule(name) for name in lists)  # the module around them uses them
        own = {
            local: known[id(value)]
            for local, value in layer.named_parameters(recurse=whole or bool(lists), remove_duplicate=False)
            if id(value) in known and (whole or _stands_in(local, lists))
        }
        if own:
            where = name or "the model itself"
            ruled = type(layer) in RULES
            inner = any(
                each.requires_grad
                for name, part in layer.named_children()
                if name not in lists
                for each in part.parameters()
            )
            yield Owner(layer, where, own, copied=not ruled and (whole or not inner))


def _stands_in(name: str, lists: Sequence[str]) -> bool:
    """Whether a parameter is one of a module's own, or in one of its lists."""
    home = name.rpartition(".")[0]
    return not home or home in lists


def layers_of(model: nn.Module) -> dict[str, str]:
    """The layer of each parameter that is trained, by its place in the model; one, if several use it."""
    return layer_names(owners_of(model))


def layer_names(owners: Iterable[Owner]) -> dict[str, str]:
    layers: dict[str, str] = {}
    for owner in owners:
        for name in owner.names.values():
            layers.setdefault(name, owner.where)
    return layers


def check_owner(owner: Owner) -> None:
    layer, where = owner.layer, owner.where
    if isinstance(layer, nn.MultiheadAttention | nn.RNNBase) and not layer.batch_first:
        raise Entangled(
            f"The layer '{where}' ({type(layer).__name__}) wants the examples of a batch on the second axis. "
            "Make it with batch_first=True."
        )
    own = {name for name, _ in layer.named_parameters(recurse=False)}
    if type(layer) in RULES and not own <= {"weight", "bias"}:
        raise Entangled(
            f"The layer '{where}' makes its weights of others by a hook. Use torch.nn.utils.parametrizations "
            "instead, or take the hook off."
        )
