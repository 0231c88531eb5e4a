"""What a model and its losses keep between two calls, and how it is put back.

A forward pass may write: into a parameter (a codebook that follows an average), a buffer, an attribute (the
last input), a list in a closure. No noise hides what is written, and later gradients of others depend on it.
So attributes are put back before each call, and parameters and buffers are compared before and after.
"""

import argparse
import functools
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, Dataset

from sourdine.core.errors import VoidRun
from sourdine.learning.task import Task

_COLUMNS = 1021  # of a digest; a prime, so that no rows of tensors are as long
_CLONED = 1 << 20  # numbers of a tensor, up to which its content is kept
_DEEPEST = 6  # attributes of attributes of a model
_NEAR = 2  # of what losses refer to: what is further, other parts of a program may write
_MOST = 1 << 16  # objects that are looked at
_PATCHED = {"forward", "_compiled_call_impl"}  # which the engine replaces while gradients are taken
HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)
OWN = set(nn.Module().__dict__) - {"training"}
_OPAQUE = (
    types.ModuleType,
    type,
    torch.Generator,
    torch.device,
    torch.dtype,
    Optimizer,
    DataLoader,
    Dataset,
)
_LOOKUPS = {
    Tensor.__getitem__,
    Tensor.index_select,
    Tensor.gather,
    Tensor.take,
    torch.index_select,
    torch.gather,
    torch.take,
}
_CONTAINERS = (dict, list, set, deque)
_LIBRARY = (sysconfig.get_path("stdlib"), "site-packages", "dist-packages")


def digest(tensor: Tensor) -> bytes:
    """Return a digest of the bits of a tensor: sums of columns, which all but a planned change moves."""
    if tensor.is_meta or tensor.layout != torch.strided or not tensor.numel():
        return b""
    content = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    row = 8 * _COLUMNS
    whole = len(content) // row * row
    rest = content[whole:].cpu().numpy().tobytes()
    if not whole:
        return rest
    if content.device.type == "cpu":  # numpy adds whole numbers up in half the time
        columns = content[:whole].numpy().view(np.int64).reshape(-1, _COLUMNS).sum(0)
    else:
        columns = content[:whole].clone().view(torch.int64).view(-1, _COLUMNS).sum(0).cpu().numpy()
    return rest + bytes(columns.tobytes())


