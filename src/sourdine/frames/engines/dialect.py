"""What differs between the SQL of one engine and of another: everything else is written once.

Every expression here gives an answer for every value there is. An engine that would raise on a value is asked
in the way that gives NULL instead, since an error would tell that there is such a value.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from sourdine.frames.engines.types import (
    BLANK,
    EXACT,
    NO,
    PLAIN_WHOLE,
    SMALL,
    SPACES,
    YES,
    Family,
    family,
    scale,
)

_NO_NUMERAL = ("_", "+-")  # DuckDB takes them in a number, and nobody else does
_MOST_DIGITS, _MOST_SCALE = 15, 22  # of a decimal that two exact floats divide into
_WORD = rf"{BLANK}[A-Za-z]{{1,5}}{BLANK}"  # as long as "false"
_LEGIBLE = r"^[^\x00-\x1f\x7f\x{d800}-\x{dfff}]*$"


_WHOSE = "CASE WHEN typeof(unit) LIKE 'TIME%' THEN CAST(hash(unit) AS VARCHAR) ELSE CAST(unit AS VARCHAR) END"
"""A unit as text, which is the same from every source; a time may be too far away to be written at all."""
_ZERO, _ONE = (f"CAST('{number}' AS DOUBLE)" for number in ("0.0", "1.0"))


def _one_way(sql: str) -> str:
    """A float written in one way: 0 and -0 are one unit, but as text they differ.

    Which of them stood for the unit, and so where the unit counts, would depend on the order of the table.
    """
    return f"CASE WHEN {sql} = 0 THEN {_ZERO} ELSE {sql} END"


class Dialect(ABC):
    """How an engine writes names, constants, casts, exact sums, and the choice of a unit's rows.

    A `kind` is the type of a column by the name that DuckDB has for it.
    """

    wide: ClassVar[str]
    """The type of whole numbers that may be larger than 64 bits hold."""
    string: ClassVar[str]
    """The type of texts."""
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
    def present(self, sql: str) -> str:
        """A cell of floats, and NULL where it is NaN; all that is asked of floats is asked of this.

        Statistics of a file leave NaN out, so an engine that decides `w > 3` by them decides it for NaN by
        what other records hold. Of NULL they say nothing, and no engine takes it for a number.
        """

    @abstractmethod
    def cast(self, sql: str, kind: str) -> str:
        """A cell as another type; NULL where it cannot be one."""

    @abstractmethod
    def instant(self, sql: str, kind: str) -> str:
        """A time with a zone as something that the zone of this process does not change."""

    @abstractmethod
    def date_at(self, days: str) -> str:
        """The date so many days after 1970-01-01, of the years 1 to 9999."""

    @abstractmethod
    def on_clock(self, at: datetime) -> str:
        """A time without a zone as a constant."""

    @abstractmethod
    def days(self, date: str) -> str:
        """The days from 1970-01-01 to a date."""

    @abstractmethod
    def microseconds(self, sql: str, kind: str) -> str:
        """The microseconds from 1970-01-01 00:00 to a time, those of nanoseconds cut off; NULL if infinite.

        A time with a zone is counted in UTC, and one without on its own clock.
        """

    @abstractmethod
    def moment(self, text: str, *, pattern: str, written: str, plain: str, zoned: bool) -> str:
        """The microseconds from 1970-01-01 00:00 to a time in text; NULL where it is none of this format.

        A pattern tells what it looks like, `written` is the format of strptime, and `plain` makes ISO 8601 of
        the groups of the pattern.
        """

    @abstractmethod
    def _numeral(self, text: str) -> str:
        """A text as a float; NULL where it is no number."""

    @abstractmethod
    def _wide(self, sql: str, kind: str) -> str:
        """A number of many digits as the nearest float."""

    @abstractmethod
    def _whole(self, sql: str) -> str:
        """Whether a float is whole; for what is none the answer does not matter."""

    @abstractmethod
    def matches(self, text: str, pattern: str) -> str:
        """Whether all of a text is as the pattern says; bytes that are no text are not."""

    def double(self, sql: str, kind: str) -> str:
        """A cell as the nearest float; NULL where it is no number."""
        type_family = family(kind)
        if kind == "DOUBLE":
            return sql
        if type_family is Family.TEXT:
            text = self.text(sql, kind)
            number = self._numeral(text)  # not by coalesce, which looks at the words of all
            return f"CASE WHEN {number} IS NOT NULL THEN {number} {self._bits(text, _ONE, _ZERO)} END"
        if kind in ("HUGEINT", "UHUGEINT") or (
            type_family is Family.DECIMAL and scale(kind)[0] > _MOST_DIGITS
        ):
            return self._wide(sql, kind)
        return self.cast(sql, "DOUBLE")

    def whole(self, sql: str, kind: str) -> str:
        """A cell as a whole number of 64 bits; NULL where it is none: 2.5 is not rounded to a key."""
        type_family = family(kind)
        if kind in SMALL and kind != "UBIGINT":
            return sql
        if type_family is Family.DECIMAL and scale(kind)[1] > 0:
            return self.whole(self.text(sql, kind), "VARCHAR")
        if type_family is Family.FLOAT:
            number = self.double(sql, kind)
            return f"CASE WHEN {self._whole(number)} THEN {self.cast(number, 'BIGINT')} END"
        if type_family is not Family.TEXT:
            # of more than 64 bits with a sign no key is known, and an array would round them
            return self.cast(sql, "BIGINT")
        text = self.text(sql, kind)
        number, digits = self._numeral(text), self.cast(f"split_part({text}, '.', 1)", "BIGINT")
        large = f"abs({number}) >= {EXACT} AND {self.matches(text, PLAIN_WHOLE)}"
        number_or_digits = f"CASE WHEN {large} THEN {digits} ELSE {self.cast(number, 'BIGINT')} END"
        return f"CASE WHEN {self._whole(number)} THEN {number_or_digits} {self._bits(text, '1', '0')} END"

    def flag(self, sql: str, kind: str) -> str:
        """A cell as true or false; NULL where it is neither: of numbers only 1 and 0 are."""
        type_family = family(kind)
        if type_family is Family.BOOLEAN:
            return sql
        if type_family is Family.WHOLE:
            return f"CASE WHEN {sql} = 1 THEN TRUE WHEN {sql} = 0 THEN FALSE END"
        if type_family is not Family.TEXT:
            number = self.double(sql, kind)
            return f"CASE WHEN {number} = {_ONE} THEN TRUE WHEN {number} = {_ZERO} THEN FALSE END"
        text = self.text(sql, kind)
        word, number = self._word(text), self._numeral(text)
        yes, no = (", ".join(map(self.constant, words)) for words in (YES, NO))
        return (  # most are words as they are listed, which is told quickly
            f"CASE WHEN {text} IN ({yes}) THEN TRUE WHEN {text} IN ({no}) THEN FALSE "
            f"WHEN {word} IN ({yes}) THEN TRUE WHEN {word} IN ({no}) THEN FALSE "
            f"WHEN {number} = {_ONE} THEN TRUE WHEN {number} = {_ZERO} THEN FALSE END"
        )

    def _word(self, text: str) -> str:
        """A text in small letters if it may be such a word; an engine may raise at bytes that are no text."""
        word = f"lower(trim(BOTH {self.constant(SPACES)} FROM {text}))"
        return f"CASE WHEN {self.matches(text, _WORD)} THEN {word} END"

    def _bits(self, text: str, one: str, zero: str) -> str:
        """The cases in which a text is true or false where a number is looked for."""
        word = self._word(text)
        return f"WHEN {word} = 'true' THEN {one} WHEN {word} = 'false' THEN {zero}"

    def text(self, sql: str, kind: str) -> str:
        """A cell as text that is compared letter by letter, whatever collation its column has.

        Dates of other than four digits a year are written differently by each engine, and are missing.
        """
        type_family = family(kind)
        if kind == "VARCHAR":
            return self._plain(sql)
        if type_family is Family.ZONED:
            sql = self.instant(sql, kind)
        written = self.cast(sql, self.string)
        if type_family is Family.DATE:
            written = f"CASE WHEN {sql} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {written} END"
        return self._plain(written)

    @abstractmethod
    def _plain(self, sql: str) -> str:
        """A text without the collation of its column.

        By a collation of the table's own, texts that differ would be one group with the name of any of them.
        """

    def identity(self, sql: str, kind: str) -> str:
        """A unit: texts that differ are different units, whatever collation their column has."""
        type_family = family(kind)
        if kind == "VARCHAR":
            return self._plain(sql)
        if type_family is Family.ZONED:
            return self.instant(sql, kind)
        return _one_way(sql) if type_family is Family.FLOAT else sql

    @abstractmethod
    def nearest(self, sql: str, whole: str) -> str:
        """A float that is known to fit as the nearest whole number, of two as near the even one."""

    @abstractmethod
    def narrow(self, sql: str, whole: str) -> str:
        """A whole number that is known to fit as one of another type."""

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

    def first(self, rows: str, turn: str, marks: Sequence[str], most: int) -> str:
        """At most so many rows of each unit, those whose turn comes first; a unit's marks never repeat.

        The marks set apart what would tie. A sort within each unit is what engines do without holding all
        rows in memory.
        """
        place = f"row_number() OVER (PARTITION BY unit ORDER BY {', '.join([turn, *marks])})"
        return f"SELECT * FROM (SELECT *, {place} AS turn FROM ({rows})) WHERE turn <= {most}"

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
    string = "VARCHAR"
    materialized = "MATERIALIZED"
    near = True
    enumerates = True

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def constant(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def present(self, sql: str) -> str:
        # As conditions, isnan(w) and w <> 'NaN' are decided by the statistics of a file, and in DuckDB 2.0 so
        # are isfinite(w) and its negation where a row group has one value beside NaN. Which branch of CASE is
        # taken is not. Texts have no such statistics; they are made of what is infinite or NaN alone.
        endless = f"TRY_CAST({sql} AS VARCHAR) IN ('inf', '-inf')"
        return f"CASE WHEN isfinite({sql}) THEN {sql} WHEN {endless} THEN {sql} END"

    def cast(self, sql: str, kind: str) -> str:
        return f"TRY_CAST({sql} AS {kind})"

    def instant(self, sql: str, kind: str) -> str:
        if kind.startswith("INSTANT"):
            return sql
        if kind == "TIMESTAMPTZ_NS":
            return f"make_timestamp_ns(epoch_ns({sql}))"
        return f"make_timestamp(epoch_us({sql}))"

    def date_at(self, days: str) -> str:
        return f"(DATE '1970-01-01' + CAST({days} AS INTEGER))"

    def on_clock(self, at: datetime) -> str:
        return f"TIMESTAMP '{at.isoformat(' ')}'"

    def days(self, date: str) -> str:
        return f"({date} - DATE '1970-01-01')"

    def microseconds(self, sql: str, kind: str) -> str:
        if kind.endswith("_NS"):
            # the engine would round to the next microsecond, and so to another day
            whole = f"epoch_ns({sql})"
            return f"({whole} // 1000 - CAST({whole} % 1000 < 0 AS BIGINT))"
        if kind.endswith(("_S", "_MS")):
            return f"epoch_us(TRY_CAST({sql} AS TIMESTAMP))"
        return f"epoch_us({sql})"

    def moment(self, text: str, *, pattern: str, written: str, plain: str, zoned: bool) -> str:
        plain_zone = f"regexp_replace({text}, 'Z$', '+0000')" if zoned else text
        microseconds = f"epoch_us(try_strptime({plain_zone}, {self.constant(written)}))"
        return f"CASE WHEN {self.matches(text, pattern)} THEN {microseconds} END"

    def _numeral(self, text: str) -> str:
        odd = " OR ".join(f"contains({text}, {self.constant(part)})" for part in _NO_NUMERAL)
        return f"CASE WHEN NOT ({odd}) THEN TRY_CAST({text} AS DOUBLE) END"

    def _wide(self, sql: str, kind: str) -> str:
        # beyond what floats hold exactly, the engine's own cast is off by one float now and then
        written = f"TRY_CAST(TRY_CAST({sql} AS VARCHAR) AS DOUBLE)"
        _, after = scale(kind) if kind.startswith("DECIMAL") else (0, 0)
        if after > _MOST_SCALE:
            return written
        most = f"CAST({EXACT // 10**after} AS {kind})"
        least = f"-{most}" if kind != "UHUGEINT" else "0"
        return f"CASE WHEN {sql} BETWEEN {least} AND {most} THEN TRY_CAST({sql} AS DOUBLE) ELSE {written} END"

    def _whole(self, sql: str) -> str:
        return f"{sql} = trunc({sql})"

    def matches(self, text: str, pattern: str) -> str:
        return f"regexp_full_match({text}, {self.constant(pattern)})"

    def _plain(self, sql: str) -> str:
        return f"{sql} COLLATE C"

    def nearest(self, sql: str, whole: str) -> str:
        return f"CAST({sql} AS {whole})"

    def narrow(self, sql: str, whole: str) -> str:
        return f"CAST({sql} AS {whole})"

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
        return f"hash(hash({', '.join([*map(str, secret), _WHOSE, *names])}))"


DUCKDB = DuckDB()
