"""Where the records of a release came from, by names alone, and how they were read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sourdine.frames.csv.format import TextFormat
from sourdine.frames.joins import Join
from sourdine.frames.source import AS_IT_IS

_UNNAMED = "table"


@dataclass(frozen=True)
class TableOrigin:
    """The names of a table's files, the public tables beside it, and how texts are read.

    A frame has no name of its own.

    >>> TableOrigin.of(["data/2024.csv", "data/2025.csv"]).names
    ('2024.csv', '2025.csv')
    """

    names: tuple[str, ...] = (_UNNAMED,)
    joins: tuple[Join, ...] = ()
    text: TextFormat = AS_IT_IS

    @classmethod
    def of(cls, source: object, joins: Sequence[Join] = (), text: TextFormat = AS_IT_IS) -> "TableOrigin":
        """The origin of what a table was made of."""
        listed = source if isinstance(source, list | tuple) and source else [source]
        return cls(tuple(_name(each, _UNNAMED) for each in listed), tuple(joins), text)

    @property
    def joined(self) -> dict[str, object]:
        """The public tables, as blocks of a specification."""
        return {
            join.name: {
                "file": _name(join.table, join.name),
                "on": dict(join.on),
                "columns": list(join.columns),
            }
            for join in self.joins
        }


def _name(source: object, unnamed: str) -> str:
    return Path(source).name or unnamed if isinstance(source, str | Path) else unnamed


FRAME = TableOrigin()
