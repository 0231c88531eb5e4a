import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import loadmat, savemat

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.files import read_data
from sourdine.learning.data.flowers import CHOOSE, IMAGES, JUDGE, LABELS, LEARN, SETS, read_flowers_folder
from tests.learning.data_files import write_flowers


def test_flowers_are_read_as_published(tmp_path: Path) -> None:
    folder = write_flowers(tmp_path)
    parts = read_data(folder, side=16)
    sets = loadmat(folder / SETS)
    labels = loadmat(folder / LABELS)["labels"].ravel()
    assert parts.train.classes == tuple(str(i) for i in range(1, 103))
    assert parts.train.targets.tolist() == (labels[np.sort(sets["trnid"].ravel()) - 1] - 1).tolist()
    assert parts.test is not None
    assert len(parts.test) == 8
    red = (parts.train.inputs[:, 0, 8, 8] * 255).round()  # the images are coloured by their labels
    assert (red - 2 * (parts.train.targets + 1)).abs().max() <= 3


def test_sets_can_be_joined_and_turned_round(tmp_path: Path) -> None:
    parts = read_flowers_folder(write_flowers(tmp_path), 16, learn=(JUDGE,), judge=(LEARN, CHOOSE))
    assert parts.test is not None
    assert (len(parts.train), len(parts.test)) == (8, 16)


def test_names_of_flowers_come_from_a_file_beside(tmp_path: Path) -> None:
    folder = write_flowers(tmp_path)
    (folder / "cat_to_name.json").write_text(json.dumps({str(i): f"flower {i}" for i in range(1, 103)}))
    assert read_data(folder, side=8).train.classes[101] == "flower 102"


def test_images_that_are_broken_or_missing_count_for_nothing(tmp_path: Path) -> None:
    folder = write_flowers(tmp_path)
    before = read_data(folder, side=8).train
    first, second, *_ = np.sort(loadmat(folder / SETS)["trnid"].ravel())
    (folder / IMAGES / f"image_{first:05d}.jpg").write_bytes(b"broken")
    (folder / IMAGES / f"image_{second:05d}.jpg").unlink()
    after = read_data(folder, side=8).train
    assert after.targets[:2].tolist() == [-1, -1]
    assert torch.equal(after.targets[2:], before.targets[2:])
    assert torch.equal(after.inputs[2:], before.inputs[2:])


def test_a_label_that_is_no_class_counts_for_nothing(tmp_path: Path) -> None:
    folder = write_flowers(tmp_path)
    labels = loadmat(folder / LABELS)["labels"]
    first, second, *_ = np.sort(loadmat(folder / SETS)["trnid"].ravel())
    labels[0, first - 1], labels[0, second - 1] = 0, 103
    savemat(folder / LABELS, {"labels": labels})
    assert read_data(folder, side=8).train.targets[:2].tolist() == [-1, -1]


@pytest.mark.parametrize("name", [LABELS, SETS])
def test_files_that_are_cut_short_anywhere_are_told_in_a_sentence(tmp_path: Path, name: str) -> None:
    folder = write_flowers(tmp_path, 3, 2, 2)
    whole = (folder / name).read_bytes()
    for length in (*range(0, len(whole) - 1, 17), len(whole) - 5):
        (folder / name).write_bytes(whole[:length])
        with pytest.raises(
            InvalidParameter, match=rf"{name} is cut short, damaged, or holds no row of whole"
        ):
            read_data(folder, side=8)


@pytest.mark.parametrize(
    ("name", "held", "message"),
    [
        (LABELS, {"other": [1]}, "holds no row of whole numbers 'labels'"),
        (LABELS, {"labels": "text"}, "holds no row of whole numbers 'labels'"),
        (LABELS, {"labels": np.ones((3, 3))}, "holds no row of whole numbers 'labels'"),
        (LABELS, {"labels": np.array([[1.5, 2]])}, "holds no row of whole numbers 'labels'"),
        (LABELS, {"labels": np.array([[np.nan, np.inf]])}, "holds no row of whole numbers 'labels'"),
        (LABELS, {"labels": np.array([[{"a": 1}]], object)}, "holds no row of whole numbers 'labels'"),
        (LABELS, {"labels": [1, 2]}, "must hold numbers of images from 1 to 2, for so many labels"),
        (SETS, {"trnid": [0, 1], "tstid": [2]}, "must hold numbers of images from 1 to 24"),
        (SETS, {"trnid": [1, 25], "tstid": [2]}, "must hold numbers of images from 1 to 24"),
        (SETS, {"trnid": [], "tstid": [2]}, "must hold numbers of images from 1 to 24"),
        (SETS, {"trnid": [1, 2], "tstid": [2, 3]}, "has 1 images both to learn from and to judge by"),
    ],
)  # fmt: skip
def test_files_of_something_else_are_told(
    tmp_path: Path, name: str, held: dict[str, object], message: str
) -> None:
    folder = write_flowers(tmp_path)
    savemat(folder / name, held)
    with pytest.raises(InvalidParameter) as problem:
        read_data(folder, side=8)
    assert message in str(problem.value)


def test_an_image_that_is_listed_twice_counts_once(tmp_path: Path) -> None:
    folder = write_flowers(tmp_path)
    savemat(folder / SETS, {"trnid": [1, 2, 2, 1], "tstid": [3]})
    assert len(read_data(folder, side=8).train) == 2


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    folder = write_flowers(tmp_path)
    (folder / IMAGES).rename(folder / "images")
    with pytest.raises(
        InvalidParameter, match=r"has no folder jpg with the images. Unpack 102flowers\.tgz there"
    ):
        read_data(folder)
    (folder / "images").rename(folder / IMAGES)
    (folder / SETS).unlink()
    with pytest.raises(InvalidParameter, match=r"setid.mat does not exist"):
        read_data(folder)


def test_a_file_of_matlab_that_is_far_too_large_is_not_unfolded(tmp_path: Path) -> None:
    folder = write_flowers(tmp_path)
    (folder / LABELS).write_bytes(bytes(1 << 19))
    with pytest.raises(InvalidParameter, match="is cut short, damaged, or holds no row"):
        read_data(folder)
