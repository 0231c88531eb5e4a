"""Made-up files in the format of MNIST, for tests: bars whose height tells the class."""

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def idx(held: NDArray[np.uint8]) -> bytes:
    """An array as the bytes of an IDX file."""
    sizes = b"".join(int(size).to_bytes(4, "big") for size in held.shape)
    return b"\0\0\x08" + bytes([held.ndim]) + sizes + held.tobytes()


def bars(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Noisy images of 28 x 28 with a bright bar, and the height of the bar as a class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count).astype(np.uint8)
    images = random.integers(0, 60, (count, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 * label + 2 : 2 * label + 6, 4:24] = 250
    return images, labels


def write_digits(folder: Path, train: int = 400, test: int = 100, compressed: bool = True) -> Path:
    """The four files in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", train), ("t10k", test)):
        images, labels = bars(count, count)
        for name, held in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
            raw = idx(held)
            path = folder / (name + ".gz" if compressed else name)
            path.write_bytes(gzip.compress(raw) if compressed else raw)
    return folder
