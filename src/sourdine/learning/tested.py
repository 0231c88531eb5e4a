"""What a step has tested of a model and its losses, and when that no longer holds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning.gradients.way import GradientWay


def trained_of(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that want a gradient, by their places in the model."""
    return {name: value for name, value in model.named_parameters() if value.requires_grad}


def check_function(losses: object) -> Callable[..., Tensor]:
    """Refuse losses that were computed already."""
    if not callable(losses):
        raise InvalidParameter(
            "The losses given to Step.add must be a function that runs the model on the parts of a batch, "
            "since gradients are noted while it runs. Write step.add(lambda x, y: ..., inputs, targets)."
        )
    return losses


class TestedWays:
    """How gradients are taken, for each function that was tested, with the model as it then was.

    A test holds for a function as it is written, for what each layer does (train or evaluate), and for what
    is trained. Where one of them is another, the model is tested again.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._ways: dict[object, GradientWay] = {}

    def way(self, losses: object) -> GradientWay | None:
        """The way that a test found for these losses and the model as it is; None where there was none."""
        return self._ways.get(self._subject(losses))

    def keep(self, losses: object, way: GradientWay) -> None:
        """Note what a test has found."""
        self._ways[self._subject(losses)] = way

    def _subject(self, losses: object) -> object:
        modes = tuple(layer.training for layer in self._model.modules())
        return conduct_of(losses), modes, frozenset(map(_Itself, trained_of(self._model).values()))


def conduct_of(losses: object) -> object:
    """What a function does, by its code and by the switches and functions that it holds.

    One that is written in a loop is another object each time, and does the same.

    >>> made = [lambda x: x + 1 for _ in range(2)]
    >>> conduct_of(made[0]) == conduct_of(made[1])
    True
    """
    return _conduct(losses, ())


def _conduct(thing: object, inside: tuple[object, ...]) -> object:
    if isinstance(thing, bool | str):
        return thing
    if not callable(thing) or any(
        thing is each for each in inside
    ):  # numbers and tensors change all the time
        return None
    path = (*inside, thing)
    if isinstance(thing, partial):
        parts = (thing.func, *thing.args, *thing.keywords.values())
        return tuple(_conduct(each, path) for each in parts)
    code = getattr(thing, "__code__", None)
    if code is None:
        return _Itself(thing)
    cells = [_content(cell) for cell in getattr(thing, "__closure__", None) or ()]
    parts = (*cells, *(getattr(thing, "__defaults__", None) or ()))
    owner = getattr(thing, "__self__", None)
    return code, None if owner is None else _Itself(owner), tuple(_conduct(each, path) for each in parts)


def _content(cell: object) -> object:
    try:
        return getattr(cell, "cell_contents", None)
    except ValueError:  # it is not filled yet
        return None


@dataclass(frozen=True, eq=False)
class _Itself:
    """An object that equals itself alone, and is kept, so that no other gets its number."""

    thing: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)
