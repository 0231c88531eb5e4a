"""IDX files, in which MNIST and its relatives come: a few numbers for the shape, then the bytes."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.data import Labelled, Parts, content, scaled

_BYTES = 8  # the code of unsigned bytes, the only kind of these files that holds images
_MOST_AXES = 8
_MOST_BYTES = 1 << 36
NAMES = {"train": "train", "test": "t10k"}


def is_idx_folder(folder: Path) -> bool:
    """Whether a folder holds training images in this format."""
    return any(path.exists() for path in _places(folder, "train", "images"))


def read_idx_folder(folder: Path, classes: int = 10) -> Parts:
    """The four files of MNIST, plain or compressed, under their usual names."""
    held = [[_found(folder, part, kind) for kind in ("images", "labels")] for part in NAMES]
    return Parts(*(read_idx(images, labels, classes) for images, labels in held))


def read_idx(images: Path, labels: Path, classes: int = 10) -> Labelled:
    """Images from one file and their labels, from 0 on, from another."""
    classes = check.integer("read_idx", "classes", classes, 2, 256)
    pixels, codes = idx_array(images), idx_array(labels)
    if pixels.ndim != 3 or codes.ndim != 1:
        raise InvalidParameter(
            f"The images in {images} must have three axes and the labels in {labels} one. They have "
            f"{pixels.ndim} and {codes.ndim}. Check that the files are not mixed up."
        )
    if len(pixels) != len(codes):
        raise InvalidParameter(
            f"The file {images} holds {len(pixels):,} images and {labels} holds {len(codes):,} labels. "
            "They must belong together. Check the paths."
        )
    if not pixels.size:
        raise InvalidParameter(f"The file {images} holds no images.")
    targets = torch.from_numpy(codes).to(torch.int64)
    return Labelled(
        scaled(torch.from_numpy(pixels)[:, None]),
        torch.where(targets < classes, targets, -1),
        tuple(map(str, range(classes))),
    )


def idx_array(path: Path) -> NDArray[np.uint8]:
    """The bytes of one file in their shape; a file that ends in .gz is decompressed."""
    raw = content(path)
    if path.suffix == ".gz":
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error):
            raise InvalidParameter(
                f"The file {path} is cut short or not compressed by gzip. Fetch it again."
            ) from None
    axes = raw[3] if len(raw) >= 4 else 0
    start = 4 + 4 * axes
    if raw[:2] != b"\0\0" or raw[2:3] != bytes([_BYTES]) or not 1 <= axes <= _MOST_AXES or len(raw) < start:
        raise InvalidParameter(
            f"The file {path} is no IDX file of bytes, as MNIST comes in. Check that it is the right one."
        )
    shape = [int(each) for each in np.frombuffer(raw, ">u4", axes, 4)]
    if math.prod(shape) > _MOST_BYTES or len(raw) - start != math.prod(shape):
        raise InvalidParameter(
            f"The file {path} should hold {math.prod(shape):,} bytes after its first {start} and holds "
            f"{len(raw) - start:,}. It is cut short or damaged. Fetch it again."
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape).copy()


def _places(folder: Path, part: str, kind: str) -> list[Path]:
    axes = 3 if kind == "images" else 1
    name = f"{NAMES[part]}-{kind}"
    return [folder / f"{name}{dot}idx{axes}-ubyte{end}" for dot in "-." for end in ("", ".gz")]


def _found(folder: Path, part: str, kind: str) -> Path:
    places = _places(folder, part, kind)
    for place in places:
        if place.exists():
            return place
    raise InvalidParameter(
        f"The folder {folder} has no file {places[0].name}, plain or with .gz. "
        "MNIST needs four files: images and labels to learn from (train) and to judge by (t10k)."
    )
