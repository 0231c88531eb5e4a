import io
import json
import os
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.learning.data.files import read_data
from sourdine.learning.data.images import read_image_folder
from sourdine.learning.data.pictures import decoder
from tests.learning.data_files import jpeg, write_images


def put(folder: Path, name: str, value: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value)
    return path


def png(held: np.ndarray | Image.Image, **options: object) -> bytes:
    made = io.BytesIO()
    (held if isinstance(held, Image.Image) else Image.fromarray(held)).save(made, "PNG", **options)
    return made.getvalue()


def grey(value: int, side: int = 8) -> bytes:
    return png(np.full((side, side), value, np.uint8))


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    for part, count in (("train", 3), ("test", 2)):
        for i in range(count):
            put(tmp_path, f"{part}/cat/{i}.png", grey(51))
            put(tmp_path, f"{part}/dog/{i}.JPG", jpeg((255, 255, 255)))
    put(tmp_path, "train/cat/notes.txt", b"x")
    put(tmp_path, "train/cat/._0.png", b"what a system puts beside files")
    parts = read_data(tmp_path, side=8)
    assert parts.train.classes == ("cat", "dog")
    assert parts.train.targets.tolist() == [0, 0, 0, 1, 1, 1]
    assert parts.train.shape == (3, 8, 8)
    assert parts.train.inputs[0].unique().tolist() == pytest.approx([0.2])
    assert parts.test is not None
    assert len(parts.test) == 4
    assert read_image_folder(tmp_path / "train", 8, grey=True).train.shape == (1, 8, 8)
    assert read_image_folder(tmp_path / "train", 8).test is None


