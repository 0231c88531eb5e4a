"""CIFAR-10 as it is published: six pickles of Python 2, or six files of records; unpacked or in its archive.

A record of the binary version is a label and 3 x 32 x 32 bytes. A pickle holds as many arrays of bytes, and
their labels, and is read as data (`pickles`): nothing in it can be run.
"""

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.labelled import Labelled, Parts, content, printable, scaled
from sourdine.learning.data.pickles import MOST_BYTES, NotPlain, read_pickle

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
ARCHIVES = (".tar.gz", ".tgz", ".tar")
META = "batches.meta"
_BINARY = ".bin"
_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32
_RECORD = 1 + _PIXELS
_MOST_UNPACKED = 1 << 29  # bytes; the published archives hold 186 million


def is_cifar_folder(folder: Path) -> bool:
    """Whether a folder holds a file of this data set, in either version."""
    return any((folder / (name + end)).exists() for name in BATCHES for end in ("", _BINARY))


def is_cifar_archive(path: Path) -> bool:
    """Whether a file is called as archives are."""
    return path.name.lower().endswith(ARCHIVES)


def read_cifar_folder(folder: Path) -> Parts:
    """The six files under their usual names, pickles or binary; those of one version must all be there."""
    end = _BINARY if any((folder / (name + _BINARY)).exists() for name in BATCHES) else ""
    files: dict[str, Callable[[], bytes]] = {
        name + end: (lambda path=folder / (name + end): _content(path))  # type: ignore[misc]
        for name in BATCHES
        if (folder / (name + end)).exists()
    }
    if (folder / META).exists():
        files[META] = lambda: _content(folder / META)
    return _parts(f"folder {folder}", files, end)


def read_cifar_archive(path: Path) -> Parts:
    """The same out of an archive as it is downloaded. Nothing is unpacked onto the disk."""
    files: dict[str, Callable[[], bytes]] = {}
    damaged = InvalidParameter(
        f"The archive {path} is cut short or no tar archive. Fetch it again, or name the unpacked folder."
    )
    try:
        unpacked = _unpacked(content(path))
    except (EOFError, OSError, zlib.error):
        raise damaged from None
    if len(unpacked) > _MOST_UNPACKED:
        raise InvalidParameter(
            f"The archive {path} holds more than {_MOST_UNPACKED:,} bytes, and CIFAR-10 holds 186 million. "
            "It is something else. Check the path."
        )
    try:
        archive = tarfile.open(fileobj=io.BytesIO(unpacked))  # noqa: SIM115
        for member in archive:
            name = PurePosixPath(member.name).name
            if member.isreg() and name.removesuffix(_BINARY) in (*BATCHES, META):
                file = archive.extractfile(member)
                assert file is not None
                files[name] = file.read
    except (tarfile.TarError, EOFError, OSError, ValueError):
        raise damaged from None
    end = _BINARY if any(name.endswith(_BINARY) for name in files) else ""
    return _parts(f"archive {path}", files, end)


def _unpacked(raw: bytes) -> bytes:
    if raw[:2] != b"\x1f\x8b":
        return raw
    with gzip.open(io.BytesIO(raw)) as file:
        return file.read(_MOST_UNPACKED + 1)


def _content(path: Path) -> bytes:
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # what is wrong is said when it is read
    if size > MOST_BYTES:
        raise InvalidParameter(
            f"The file {path} holds {size:,} bytes, and a file of CIFAR-10 31 million. Check the path."
        )
    return content(path)


def _parts(place: str, files: dict[str, Callable[[], bytes]], end: str) -> Parts:
    for name in (each + end for each in BATCHES):
        if name not in files:
            raise InvalidParameter(
                f"The {place} has no file {name}. CIFAR-10 comes in six: {BATCHES[0]}{end} to "
                f"{BATCHES[4]}{end}, and {BATCHES[5]}{end}."
            )
    read = _binary if end else _pickled
    classes = _classes(files[META](), place) if not end and META in files else CLASSES
    batches = [read(files[name + end](), f"file {name + end} of the {place}") for name in BATCHES]
    return Parts(_labelled(batches[:-1], classes), _labelled(batches[-1:], classes))


def _labelled(parts: list[tuple[NDArray[np.uint8], NDArray[np.int64]]], classes: tuple[str, ...]) -> Labelled:
    pixels, labels = (torch.from_numpy(np.concatenate(each)) for each in zip(*parts, strict=True))
    known = (labels >= 0) & (labels < len(classes))
    return Labelled(scaled(pixels.reshape(-1, *_SHAPE)), torch.where(known, labels, -1), classes)


def _binary(raw: bytes, place: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    if not raw or len(raw) % _RECORD:
        raise InvalidParameter(
            f"The {place} holds {len(raw):,} bytes, which is no whole number of records of {_RECORD:,}. "
            "It is cut short, or not the binary version of CIFAR-10. Fetch it again."
        )
    records = np.frombuffer(raw, np.uint8).reshape(-1, _RECORD)
    return records[:, 1:], records[:, 0].astype(np.int64)


def _pickled(raw: bytes, place: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = _dictionary(raw, place)
    pixels, labels = content.get("data"), content.get("labels")
    if (
        not isinstance(pixels, np.ndarray)
        or pixels.ndim != 2
        or pixels.shape[1] != _PIXELS
        or not len(pixels)
    ):
        raise InvalidParameter(
            f"The {place} holds no images of CIFAR-10: 'data' must be rows of {_PIXELS:,} bytes. "
            "Fetch it again."
        )
    if not isinstance(labels, list) or len(labels) != len(pixels):
        raise InvalidParameter(
            f"The {place} must hold a list 'labels' with one for each of its {len(pixels):,} images. "
            "Fetch it again."
        )
    codes = [each if type(each) is int and 0 <= each < len(CLASSES) else -1 for each in labels]
    return pixels, np.array(codes, np.int64)


def _classes(raw: bytes, place: str) -> tuple[str, ...]:
    names = _dictionary(raw, f"file {META} of the {place}").get("label_names")
    listed = names if isinstance(names, list) else []
    texts = [each.decode("latin-1") if isinstance(each, bytes) else each for each in listed]
    if len(texts) != len(CLASSES) or not all(isinstance(each, str) for each in texts):
        raise InvalidParameter(
            f"The file {META} of the {place} must hold a list 'label_names' of {len(CLASSES)} names. "
            "Fetch it again, or take it away."
        )
    return tuple(printable(str(each)) for each in texts)


def _dictionary(raw: bytes, place: str) -> dict[str, object]:
    try:
        return read_pickle(raw)
    except NotPlain as problem:
        raise InvalidParameter(
            f"The {place} is refused, and nothing in it was run: {problem}. A pickle of CIFAR-10 holds "
            "nothing but numbers, texts and arrays of bytes. Fetch it from where it is published."
        ) from None
