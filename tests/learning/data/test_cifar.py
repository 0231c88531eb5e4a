import gzip
import io
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.cifar import BATCHES, CLASSES, META
from sourdine.learning.data.files import read_data
from sourdine.learning.data.labelled import Parts
from tests.learning.data_files import cifar_batch, cifar_meta, cifar_pickle, write_archive, write_cifar


def binary(folder: Path, count: int = 3) -> Path:
    for seed, name in enumerate(BATCHES):
        pixels, labels = cifar_batch(count, seed)
        records = np.concatenate([np.array(labels, np.uint8)[:, None], pixels], axis=1)
        (folder / f"{name}.bin").write_bytes(records.tobytes())
    return folder


def equal(one: Parts, other: Parts) -> bool:
    assert one.test is not None
    assert other.test is not None
    pairs = [(one.train, other.train), (one.test, other.test)]
    return all(torch.equal(a.inputs, b.inputs) and torch.equal(a.targets, b.targets) for a, b in pairs)


def test_pickles_binary_files_and_the_archive_hold_the_same(tmp_path: Path) -> None:
    folder = write_cifar(tmp_path / "cifar-10-batches-py", 3)
    parts = read_data(folder)
    assert parts.train.shape == (3, 32, 32)
    assert len(parts.train) == 15
    assert parts.train.classes == CLASSES
    pixels, labels = cifar_batch(3, 4)
    assert parts.train.targets[13] == labels[1]
    assert parts.train.inputs[13, 2, 1, 5] == pytest.approx(pixels[1, 2 * 1024 + 32 + 5] / 255)
    assert parts.test is not None
    assert parts.test.targets.tolist() == cifar_batch(3, 5)[1]
    (tmp_path / "bin").mkdir()
    assert equal(parts, read_data(binary(tmp_path / "bin")))
    assert equal(parts, read_data(write_archive(folder, tmp_path / "cifar-10-python.tar.gz")))
    assert equal(parts, read_data(write_archive(tmp_path / "bin", tmp_path / "cifar-10-binary.tar.gz")))


def test_names_of_classes_come_from_the_file_beside(tmp_path: Path) -> None:
    folder = write_cifar(tmp_path, 2)
    (folder / META).write_bytes(cifar_meta(tuple("abcdefghij")))
    assert read_data(folder).train.classes == tuple("abcdefghij")
    (folder / META).unlink()
    assert read_data(folder).train.classes == CLASSES
    (folder / META).write_bytes(cifar_meta(("a", "b")))
    with pytest.raises(InvalidParameter, match="must hold a list 'label_names' of 10 names"):
        read_data(folder)


def test_a_label_that_names_no_class_counts_for_nothing(tmp_path: Path) -> None:
    folder = write_cifar(tmp_path, 2)
    pixels, _ = cifar_batch(2, 0)
    (folder / BATCHES[0]).write_bytes(cifar_pickle(pixels, [3, 250]))
    assert read_data(folder).train.targets[:2].tolist() == [3, -1]


def test_files_that_are_missing_or_not_whole_are_told(tmp_path: Path) -> None:
    folder = write_cifar(tmp_path / "py", 2)
    (folder / BATCHES[1]).unlink()
    with pytest.raises(InvalidParameter, match=r"has no file data_batch_2\. CIFAR-10 comes in six"):
        read_data(folder)
    (folder / BATCHES[1]).write_bytes((folder / BATCHES[0]).read_bytes()[:-1000])
    with pytest.raises(
        InvalidParameter, match=r"data_batch_2 of the folder .* nothing in it was run: it is cut"
    ):
        read_data(folder)
    (tmp_path / "bin").mkdir()
    held = binary(tmp_path / "bin") / "data_batch_1.bin"
    held.write_bytes(held.read_bytes()[:-1])
    with pytest.raises(InvalidParameter, match=r"no whole number of records of 3,073\. It is cut short"):
        read_data(tmp_path / "bin")


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({"labels": [1]}, "'data' must be rows of 3,072 bytes"),
        ({"data": np.zeros((2, 9), np.uint8), "labels": [1, 2]}, "'data' must be rows of 3,072 bytes"),
        ({"data": np.zeros((0, 3072), np.uint8), "labels": []}, "'data' must be rows of 3,072 bytes"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}, "one for each of its 2 images"),
        ({"data": np.zeros((2, 3072), np.uint8), "fine_labels": [1, 2]}, "must hold a list 'labels'"),
        ({"data": np.zeros((2, 3072)), "labels": [1, 2]}, "an array of something else than bytes"),
    ],
)
def test_pickles_of_something_else_are_told(tmp_path: Path, held: object, message: str) -> None:
    folder = write_cifar(tmp_path, 2)
    (folder / BATCHES[2]).write_bytes(pickle.dumps(held, 4))
    with pytest.raises(InvalidParameter, match=message):
        read_data(folder)


def test_archives_that_are_damaged_or_hold_something_else_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_archive(write_cifar(tmp_path / "py", 2), tmp_path / "cifar.tar.gz")
    whole = path.read_bytes()
    for raw in (whole[:-500], b"", b"nothing", gzip.compress(b"x" * 600)):
        path.write_bytes(raw)
        with pytest.raises(
            InvalidParameter, match=r"is cut short or no tar archive|has no file data_batch_1"
        ):
            read_data(path)
    path.write_bytes(whole)
    monkeypatch.setattr("sourdine.learning.data.cifar._MOST_UNPACKED", 1000)
    with pytest.raises(InvalidParameter, match="holds more than 1,000 bytes"):
        read_data(path)


def test_links_and_paths_in_an_archive_lead_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "cifar.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in BATCHES:
            link = tarfile.TarInfo(f"../../{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link, io.BytesIO())
    with pytest.raises(InvalidParameter, match="has no file data_batch_1"):
        read_data(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    folder = write_cifar(tmp_path, 2)
    with (folder / BATCHES[0]).open("r+b") as file:
        file.truncate(1 << 33)  # takes no room
    with pytest.raises(
        InvalidParameter, match="holds 8,589,934,592 bytes, and a file of CIFAR-10 31 million"
    ):
        read_data(folder)
