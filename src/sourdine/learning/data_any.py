"""Labelled examples from a path: what lies there decides how it is read."""

from pathlib import Path

from sourdine.core.errors import InvalidParameter
from sourdine.frames.files import ENDINGS
from sourdine.learning.data import Parts
from sourdine.learning.data_cifar import is_cifar_folder, read_cifar_folder
from sourdine.learning.data_folder import Watch, is_image_folder, read_image_folder
from sourdine.learning.data_idx import is_idx_folder, read_idx_folder
from sourdine.learning.data_table import read_columns, read_table


def read_data(
    path: Path,
    *,
    classes: int = 10,
    side: int = 32,
    grey: bool = False,
    columns: Path | None = None,
    target: str | None = None,
    test: Path | None = None,
    watch: Watch = iter,
) -> Parts:
    """A folder of IDX files, of CIFAR-10, or of folders with images; or a table.

    `classes` is for IDX files, `side` and `grey` for images. A table needs declared `columns` (a TOML file;
    without it TABLE.toml beside the table), the `target` among them, and may have a public table to judge by.
    """
    if path.is_file() and path.suffix.lower() in ENDINGS:
        return _table(path, columns, target, test)
    if path.is_dir():
        if is_idx_folder(path):
            return read_idx_folder(path, classes)
        if is_cifar_folder(path):
            return read_cifar_folder(path)
        if is_image_folder(path):
            return read_image_folder(path, side, grey=grey, watch=watch)
        raise InvalidParameter(
            f"The folder {path} holds no data that is known: four IDX files (train-images-idx3-ubyte, ...), "
            "CIFAR-10 (data_batch_1.bin, ...), or a folder of PNG or JPEG images for each class."
        )
    if path.exists():
        raise InvalidParameter(
            f"The file {path} is not read. Name a folder of IDX files, of CIFAR-10 or of images, or a table "
            f"ending in {', '.join(sorted(ENDINGS))}."
        )
    raise InvalidParameter(f"There is nothing at {path}. Check the path.")


def _table(path: Path, columns: Path | None, target: str | None, test: Path | None) -> Parts:
    schema = read_columns(path.with_suffix(".toml") if columns is None else columns)
    if target is None:
        raise InvalidParameter(
            f"Say which column of {path.name} is to be learnt: --target, one of {', '.join(schema.columns)}."
        )
    if target not in schema.columns:
        raise InvalidParameter(
            f"The column '{target}' is not declared. Declare its keys, as in "
            f'[columns.{target}] type = "category", keys = ["a", "b"].'
        )
    train = read_table(path, schema, target)
    return Parts(train, None if test is None else read_table(test, schema, target))
