"""Examples as dicts of tensors by name, as tokenizers and data sets of Hugging Face give them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sourdine.core.errors import InvalidParameter

Collate = Callable[[list[Any]], Any]
TARGETS = ("labels", "label", "targets", "target")


def named_tensors(columns: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[Tensor, ...]]:
    """The names of the inputs in order of the alphabet, and the tensors in that order, the targets last.

    >>> named_tensors({"labels": torch.ones(2), "b": torch.zeros(2), "a": torch.zeros(2)})[0]
    ('a', 'b')
    """
    target = [name for name in TARGETS if name in columns]
    if len(target) != 1:
        raise InvalidParameter(
            "Examples that are dicts must name their target 'labels' (or one of "
            f"{', '.join(map(repr, TARGETS[1:]))}), and have one of them. Rename the column."
        )
    inputs = tuple(sorted(name for name in columns if name != target[0]))
    if not inputs:
        raise InvalidParameter("Examples that are dicts must hold an input beside their target.")
    for name in (*inputs, *target):
        if not isinstance(columns[name], Tensor):
            raise InvalidParameter(
                f"The column {name!r} of the data holds no numbers of one shape that a tensor could be made "
                "of. Remove it, or make tensors of it with collate=."
            )
    tensors: tuple[Any, ...] = tuple(columns[name] for name in (*inputs, *target))
    return inputs, tensors


def one_of(item: Mapping[str, object]) -> dict[str, object]:
    """A batch of one item: lists, arrays and numbers become tensors, all else stays as it is."""
    return {name: _batch_of_one(value) for name, value in item.items()}


def halved(item: Mapping[str, object]) -> dict[str, object]:
    """The item with every list and row of numbers cut to half its length."""
    return {
        name: value[: max(1, len(value) // 2)] if _is_row(value) else value  # type: ignore[index,arg-type]
        for name, value in item.items()
    }


def _is_row(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, Tensor | np.ndarray) and value.ndim == 1)


def _batch_of_one(value: object) -> object:
    if isinstance(value, Tensor):
        return value[None]
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unlike lengths
        return value
    if array.dtype.kind not in "biuf":
        return value
    if array.dtype.kind in "iu" and array.dtype != np.uint8:
        array = array.astype(np.int64)
    if isinstance(value, float | list):
        array = array.astype(np.float32) if array.dtype.kind == "f" else array
    return torch.from_numpy(np.array(array[None]))
