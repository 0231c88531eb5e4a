"""Files of text as a relation of an engine: every field is text, under the name that the header gives it."""

import gzip
import io
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from fsspec import AbstractFileSystem

from sourdine.core.errors import InvalidParameter
from sourdine.frames.cells import literal, quoted
from sourdine.frames.csv.format import Header, TextFormat, read_header
from sourdine.frames.csv.normalize import (
    MOST_BYTES,
    as_utf8,
    line_feeds,
    quotes,
    tidy,
    tidy_json,
    units,
    width,
)

# The bytes of a file, from any place on, decompressed where its name says that it is compressed.
#
# What is compressed cannot be read from its middle. It is decompressed once, after the release is paid,
# into a temporary file that has no name: only this process can read it, and it is gone with it.

COMPRESSED = (".gz", ".zst")
_COMPRESSION_CHUNK = 1 << 22


def kind_of(path: Path) -> str:
    """The ending that tells what a file holds: of people.csv.gz it is .csv.

    >>> kind_of(Path("people.CSV.gz")), kind_of(Path("people.parquet"))
    ('.csv', '.parquet')
    """
    ending = path.suffix.lower()
    return Path(path.stem).suffix.lower() if ending in COMPRESSED else ending


@dataclass(frozen=True)
class Contents:
    """A file whose bytes can be read from any place on, by several threads."""

    path: Path
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def compressed(self) -> bool:
        """Whether the file's bytes stand for others."""
        return self.path.suffix.lower() in COMPRESSED

    def look(self, size: int) -> bytes:
        """The first bytes; OSError where they cannot be had."""
        try:
            with self._open() as file:
                return file.read(size)
        except (OSError, InvalidParameter):
            raise
        except Exception:  # each decompressor has errors of its own
            raise OSError("The file cannot be decompressed.") from None

    def read(self, start: int, size: int) -> bytes:
        """Some bytes from a place on; fewer at the end."""
        if self.compressed:
            with self._lock:
                self._whole.seek(start)
                return self._whole.read(size)
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read(size)

    @cached_property
    def length(self) -> int:
        """How many bytes there are; what is written behind them later is not read."""
        if not self.compressed:
            return self.path.stat().st_size
        with self._lock:
            return self._whole.seek(0, 2)

    def _open(self) -> IO[bytes]:
        ending = self.path.suffix.lower()
        if ending == ".gz":
            return cast(IO[bytes], gzip.open(self.path, "rb"))
        if ending == ".zst":
            return cast(IO[bytes], _zstandard(self.path))
        return self.path.open("rb")

    @cached_property
    def _whole(self) -> IO[bytes]:
        file = cast(IO[bytes], tempfile.TemporaryFile())  # noqa: SIM115 - it is closed with its owner
        weakref.finalize(self, file.close)
        with self._open() as source:
            while chunk := source.read(_COMPRESSION_CHUNK):
                file.write(chunk)
        return file


def _zstandard(path: Path) -> object:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            from backports import zstd  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise InvalidParameter(
                f"Reading {path} takes a package that is not installed. Run pip install backports.zstd, or "
                "decompress the file."
            ) from None
    return zstd.open(path, "rb")


# A file as many small ones that an engine reads side by side, each of whole records, tidied on the way.
#
# An engine that splits a file by itself begins in the middle of it and has to guess whether it is inside
# quotes. Here a piece begins after a line feed, so nothing is guessed, and nothing is kept: a piece lives
# while a thread of the engine reads it.


PROTOCOL = "sourdine"
SIZE = 1 << 24  # bytes of a piece: a few for each thread, so that they are done at the same time
_CHUNK = 1 << 16
_QUOTE = 34


