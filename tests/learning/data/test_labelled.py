import gzip
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.files import idx_array, read_data, read_idx, read_idx_folder
from sourdine.learning.data.labelled import Labelled, Parts
from sourdine.learning.data.table import read_table
from tests.learning.idx_files import bars, idx, write_digits

COLUMNS = {
    "age": {"type": "integer", "lower": 0, "upper": 100},
    "pay": {"type": "real", "lower": -1.0, "upper": 1.0, "missing": 0.0},
    "town": {"type": "category", "keys": ["a", "b", "c"]},
    "smokes": {"type": "flag", "missing": False},
    "ill": {"type": "category", "keys": ["no", "yes"]},
}


@pytest.mark.parametrize("compressed", [True, False])
def test_digits_are_read_plain_and_compressed(tmp_path: Path, compressed: bool) -> None:
    parts = read_data(write_digits(tmp_path / "d", 30, 20, compressed=compressed))
    images, labels = bars(30, 30)
    assert parts.train.shape == (1, 28, 28)
    assert parts.train.classes == tuple("0123456789")
    torch.testing.assert_close(parts.train.inputs[:, 0], torch.from_numpy(images / 255).float())
    assert parts.train.targets.tolist() == labels.tolist()
    assert parts.test is not None
    assert len(parts.test) == 20
    assert "30 examples" in repr(parts.train)