class ParameterWatch:
    """The parameters and buffers of a model as they were, to see whether something wrote into them."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._before: dict[str, tuple[Tensor, bytes]] | None = None

    def begin(self) -> None:
        """Note what is there, unless that was done before."""
        if self._before is None:
            self._before = {name: (value, digest(value)) for name, value in _values(self._model)}

    def written(self) -> list[str]:
        """The names of parameters and buffers whose content is another one now."""
        before = self._before or {}
        return [name for name, (value, then) in before.items() if digest(value) != then]

    def check(self) -> None:
        """End the run if something was written, and blank what was: it may be a record of somebody."""
        names = self.written()
        before, self._before = self._before or {}, None
        if not names:
            return
        with torch.no_grad():
            for name in names:
                before[name][0].zero_()
        raise VoidRun(
            f"The model wrote into '{names[0]}' while gradients were taken, which no noise hides and its "
            "test on made-up examples did not show. It was set to zero, the charge stands, and nothing of "
            "this run may be handed out."
        )

    def forget(self) -> None:
        """Note anew with the next `begin`."""
        self._before = None


def _values(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


class StateSnapshot:
    """The attributes of a model, and the tensors that it and its losses refer to, as they were."""

    def __init__(self, model: nn.Module, losses: object = None) -> None:
        self.losses = losses
        self._slots: list[_Slot] = []
        self._outside: list[Tensor] = []  # that losses take from elsewhere than the model
        self._seen: dict[int, object] = {id(value): value for _, value in _values(model)}
        self._seen |= {id(layer): layer for layer in model.modules()}  # first: one may refer to a later one
        for layer in model.modules():
            self._slots.append(_ModuleSlot(layer))
            for name in ("_parameters", "_buffers", "_modules"):
                self._slots.append(_DictSlot(layer.__dict__[name]))
            for name, value in layer.__dict__.items():
                if name not in OWN | _PATCHED:
                    self._walk(value, 0, tensors=False)
        for kind in {type(layer): None for layer in model.modules()}:
            self._walk_class(kind)
        for function in (losses, *hooks_of(model)):
            self._walk(function, 0, tensors=True)

    def _walk_class(self, kind: type) -> None:
        for base in kind.__mro__:
            if is_library(base):
                continue
            for value in vars(base).values():
                self._walk(value, 0, tensors=True)

    def _walk(self, value: object, depth: int, *, tensors: bool) -> None:
        if depth > (_NEAR if tensors else _DEEPEST) or id(value) in self._seen or len(self._seen) > _MOST:
            return
        if value is None or isinstance(value, (*_OPAQUE, bool, int, float, str, bytes)):
            return
        self._seen[id(value)] = value
        inside: Collection[object] = ()
        if isinstance(value, Tensor | np.ndarray):
            self._slots.append(_NumbersSlot(value))
            if tensors and isinstance(value, Tensor):
                self._outside.append(value)
        elif isinstance(value, _CONTAINERS):
            self._slots.append(
                _DictSlot(value, tensors) if isinstance(value, dict) else _ListSlot(value, tensors)
            )
            inside = value.values() if isinstance(value, dict) else value
        elif isinstance(value, tuple | frozenset):
            inside = value
        elif isinstance(value, nn.Module):  # of others, such as a teacher
            inside = list(dict(_values(value)).values())
            for layer in value.modules():
                self._seen[id(layer)] = layer
                self._slots.append(_ModuleSlot(layer))
                inside += [each for name, each in layer.__dict__.items() if name not in OWN]
        elif (parts := parts_of_function(value)) is not None:
            for home, key, part in parts:
                if home is not None:
                    self._slots.append(_NameSlot(home, key, part))
            for _, name, part in parts:
                self._walk(part, depth + bool(name), tensors=True)
        elif hasattr(value, "__dict__") and is_opened(type(value), tensors):
            self._walk_class(type(value))
            self._slots.append(_DictSlot(value.__dict__, tensors))
            inside = value.__dict__.values()
            depth -= isinstance(value, Task)
        for each in list(inside):
            self._walk(each, depth + 1, tensors=tensors)

    @property
    def changed(self) -> bool:
        """Whether something is not as it was."""
        return any(slot.changed() for slot in self._slots)

    def put_back(self) -> None:
        """Put everything back that was changed."""
        for slot in self._slots:
            if slot.changed():
                slot.put_back()

    def stand_ins(self, batch: object) -> AbstractContextManager[object]:
        """Let made-up numbers be looked up meanwhile in tensors that losses take from outside of a batch.

        A loss that is given the indices of examples would read real ones.
        """
        given = {id(each) for each in tree_leaves(batch)}
        return _StandIns([each for each in self._outside if id(each) not in given])

    def check(self) -> None:
        """End the run if something was written that could not be put back."""
        if any(slot.lost for slot in self._slots):
            raise VoidRun(
                "The model or its losses wrote into a large tensor while gradients were taken, which cannot "
                "be put back. The charge stands, and nothing of this run may be handed out."
            )


class _StandIns(TorchFunctionMode):
    """Where numbers are looked up in one of some tensors, gives made-up ones."""

    def __init__(self, tensors: list[Tensor]) -> None:
        super().__init__()
        self._known = {id(each): each for each in tensors}
        self._made_up: dict[int, Tensor] = {}

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if args and id(args[0]) in self._known and function in _LOOKUPS:
            args = (self._stand_in(args[0]), *args[1:])
        return function(*args, **(kwargs or {}))

    def _stand_in(self, value: Tensor) -> Tensor:
        if id(value) not in self._made_up:
            source = torch.Generator().manual_seed(len(self._made_up))
            shape = value.shape if value.numel() <= _CLONED else (1, *value.shape[1:])
            if value.dtype.is_floating_point:
                found = torch.randn(shape, generator=source)
            else:
                found = torch.randint(0, 2, shape, generator=source)
            self._made_up[id(value)] = found.to(value.device, value.dtype).expand(value.shape)
        return self._made_up[id(value)]


class _Slot:
    lost = False

    def changed(self) -> bool:
        raise NotImplementedError

    def put_back(self) -> None:
        raise NotImplementedError


class _DictSlot(_Slot):
    """The entries of a dict; with `tensors`, of those alone that are tensors, or hold one."""

    def __init__(self, value: dict[Any, Any], tensors: bool = False) -> None:
        self._value, self._before, self._tensors = value, dict(value), tensors

    def changed(self) -> bool:
        return not _same(self._value, self._before)

    def put_back(self) -> None:
        for key in [*self._value, *self._before]:
            now, then = self._value.get(key, _NOTHING), self._before.get(key, _NOTHING)
            if now is then or (self._tensors and not (_of_numbers(now) or _of_numbers(then))):
                continue
            if then is _NOTHING:
                del self._value[key]
            else:
                self._value[key] = then


class _ModuleSlot(_DictSlot):
    """The attributes of a layer, but for those that the engine replaces."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__(layer.__dict__)
        self._before = {name: each for name, each in self._before.items() if name not in _PATCHED}

    def changed(self) -> bool:
        if len(self._value) == len(self._before):
            return not _same(self._value, self._before)
        now = {name: each for name, each in self._value.items() if name not in _PATCHED}
        return not _same(now, self._before)

    def put_back(self) -> None:
        patched = {name: self._value[name] for name in _PATCHED if name in self._value}
        super().put_back()
        self._value.update(patched)


