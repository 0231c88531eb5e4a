"""Labelled examples from a path: what lies there decides how it is read.

IDX files, in which MNIST and its relatives come, hold a few numbers for the shape and then the bytes.
"""

import gzip
import io
import math
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.frames.files import ENDINGS
from sourdine.learning.data.cifar import (
    is_cifar_archive,
    is_cifar_folder,
    read_cifar_archive,
    read_cifar_folder,
)
from sourdine.learning.data.flowers import is_flowers_folder, read_flowers_folder
from sourdine.learning.data.images import ShowProgress, is_image_folder, read_image_folder
from sourdine.learning.data.labelled import Labelled, Parts, content, scaled
from sourdine.learning.data.table import read_columns, read_table

_BYTES = 8  # the code of unsigned bytes, the only kind of these files that holds images
_MOST_AXES = 8
_MOST_BYTES = 1 << 32
NAMES = {"train": "train", "test": "t10k"}


def is_idx_folder(folder: Path) -> bool:
    """Whether a folder holds training images in this format."""
    return any(path.exists() for path in _places(folder, "train", "images"))


def read_idx_folder(folder: Path, classes: int = 10) -> Parts:
    """The four files of MNIST, plain or compressed, under their usual names."""
    paths = [[_find_file(folder, part, kind) for kind in ("images", "labels")] for part in NAMES]
    return Parts(*(read_idx(images, labels, classes) for images, labels in paths))


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
    """The bytes of one file in their shape; a file that ends in .gz is decompressed, no further than that."""
    raw = content(path)
    try:
        with gzip.open(io.BytesIO(raw)) if path.suffix == ".gz" else io.BytesIO(raw) as file:
            first = file.read(4)
            axes = first[3] if len(first) == 4 else 0
            sizes = file.read(4 * axes)
            shape = [int(each) for each in np.frombuffer(sizes[: len(sizes) // 4 * 4], ">u4")]
            size = math.prod(shape)
            body = file.read(min(size, _MOST_BYTES) + 1)
    except (EOFError, OSError, zlib.error):
        raise InvalidParameter(
            f"The file {path} is cut short or not compressed by gzip. Fetch it again."
        ) from None
    if first[:3] != bytes([0, 0, _BYTES]) or not 1 <= axes <= _MOST_AXES or len(shape) != axes:
        raise InvalidParameter(
            f"The file {path} is no IDX file of bytes, as MNIST comes in. Check that it is the right one."
        )
    if size > _MOST_BYTES or len(body) != size:
        more = " or more" if len(body) > size else ""
        raise InvalidParameter(
            f"The file {path} should hold {size:,} bytes after its first {4 + 4 * axes} and holds "
            f"{len(body):,}{more}. It is cut short or damaged. Fetch it again."
        )
    return np.frombuffer(body, np.uint8).reshape(shape).copy()


def _places(folder: Path, part: str, kind: str) -> list[Path]:
    axes = 3 if kind == "images" else 1
    name = f"{NAMES[part]}-{kind}"
    return [folder / f"{name}{dot}idx{axes}-ubyte{end}" for dot in "-." for end in ("", ".gz")]


def _find_file(folder: Path, part: str, kind: str) -> Path:
    places = _places(folder, part, kind)
    for place in places:
        if place.exists():
            return place
    raise InvalidParameter(
        f"The folder {folder} has no file {places[0].name}, plain or with .gz. "
        "MNIST needs four files: images and labels to learn from (train) and to judge by (t10k)."
    )


def read_data(
    path: Path,
    *,
    classes: int = 10,
    side: int = 32,
    grey: bool = False,
    columns: Path | None = None,
    target: str | None = None,
    test: Path | None = None,
    progress: ShowProgress = iter,
) -> Parts:
    """A folder of IDX files, of CIFAR-10 (or its archive), of 102 flowers or of images; or a table.

    `classes` is for IDX files, `side` and `grey` for images. A table needs declared `columns` (a TOML file;
    without it TABLE.toml beside the table), the `target` among them, and may have a public table to judge by.
    """
    if path.is_file() and path.suffix.lower() in ENDINGS:
        return _table(path, columns, target, test)
    if path.is_file() and is_cifar_archive(path):
        return read_cifar_archive(path)
    if path.is_dir():
        if is_idx_folder(path):
            return read_idx_folder(path, classes)
        if is_cifar_folder(path):
            return read_cifar_folder(path)
        if is_flowers_folder(path):
            return read_flowers_folder(path, side, grey=grey, progress=progress)
        if is_image_folder(path):
            return read_image_folder(path, side, grey=grey, progress=progress)
        raise InvalidParameter(
            f"The folder {path} holds no data that is known: four IDX files (train-images-idx3-ubyte, ...), "
            "CIFAR-10 (data_batch_1, ...), 102 flowers (jpg, imagelabels.mat, setid.mat), or a folder of PNG "
            "or JPEG images for each class."
        )
    if path.exists():
        raise InvalidParameter(
            f"The file {path} is not read. Name a folder of IDX files, of CIFAR-10 or of images, the archive "
            f"of CIFAR-10 (.tar.gz), or a table ending in {', '.join(sorted(ENDINGS))}."
        )
    raise InvalidParameter(f"There is nothing at {path}. Check the path.")


def _table(path: Path, columns: Path | None, target: str | None, test: Path | None) -> Parts:
    schema = read_columns(path.with_suffix(".toml") if columns is None else columns)
    if target is None:
        raise InvalidParameter(
            f"Say which column of {path.name} is to be learnt: --target, one of {', '.join(schema.columns)}."
        )
    if target not in schema.columns:
        raise InvalidParameter(
            f"The column '{target}' is not declared. Declare its keys, as in "
            f'[columns.{target}] type = "category", keys = ["a", "b"].'
        )
    train = read_table(path, schema, target)
    return Parts(train, None if test is None else read_table(test, schema, target))