def test_a_label_that_names_no_class_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(idx(np.zeros((3, 2, 2), np.uint8)))
    (tmp_path / "y").write_bytes(idx(np.array([1, 2, 250], np.uint8)))
    assert read_idx(tmp_path / "x", tmp_path / "y", classes=2).targets.tolist() == [1, -1, -1]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is no IDX file"),
        (b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", "is no IDX file of bytes"),
        (b"\0\0\x08\x02\0\0\0\x01", "is no IDX file"),
        (idx(np.zeros((2, 3), np.uint8))[:-1], "should hold 6 bytes after its first 12 and holds 5."),
        (idx(np.zeros((2, 3), np.uint8)) + b"\0", "cut short or damaged"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "cut short or damaged"),
    ],
)
def test_damaged_files_are_told_in_a_sentence(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "images"
    path.write_bytes(raw)
    with pytest.raises(InvalidParameter) as problem:
        idx_array(path)
    assert message in str(problem.value)
    assert str(path) in str(problem.value)


@pytest.mark.parametrize(
    "raw",
    [gzip.compress(b"0" * 999)[:-9], b"no gzip", gzip.compress(b"")[:5]],
    ids=["end", "all", "middle"],  # the bytes hold the time, which parallel workers do not agree on
)
def test_damaged_compression_is_told_in_a_sentence(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(raw)
    with pytest.raises(InvalidParameter, match="is cut short or not compressed by gzip"):
        idx_array(path)


def test_a_file_that_expands_without_end_is_read_no_further_than_its_shape(tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(idx(np.zeros((2, 3), np.uint8)) + bytes(1 << 22)))
    with pytest.raises(
        InvalidParameter, match=r"should hold 6 bytes after its first 12 and holds 7 or more\."
    ):
        idx_array(path)


def test_missing_and_mixed_files_are_told(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "d", 5, 5)
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(InvalidParameter, match="has no file t10k-labels-idx1-ubyte, plain or"):
        read_idx_folder(folder)
    images, labels = folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz"
    with pytest.raises(InvalidParameter, match="not mixed up"):
        read_idx(labels, images)
    (tmp_path / "few").write_bytes(idx(np.zeros(4, np.uint8)))
    with pytest.raises(InvalidParameter, match=r"holds 5 images and .* holds 4 labels"):
        read_idx(images, tmp_path / "few")
    with pytest.raises(InvalidParameter, match=r"does not exist"):
        idx_array(tmp_path / "none")
    (tmp_path / "empty").write_bytes(idx(np.zeros((0, 28, 28), np.uint8)))
    (tmp_path / "nothing").write_bytes(idx(np.zeros(0, np.uint8)))
    with pytest.raises(InvalidParameter, match="holds no images"):
        read_idx(tmp_path / "empty", tmp_path / "nothing")


def test_the_extra_that_trains_brings_what_reads_images() -> None:
    held = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    extras = held["project"]["optional-dependencies"]
    for extra in ("learn", "dev"):
        assert {"torch", "pillow"} <= {each.partition(">")[0] for each in extras[extra]}


def test_a_table_is_scaled_by_its_declarations_alone(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(
        "age,pay,town,smokes,ill,name\n"
        "50,1,b,true,yes,x\n"
        "500,nonsense,a,,no,x\n"  # clamped, and what is declared for a missing cell
        ",0,a,true,no,x\n"  # no age: left out
        "20,0,elsewhere,true,no,x\n"  # no known town: left out
        "20,0,a,true,perhaps,x\n"  # no known class: left out
    )
    found = read_table(path, COLUMNS, "ill")
    assert found.classes == ("no", "yes")
    assert found.targets.tolist() == [1, 0]
    torch.testing.assert_close(
        found.inputs, torch.tensor([[0.0, 1, 0, 1, 0, 1], [1.0, 0, 1, 0, 0, -1]]), atol=1e-5, rtol=0
    )


def test_a_record_changes_no_other(tmp_path: Path) -> None:
    rows = "age,pay,town,smokes,ill\n10,0.5,a,true,yes\n90,-0.5,c,false,no\n"
    (tmp_path / "a.csv").write_text(rows)
    (tmp_path / "b.csv").write_text(rows + "1e9,-1e9,a,true,yes\n")
    fewer, more = (read_table(tmp_path / name, COLUMNS, "ill") for name in ("a.csv", "b.csv"))
    assert torch.equal(more.inputs[:2], fewer.inputs)
    assert float(more.inputs.abs().max()) <= 1


def test_tables_need_declarations_and_a_target(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,ill\n3,true\n")
    with pytest.raises(InvalidParameter, match=r"people.toml does not exist.* 'sourdine init TABLE'"):
        read_data(path)
    declared = tmp_path / "people.toml"
    declared.write_text("[table]\n")
    with pytest.raises(InvalidParameter, match="declares no columns"):
        read_data(path)
    declared.write_text("= 3")
    with pytest.raises(InvalidParameter, match="not valid TOML"):
        read_data(path)
    declared.write_text(
        '[columns.age]\ntype = "integer"\nlower = 0\nupper = 9\n[columns.ill]\ntype = "flag"\n'
    )
    with pytest.raises(InvalidParameter, match="--target, one of age, ill"):
        read_data(path)
    with pytest.raises(InvalidParameter, match="The column 'pay' is not declared"):
        read_data(path, target="pay")
    with pytest.raises(InvalidParameter, match=r"column 'age' cannot be learnt.*category or a flag"):
        read_data(path, target="age")
    parts = read_data(path, target="ill", test=path)
    assert parts.test is not None
    assert parts.test.targets.tolist() == [1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"ill": {"type": "flag"}}, "nothing to learn from"),
        ({"ill": {"type": "category", "keys": ["true"]}}, "has one key"),
        ({"age": COLUMNS["age"], "ill": {"type": "category", "keys": ["x", "y"]}}, "No record of the table"),
    ],
)
def test_tables_that_teach_nothing_are_told(tmp_path: Path, columns: dict[str, object], message: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,ill\n3,true\n")
    with pytest.raises(InvalidParameter, match=message):
        read_table(path, columns, "ill")


def test_paths_without_known_data_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="There is nothing at"):
        read_data(tmp_path / "none")
    with pytest.raises(InvalidParameter, match="holds no data that is known: four IDX files"):
        read_data(tmp_path)
    (tmp_path / "x.bin").write_bytes(b"")
    with pytest.raises(InvalidParameter, match=r"The file .*x.bin is not read"):
        read_data(tmp_path / "x.bin")


def test_parts_of_unlike_kinds_are_refused() -> None:
    small = Labelled(torch.zeros(1, 1, 4, 4), torch.zeros(1, dtype=torch.int64), ("a", "b"))
    large = Labelled(torch.zeros(1, 1, 8, 8), torch.zeros(1, dtype=torch.int64), ("a", "b"))
    with pytest.raises(InvalidParameter, match="of 1 x 4 x 4 with 2 classes, and those to judge by"):
        Parts(small, large)
    assert len(small.first(0)) == 0
