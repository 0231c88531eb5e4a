"""Which files a table is made of: one, several, a pattern, or a folder with its partitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

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
    sourdine.core.errors.InvalidParameter: There is no file nowhere.csv. Check the path.
    """
    listed = [where] if isinstance(where, str | Path) else list(where)
    found = [(root, path) for each in listed for root, path in _found(each)]
    paths = tuple(path for _, path in found)
    _check_once(paths)
    kinds = sorted({kind_of(path) for path in paths})
    if len(kinds) > 1:
        raise InvalidParameter(f"The files are of several kinds ({', '.join(kinds)}). Use files of one kind.")
    return Files(paths, _partitions(found))


def _found(each: str | Path) -> list[tuple[Path, Path]]:
    """The files of one name, each with the folder that it was looked for in."""
    path = Path(each)
    if path.is_file():
        check_ending(path)
        return [(path.parent, path)]
    if path.is_dir():
        return [(path, held) for held in _in_folder(path)]
    if not any(mark in str(each) for mark in "*?["):
        check_ending(path)
        raise InvalidParameter(f"There is no file {path}. Check the path.")
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
    held = [(status.st_dev, status.st_ino) for status in (path.stat() for path in paths)]
    if len(set(held)) < len(held):
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
    held = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and not any(map(_is_note, file.relative_to(folder).parts))
    )
    found = [file for file in held if kind_of(file) in ENDINGS]
    if not found:
        raise InvalidParameter(
            f"{folder} is a folder without a table in it. Name a file, or a folder of files that end in "
            f"{', '.join(ENDINGS)}."
        )
    if len({kind_of(file) for file in found}) > 1:
        raise InvalidParameter(f'{folder} is a folder with files of several kinds. Name them, as in "*.csv".')
    return found


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


def _partitions(found: Sequence[tuple[Path, Path]]) -> dict[str, tuple[str | None, ...]]:
    """The columns that folders like region=north give, which every file must have."""
    rows: list[dict[str, str | None]] = []
    for root, path in found:
        held = (part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part)
        rows.append({unquote(name): _value(text) for name, text in held})
    names = set(rows[0]) if rows else set()
    if any(set(row) != names for row in rows):
        raise InvalidParameter(
            "Some of the files lie in folders like region=north and others do not, or in other ones. Use "
            "files that lie alike."
        )
    return {name: tuple(row[name] for row in rows) for name in rows[0]} if rows else {}


def _value(text: str) -> str | None:
    return None if text == _NO_PARTITION else unquote(text)
