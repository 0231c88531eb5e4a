"""Small made-up files in the exact formats in which data sets are published."""

import io
import struct
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

from sourdine.learning.data.cifar import BATCHES, CLASSES, META
from sourdine.learning.data.flowers import IMAGES, LABELS, SETS

PIXELS = 3 * 32 * 32


def text_of_python_2(text: str) -> bytes:
    return b"U" + bytes([len(text)]) + text.encode("latin-1")


def number(value: int) -> bytes:
    if value < 256:
        return b"K" + bytes([value])
    return b"M" + struct.pack("<H", value) if value < 65536 else b"J" + struct.pack("<i", value)


def list_of_python_2(items: list[bytes]) -> bytes:
    return b"](" + b"".join(items) + b"e"


def array_of_python_2(held: np.ndarray) -> bytes:
    """An array of bytes as numpy's of that time came into a pickle of protocol 2."""
    rows, columns = held.shape
    return (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85q\tU\x01b\x87Rq\n(K\x01"
        + number(rows)
        + number(columns)
        + b"\x86cnumpy\ndtype\nq\x0bU\x02u1K\x00K\x01\x87Rq\x0c(K\x03U\x01|NNN"
        + b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + struct.pack("<i", held.size)
        + held.tobytes()
        + b"tb"
    )


def dictionary_of_python_2(items: dict[str, bytes]) -> bytes:
    return (
        b"\x80\x02}q\x01(" + b"".join(text_of_python_2(name) + value for name, value in items.items()) + b"u."
    )


def cifar_pickle(pixels: np.ndarray, labels: list[int], label: str = "training batch 1 of 5") -> bytes:
    """A batch as published: texts without an encoding, labels, and rows of bytes."""
    return dictionary_of_python_2(
        {
            "batch_label": text_of_python_2(label),
            "labels": list_of_python_2([number(each) for each in labels]),
            "data": array_of_python_2(pixels),
            "filenames": list_of_python_2(
                [text_of_python_2(f"image_s_{i:06d}.png") for i in range(len(labels))]
            ),
        }
    )


def cifar_meta(names: tuple[str, ...] = CLASSES) -> bytes:
    return dictionary_of_python_2(
        {
            "num_cases_per_batch": number(10_000),
            "label_names": list_of_python_2([text_of_python_2(each) for each in names]),
            "num_vis": number(3072),
        }
    )


def cifar_batch(count: int, seed: int) -> tuple[np.ndarray, list[int]]:
    """Images that are easy to tell apart: the class is how bright they are."""
    labels = np.arange(count) % 10
    noise = np.random.default_rng(seed).integers(0, 20, (count, PIXELS))
    return (labels[:, None] * 22 + noise).astype(np.uint8), labels.tolist()


def write_cifar(folder: Path, count: int = 20) -> Path:
    """The seven files in a folder, as its archive unpacks them."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(BATCHES):
        (folder / name).write_bytes(cifar_pickle(*cifar_batch(count, seed)))
    (folder / META).write_bytes(cifar_meta())
    (folder / "readme.html").write_text("<html></html>")
    return folder


def write_archive(folder: Path, path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, "cifar-10-batches-py")
    return path


def jpeg(colour: tuple[int, int, int], size: tuple[int, int] = (40, 30), **options: object) -> bytes:
    held = io.BytesIO()
    Image.new("RGB", size, colour).save(held, "JPEG", quality=95, **options)
    return held.getvalue()


def write_images(folder: Path, counts: dict[str, int]) -> Path:
    """A folder for each class, each of a colour of its own."""
    for place, (name, count) in enumerate(counts.items()):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            colour = (250 * (place % 2), 10 + i % 5, 250 * (place % 3 == 0))
            (folder / name / f"{i}.jpg").write_bytes(jpeg(colour))
    return folder


def write_flowers(folder: Path, train: int = 12, valid: int = 4, test: int = 8) -> Path:
    """The folder jpg and the two files of MATLAB, with rows of the published types."""
    (folder / IMAGES).mkdir(parents=True, exist_ok=True)
    count = train + valid + test
    labels = np.arange(count) % 4 * 25 + 1
    for place, label in enumerate(labels, 1):
        (folder / IMAGES / f"image_{place:05d}.jpg").write_bytes(jpeg((int(label) * 2, 100, 200)))
    savemat(folder / LABELS, {"labels": labels[None].astype(np.uint8)}, do_compression=True)
    order = np.random.default_rng(1).permutation(count)[None] + 1
    cuts = {
        "trnid": order[:, :train],
        "valid": order[:, train : train + valid],
        "tstid": order[:, train + valid :],
    }
    savemat(folder / SETS, {name: held.astype(np.uint16) for name, held in cuts.items()}, do_compression=True)
    return folder
