"""Data as people have them, from the command line to a model and its receipt; and files that are broken."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from sourdine.accounting.ledger import Ledger
from sourdine.learning.features.vgg import BLOCKS, VGG
from tests.cli.test_train import here, ledger_at, run  # noqa: F401
from tests.learning.data_files import cifar_pickle, write_archive, write_cifar, write_flowers, write_images

TRAIN = (
    "--model",
    "linear",
    "--noise-multiplier",
    "1",
    "--delta",
    "1e-3",
    "--steps",
    "2",
    "--batch-size",
    "5",
    "--json",
)
pytestmark = pytest.mark.usefixtures("here")


def charges(path: Path) -> int:
    with Ledger.open(path) as ledger:
        return ledger.status().blocks


def trained(data: Path, *words: object) -> dict[str, Any]:
    path = ledger_at(Path("data.ledger"))
    told = json.loads(run("fit", data, *TRAIN, *words, "--ledger", path, "-o", "model").stdout)
    assert charges(path) == 1
    return told | {"card": Path("model/card.md").read_text()}


def refused(data: Path, *words: object) -> str:
    path = ledger_at(Path("data.ledger"))
    said = run("fit", data, *TRAIN, *words, "--ledger", path, "-o", "model", code=2)
    assert charges(path) == 0
    assert not Path("model").exists()
    assert "Traceback" not in said.output
    return " ".join(said.stderr.split())


def test_cifar_in_pickles_and_in_its_archive() -> None:
    folder = write_cifar(Path("cifar-10-batches-py"), 10)
    told = trained(folder)
    assert told["runs"][0]["accuracy"] is not None
    assert "airplane, automobile, bird" in told["card"]
    archive = write_archive(folder, Path("cifar-10-python.tar.gz"))
    assert "of 50 examples" in run("check", archive).stdout


def test_flowers_as_published() -> None:
    told = trained(write_flowers(Path("102flowers")), "--side", "16")
    assert told["runs"][0]["accuracy"] is not None


def test_a_folder_for_each_class() -> None:
    write_images(Path("pets/train"), {"cat": 10, "dog": 10})
    write_images(Path("pets/test"), {"cat": 3, "dog": 3})
    assert "cat, dog" in trained(Path("pets"), "--side", "8")["card"]


@pytest.mark.slow
def test_weights_of_vgg_as_they_are_published() -> None:
    """All layers under the published names, in the format of the published files, which is not zipped."""
    with torch.device("meta"):
        wanted = VGG(classes=1000, blocks=BLOCKS[13], hidden=(1, 1)).state_dict()
    held = {name: torch.full(value.shape, 0.01) for name, value in wanted.items()}
    torch.save(held, "vgg13.pth", _use_new_zipfile_serialization=False)
    write_images(Path("pets"), {"cat": 3, "dog": 3})
    told = trained(Path("pets"), "--features", "vgg13", "--weights", "vgg13.pth", "--side", "32")
    assert "VGG13 without its perceptron, weights of digest" in told["card"]


def test_a_pickle_with_a_call_is_refused_before_anything_runs_or_is_paid() -> None:
    folder = write_cifar(Path("cifar-10-batches-py"), 10)
    whole = (folder / "data_batch_3").read_bytes()
    call = b"cos\nmkdir\n(S'was_run'\ntR"
    (folder / "data_batch_3").write_bytes(whole[:-2] + b"U\x01x" + call + b"u.")
    said = refused(folder)
    assert said.endswith(
        "is refused, and nothing in it was run: it names 'os mkdir'. A pickle of CIFAR-10 holds nothing but "
        "numbers, texts and arrays of bytes. Fetch it from where it is published."
    )
    assert not Path("was_run").exists()


def test_a_file_of_matlab_that_is_cut_short() -> None:
    folder = write_flowers(Path("102flowers"))
    (folder / "setid.mat").write_bytes((folder / "setid.mat").read_bytes()[:200])
    assert refused(folder) == (
        "The file 102flowers/setid.mat is cut short, damaged, or holds no row of whole numbers 'trnid' in "
        "MATLAB's version 5. Fetch it again from where 102 flowers is published."
    )


def test_one_broken_photograph_of_a_hundred_changes_nothing_that_is_shown() -> None:
    """As with a record of a table: it counts for nothing, and only the holder is told, who asks for it."""
    write_images(Path("pets/train"), {"cat": 50, "dog": 50})
    write_images(Path("pets/test"), {"cat": 2, "dog": 2})
    broken = Path("pets/train/cat/17.jpg")
    broken.write_bytes(broken.read_bytes()[:100])
    told = trained(Path("pets"), "--side", "8")
    assert "17.jpg" not in json.dumps(told)
    assert "100" in told["card"]  # as many as there are files
    assert run("check", "pets").stdout.splitlines() == [
        "NOT PRIVATE: of 100 examples to learn from, 1 counts for nothing:",
        "NOT PRIVATE: pets/train/cat/17.jpg",
    ]
    assert json.loads(run("check", "pets", "--json").stdout) == {
        "notice": "NOT PRIVATE", "examples": 100, "count_for_nothing": 1, "files": ["pets/train/cat/17.jpg"],
    }  # fmt: skip


def test_labels_that_name_no_class_are_counted_for_the_holder() -> None:
    folder = write_cifar(Path("cifar"), 2)
    images = torch.zeros(2, 3072, dtype=torch.uint8).numpy()
    (folder / "data_batch_1").write_bytes(cifar_pickle(images, [200, 201]))
    assert (
        run("check", folder).stdout.strip()
        == "NOT PRIVATE: of 10 examples to learn from, 2 count for nothing."
    )
    Path("people.csv").write_text("a\n1\n")
    assert "'sourdine check' looks at" in " ".join(run("check", "people.csv", code=2).stderr.split())


def test_a_huge_image_counts_for_nothing() -> None:
    write_images(Path("pets"), {"cat": 6, "dog": 6})
    Image.new("1", (10_000, 10_000)).save("pets/cat/huge.png")
    assert run("check", "pets").stdout.count("NOT PRIVATE") == 2
