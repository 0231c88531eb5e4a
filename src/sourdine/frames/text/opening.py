"""Files of text as a relation of an engine: every field is text, under the name that the header gives it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expression import literal, quoted
from sourdine.frames.text import pieces
from sourdine.frames.text.compression import Contents, kind_of
from sourdine.frames.text.format import TextFormat
from sourdine.frames.text.header import Header, read_header
from sourdine.frames.text.pieces import TextFile
from sourdine.frames.text.tidy import tidy, tidy_json

if TYPE_CHECKING:
    from sourdine.frames.text.filesystem import Pieces

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
        from sourdine.frames.text.filesystem import Pieces

        return Pieces([self._text(*each) for each in zip(self.paths, self.headers, strict=True)])

    def _text(self, path: Path, header: Header | None) -> TextFile:
        contents = Contents(path)
        if header is None:
            mark = b"\xef\xbb\xbf"
            return TextFile(
                contents, len(mark) if contents.look(3) == mark else 0, "utf-8", tidy_json, size=pieces.SIZE
            )
        multiline, alone = self.text.multiline, len(header.names) == 1
        plain = partial(tidy, delimiter=header.delimiter, multiline=multiline, alone=alone)
        return TextFile(contents, header.start, header.encoding, plain, multiline, pieces.SIZE)

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
