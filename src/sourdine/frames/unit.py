"""Whom the guarantee protects, and how many records of one unit count."""

from collections.abc import Sequence
from dataclasses import dataclass

from sourdine.core import check
from sourdine.core.bits import Bits
from sourdine.frames.expression import literal, quoted

MOST_ROWS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Each record is a unit of its own, or those with the same value of a column are, at most `rows` of them.

    >>> Unit(column="patient", rows=3).rows
    3
    """

    column: str | None = None
    rows: int = 1

    def __post_init__(self) -> None:
        named: object = self.column
        if named is not None and not (isinstance(named, str) and named):
            raise check.fail("Unit", "column", "be the name of a column", self.column)
        object.__setattr__(self, "rows", check.integer("Unit", "rows", self.rows, 1, MOST_ROWS))
        if self.column is None and self.rows != 1:
            remedy = "Name the column that tells units apart."
            raise check.fail("Unit", "rows", "be 1 where every record is a unit", self.rows, remedy)


def bounded(table: str, unit: Unit, columns: Sequence[str], bits: Bits) -> str:
    """A query for the columns of at most `rows` records of each unit.

    Which ones is decided by a hash of a secret, the unit and the record, so it depends on nobody else's
    records. Records without a unit belong to nobody who could be protected, and are left out.
    """
    wanted = ", ".join(map(quoted, columns)) or "1 AS nothing"
    if unit.column is None:
        return f"SELECT {wanted} FROM {table}"
    secret = literal(bits.words(2).tobytes().hex())
    whose = quoted(unit.column)
    record = ", ".join(f"coalesce(CAST({quoted(name)} AS VARCHAR), chr(1)), chr(0)" for name in columns)
    mark = f"sha256(concat({secret}, CAST({whose} AS VARCHAR), chr(0){', ' + record if record else ''}))"
    ranked = f"row_number() OVER (PARTITION BY {whose} ORDER BY {mark})"
    return (
        f"SELECT {wanted} FROM (SELECT *, {ranked} AS sourdine_rank FROM {table} WHERE {whose} IS NOT NULL) "
        f"WHERE sourdine_rank <= {unit.rows}"
    )