def test_an_image_that_cannot_be_read_keeps_its_place_and_counts_for_nothing(tmp_path: Path) -> None:
    write_images(tmp_path / "train", {"cat": 3, "dog": 2})
    write_images(tmp_path / "test", {"cat": 2, "dog": 2})
    before = read_data(tmp_path, side=8)
    whole = (tmp_path / "train/cat/1.jpg").read_bytes()
    for raw in (b"", b"no image", whole[: len(whole) // 2], whole[:-40] + bytes(20)):
        put(tmp_path, "train/cat/1.jpg", raw)
        put(tmp_path, "test/dog/0.jpg", raw)
        after = read_data(tmp_path, side=8)
        assert after.train.targets.tolist() in ([0, -1, 0, 1, 1], [0, 0, 0, 1, 1])  # decoders forgive some
        others = [0, 2, 3, 4]
        assert torch.equal(after.train.inputs[others], before.train.inputs[others])
        assert after.test is not None
        assert after.test.targets.tolist() in ([0, 0, 1], [0, 0, 1, 1])  # public: left out
    put(tmp_path, "train/cat/1.jpg", b"")
    assert read_data(tmp_path, side=8).train.targets.tolist() == [0, -1, 0, 1, 1]


def test_flowers_come_in_numbered_folders_with_their_names_in_a_file(tmp_path: Path) -> None:
    """As the source had them: train, valid and test, folders 1 to 102, cat_to_name.json."""
    for part in ("train", "valid"):
        for number in ("10", "2", "102"):
            put(tmp_path, f"{part}/{number}/image_1.png", grey(int(number)))
    names = {"2": "pink primrose", "10": "globe thistle", "102": "blackberry lily", "7": "not here"}
    (tmp_path / "cat_to_name.json").write_text(json.dumps(names))
    parts = read_data(tmp_path, side=8)
    assert parts.train.classes == ("pink primrose", "globe thistle", "blackberry lily")  # by number
    assert (parts.train.inputs[:, 0, 0, 0] * 255).round().tolist() == [2, 10, 102]
    assert parts.test is not None  # valid, as long as there is no test
    for number in ("10", "2", "102"):
        for i in range(2):
            put(tmp_path, f"test/{number}/image_{i}.png", grey(5))
    tested = read_data(tmp_path, side=8).test
    assert tested is not None
    assert len(tested) == 6
    for wrong in ("[]", "{", '{"2": "pink primrose"}', '{"2": 1, "10": 2, "102": 3}', "[" * 100_000):
        (tmp_path / "cat_to_name.json").write_text(wrong)
        with pytest.raises(InvalidParameter, match="must be JSON with a name for each folder of images"):
            read_data(tmp_path, side=8)


def test_folders_without_classes_or_images_are_told(tmp_path: Path) -> None:
    put(tmp_path, "cat/1.png", b"")
    with pytest.raises(InvalidParameter, match="must hold at least two folders with images"):
        read_image_folder(tmp_path)
    put(tmp_path, "dog/1.png", b"")
    with pytest.raises(InvalidParameter, match=r"None of the 2 images can be read, such as .*cat"):
        read_image_folder(tmp_path)


def test_what_reads_images_is_named_if_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    put(tmp_path, "cat/1.png", b"1")
    with pytest.raises(SourdineError, match=r"read by Pillow, .*pip install .*pillow"):
        read_image_folder(tmp_path)


def seen(tmp_path: Path, raw: bytes, *, side: int = 8, colours: int = 3) -> torch.Tensor | None:
    return decoder(side, grey=colours == 1)(put(tmp_path, "image.png", raw))


def colour(tmp_path: Path, raw: bytes) -> list[int]:
    found = seen(tmp_path, raw)
    assert found is not None
    return found[:, 4, 4].tolist()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (Image.new("L", (9, 9), 40), [40, 40, 40]),
        (Image.new("1", (9, 9), 1), [255, 255, 255]),
        (Image.new("RGBA", (9, 9), (10, 20, 30, 0)), [10, 20, 30]),  # transparency is left away
        (Image.new("LA", (9, 9), (77, 3)), [77, 77, 77]),
        (Image.new("RGB", (9, 9), (1, 2, 3)).convert("P", palette=Image.Palette.ADAPTIVE), [1, 2, 3]),
        (np.full((9, 9), 40 * 256 + 255, np.uint16), [40, 40, 40]),  # of 16 bits, the upper eight
        (np.full((9, 9), 255, np.uint16), [0, 0, 0]),
    ],
    ids=["grey", "bit", "alpha", "grey alpha", "palette", "16 bits", "16 bits dark"],
)
def test_every_mode_becomes_three_colours(tmp_path: Path, made: Image.Image, expected: list[int]) -> None:
    assert colour(tmp_path, png(made)) == expected
    found = seen(tmp_path, png(made), colours=1)
    assert found is not None
    assert found.shape == (1, 8, 8)


def test_cmyk_and_grey_photographs_are_read(tmp_path: Path) -> None:
    for mode, ink, expected in (
        ("CMYK", (0, 0, 0, 255), [0] * 3),
        ("CMYK", (0,) * 4, [255] * 3),
        ("L", 90, [90] * 3),
    ):
        held = io.BytesIO()
        Image.new(mode, (16, 16), ink).save(held, "JPEG", quality=100)
        assert colour(tmp_path, held.getvalue()) == pytest.approx(expected, abs=2)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_photographs_are_turned_upright(tmp_path: Path, orientation: int) -> None:
    upright = Image.new("RGB", (32, 16), (255, 0, 0))
    upright.paste((0, 0, 255), (0, 0, 16, 16))  # blue at the left
    upright.paste((0, 255, 0), (16, 0, 32, 8))  # green at the right, above
    taken = {
        2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }  # fmt: skip
    turned = upright.transpose(taken[orientation]) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    held = io.BytesIO()
    turned.save(held, "JPEG", quality=100, exif=exif)
    found = seen(tmp_path, held.getvalue(), side=16)
    expected = seen(tmp_path, png(upright), side=16)
    assert found is not None
    assert expected is not None
    corners = [(2, 2), (2, 13), (13, 2), (13, 13)]
    for row, column in corners:
        assert found[:, row, column].tolist() == pytest.approx(expected[:, row, column].tolist(), abs=40)


