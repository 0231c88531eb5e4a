"""Whether a record has a row in a public table that is joined to it."""

from dataclasses import dataclass

from sourdine.frames.expressions.tree import Expression, Kinds, RecordCells
from sourdine.frames.expressions.truths import Truth


def matched_name(join: str) -> str:
    """Return the name of the column that tells which records a join has matched."""
    return f"matched in {join}"


@dataclass(frozen=True)
class Matched(Truth):
    """Whether the public table of a join has a row for a record; it is never missing itself.

    >>> Matched("places").text
    'MATCHED(places)'
    """

    join: str

    @property
    def parts(self) -> tuple[Expression, ...]:
        return ()

    @property
    def text(self) -> str:
        return f"MATCHED({self.join})"

    @property
    def words(self) -> str:
        return matched_name(self.join)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        return cells.matched(self.join)
