"""Bytes of live tensors, counted storage by storage: another way than the allocator's own word."""

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Storages(TorchDispatchMode):
    """Follows every storage that an operation returns until it dies; what it uses inside is not seen."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {each.untyped_storage().data_ptr() for each in tree_leaves((args, kwargs)) if _real(each)}
        out = func(*args, **(kwargs or {}))
        for each in tree_leaves(out):
            if _real(each):
                storage = each.untyped_storage()
                if storage.data_ptr() not in given and storage not in self._known:
                    size = storage.nbytes()
                    self._known.add(storage)
                    self.now += size
                    self.most = max(self.most, self.now)
                    weakref.finalize(storage, self._less, size).atexit = False
        return out

    def _less(self, size: int) -> None:
        self.now -= size


def _real(value: object) -> bool:
    return isinstance(value, Tensor) and type(value) in (Tensor, torch.nn.Parameter)
