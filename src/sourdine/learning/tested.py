"""What a test of gradients was made of, so that it is made again when the model or its losses change."""

import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter, SourdineError, VoidRun
from sourdine.learning.data.trees import Tree, part_of
from sourdine.learning.devices.wrapping import plain_calls
from sourdine.learning.gradients.drawing import check_full_batch
from sourdine.learning.gradients.self_test import compare_gradients, repeat_comparison
from sourdine.learning.gradients.way import GradientWay
from sourdine.learning.model_state import HOOKS, OWN, digest, is_library, is_opened, parts_of_function
from sourdine.learning.task import Task

Fingerprint = Mapping[str, object]
_Subject = tuple[Callable[..., Tensor], Tree, Callable[[], Tree] | None]

_KEPT = 16  # tests that are remembered
_AGAIN = 3  # examples of a test that is repeated: three show whose gradient is whose
_SMALL = 64  # numbers of a tensor, or a whole number, that count each
_ENTRIES = 16  # of a container
_DEEPEST = 3


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


class SelfTests:
    """The tests that a model and its losses passed, and those that they must pass yet.

    A test holds for the layers as they are, their hooks and attributes, and what functions refer to. It is
    due again after 1, 2, 4, 8, ... steps and before the last one is handed out, since what changes with the
    number of calls shows in nothing else.
    """

    def __init__(self, model: nn.Module, outer: nn.Module, remedy: str) -> None:
        """`outer` is the model as torch wraps it."""
        self._model, self._outer, self._remedy = model, outer, remedy
        self._passed: list[tuple[Fingerprint, GradientWay]] = []
        self._moving: set[str] = set()  # what tests change themselves, such as a count of calls
        self._due = 1
        self.claimed = 0  # steps before which the last test was passed
        self._subject: _Subject | None = None

    def forget(self) -> None:
        """Make all tests once more."""
        self._passed, self._subject = [], None

    def begin(self, losses: Callable[..., Tensor], way: GradientWay) -> None:
        """Note a test that was just passed."""
        self._keep(losses, way, {}, 0)
        self._moving = set()

    def way(
        self,
        losses: Callable[..., Tensor],
        few: Tree,
        full: Callable[[], Tree] | None,
        step: int,
    ) -> tuple[GradientWay, bool]:
        """The way to the gradients of a model before a step, and whether it was found by a new test.

        `few` are some examples that are nobody's, and `full` makes a batch as large as those of the run.
        """
        subject = losses, few, full
        if (found := self._known(losses)) is None:
            return self._test(subject, step), True
        self._subject = subject
        if step >= self._due:
            with self._unclaimed(step):
                self._test_again(subject, found, step)
        return found, False

    def confirm(self, step: int, *, last: bool) -> None:
        """Test again after examples were taken in, if something changed meanwhile or it is the last step."""
        if self._subject is None:
            return
        found = self._known(self._subject[0], attributes=False)  # these were put back
        with self._unclaimed(step):
            if found is None:
                self._test(self._subject, step)
            elif last and self.claimed < step:
                self._test_again(self._subject, found, step)

    def _known(self, losses: object, *, attributes: bool = True) -> GradientWay | None:
        now = fingerprint(self._model, losses, attributes=attributes)
        for then, way in reversed(self._passed):
            names = {**now, **then} if attributes else now
            if all(now[name] == then.get(name) for name in now if name not in self._moving) and (
                now.keys() >= names.keys() - self._moving
            ):
                return way
        return None

    def _test(self, subject: _Subject, step: int) -> GradientWay:
        losses, few, full = subject
        before = fingerprint(self._model, losses)
        with plain_calls(self._outer):
            way = compare_gradients(self._model, losses, few, remedy=self._remedy)
            if way.reason is None and full is not None:
                check_full_batch(self._model, losses, full())
        self._keep(losses, way, before, step)
        self._subject = subject
        return way

    def _test_again(self, subject: _Subject, way: GradientWay, step: int) -> None:
        losses, few, full = subject
        few = part_of(few, 0, _AGAIN)  # what is written is seen in every step
        with plain_calls(self._outer):
            if repeat_comparison(self._model, losses, few, way, remedy=self._remedy) and full is not None:
                check_full_batch(self._model, losses, full(), again=True)
        self._note_passed(step)

    def _keep(self, losses: object, way: GradientWay, before: Fingerprint, step: int) -> None:
        now = fingerprint(self._model, losses)
        self._moving |= {name for name in {**before, **now} if before.get(name) != now.get(name)}
        self._passed = [*self._passed[1 - _KEPT :], (now, way)]
        self._note_passed(step)

    def _note_passed(self, step: int) -> None:
        self.claimed, self._due = step, max(1, 2 * step)

    @contextmanager
    def _unclaimed(self, step: int) -> Iterator[None]:
        """Where a test fails, let nothing be claimed that came after the last one that was passed."""
        try:
            yield
        except SourdineError as problem:
            raise VoidRun(
                f"The model passed its test before step {self.claimed + 1:,} and fails it at step "
                f"{step + 1:,}, so that nothing is claimed from step {self.claimed + 1:,} on. The charge "
                f"stands. {problem}"
            ) from problem


