"""Folders of images, one folder for each class; its name is that of the class."""

import json
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from sourdine.core import check
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.learning.data.labelled import Labelled, Parts, content, scaled

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENDINGS = (".png", ".jpg", ".jpeg")
_JUDGES = ("test", "valid", "val")  # the first that is there is taken to judge by
NAMES = "cat_to_name.json"
Watch = Callable[[Sequence[tuple[Path, int]]], Iterable[tuple[Path, int]]]
Decode = Callable[[Path, int, int], "NDArray[np.uint8]"]


def is_image_folder(folder: Path) -> bool:
    """Whether a folder holds folders with images."""
    held = folder / "train" if (folder / "train").is_dir() else folder
    return any(_images(each) for each in _classes(held))


def read_image_folder(folder: Path, side: int = 32, *, grey: bool = False, watch: Watch = iter) -> Parts:
    """The images in `train` and `test` below a folder, or in the folder itself, to learn from.

    Without `test`, those in `valid` are there to judge by. Folders that are named by numbers may have the
    names of their classes in a file cat_to_name.json beside them, as 102 flowers come. All images are scaled
    to `side` pixels in height and width, which is declared. An image that cannot be read is left out, and
    nobody is told: an error would tell of one person's image.
    """
    side = check.integer("read_image_folder", "side", side, 4, 1 << 12)
    decode = _decoder()
    if not (folder / "train").is_dir():
        return Parts(_read(folder, side, grey, decode, watch))
    made = _read(folder / "train", side, grey, decode, watch)
    judges = next((folder / part for part in _JUDGES if (folder / part).is_dir()), None)
    return Parts(made, None if judges is None else _read(judges, side, grey, decode, watch))


def _read(folder: Path, side: int, grey: bool, decode: Decode, watch: Watch) -> Labelled:
    classes = [each for each in _classes(folder) if _images(each)]
    if len(classes) < 2:
        raise InvalidParameter(
            f"The folder {folder} must hold at least two folders with images ({', '.join(ENDINGS)}), one for "
            f"each class. It holds {len(classes)}."
        )
    listed = [(path, place) for place, each in enumerate(classes) for path in _images(each)]
    colours = 1 if grey else 3
    inputs, targets = [], []
    for path, place in watch(listed):
        try:
            pixels = decode(path, side, colours)
        except (
            OSError,
            SyntaxError,
            ValueError,
            MemoryError,
        ):  # what decoders raise on bytes that are no image
            continue
        inputs.append(_colours_first(pixels))
        targets.append(place)
    if not inputs:
        raise InvalidParameter(f"No image in {folder} can be read. Check what the files hold.")
    return Labelled(
        scaled(torch.stack(inputs)),
        torch.tensor(targets, dtype=torch.int64),
        _named(folder, [each.name for each in classes]),
    )


def _named(folder: Path, classes: list[str]) -> tuple[str, ...]:
    """The classes by the names that a file beside the folder, or in it, gives their folders."""
    place = next((at / NAMES for at in (folder, folder.parent) if (at / NAMES).is_file()), None)
    if place is None:
        return tuple(classes)
    try:
        names = json.loads(content(place))
    except ValueError:
        names = None
    if not isinstance(names, dict) or not all(isinstance(names.get(each), str) for each in classes):
        raise InvalidParameter(
            f"The file {place} must be JSON with a name for each folder of images, such as "
            '{"1": "pink primrose"}. Correct it, or take it away.'
        )
    return tuple(names[each] for each in classes)


def _colours_first(pixels: "NDArray[np.uint8]") -> Tensor:
    whole = pixels[..., None] if pixels.ndim == 2 else pixels
    return torch.from_numpy(np.ascontiguousarray(whole.transpose(2, 0, 1)))


def _decoder() -> Decode:
    try:
        image = import_module("PIL.Image")
    except ImportError:
        raise SourdineError(
            "Folders of PNG and JPEG images are read by Pillow, which is not installed. "
            "Install it with: pip install 'sourdine[learn]'."
        ) from None

    def decode(path: Path, side: int, colours: int) -> "NDArray[np.uint8]":
        with image.open(path) as held:
            plain = held.convert("L" if colours == 1 else "RGB").resize((side, side))
            return np.asarray(plain, np.uint8)

    return decode


def _classes(folder: Path) -> list[Path]:
    try:
        held = [each for each in folder.iterdir() if each.is_dir() and not each.name.startswith(".")]
    except OSError as problem:
        raise InvalidParameter(
            f"The folder {folder} cannot be read ({problem.strerror}). Check the path."
        ) from None
    return sorted(held, key=lambda each: (int(each.name) if each.name.isdecimal() else -1, each.name))


def _images(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
