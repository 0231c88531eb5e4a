"""CIFAR-10 in its binary version: records of a label and 3 x 32 x 32 bytes."""

from pathlib import Path

import numpy as np
import torch

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data import Labelled, Parts, content, scaled

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_SHAPE = (3, 32, 32)
_RECORD = 1 + 3 * 32 * 32
TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"


def is_cifar_folder(folder: Path) -> bool:
    """Whether a folder holds a file of this data set."""
    return any((folder / name).exists() for name in (*TRAIN, TEST))


def read_cifar_folder(folder: Path) -> Parts:
    """The six files under their usual names."""
    for name in (*TRAIN, TEST):
        if not (folder / name).exists():
            raise InvalidParameter(
                f"The folder {folder} has no file {name}. CIFAR-10 in its binary version comes in six: "
                f"{TRAIN[0]} to {TRAIN[-1]}, and {TEST}."
            )
    return Parts(read_cifar(*(folder / name for name in TRAIN)), read_cifar(folder / TEST))


def read_cifar(*paths: Path) -> Labelled:
    """The records of some files, one after the other."""
    parts = []
    for path in paths:
        raw = content(path)
        if not raw or len(raw) % _RECORD:
            raise InvalidParameter(
                f"The file {path} holds {len(raw):,} bytes, which is no whole number of records of "
                f"{_RECORD:,}. It is cut short, or not the binary version of CIFAR-10. Fetch it again."
            )
        parts.append(np.frombuffer(raw, np.uint8).reshape(-1, _RECORD))
    records = torch.from_numpy(np.concatenate(parts))
    targets = records[:, 0].to(torch.int64)
    return Labelled(
        scaled(records[:, 1:].reshape(-1, *_SHAPE)),
        torch.where(targets < len(CLASSES), targets, -1),
        CLASSES,
    )