def fingerprint(model: nn.Module, losses: object, *, attributes: bool = True) -> Fingerprint:
    """Return what the gradients of a model depend on beside its parameters, by name.

    Of numbers above 64 only the size counts, of real ones the power of two, so that what fades in or is
    counted is tested now and then. Two functions with the same code that refer to the same are alike.

    >>> model = nn.Linear(1, 1)
    >>> made = [lambda x: model(x) + 1 for _ in range(2)]
    >>> fingerprint(model, made[0]) == fingerprint(model, made[1])
    True
    """
    print_ = _Fingerprint()
    print_.entries["numbers"] = (
        torch.get_default_dtype(),
        *(torch.is_autocast_enabled(device) for device in ("cpu", "cuda")),
        torch.get_autocast_dtype("cpu"),
        *nn.modules.module._global_forward_hooks.values(),
        *nn.modules.module._global_forward_pre_hooks.values(),
    )
    layers = dict(model.named_modules())
    print_.skip(layers.values())
    print_.note("losses", losses, 0)
    for kind in {type(layer): None for layer in layers.values()}:
        print_.note_class(kind)
    for name, layer in layers.items():
        print_.note_calls(name, layer)
    if attributes:  # last, so that the same is noted without them
        for name, layer in layers.items():
            print_.note_attributes(name, layer)
    return print_.entries


class _Fingerprint:
    def __init__(self) -> None:
        self.entries: dict[str, object] = {}
        self._seen: set[int] = set()

    def skip(self, things: Iterable[object]) -> None:
        """Note nothing of some objects where others refer to them."""
        self._seen.update(map(id, things))

    def note_calls(self, name: str, layer: nn.Module) -> None:
        """Note the class of a layer, its mode, its hooks and a forward of its own."""
        self.entries[f"{name}:"] = _Same(layer), type(layer), type(layer).forward, layer.training
        for hooks in HOOKS:
            for number, hook in enumerate(layer.__dict__.get(hooks, {}).values()):
                self.note(f"{name}:{hooks}[{number}]", hook, 1)
        if "forward" in layer.__dict__:
            self.note(f"{name}:forward", layer.__dict__["forward"], 1)

    def note_attributes(self, name: str, layer: nn.Module) -> None:
        """Note the attributes of a layer, and what its parameters and buffers are."""
        for attribute, value in layer.__dict__.items():
            if isinstance(value, Tensor):
                self.entries[f"{name}:{attribute}"] = value.dtype, value.shape, _content(value)
            elif attribute not in OWN:
                self.note(f"{name}:{attribute}", value, 1)
        for attribute, value in (*layer._parameters.items(), *layer._buffers.items()):
            if value is not None:
                content = b"" if isinstance(value, nn.Parameter) else _content(value)
                hooked = tuple((value._backward_hooks or {}).values())
                form = value.shape, value.dtype, value.requires_grad
                self.entries[f"{name}:{attribute}"] = *form, content, hooked

    def note_class(self, kind: type) -> None:
        """Note the functions of a class that is not of a library, and what they refer to."""
        for base in kind.__mro__:
            if not is_library(base):
                for name, value in vars(base).items():
                    if not name.startswith("__") or callable(value):
                        self.note(f"{base.__qualname__}.{name}", value, 1)

    def note(self, path: str, value: object, depth: int) -> None:
        """Note what something is, and what it refers to in turn."""
        plain = _plain(value, 0)
        if plain is not None:
            self.entries[path] = plain
            return
        if id(value) in self._seen or depth > _DEEPEST:
            return
        self._seen.add(id(value))
        parts = parts_of_function(value)
        if parts is not None:
            self.entries[path] = getattr(value, "__code__", type(value).__name__)
            for number, (_, name, part) in enumerate(parts):
                self.note(f"{path}.{name or number}", part, depth if name == "" else depth + 1)
        elif isinstance(value, nn.Module):  # of others, such as a teacher
            self.skip(value.modules())
            for name, layer in value.named_modules():
                self.note_calls(f"{path}.{name}", layer)
                self.note_attributes(f"{path}.{name}", layer)
        else:
            self.entries[path] = _Same(value)
            if hasattr(value, "__dict__") and is_opened(type(value), True):
                self.note_class(type(value))
                for name, part in vars(value).items():
                    self.note(f"{path}.{name}", part, depth + (type(value) is not Task))


def _plain(value: object, depth: int) -> object:
    """A number, a text or a container of them in a form that can be compared; None of all else."""
    if value is None or isinstance(value, bool | str | bytes | Enum | torch.dtype | torch.device):
        return type(value), value
    if isinstance(value, int):
        return int, value if abs(value) <= _SMALL else (value > 0, value.bit_length())
    if isinstance(value, float):
        return float, value > 0, float(np.frexp(value)[1]) if np.isfinite(value) else str(value)
    if isinstance(value, Tensor):
        return type(value), value.dtype, value.ndim
    if isinstance(value, np.ndarray):
        return type(value), str(value.dtype), value.ndim
    if isinstance(value, types.ModuleType | type):
        return _Same(value)
    if isinstance(value, list | tuple | set | frozenset | dict):
        size = len(value)
        if size > _ENTRIES or depth > _DEEPEST:
            return type(value), size.bit_length()
        items = value.items() if isinstance(value, dict) else value
        each = tuple(_plain(item, depth + 1) for item in items)
        return type(value), frozenset(each) if isinstance(value, set | frozenset) else each
    return _Same(value) if depth else None


def _content(value: Tensor) -> bytes:
    """The bits of a few numbers, such as a temperature."""
    return digest(value) if value.numel() <= _SMALL else b""


@dataclass(frozen=True, eq=False)
class _Same:
    """An object that equals itself alone, and is kept, so that no other gets its number."""

    thing: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)
