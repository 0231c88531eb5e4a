"""What differs between the SQL of one engine and of another: everything else is written once.

Every expression here gives an answer for every value there is. An engine that would raise on a value is asked
in the way that gives NULL instead, since an error would tell that there is such a value.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

WHOLE = tuple(sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"))
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:-]*")
_NUMBER = r"^[\x00-\x20]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[\x00-\x20]*$"
_DIGITS = 400  # more than a number is ever written with
_CONTROLS = r"[\x00-\x1f\x7f]"
_LEGIBLE = r"^[^\x00-\x1f\x7f\x{d800}-\x{dfff}]*$"
_RECORDS = 1 << 40  # more than a table has, so that sums of smaller numbers than 2^22 fit in 64 bits


def _one_way(sql: str, kind: str) -> str:
    """A number written in one way: 0 and -0 are one unit, and so is every NaN, but as text they differ.

    Which of them stood for the unit would hang on the order of the table, and with it where the unit counts.
    """
    if kind not in ("DOUBLE", "FLOAT"):
        return sql
    zero, nan = "CAST(0 AS DOUBLE)", "CAST('NaN' AS DOUBLE)"
    return f"CASE WHEN {sql} = 0 THEN {zero} WHEN isnan({sql}) THEN {nan} ELSE {sql} END"


class Dialect(ABC):
    """How an engine writes names, constants, casts, exact sums, and the choice of a unit's rows.

    A `kind` is the type of a column by the name that DuckDB has for it.
    """

    wide: ClassVar[str]
    """The type of whole numbers that may be larger than 64 bits hold."""
    materialized: ClassVar[str]
    """What makes a named part of a question be computed once."""
    near: ClassVar[bool]
    """Whether answers may be as long as the table is, since it lives on this machine."""
    enumerates: ClassVar[bool]
    """Whether texts are quickly turned into their places among known ones."""

    @abstractmethod
    def quoted(self, name: str) -> str:
        """A column's name."""

    @abstractmethod
    def constant(self, text: str) -> str:
        """A text."""

    @abstractmethod
    def double(self, sql: str, kind: str) -> str:
        """A cell as a float; NULL where it is no number."""

    @abstractmethod
    def nearest(self, sql: str, whole: str) -> str:
        """A float that is known to fit as the nearest whole number, of two as near the even one."""

    @abstractmethod
    def narrow(self, sql: str, whole: str) -> str:
        """A whole number that is known to fit as one of another type."""

    @abstractmethod
    def whole(self, sql: str, kind: str) -> str:
        """A cell as a whole number of 64 bits; NULL where it is none."""

    @abstractmethod
    def flag(self, sql: str, kind: str) -> str:
        """A cell as true or false; NULL where it is neither."""

    @abstractmethod
    def text(self, sql: str, kind: str) -> str:
        """A cell as text that is compared letter by letter, whatever collation its column has."""

    @abstractmethod
    def identity(self, sql: str, kind: str) -> str:
        """A unit: texts that differ are different units, whatever collation their column has."""

    @abstractmethod
    def legible(self, sql: str) -> str:
        """Whether a text is good Unicode without control characters.

        An engine may hold bytes that are no text. Here they would raise, or become the text of another key.
        """

    @abstractmethod
    def quotient(self, top: str, bottom: str) -> str:
        """The division of whole numbers, towards zero."""

    @abstractmethod
    def total(self, sql: str, most: int) -> str:
        """The exact sum of whole numbers of at most this size."""

    @abstractmethod
    def scaled(self, part: str, most: int, count: str) -> str:
        """A whole number times `most`, divided by a larger `count`, towards zero.

        The number is at most 2^63 times the count.
        """

    @abstractmethod
    def turn(self, secret: Sequence[int], names: Sequence[str]) -> str:
        """A number that looks random, from secret words, the unit and some columns of the same row.

        It is hashed twice: the hash of several things ends by mixing in the last of them alike for every
        unit, which would favour some groups over others.
        """

    @abstractmethod
    def first(self, rows: str, turn: str, marks: Sequence[str], most: int) -> str:
        """At most so many rows of each unit, those whose turn comes first; a unit's marks never repeat."""

    def literal(self, value: str | int | float | bool) -> str:
        """A constant."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return self.constant(value)
        if isinstance(value, float):
            return f"CAST('{value!r}' AS DOUBLE)"
        return str(value)


@dataclass(frozen=True)
class DuckDB(Dialect):
    """The SQL of DuckDB.

    >>> print(DUCKDB.quoted("the age"), DUCKDB.literal("it's"))
    "the age" 'it''s'
    """

    wide = "HUGEINT"
    materialized = "MATERIALIZED"
    near = True
    enumerates = True

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def constant(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def double(self, sql: str, kind: str) -> str:
        return sql if kind == "DOUBLE" else f"TRY_CAST({sql} AS DOUBLE)"

    def nearest(self, sql: str, whole: str) -> str:
        return f"CAST({sql} AS {whole})"

    def narrow(self, sql: str, whole: str) -> str:
        return f"CAST({sql} AS {whole})"

    def whole(self, sql: str, kind: str) -> str:
        # of more than 64 bits with a sign no key is known, and an array would round them
        return sql if kind in WHOLE and kind != "UBIGINT" else f"TRY_CAST({sql} AS BIGINT)"

    def flag(self, sql: str, kind: str) -> str:
        return sql if kind == "BOOLEAN" else f"TRY_CAST({sql} AS BOOLEAN)"

    def text(self, sql: str, kind: str) -> str:
        # by a collation of the table's own, texts that differ would be one group with the name of any of them
        return f"{sql if kind == 'VARCHAR' else f'TRY_CAST({sql} AS VARCHAR)'} COLLATE C"

    def identity(self, sql: str, kind: str) -> str:
        return f"{sql} COLLATE C" if kind == "VARCHAR" else _one_way(sql, kind)

    def legible(self, sql: str) -> str:
        # a class of characters matches no byte that is none; halves of pairs it takes for some
        return f"regexp_matches({sql}, {self.constant(_LEGIBLE)})"

    def quotient(self, top: str, bottom: str) -> str:
        return f"{top} // {bottom}"

    def total(self, sql: str, most: int) -> str:
        return f"sum({sql})"

    def scaled(self, part: str, most: int, count: str) -> str:
        return f"CAST({part} AS HUGEINT) * {most} // {count}"

    def turn(self, secret: Sequence[int], names: Sequence[str]) -> str:
        return f"hash(hash({', '.join([*map(str, secret), 'CAST(unit AS VARCHAR)', *names])}))"

    def first(self, rows: str, turn: str, marks: Sequence[str], most: int) -> str:
        # what comes before the first that is too many counts: of several that tie with it, none; what finds
        # no match of its unit counts for nothing
        return (
            f"WITH per_unit AS MATERIALIZED (SELECT *, {turn} AS turn FROM ({rows})), "
            f"units AS (SELECT unit, min(turn, {most + 1})[{most + 1}] AS cut FROM per_unit GROUP BY unit) "
            "SELECT per_unit.* FROM per_unit JOIN units ON per_unit.unit = units.unit "
            "WHERE cut IS NULL OR turn < cut"
        )


@dataclass(frozen=True)
class Spark(Dialect):
    """The SQL of Spark, whatever a session has set: ANSI mode, escapes in texts, case, substitution.

    Names and texts stand there by their bytes, so that nothing in them is taken for anything else.

    >>> SPARK.quoted("é"), SPARK.literal("north"), SPARK.literal("it's")
    ('`c_c3a9`', "'north'", "CAST(X'69742773' AS STRING)")
    """

    wide = "DECIMAL(38, 0)"
    materialized = ""
    near = False
    enumerates = False

    def quoted(self, name: str) -> str:
        return f"`{column_name(name)}`"

    def constant(self, text: str) -> str:
        if _PLAIN.fullmatch(text):
            return f"'{text}'"
        return f"CAST(X'{text.encode('utf-8', 'replace').hex()}' AS STRING)"

    def double(self, sql: str, kind: str) -> str:
        if kind == "DOUBLE":
            return sql
        return f"try_cast({self._numeral(sql) if kind == 'VARCHAR' else sql} AS DOUBLE)"

    def _numeral(self, sql: str) -> str:
        """A text that is a number, else NULL: '1d' is none, which Spark would read as 1."""
        text = self.text(sql, "VARCHAR")
        short = f"length({text}) <= {_DIGITS}"  # a search through long rows of digits takes their square
        return f"CASE WHEN {short} AND {text} RLIKE {self.constant(_NUMBER)} THEN {text} END"

    def nearest(self, sql: str, whole: str) -> str:
        return f"try_cast(rint({sql}) AS {whole})"

    def narrow(self, sql: str, whole: str) -> str:
        return f"try_cast({sql} AS {whole})"

    def whole(self, sql: str, kind: str) -> str:
        if kind in WHOLE:
            return sql
        if kind in ("DOUBLE", "FLOAT"):
            return f"try_cast(rint({sql}) AS BIGINT)"
        if kind == "VARCHAR":
            sql, kind = f"try_cast({self._numeral(sql)} AS DECIMAL(38, 10))", "DECIMAL"
        return f"try_cast(round({sql}, 0) AS BIGINT)" if kind.startswith("DECIMAL") else self._bit(sql)

    def _bit(self, sql: str) -> str:
        return f"try_cast({sql} AS BIGINT)"

    def flag(self, sql: str, kind: str) -> str:
        if kind == "BOOLEAN":
            return sql
        if kind != "VARCHAR":
            return f"try_cast({sql} AS BOOLEAN)"
        text = f"lower({self.text(sql, kind)})"
        yes, no = (", ".join(map(self.constant, words)) for words in (_YES, _NO))
        return f"CASE WHEN {text} IN ({yes}) THEN TRUE WHEN {text} IN ({no}) THEN FALSE END"

    def text(self, sql: str, kind: str) -> str:
        return f"({sql if kind == 'VARCHAR' else f'try_cast({sql} AS STRING)'} COLLATE UTF8_BINARY)"

    def identity(self, sql: str, kind: str) -> str:
        return self.text(sql, kind) if kind == "VARCHAR" else _one_way(sql, kind)

    def legible(self, sql: str) -> str:
        return f"(is_valid_utf8({sql}) AND NOT {sql} RLIKE {self.constant(_CONTROLS)})"

    def quotient(self, top: str, bottom: str) -> str:
        return f"{top} div {bottom}"

    def total(self, sql: str, most: int) -> str:
        # a sum that 64 bits do not hold would raise, or turn round, as the session has it
        small = most * _RECORDS < 1 << 63
        return f"sum(CAST({sql} AS {'BIGINT' if small else 'DECIMAL(20, 0)'}))"

    def scaled(self, part: str, most: int, count: str) -> str:
        # a quotient has 64 bits here, so what is divided must not be the product
        wide = f"CAST({part} AS {self.wide})"
        return (
            f"CAST({wide} div {count} AS {self.wide}) * {most} + "
            f"CAST({wide} % {count} AS {self.wide}) * {most} div {count}"
        )

    def turn(self, secret: Sequence[int], names: Sequence[str]) -> str:
        words = [f"{word >> 1}L" for word in secret]  # of 64 bits with a sign
        return f"xxhash64(xxhash64({', '.join([*words, 'CAST(unit AS STRING)', *names])}))"

    def first(self, rows: str, turn: str, marks: Sequence[str], most: int) -> str:
        place = f"row_number() OVER (PARTITION BY unit ORDER BY {', '.join([turn, *marks])})"
        return f"SELECT * FROM (SELECT *, {place} AS turn FROM ({rows})) WHERE turn <= {most}"


def column_name(name: str) -> str:
    """What a column is called on Spark: the bytes of its name, which no setting of a session changes."""
    return "c_" + name.encode("utf-8", "replace").hex()


_YES, _NO = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
DUCKDB, SPARK = DuckDB(), Spark()
