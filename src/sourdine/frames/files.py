"""Which files a table is made of: one, several, a pattern, or a folder with its partitions.

Columns of pandas whose type an engine would guess from what they hold get the one they have.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.frames.text.compression import COMPRESSED, kind_of
from sourdine.frames.text.opening import DELIMITED, JSON

TEXT = (*DELIMITED, *JSON)
ENDINGS = (*TEXT, ".parquet")
_SHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"

Where = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Files:
    """Files of one kind, and the folders called like region=north that they lie in, as columns."""

    paths: tuple[Path, ...]
    partitions: dict[str, tuple[str | None, ...]]

    @property
    def kind(self) -> str:
        """The ending of them all, without that of a compression."""
        return kind_of(self.paths[0])


def is_where(table: object) -> bool:
    """Whether this names files."""
    if isinstance(table, str | Path):
        return True
    return isinstance(table, list | tuple) and bool(table) and all(isinstance(e, str | Path) for e in table)


def find_files(where: Where) -> Files:
    """The files that a path, a pattern, a folder or a list of these names, in one order.

    A path that is there is a path, even if it has the letters of a pattern.

    >>> find_files("nowhere.csv")
    Traceback (most recent call last):
    sourdine.core.errors.InvalidParameter: The file nowhere.csv does not exist. Check the path.
    """
    listed = [where] if isinstance(where, str | Path) else list(where)
    files = [(root, path) for each in listed for root, path in _files_of(each)]
    paths = tuple(path for _, path in files)
    _check_once(paths)
    kinds = sorted({kind_of(path) for path in paths})
    if len(kinds) > 1:
        raise InvalidParameter(f"The files are of several kinds ({', '.join(kinds)}). Use files of one kind.")
    return Files(paths, _partitions(files))


def _files_of(each: str | Path) -> list[tuple[Path, Path]]:
    """The files of one name, each with the folder that it was looked for in."""
    path = Path(each)
    if path.is_file():
        check_ending(path)
        return [(path.parent, path)]
    if path.is_dir():
        return [(path, file) for file in _in_folder(path)]
    if not any(mark in str(each) for mark in "*?["):
        check_ending(path)
        raise InvalidParameter(f"The file {path} does not exist. Check the path.")
    fixed = next(i for i, part in enumerate(path.parts) if any(mark in part for mark in "*?["))
    root, pattern = Path(*path.parts[:fixed]), str(Path(*path.parts[fixed:]))
    files = sorted(file for file in root.glob(pattern) if file.is_file())
    if not files:
        raise InvalidParameter(f"No file is named like {each}. Check the path.")
    for file in files:
        check_ending(file)
    return [(root, file) for file in files]


def _check_once(paths: Sequence[Path]) -> None:
    """Refuse a file that is named twice, under whatever names, and one beside a compressed copy of it.

    Its records would count twice, and one of them would move every sum twice as far as is paid for.
    """
    identities = [(status.st_dev, status.st_ino) for status in (path.stat() for path in paths)]
    if len(set(identities)) < len(identities):
        raise InvalidParameter(
            "A file is named twice, perhaps by a link to it, so its records would count twice. Name it once."
        )
    plain = {path.with_suffix("") if path.suffix.lower() in COMPRESSED else path for path in paths}
    if len(plain) < len(paths):
        raise InvalidParameter(
            "A file stands beside a compressed one of the same name, such as people.csv beside "
            "people.csv.gz. If it is a copy, its records would count twice. Name the files that you mean."
        )


def _in_folder(folder: Path) -> list[Path]:
    """The files of a table in a folder; what begins with a point or a line is somebody's notes.

    A partition may begin with a line, as in _year=2024.
    """
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and not any(map(_is_note, file.relative_to(folder).parts))
    )
    tables = [file for file in files if kind_of(file) in ENDINGS]
    if not tables:
        raise InvalidParameter(
            f"{folder} is a folder without a table in it. Name a file, or a folder of files that end in "
            f"{', '.join(ENDINGS)}."
        )
    if len({kind_of(file) for file in tables}) > 1:
        raise InvalidParameter(f'{folder} is a folder with files of several kinds. Name them, as in "*.csv".')
    return tables


def check_ending(path: Path) -> None:
    """Refuse a file of a kind that is not read."""
    ending = kind_of(path)
    if ending in _SHEETS:
        raise InvalidParameter(
            f"{path} is a spreadsheet, whose cells have no declared types. Save its sheet as CSV (in Excel: "
            '"CSV UTF-8"), or read it with pandas.read_excel and give the frame to sourdine.Table.'
        )
    if ending not in ENDINGS or (ending == ".parquet" and path.suffix.lower() in COMPRESSED):
        raise InvalidParameter(
            f"A file ending in '{path.suffix}' is not read. Use one of {', '.join(sorted(ENDINGS))}; text "
            "may also be compressed, as .csv.gz or .csv.zst."
        )


def _is_note(part: str) -> bool:
    return part[0] == "." or (part[0] == "_" and "=" not in part)


def _partitions(files: Sequence[tuple[Path, Path]]) -> dict[str, tuple[str | None, ...]]:
    """The columns that folders like region=north give, which every file must have."""
    rows: list[dict[str, str | None]] = []
    for root, path in files:
        parts = (part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part)
        rows.append({unquote(name): _value(text) for name, text in parts})
    names = set(rows[0]) if rows else set()
    if any(set(row) != names for row in rows):
        raise InvalidParameter(
            "Some of the files lie in folders like region=north and others do not, or in other ones. Use "
            "files that lie alike."
        )
    return {name: tuple(row[name] for row in rows) for name in rows[0]} if rows else {}


def _value(text: str) -> str | None:
    return None if text == _NO_PARTITION else unquote(text)


_FARTHEST = 10**300
_NULLABLE = {"i": "Int64", "u": "UInt64", "b": "boolean"}


def with_plain_columns(frame: Any, names: Sequence[str], units: Sequence[str]) -> Any:
    """A pandas frame of the named columns, objects as text or nothing, categories as what those are.

    Columns of Python's own strings are gone through as well, since such a string need not be good text. As
    they are, categories that are numbers would be floats if one is missing and whole numbers if none is.
    """
    if not names:
        return frame
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in names:
        columns[name] = column = frame[name]
        if hasattr(column.dtype, "categories"):
            columns[name] = _of_categories(column, name in units)
        elif _is_guessed(column.dtype):
            columns[name] = _plain(column, name in units)
        elif isinstance(column.dtype, pd.StringDtype):
            columns[name] = _arrow_texts(column.array)
    if any(hasattr(column.dtype, "pyarrow_dtype") for column in columns.values()):
        columns = {name: _for_arrow(column) for name, column in columns.items()}
    # by arrays: an index, in which labels may repeat, would be compared for every column
    return pd.DataFrame(
        {name: getattr(column, "array", column) for name, column in columns.items()}, copy=False
    )


def _arrow_texts(column: Any) -> Any:
    """Texts as the engine takes them from Arrow itself.

    Of those that Arrow holds for pandas it would make strings of Python, and raise at the first whose bytes
    are no text.
    """
    import pandas as pd
    import pyarrow as pa

    return pd.arrays.ArrowExtensionArray(pa.array(column, pa.large_string()))


def _for_arrow(column: Any) -> Any:
    """A column of a frame that goes through Arrow as a whole: of the type it has, whatever it holds."""
    if column.dtype == np.object_:
        return _arrow_texts(column)
    return column.astype(np.float32) if column.dtype == np.float16 else column


def _is_guessed(dtype: Any) -> bool:
    return dtype == np.object_ or getattr(dtype, "storage", None) == "python"


def _plain(items: Iterable[object], unit: bool) -> NDArray[np.object_]:
    return np.array([plain_text(item, unit) for item in items], dtype=object)


def _of_categories(column: Any, unit: bool) -> Any:
    """A column of categories as one of the type that these have."""
    categories = column.cat.categories
    if _is_guessed(categories.dtype):
        texts = _plain([*categories, None], unit)  # the last stands for a missing one, of code -1
        return texts[column.cat.codes.to_numpy()]
    if getattr(categories.dtype, "storage", None) is not None:
        return column
    kind = _NULLABLE.get(getattr(categories.dtype, "kind", ""), categories.dtype)
    return column.astype(kind)


def plain_text(item: object, unit: bool = False) -> str | None:
    """One object as text; None for what is missing, and for anything that is not plain. It never raises.

    Numbers that are equal tell one unit, and so do times, so there they are written alike.

    >>> plain_text(True), plain_text(float("nan")), plain_text([1]), plain_text(2.0), plain_text(2.0, True)
    ('true', None, None, '2.0', '2')
    >>> plain_text("caf\\udce9") is None
    True
    """
    try:
        return _text(item, unit)
    except Exception:  # a class of somebody's own may do anything
        return None


def _text(item: object, unit: bool) -> str | None:
    if isinstance(item, np.generic) and not isinstance(item, np.datetime64 | np.timedelta64):
        item = item.item()
    if isinstance(item, str):
        # halves of letters are no text: left out, they would make one text, or one unit, of two
        return str.encode(item).decode()
    if isinstance(item, bool):
        return str(item).lower()
    if unit and isinstance(item, float | Decimal) and math.isfinite(item) and item == int(item):
        item = int(item)
    if unit and isinstance(item, datetime) and item.tzinfo is not None:
        item = item.astimezone(UTC)
    if isinstance(item, int):
        whole = int(item)
        if unit and abs(whole) > _FARTHEST:
            return hex(whole)  # units stay apart
        return str(max(-_FARTHEST, min(_FARTHEST, whole)))
    if isinstance(item, float):
        return None if math.isnan(item) else float.__repr__(item)
    if isinstance(item, Decimal):
        return None if item.is_nan() else str(item)
    if unit and isinstance(item, bytes):
        return "\\x" + item.hex()
    if type(item) is UUID or isinstance(item, date | np.datetime64):
        text = str(item)
        return None if text == "NaT" else text
    return None