def test_exif_data_that_make_no_sense_are_left_alone(tmp_path: Path) -> None:
    for exif in (b"Exif\0\0MM\0\x2a\xff\xff\xff\xff", b"Exif\0\0" + b"\xff" * 50, b"Exif\0\0"):
        assert colour(tmp_path, jpeg((10, 200, 30), exif=exif)) == pytest.approx([10, 200, 30], abs=3)


def chunk(name: bytes, held: bytes) -> bytes:
    return struct.pack(">I", len(held)) + name + held + struct.pack(">I", zlib.crc32(name + held))


def png_of(width: int, height: int, rows: bytes) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def test_huge_images_are_none_before_they_are_unfolded(tmp_path: Path) -> None:
    assert seen(tmp_path, png_of(8, 8, bytes(72))) is not None
    assert seen(tmp_path, png_of(60_000, 60_000, bytes(10))) is None
    assert seen(tmp_path, png_of(10_000, 10_000, bytes(10))) is None  # of which Pillow alone would only warn
    assert seen(tmp_path, png_of(0, 8, b"")) is None
    text = chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 24)))
    assert seen(tmp_path, png_of(8, 8, bytes(72))[:33] + text + png_of(8, 8, bytes(72))[33:]) is None


def test_other_formats_under_these_names_are_none(tmp_path: Path) -> None:
    for kind in ("GIF", "BMP", "TIFF", "PPM"):
        held = io.BytesIO()
        Image.new("RGB", (8, 8)).save(held, kind)
        assert seen(tmp_path, held.getvalue()) is None
    assert seen(tmp_path, jpeg((9, 9, 9))) is not None  # a JPEG that is called PNG


def test_links_are_followed_and_one_file_counts_once(tmp_path: Path) -> None:
    store = put(tmp_path, "store/a.jpg", jpeg((200, 0, 0)))
    write_images(tmp_path / "data", {"cat": 2, "dog": 2})
    (tmp_path / "data/cat/link.jpg").symlink_to(store)
    (tmp_path / "data/cat/nowhere.jpg").symlink_to(tmp_path / "none.jpg")
    (tmp_path / "data/cat/folder.jpg").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "data/cat/pipe.jpg")
    assert read_data(tmp_path / "data", side=8).train.targets.tolist() == [0, 0, 0, 1, 1]
    (tmp_path / "data/dog/again.jpg").symlink_to(store)
    with pytest.raises(InvalidParameter, match="are one file under two names, so that one example would"):
        read_data(tmp_path / "data", side=8)
    (tmp_path / "data/dog/again.jpg").unlink()
    (tmp_path / "data/dog/hard.jpg").hardlink_to(tmp_path / "data/cat/0.jpg")
    with pytest.raises(InvalidParameter, match="one file under two names"):
        read_data(tmp_path / "data", side=8)


def test_what_is_learnt_from_is_not_judged_by_under_another_name(tmp_path: Path) -> None:
    write_images(tmp_path / "train", {"cat": 1, "dog": 1})
    for name in ("cat", "dog"):
        (tmp_path / "test" / name).mkdir(parents=True)
        (tmp_path / "test" / name / "0.jpg").symlink_to(tmp_path / "train" / name / "0.jpg")
    with pytest.raises(InvalidParameter, match="one file under two names"):
        read_data(tmp_path, side=8)


def test_odd_names_are_shown_as_texts(tmp_path: Path) -> None:
    for name in (b"caf\xe9", b"pink \n primrose", "\u82b1".encode()):
        put(tmp_path, os.fsdecode(name + b"/a b\xff'$(x).jpg"), jpeg((9, 9, 9)))
    classes = read_data(tmp_path, side=8).train.classes
    assert sorted(classes) == ["caf\ufffd", "pink \ufffd primrose", "\u82b1"]
    "".join(classes).encode()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_without_rights_is_told(tmp_path: Path) -> None:
    write_images(tmp_path, {"cat": 1, "dog": 1})
    (tmp_path / "dog").chmod(0)
    try:
        with pytest.raises(InvalidParameter, match=r"dog cannot be read \(Permission denied\)"):
            read_data(tmp_path, side=8)
    finally:
        (tmp_path / "dog").chmod(0o700)