class _ListSlot(_Slot):
    """The entries of a list, a set or a deque."""

    def __init__(self, value: Any, tensors: bool) -> None:
        self._value, self._before, self._tensors = value, list(value), tensors

    def changed(self) -> bool:
        return len(self._value) != len(self._before) or any(
            now is not then for now, then in zip(self._value, self._before, strict=False)
        )

    def put_back(self) -> None:
        if self._tensors and not any(map(_of_numbers, (*self._value, *self._before))):
            return
        self._value.clear()
        getattr(self._value, "update" if isinstance(self._value, set) else "extend")(self._before)


class _NameSlot(_Slot):
    """A variable of a function, in a closure or among its globals, that is a tensor or holds some."""

    def __init__(self, home: object, key: str, value: object) -> None:
        self._home, self._key, self._before = home, key, value

    def _now(self) -> object:
        if isinstance(self._home, types.CellType):
            return content_of(self._home)
        assert isinstance(self._home, dict)
        return self._home.get(self._key)

    def changed(self) -> bool:
        now = self._now()
        return now is not self._before and (_of_numbers(now) or _of_numbers(self._before))

    def put_back(self) -> None:
        if isinstance(self._home, types.CellType):
            self._home.cell_contents = self._before
        else:
            assert isinstance(self._home, dict)
            self._home[self._key] = self._before


class _NumbersSlot(_Slot):
    """The numbers of a tensor or an array; of large ones only whether torch wrote into them."""

    def __init__(self, value: Any) -> None:
        self._value: Any = value
        self._version = value._version if isinstance(value, Tensor) and not value.is_inference() else 0
        size = value.numel() if isinstance(value, Tensor) else value.size
        small = size <= _CLONED and not (isinstance(value, Tensor) and (value.is_meta or value.is_sparse))
        self._before: Any = None
        if small:
            self._before = value.detach().clone() if isinstance(value, Tensor) else value.copy()

    def changed(self) -> bool:
        if isinstance(self._value, Tensor):
            if self._before is None:
                return self._value._version != self._version
            return self._value.shape != self._before.shape or not same_bits(
                self._value.detach(), self._before
            )
        if self._before is None:
            return False
        return bool(self._value.dtype != object and self._value.tobytes() != self._before.tobytes())

    def put_back(self) -> None:
        if self._before is None:
            self.lost = True
            return
        if isinstance(self._value, Tensor):
            with torch.no_grad():
                if self._value.shape == self._before.shape:
                    self._value.detach().copy_(self._before)
                else:
                    self._value.data = self._before.clone()
        else:
            self._value[...] = self._before


