"""Labelled examples from where people keep them: IDX files, CIFAR-10, folders of images, tables.

What a file is called, its shape, the size of its images and the classes count as public. Nothing else is
taken from the data: pixels are scaled by 255, columns by their declared bounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sourdine.core.errors import InvalidParameter
from sourdine.core.files import unreadable


@dataclass(frozen=True, eq=False)
class Labelled:
    """Examples, and the place of the class of each among the classes. It shows none of them.

    Images have the axes (examples, colours, height, width) and lie in [0, 1]; rows of a table lie in [-1, 1].
    A label that names no class is -1: such an example counts for nothing in training.

    >>> Labelled(torch.zeros(2, 1, 28, 28), torch.tensor([0, 7]), tuple("0123456789"))
    Labelled(2 examples of 1 x 28 x 28, 10 classes)
    """

    inputs: Tensor
    targets: Tensor
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.targets)

    def __repr__(self) -> str:
        return (
            f"Labelled({len(self):,} examples of {describe_shape(self.shape)}, {len(self.classes)} classes)"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self.inputs.shape[1:])

    @property
    def pair(self) -> tuple[Tensor, Tensor]:
        """As `fit` takes them."""
        return self.inputs, self.targets

    def first(self, count: int) -> "Labelled":
        """The first so many of them."""
        return Labelled(self.inputs[:count], self.targets[:count], self.classes)


@dataclass(frozen=True, eq=False)
class Parts:
    """Examples to learn from, and public ones to judge by, if there are some."""

    train: Labelled
    test: Labelled | None = None

    def __post_init__(self) -> None:
        if self.test is None:
            return
        if self.test.classes != self.train.classes or self.test.shape != self.train.shape:
            train, test = describe_shape(self.train.shape), describe_shape(self.test.shape)
            raise InvalidParameter(
                f"The examples to learn from are of {train} with {len(self.train.classes)} classes, and "
                f"those to judge by of {test} with {len(self.test.classes)}. They must be of one "
                "kind, and their classes the same."
            )


def describe_shape(shape: Sequence[int]) -> str:
    """A shape in words.

    >>> describe_shape((1, 28, 28))
    '1 x 28 x 28'
    """
    return " x ".join(map(str, shape)) or "one number"


def printable(name: str) -> str:
    """The name of a class as cards and terminals can show it: what is no letter, sign or blank is marked.

    >>> printable("lily\\n\\udcff")
    'lily\ufffd\ufffd'
    """
    return "".join(each if each.isprintable() else "\ufffd" for each in name)


def scaled(pixels: Tensor) -> Tensor:
    """Bytes as numbers from 0 to 1."""
    return pixels.to(torch.float32).div_(255)


def content(path: Path) -> bytes:
    """A whole file, or one sentence on why it cannot be had."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise InvalidParameter(f"{unreadable(path, problem)} Check the path.") from None