@dataclass(frozen=True)
class TextFile:
    """A file of records that begin at a place, and what makes a block of them plain."""

    contents: Contents
    start: int
    encoding: str
    plain: Callable[[bytes], bytes]
    multiline: bool = False
    size: int = SIZE
    _long: list[tuple[int, int]] = field(default_factory=list, repr=False)
    _parities: list[int] = field(default_factory=list, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return max(1, -(-(self.contents.length - self.start) // self.size))

    def piece(self, number: int) -> bytes:
        """The records that begin in a stretch of the file, plain."""
        low = self._boundary(number)
        nominal = self.start + (number + 1) * self.size
        last = number + 1 >= self.pieces
        high = self.contents.length if last else self._boundary(number + 1)
        if low >= high:
            return b""
        # of a record that goes far beyond the stretch, only that it is too long: up to there it is one record
        # with line breaks in its quotes too, since it has no other
        most = max(nominal, low) + (MOST_BYTES + 1) * width(self.encoding)
        block = self.contents.read(low, min(high, most) - low)
        return self.plain(as_utf8(block, self.encoding))

    def _boundary(self, number: int) -> int:
        """Where the first record begins that does not begin before a stretch."""
        offset = self.start + number * self.size
        if number == 0:
            return offset
        with self._lock:
            for begin, end in self._long:  # a record that spans stretches is gone through once
                if begin <= offset <= end:
                    return end
            end = self._next(offset, self._odd(number))
            if end - offset > self.size:
                self._long.append((offset, end))
        return end

    def _next(self, offset: int, odd: bool) -> int:
        """The place after the first line feed from just before an offset on, outside quotes that are open."""
        wide = width(self.encoding)
        at = offset - wide
        while True:
            chunk = self.contents.read(at, _CHUNK)
            ends = line_feeds(chunk, self.encoding)
            if self.multiline:
                places = np.flatnonzero(units(chunk, self.encoding) == _QUOTE) * wide
                ends = ends[(np.searchsorted(places, ends) + odd) % 2 == 0]
                odd = bool((places.size + odd) % 2)
            if ends.size:
                return at + int(ends[0]) + wide
            if len(chunk) < _CHUNK:
                return self.contents.length
            at += _CHUNK

    def _odd(self, number: int) -> bool:
        """Whether a quote is open just before a stretch; the byte before it may be its line's end."""
        if not self.multiline:
            return False
        if not self._parities:
            counts = (
                quotes(self.contents.read(self.start + i * self.size, self.size), self.encoding)
                for i in range(self.pieces)
            )
            self._parities.extend(accumulate(counts, initial=0))
        offset, wide = self.start + number * self.size, width(self.encoding)
        before = quotes(self.contents.read(offset - wide, wide), self.encoding)
        return (self._parities[number] - before) % 2 == 1


if TYPE_CHECKING:
    pass

DELIMITED = (".csv", ".tsv")
JSON = (".json", ".jsonl", ".ndjson")
_NO_NUMBER = "?"  # what stands for a text that is no number as it is declared to be written
_OPTIONS = (
    "auto_detect = false, quote = '\"', escape = '\"', header = false, null_padding = true, "
    "ignore_errors = true, parallel = false, strict_mode = false"
)


@dataclass(frozen=True)
class TextFiles:
    """Files of text with what their headers say; `partitions` are columns that the paths of files give.

    Nothing but the header is read before `relation` is called.
    """

    paths: tuple[Path, ...]
    headers: tuple[Header | None, ...]
    text: TextFormat
    needs: tuple[str, ...]
    numbers: frozenset[str]
    partitions: Mapping[str, tuple[str | None, ...]]

    @classmethod
    def open(
        cls,
        paths: Sequence[Path],
        text: TextFormat,
        needs: Sequence[str],
        numbers: Sequence[str],
        partitions: Mapping[str, tuple[str | None, ...]],
    ) -> "TextFiles":
        """Look at the headers of files that are all of one kind."""
        own = [name for name in needs if name not in partitions]
        headers = tuple(_header(path, text, own) for path in paths)
        for path, header in zip(paths, headers, strict=True):
            _check_repeats(path, header, own)
        return cls(tuple(paths), headers, text, tuple(needs), frozenset(numbers), partitions)

    @property
    def names(self) -> list[str] | None:
        """The columns that every file has, each as often as the first does; None if no file has a header."""
        first = self.headers[0]
        if first is None:
            return None
        others = [set(header.names) for header in self.headers[1:] if header is not None]
        shared = [name for name in first.names if all(name in names for names in others)]
        return [*shared, *(name for name in self.partitions if name not in shared)]

    def cut(self) -> "Pieces":
        """The pieces of all files, for an engine to read."""

        return Pieces([self._text(*each) for each in zip(self.paths, self.headers, strict=True)])

    def _text(self, path: Path, header: Header | None) -> TextFile:
        contents = Contents(path)
        if header is None:
            mark = b"\xef\xbb\xbf"
            return TextFile(
                contents, len(mark) if contents.look(3) == mark else 0, "utf-8", tidy_json, size=SIZE
            )
        multiline, alone = self.text.multiline, len(header.names) == 1
        plain = partial(tidy, delimiter=header.delimiter, multiline=multiline, alone=alone)
        return TextFile(contents, header.start, header.encoding, plain, multiline, SIZE)

    def relation(self, cut: "Pieces") -> str:
        """The records of all files, in SQL; files with the same header are read by one question."""
        alike: dict[tuple[object, ...], list[int]] = {}
        for place, header in enumerate(self.headers):
            key = (None,) if header is None else (header.names, header.delimiter)
            alike.setdefault(key, []).append(place)
        parts = (self._part(cut, places) for places in alike.values())
        return " UNION ALL ".join(f"(SELECT {self._columns} FROM {part})" for part in parts)

    def nothing(self) -> str:
        """The same columns without records."""
        columns = ", ".join(f"CAST(NULL AS VARCHAR) AS {quoted(name)}" for name in self.needs)
        return f"SELECT {columns or '0 AS nothing'} LIMIT 0"

    @cached_property
    def _file(self) -> str:
        """What the column is called that tells which piece a record is from."""
        return self._unused("sourdine_file")

    @cached_property
    def _other(self) -> str:
        """How the columns that are not wanted are called, before their numbers."""
        return self._unused("sourdine_other_")

    def _unused(self, name: str) -> str:
        """A name that no wanted column has or begins with."""
        while any(column.casefold().startswith(name) for column in self.needs):
            name += "_"
        return name

    def _part(self, cut: "Pieces", places: Sequence[int]) -> str:
        listed = f"[{', '.join(map(literal, cut.names(places)))}]"
        header = self.headers[places[0]]
        if header is None:
            named = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in self.needs)
            return (
                f"read_json({listed}, columns = {{{named}}}, format = 'newline_delimited', records = true, "
                f"ignore_errors = true, filename = {literal(self._file)})"
            )
        needed = set(self.needs)
        columns = [
            name if name in needed else f"{self._other}{place}" for place, name in enumerate(header.names)
        ]
        named = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in columns)
        delimiter = literal(header.delimiter)
        return (
            f"read_csv({listed}, columns = {{{named}}}, delim = {delimiter}, "
            f"filename = {literal(self._file)}, {_OPTIONS})"
        )

    @property
    def _columns(self) -> str:
        return ", ".join(f"{self._column(name)} AS {quoted(name)}" for name in self.needs) or "0 AS nothing"

    def _column(self, name: str) -> str:
        if name in self.partitions:
            values = ", ".join("NULL" if each is None else literal(each) for each in self.partitions[name])
            return f"CAST([{values}][CAST(split_part({self._file}, '/', 3) AS INTEGER) + 1] AS VARCHAR)"
        column = quoted(name)
        if self.text.strip is not None:
            column = f"nullif(trim({column}, {literal(self.text.strip)}), '')"
        return self._number(column) if name in self.numbers else column

    def _number(self, column: str) -> str:
        """A number as engines read it; one that is not written as declared is no number."""
        decimal, thousands = self.text.decimal, self.text.thousands
        if decimal == "." and thousands is None:
            return column
        point = "[.]" if decimal == "." else ","
        digits = "[0-9]*"
        if thousands is not None:
            digits = f"([0-9]{{1,3}}([{thousands}][0-9]{{3}})+|[0-9]*)"
        pattern = rf"\s*[+-]?{digits}({point}[0-9]*)?([eE][+-]?[0-9]+)?\s*"
        plain = column if thousands is None else f"replace({column}, {literal(thousands)}, '')"
        plain = plain if decimal == "." else f"replace({plain}, ',', '.')"
        return (
            f"CASE WHEN {column} IS NULL OR regexp_full_match({column}, {literal(pattern)}) THEN {plain} "
            f"ELSE {literal(_NO_NUMBER)} END"
        )


def _header(path: Path, text: TextFormat, needs: Sequence[str]) -> Header | None:
    """The header of a delimited file; JSON has none."""
    kind = kind_of(path)
    contents = Contents(path)
    if kind in JSON:
        _check_lines(path, contents, text)
        return None
    try:
        return read_header(path, contents.look, text, needs, "\t" if kind == ".tsv" else None)
    except (OSError, EOFError):
        raise unreadable(path) from None


def _check_repeats(path: Path, header: Header | None, needs: Sequence[str]) -> None:
    """Refuse a header in which a wanted name stands twice: which of the two is meant, nobody knows."""
    for name in needs:
        if header is not None and header.names.count(name) > 1:
            raise InvalidParameter(f"The file {path} has two columns called '{name}'. Rename one of them.")


def _check_lines(path: Path, contents: Contents, text: TextFormat) -> None:
    """Refuse JSON that is not a record a line.

    A name that says that it is one, such as people.jsonl, is believed: there the first line is a record, and
    nothing is told by what it holds.
    """
    if not text.plain:
        raise InvalidParameter(
            f"The file {path} is JSON, which is UTF-8 and has no delimiter and no header. Leave out what is "
            "declared of them."
        )
    if kind_of(path) != ".json" and not contents.compressed:
        return
    try:
        start = contents.look(1 << 12)
    except (OSError, EOFError):
        raise unreadable(path) from None
    if kind_of(path) == ".json" and start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        raise InvalidParameter(
            f"The file {path} is one list of records. There a single damaged record would make all others "
            "unreadable. Write a record a line, as JSON Lines: with jq -c '.[]', or in pandas with "
            'to_json(path, orient="records", lines=True).'
        )


def unreadable(path: Path) -> InvalidParameter:
    """What is said of a file that is not of the kind that its name says."""
    kind = kind_of(path)[1:]
    return InvalidParameter(
        f"The file {path} cannot be read as {kind}. Check that it is complete and of that kind."
    )


# The pieces of files of text as a file system that an engine reads.
#
# It is loaded with the first question: a table is declared without it, and what it rests on takes long to
# load.


class Pieces(AbstractFileSystem):  # type: ignore[misc]
    """The pieces of some files, by names like sourdine://2/5 for the sixth piece of the third file."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, files: Sequence[TextFile]) -> None:
        super().__init__(skip_instance_cache=True)
        self.files = tuple(files)
        self._sizes: dict[str, int] = {}

    def names(self, numbers: Sequence[int]) -> list[str]:
        """What the pieces of some of the files are called."""
        return [f"{PROTOCOL}://{i}/{j}" for i in numbers for j in range(self.files[i].pieces)]

    def open(self, path: str, mode: str = "rb", *args: Any, **kwargs: Any) -> io.BytesIO:
        """A piece, made now."""
        file, piece = map(int, self._plain(path).split("/"))
        content = io.BytesIO(self.files[file].piece(piece))
        self._sizes[self._plain(path)] = content.getbuffer().nbytes
        return content

    def size(self, path: str) -> int:
        """The bytes of a piece that was opened: they are the same each time."""
        return self._sizes[self._plain(path)]

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """That a piece is a file."""
        return {"name": path, "type": "file", "size": self._sizes.get(self._plain(path), SIZE)}

    def exists(self, path: str, **kwargs: Any) -> bool:
        """Pieces are known by their numbers alone."""
        return True

    def isfile(self, path: str) -> bool:
        """Pieces are files."""
        return True

    def glob(self, path: str, **kwargs: Any) -> list[str]:
        """A name is no pattern."""
        return [path]

    def modified(self, path: str) -> datetime:
        """Nothing is kept of a piece, so it never grows old."""
        return datetime.fromtimestamp(0, UTC)

    def _plain(self, path: str) -> str:
        return path.removeprefix(f"{PROTOCOL}://")