_NOTHING = object()


def is_opened(kind: type, from_losses: bool) -> bool:
    """Whether the attributes of such an object are looked at: of people's own classes, not of libraries.

    What a model has may be of a library too, such as a cache of keys and values.
    """
    if kind in (types.SimpleNamespace, argparse.Namespace, Task):
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    if kind.__module__.partition(".")[0] in ("builtins", "torch", "sourdine") or _LIBRARY[0] in file:
        return any(part in file for part in _LIBRARY[1:]) and not from_losses
    return not (from_losses and is_library(kind))


def same_bits(some: Tensor, others: Tensor) -> bool:
    """Whether two tensors have the same numbers, NaN or not."""
    return torch.equal(some, others) or digest(some) == digest(others)


def _same(now: dict[Any, Any], then: dict[Any, Any]) -> bool:
    try:
        return bool(now == then)
    except Exception:  # tensors and arrays of which only one is the same do not compare
        return False


def _of_numbers(value: object, depth: int = 0) -> bool:
    """Whether it is a tensor or an array, or a container that has one."""
    if isinstance(value, Tensor | np.ndarray):
        return True
    if depth > 2 or not isinstance(value, (*_CONTAINERS, tuple)):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return any(_of_numbers(each, depth + 1) for each in inside)


def hooks_of(model: nn.Module) -> Iterator[object]:
    """The functions that were hooked to the layers of a model."""
    for layer in model.modules():
        for name in HOOKS:
            yield from layer.__dict__.get(name, {}).values()
        if "forward" in layer.__dict__:
            yield layer.__dict__["forward"]


def parts_of_function(value: object) -> list[tuple[object, str, object]] | None:
    """What a function refers to: where it is kept, by which name, and what it is; None of anything else."""
    if isinstance(value, functools.partial):
        return [(None, "", each) for each in (value.func, *value.args, *value.keywords.values())]
    if isinstance(value, types.MethodType):
        return [(None, "", value.__func__), (None, "", value.__self__)]
    if isinstance(value, staticmethod | classmethod):
        return [(None, "", value.__func__)]
    if isinstance(value, property):
        return [(None, "", value.fget)]
    if not isinstance(value, types.FunctionType):
        return None
    if is_library(value):  # such as a compiler's, whose records change with every call
        ours = (value.__module__ or "").startswith("sourdine.")
        return [(None, "", content_of(each)) for each in (value.__closure__ or ()) if ours]
    names = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    found: list[tuple[object, str, object]] = [(cell, name, content_of(cell)) for name, cell in names]
    found += [
        (None, "", each) for each in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    ]
    spaces = value.__globals__
    found += [(spaces, name, spaces[name]) for name in _names_of(value.__code__) if name in spaces]
    return found


@functools.cache
def _names_of(code: types.CodeType) -> tuple[str, ...]:
    """The names that a function, and those written in it, look up."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return tuple(dict.fromkeys([*code.co_names, *(name for each in inner for name in _names_of(each))]))


def content_of(cell: types.CellType) -> object:
    """Return what a variable of a closure is, or None while it has no value."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def is_library(thing: Callable[..., object] | type) -> bool:
    """Whether a function or a class is one of Python's, of torch's or of another installed package."""
    return _is_library(thing.__module__ or "")


@functools.cache
def _is_library(module: str) -> bool:
    if module.partition(".")[0] in ("builtins", "torch", "sourdine"):
        return True
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return any(part in file for part in _LIBRARY)
