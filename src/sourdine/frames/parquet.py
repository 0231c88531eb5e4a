"""Parquet files as one table: columns of one type each, and those that the files' folders give.

An engine that reads files of several types at once makes one of them, and raises at the first value that this
cannot hold: then one record would decide whether there is an answer. So types go together only where every
value of each has a place in the other.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.types import Family, base_name, family, scale
from sourdine.frames.expression import literal, quoted
from sourdine.frames.files import Files

if TYPE_CHECKING:
    import duckdb

_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
_DIGITS |= {f"U{kind}": digits + (kind == "BIGINT") for kind, digits in _DIGITS.items()}
_MOST_DIGITS = 38
_NUMBERS = frozenset({Family.WHOLE, Family.FLOAT, Family.DECIMAL})
_BITS = frozenset({Family.WHOLE, Family.BOOLEAN})
_WRITTEN = frozenset({Family.TEXT, Family.WHOLE, Family.DATE, Family.UUID})
"""What is written as text in one way, so that units stay what they are."""
_AS_TEXT = _WRITTEN | {Family.BOOLEAN, Family.FLOAT, Family.DECIMAL}
_PLACE = "file_index"


class ParquetFiles:
    """Parquet files that a connection can read, by patterns, one for each of them.

    Only what the files say of their columns is looked at.
    """

    def __init__(
        self, connection: "duckdb.DuckDBPyConnection", files: Files, patterns: Sequence[str]
    ) -> None:
        self._connection, self._patterns, self._partitions = connection, patterns, files.partitions
        self._listed = f"[{', '.join(map(literal, patterns))}]"
        several = str(len(patterns) > 1).lower()
        self._read = f"read_parquet({self._listed}, hive_partitioning = false, union_by_name = {several})"
        self._names = tuple(connection.sql(f"SELECT * FROM {self._read}").columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of all files, and those that their folders give."""
        return *(name for name in self._names if name not in self._partitions), *self._partitions

    def relation(self, names: Sequence[str], units: Sequence[str]) -> str:
        """The wanted columns of all records, in SQL."""
        if self._partitions and _PLACE in (name.casefold() for name in self._names):
            raise InvalidParameter(
                f"The table has a column '{_PLACE}', a name that is used inside. Rename it."
            )
        self._check_types([name for name in names if name not in self._partitions], units)
        columns = ", ".join(f"{self._column(name)} AS {quoted(name)}" for name in names)
        return f"SELECT {columns or '*'} FROM {self._read}"

    def check_times(self, names: Sequence[str]) -> None:
        """Refuse times in milliseconds: the engine raises at one that is too far away for microseconds."""
        coarse = "converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE '%MILLIS=Milli%'"
        sql = f"SELECT DISTINCT name FROM parquet_schema({self._listed}) WHERE {coarse}"
        slow = {str(name).casefold() for (name,) in self._connection.execute(sql).fetchall()}
        for name in names:
            if name.casefold() in slow:
                raise InvalidParameter(
                    f"The file holds the column '{name}' as times in milliseconds, and one that lies too far "
                    "away would stop the engine. Write it in microseconds, or as dates."
                )

    def _column(self, name: str) -> str:
        if name not in self._partitions:
            return quoted(name)
        values = ", ".join("NULL" if each is None else literal(each) for each in self._partitions[name])
        return f"CAST([{values}][CAST({_PLACE} AS BIGINT) + 1] AS VARCHAR)"

    def _check_types(self, names: Sequence[str], units: Sequence[str]) -> None:
        """Refuse columns of which a value in one file has no place in the type that all together have."""
        if len(self._patterns) == 1:
            return
        sql = f"SELECT DISTINCT name, duckdb_type FROM parquet_schema({self._listed})"
        quick = _by_name(self._connection.execute(sql).fetchall())
        if all(_go_together(quick.get(name.casefold(), set()), unit=name in units) for name in names):
            return
        # parts of nested columns may be called as a column is: file by file it is slow, but certain
        each = [self._connection.sql(f"FROM read_parquet({literal(one)})") for one in self._patterns]
        exact = _by_name(
            [pair for one in each for pair in zip(one.columns, map(str, one.types), strict=True)]
        )
        for name in names:
            kinds = exact.get(name.casefold(), set())
            if not _go_together(kinds, unit=name in units):
                types = ", ".join(sorted(map(base_name, kinds)))
                raise InvalidParameter(
                    f"The files hold the column '{name}' in types that do not go together ({types}): a value "
                    "of one may have no place in another. Write it in all files with the same type."
                )


def _by_name(pairs: Iterable[tuple[str, str]]) -> Mapping[str, set[str]]:
    """The types of each name, in small letters as the engine takes them."""
    types: dict[str, set[str]] = {}
    for name, kind in pairs:
        if kind and family(kind) is not Family.NOTHING:
            types.setdefault(name.casefold(), set()).add(kind)
    return types


def _go_together(kinds: set[str], *, unit: bool) -> bool:
    """Whether every value of these types has a place in the one that the engine makes of them.

    >>> _go_together({"INTEGER", "DOUBLE"}, unit=False)
    True
    >>> _go_together({"BIGINT", "DECIMAL(38,30)"}, unit=False)
    False
    """
    families = {family(kind) for kind in kinds}
    if len(kinds) < 2 or families in ({Family.WHOLE}, {Family.FLOAT}):
        return True
    if unit:  # beyond 2^53 whole numbers that differ would be one float
        return families <= _WRITTEN
    if families <= {Family.WHOLE, Family.DECIMAL}:
        digits = [scale(kind) if family(kind) is Family.DECIMAL else (_DIGITS[kind], 0) for kind in kinds]
        most = max(every - after for every, after in digits) + max(after for _, after in digits)
        return most <= _MOST_DIGITS
    return families <= _NUMBERS or families <= _BITS or (Family.TEXT in families and families <= _AS_TEXT)
