"""What does not fit, exactly: for the holder of the data alone, outside every guarantee.

Whoever has read it knows something about the records that no noise hides. So it leaves a mark in what is
declared, and plans, certificates and reports show the mark.
"""

import errno
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sourdine.core import files as disk
from sourdine.core.display import Viewable
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.random.bits import SYSTEM
from sourdine.core.text import parse_toml
from sourdine.frames.quality import CellState, all_cells, cells_of, quality_counts, records_without
from sourdine.frames.schema import PrivacyUnit
from sourdine.frames.source import Source

NOTICE = "NOT PRIVATE, for the data's holder alone, not to be published"
OUTSIDE = (
    "declarations that are changed after reading this depend on the data, and releases made with them are "
    "outside the guarantee; plans and certificates say that they were checked"
)
CHECKED_WORDS = (
    "The declarations were checked against the data, which is not private: what was changed in them after "
    "that is outside the guarantee"
)
_MARK = "\ufeff"
_HEADER = re.compile(
    r"^[ \t]*\[[ \t]*(?:table|\"table\"|'table')[ \t]*\][ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)", re.M
)
_UNCHECKED = re.compile(r"^([ \t]*checked[ \t]*=[ \t]*)false\b", re.M)


@dataclass(frozen=True, kw_only=True)
class ExactQuality(Viewable):
    """Exact counts of records: in all, without a unit, and in each cell of each column. They are not private.

    `without_unit` is None where each record is a unit.
    """

    records: int
    without_unit: int | None
    cells: tuple[tuple[str, CellState, int], ...]
    notice: str = NOTICE

    def lines(self) -> Iterator[str]:
        """What was counted, each line with the notice that it is not private."""
        yield f"{self.notice}: {self.records:,} records in all"
        if self.without_unit is not None:
            yield f"{self.notice}: without a unit: {self._share(self.without_unit)}"
        for name, cell, many in self.cells:
            # a line break in a name would make a line without the notice
            plain = "".join(letter if letter.isprintable() else " " for letter in name)
            yield f"{self.notice}: {plain}: {cell}: {self._share(many)}"
        yield f"{self.notice}: {OUTSIDE}"

    def count(self, column: str, what: str) -> int:
        """How many records are in a cell, such as 'missing'."""
        for name, cell, many in self.cells:
            if (name, cell) == (column, what):
                return many
        listed = ", ".join(f"'{name}', '{cell}'" for name, cell, _ in self.cells)
        raise InvalidParameter(f"Nothing was counted for '{column}', '{what}'. There are {listed}.")

    def _share(self, many: int) -> str:
        return f"{many:,} ({100 * many / max(1, self.records):.3g} %)"


def exact_quality(source: Source, columns: Sequence[str], unit: PrivacyUnit) -> ExactQuality:
    """Exact counts of all records, whosever they are. There is no guarantee: nobody else may see them."""
    try:
        # each record is a unit of its own here, so no bits are drawn
        counts = quality_counts(source, columns, unit=PrivacyUnit(), bits=SYSTEM)
        without = None if unit.column is None else records_without(source, unit.column)
    except Exception:  # whatever it is, its words may quote a record
        raise SourdineError(
            "The table could not be read to its end. Check that its file is whole and that the disk has room."
        ) from None
    cells = all_cells(source.schema, columns)
    first = len(cells_of(source.schema.columns[columns[0]])) if columns else 1
    return ExactQuality(
        records=sum(counts[:first]),
        without_unit=without,
        cells=tuple((name, cell, many) for (name, cell), many in zip(cells, counts, strict=False)),
    )


def mark_checked(path: Path) -> None:
    """Write `checked = true` into the [table] block of a specification, and change nothing else of it.

    The file is written whole or not at all. If it has the mark already, it stays as it is.
    """
    place = path.resolve()
    try:
        text = place.read_bytes().decode("utf-8")
        marked = with_mark(text, path)
        if marked != text:
            _write_whole(marked, place)
    except OSError as problem:
        raise InvalidParameter(
            f"{path} cannot be written ({problem.strerror}), and a check leaves the mark checked = true in "
            "it before anything is shown. Make the file and its folder writable."
        ) from None


def with_mark(text: str, path: Path) -> str:
    """The text of a specification with the mark; comments and everything else stay as they are.

    >>> print(with_mark("[table]  # people\\nsource = 'people.csv'\\n", Path("people.toml")))
    [table]  # people
    checked = true
    source = 'people.csv'
    <BLANKLINE>
    """
    if text.startswith(_MARK):  # which some editors begin a file with
        return _MARK + with_mark(text.removeprefix(_MARK), path)
    document = parse_toml(text, path)
    if document["table"].get("checked") is True:
        return text
    target = {**document, "table": {**document["table"], "checked": True}}
    for header in _HEADER.finditer(text):
        before, after = text[: header.end()], text[header.end() :]
        line_end = "\r\n" if header.group().endswith("\r\n") else "\n"
        start = "" if before.endswith("\n") else line_end
        for candidate in (
            before + _UNCHECKED.sub(r"\g<1>true", after, count=1),
            f"{before}{start}checked = true{line_end}{after}",
        ):
            if _same(candidate, target, path):  # else it stands in a text, or in another block
                return candidate
    raise InvalidParameter(
        f"The mark of a check could not be written into {path}, since it has no [table] block on lines of "
        "its own. Write checked = true beside the source of the table, and check again."
    )


def _same(text: str, target: object, path: Path) -> bool:
    try:
        return bool(parse_toml(text, path) == target)
    except InvalidParameter:
        return False


def _write_whole(text: str, place: Path) -> None:
    """A file in the place of another, with the same rights."""
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    disk.write_whole(place, text)
