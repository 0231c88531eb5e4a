"""One PNG or JPEG file as an image of declared size and colours, or none: whatever its bytes are.

What a file holds decides nothing but its own image. Images of more than 2^26 pixels, in formats that are not
read, cut short or damaged are none; nothing is raised and nothing is said, since either would tell of one
person's image.
"""

import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sourdine.core.errors import SourdineError
from sourdine.core.lazy import install_line

Decode = Callable[[Path], Tensor | None]
FORMATS = ("PNG", "JPEG")
MOST_PIXELS = 1 << 26
MOST_BYTES = 1 << 28
_WIDE = ("I;16", "I;16B", "I;16L", "I;16N", "I")  # one grey of 16 bits; "I" is how Pillow called it before 11


def decoder(side: int, *, grey: bool = False) -> Decode:
    """A function from files to bytes (colours, height, width), each side of so many pixels; or none.

    The image is turned upright as its EXIF data say, of 16 bits the upper eight count, transparency is left
    away, and palettes, CMYK and grey become three colours, or one.
    """
    image, operations = _pillow()

    def decode(path: Path) -> Tensor | None:
        try:
            if path.stat().st_size > MOST_BYTES:
                return None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # decoders warn of what they read
                with image.open(path, formats=FORMATS) as picture:
                    return _pixels(picture)
        except Exception:  # decoders raise what they like on bytes that are no image
            return None

    def _pixels(picture: Any) -> Tensor | None:
        if picture.width * picture.height > MOST_PIXELS:
            return None
        picture.load()
        upright = _upright(picture, operations)
        if upright.mode in _WIDE:
            upright = image.fromarray(
                (np.asarray(upright).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
            )
        plain = np.asarray(upright.convert("L" if grey else "RGB").resize((side, side)), np.uint8)
        whole = plain[..., None] if grey else plain
        return torch.from_numpy(np.ascontiguousarray(whole.transpose(2, 0, 1)))

    return decode


def _upright(picture: Any, operations: ModuleType) -> Any:
    try:
        return operations.exif_transpose(picture)
    except Exception:  # EXIF data that cannot be read say nothing
        return picture


def _pillow() -> tuple[ModuleType, ModuleType]:
    try:
        return import_module("PIL.Image"), import_module("PIL.ImageOps")
    except ImportError:
        raise SourdineError(
            "PNG and JPEG images are read by Pillow, which is not installed. "
            f"Install it with: {install_line('learn')}"
        ) from None
