"""A specification to fill in, written from the names and types of a table's columns: never from a value.

In a file of text the names are its first line, unless that looks like a record.
"""

import codecs
import csv
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from shlex import quote

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted
from sourdine.core.text import toml_key, toml_text
from sourdine.frames.engines.duckdb import closed_connection
from sourdine.frames.engines.types import Family, family
from sourdine.frames.files import check_ending
from sourdine.tables.specification import BLANK

TEXT = (".csv", ".tsv")

_KINDS = {
    Family.BOOLEAN: "flag",
    Family.WHOLE: "integer",
    Family.DECIMAL: "real",
    Family.FLOAT: "real",
    Family.TEXT: "text",
    Family.UUID: "text",
    Family.DATE: "date",
    Family.TIMESTAMP: "datetime",
    Family.ZONED: "zoned",
}

_COMMAS = """\
# The header is parted by semicolons, as programs do that write decimal commas. If this one does, take away
# the "# " before the next line, else its numbers are unreadable; likewise before the one about thousands.
"""
_HEAD = """\
# What to publish about a table, for whom it is safe, and what pays for it.
#
# This file was written from the {known} of {source} alone; no value was looked at.
# Fill in every "{blank}". Take bounds and keys from what you know of the subject, or from public
# sources, never from the table itself: a bound that was read off the data tells about the data.{warning}
#
#   sourdine plan {spec}       the error of every answer, before a record is read or anything spent
#   sourdine release {spec}    pay from the ledger, publish the answers, a certificate and a report

[table]
# Where the table is, seen from the folder of this file: CSV, TSV, JSON Lines or Parquet; also compressed
# (.csv.gz, .csv.zst), a pattern ("2024-*.csv"), a folder of Parquet files, or a list of these. Folders called
# like region=north are columns.
source = {quoted_source}
# How a CSV or TSV file is encoded: "utf-8" (so it is if nothing is said), "cp1252" (older Windows),
# "latin-1", "utf-16", or "utf-16-le" and "utf-16-be".
{encoding}
# What parts its fields, if not the mark that its header shows; how its numbers are written.
{delimiter}
{decimal}# decimal = ","
# thousands = "."
# What is left out at both ends of every field, such as blanks behind keys, or a % or € behind numbers.
# strip = " %€"
# A file without a header needs the names of its columns, in their order.
{header}
{names}
# Whether a quoted field may hold line breaks. Then one quote that is never closed changes how all later
# records are read, which no guarantee covers. Otherwise a line is a record, whatever it holds.
# multiline = true
# About how many records there are, as far as that is public. It is used for forecasts, and for a warning
# if the table turns out to be of another size.
# size = 50000
# Whether somebody read exactly how well the data fits this file, outside the guarantee: 'sourdine check',
# which tells it, writes true here.
# checked = false

[privacy]
# Whom the release protects, as the ledger names it: a person, a household, a visit.
unit = "person"
# If one unit can have several records: the column that tells units apart. Without it every record counts
# as a unit of its own, and somebody with many records is protected less than promised.
# column = "person_id"
# With a column: how many records of a unit count at most, in one group and in how many groups. What is
# beyond is left out at random. Lower numbers mean less noise.
# max_rows = 1
# max_groups = 1
# What the guarantee compares: "add-remove" (a unit is there or not), or "replace" (it holds one thing or
# another, and the number of units is public).
neighbours = "add-remove"
# How much the whole release may tell about one unit: the odds of any suspicion about it change by a factor
# of at most e^epsilon. 1 is a common choice; see: sourdine budget explain 1
epsilon = 1.0
# A small delta allows Gaussian noise, which is less for many answers at once, and is taken where it is. Keep
# it far below 1 divided by the number of units. The ledger must then have a delta too. Keys that are chosen
# privately need one: they get all that the noise leaves, or what is said here, and the selection delta of the
# ledger must be as large. `noise` is "laplace", "gaussian", or "nearest" of both for each measurement.
# delta = 1e-6
# selection_delta = 5e-7
# noise = "nearest"
# The ledger that pays, seen from the folder of this file. Make it once, for everything ever published about
# this table: sourdine ledger create {ledger} --epsilon 1 --unit person
ledger = {quoted_ledger}
# How sure the intervals are to hold what would have been published without noise.
confidence = 0.95
# Whether a small part of the budget, at most a twentieth, tells how many records are missing, unreadable,
# clamped or of an unknown key. Without it, wrong keys or bounds show only in the answers.
quality = true

# The columns that queries use. Delete the blocks of all others. Every block has a type:
#   "integer", "real"   numbers, with bounds: what lies outside is moved to the nearer bound. Bounds that are
#                       too wide add noise, bounds that are too narrow change the answer.
#   "category"          a known list of keys. Records with another value count as missing. A long list may
#                       stand in a file, a key in each line: keys = {{ file = "districts.txt" }}
#   "flag"              true or false, yes or no.
#   "text"              keys that nobody can list, such as towns. Those that enough units have are chosen
#                       privately, with a delta; how many that takes is told by 'sourdine plan'.
#                         at_least = 50            show no key that fewer units have
#                         other = "other towns"    count records whose key is not shown under this name
#   "date", "datetime"  days or times from first to last; others are left out. They are grouped by a period,
#                       and every period between first and last is shown, whether anybody is in it or not.
#                       In text, a format says how they are written, if not like 2024-12-24:
#                         format = "%d.%m.%Y"
#   expression = {{ ... }}  in place of a type: computed of each record, such as
#                       expression = {{ subtract = ["pay", "tax"] }}, with bounds that follow.
# In a file of text a number is written like 1.5 or -3, unless decimal, thousands and strip above say
# otherwise. What cannot be read as a number, such as "n/a" or "-", counts as missing. Every line is a record:
# take out a line of totals before.
# Every block may say what happens to a missing value:
#   missing = "drop"    the record does not count where this column is needed (so it is if nothing is said),
#                       or a value that takes its place, such as missing = 0.
# A real column may state the grid it is rounded to, such as granularity = 0.01. Without it, about a
# millionth of the range is taken.
"""

_WARNING = (
    "\n# The names of the columns are the first line of the file. If they are data, the file has no"
    "\n# header: give their names with --names, and write this specification anew."
)

_BLOCKS = {
    "integer": """\
type = "integer"
lower = "{blank}"  # the least whole number that makes sense, such as 0; never the least in the table
upper = "{blank}"  # the greatest that makes sense, such as 120; never the greatest in the table
""",
    "real": """\
type = "real"
lower = "{blank}"  # the least number that makes sense, such as 0.0; never the least in the table
upper = "{blank}"  # the greatest that makes sense, such as 200000.0; never the greatest in the table
# granularity = 0.01  # the grid that numbers are rounded to
""",
    "category": """\
type = "category"
keys = ["{blank}"]  # every value that may be published, such as ["north", "south"], known beforehand
""",
    "text": """\
type = "text"  # keys are chosen privately, which needs a delta; if you know them all, write "category" and
# keys = ["north", "south"]  # every value that may be published
# at_least = 50  # show no key that fewer units have
# other = "others"  # count records whose key is not shown under this name
""",
    "flag": """\
type = "flag"
""",
    "date": """\
type = "date"
first = "{blank}"  # the first day that makes sense, such as 2024-01-01; never the first in the table
last = "{blank}"  # the last day that makes sense, such as 2024-12-31; never the last in the table
period = "month"  # day, week, month, quarter, year or weekday, where a query groups by it
""",
    "datetime": """\
type = "datetime"
first = "{blank}"  # the first day or time that makes sense, such as 2024-01-01; never that of the table
last = "{blank}"  # the last day or time that makes sense, such as 2024-12-31; never that of the table
period = "month"  # hour, day, week, month, quarter, year, weekday or hour_of_day
""",
    "": """\
type = "{blank}"  # "integer", "real", "category", "flag", "text", "date", "datetime"; keep what belongs to it
lower = "{blank}"  # integer or real: the least number that makes sense; never the least in the table
upper = "{blank}"  # integer or real: the greatest that makes sense; never the greatest in the table
keys = ["{blank}"]  # category: every value that may be published, known beforehand
first = "{blank}"  # date or datetime: the first day that makes sense; never the first in the table
last = "{blank}"  # date or datetime: the last day that makes sense; never the last in the table
""",
}
_BLOCKS["zoned"] = (
    _BLOCKS["datetime"] + 'zone = "{blank}"  # on whose clock, such as "Europe/Paris" or "UTC"\n'
)

_QUERIES = """
# What to ask. Every query has a name and a list of things to ask, which may be
#   "count"                                        how many records
#   "units"                                        how many different units
#   { sum = "pay" }, { mean = "pay" }, { variance = "pay" }, { deviation = "pay" }
#   { proportion = "age", at_least = 65 }          the share of records for which this holds; also with
#                                                  below = 18, or with of = ["a", "b"] for keys; of a flag
#                                                  alone the share of true
#   { weighted_mean = "pay", weight = "share" }    the mean of a number by the weight of each record, which
#                                                  is another column; also weighted_sum = "pay"
#   { covariance = "pay", other = "age" }          how two numbers go together; also correlation = "pay"
#   { regression = "pay", on = "age" }             the line by which one number follows another
#   { histogram = "age", edges = [0, 20, 40] }     how many records lie in each bin
#   { contingency = ["sex", "region"] }            how many records for each combination of keys, with sums;
#                                                  with consistent = true as whole numbers that add up
#   { hierarchy = "place" }                        how many records in every town, department and region,
#                                                  which add up; declare [hierarchies.place] with levels =
#                                                  ["region", "department", "town"] and file = "places.csv"
#   { quantiles = "pay", levels = [0.1, 0.5, 0.9] } the values below which such shares of the records lie, by
#                                                  the method that comes nearest, mostly without intervals;
#                                                  with method = "tree" always with them
#   { top = "town", k = 10 }                       the keys that most units have, in order, without counts
# and, if you like,
#   by = ["sex"]                                   ask it for every key of these columns
#   where = { age = { at_least = 18 }, sex = ["f"] }   ask it of these records only
#   weight = 2                                     its share of the budget: more weight, less noise. It does
#                                                  not change how well anybody is protected.

[[queries]]
name = "records"
ask = ["count"]
"""


def draft(table: Path, spec: Path, *, names: str | None = None, sure: bool = False) -> str:
    """The text of a specification for a table, to be kept in the file `spec`.

    `names` are those of a file without a header, separated by commas; `sure` that the first line holds names,
    whatever it looks like.
    """
    types = read_types(table, names=names, sure=sure)
    text = table.suffix.lower() in TEXT
    first = FirstLine.read(table) if text else None
    encoding = "utf-8" if first is None else first.encoding
    source = Path(os.path.relpath(table.resolve(), spec.resolve().parent)).as_posix()
    ledger = f"{spec.stem}.ledger"
    headless = first is not None and names is not None
    known = "names that were given for the columns" if headless else "first line" if text else "schema"
    head = _HEAD.format(
        known=known,
        source=_comment(table.name),
        blank=BLANK,
        warning=_WARNING if text and not headless else "",
        spec=_comment(quote(spec.name)),
        ledger=_comment(quote(ledger)),
        quoted_source=toml_text(source),
        encoding=f'{"# " if encoding == "utf-8" else ""}encoding = "{encoding}"',
        decimal=_COMMAS if first and first.delimiter == ";" else "",
        delimiter=f"delimiter = {toml_text(first.delimiter)}" if first and headless else '# delimiter = ";"',
        header="header = false" if headless else "header = true" if sure and text else "# header = false",
        names=f"names = [{', '.join(map(toml_text, types))}]" if headless else '# names = ["age", "sex"]',
        quoted_ledger=toml_text(ledger),
    )
    blocks = [_block(name, kind) for name, kind in types.items()]
    return head + "".join(blocks) + _QUERIES


def read_types(table: Path, *, names: str | None = None, sure: bool = False) -> Mapping[str, str | None]:
    """The columns of a table and what they can be declared as: '' if that is not known, None for nothing."""
    if table.is_dir():
        raise InvalidParameter(f"{table} is a folder. Name a file in it.")
    if not table.is_file():
        raise InvalidParameter(f"The file {table} does not exist. Check the path.")
    ending = table.suffix.lower()
    if ending in TEXT:
        first = FirstLine.read(table)
        return dict.fromkeys(first.names(sure=sure) if names is None else first.parse_names(names), "")
    if names is not None or sure:
        raise InvalidParameter(
            f"Only CSV and TSV files have a first line of names, and {table} is none. "
            "Leave out --names and --header."
        )
    if ending == ".parquet":
        return _schema(table)
    check_ending(table)  # which says what to do with a spreadsheet
    raise InvalidParameter(
        f"A specification cannot be drafted from a file ending in '{ending}', which has no header. "
        "Name a .csv, .tsv or .parquet file, or write the specification by hand."
    )


def _schema(table: Path) -> Mapping[str, str | None]:
    import duckdb

    try:
        relation = closed_connection([table]).read_parquet(str(table))
    except duckdb.Error:
        raise InvalidParameter(
            f"The file {table} cannot be read as parquet. Check that it is complete and of that kind."
        ) from None
    return {name: _kind(str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)}


def _kind(kind: str) -> str | None:
    """What a column of the engine's type can be declared as."""
    type_family = family(kind)
    if type_family is None:
        return None
    return "category" if kind.startswith("ENUM") else _KINDS.get(type_family)


def _block(name: str, kind: str | None) -> str:
    title = f"\n[columns.{toml_key(name)}]\n"
    if kind is None:
        return f"\n# The column {_comment(name)} is of a type that cannot be asked about.\n"
    return title + _BLOCKS[kind].format(blank=BLANK)


def _comment(text: str) -> str:
    """A text inside a comment, which ends with its line."""
    return "".join(letter if letter.isprintable() else " " for letter in islice(text, 200))


# The first line of a file of text: the names of its columns, unless it looks like a record.


_LONGEST = 1 << 20  # characters of a header: a file without line breaks is not read to its end
_DELIMITERS = ",;\t|"
_DIGITS = re.compile(r"[^A-Za-z]*[0-9][^A-Za-z]*([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class FirstLine:
    """The fields of the first line, what parts them, and how it is encoded; nothing below it is looked at."""

    place: Path
    fields: tuple[str, ...]
    delimiter: str
    encoding: str

    @classmethod
    def read(cls, place: Path) -> "FirstLine":
        """The first line of a CSV or TSV file."""
        encoding = _encoding(place)
        try:
            if encoding == "utf-16":
                with place.open(encoding=encoding, newline="") as file:
                    line = file.readline(_LONGEST)
            else:  # by bytes, since only the first line is decoded
                with place.open("rb") as raw:
                    line = raw.readline(_LONGEST).decode("utf-8-sig" if encoding == "utf-8" else encoding)
        except (OSError, UnicodeError):
            raise InvalidParameter(
                f"The file {place} cannot be read as text. Check it, and its rights."
            ) from None
        delimiter = "\t" if place.suffix.lower() == ".tsv" else max(_DELIMITERS, key=line.count)
        try:
            fields = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:  # a field of 128 kilobytes is no name
            fields = []
        if not fields or not line.strip():
            raise InvalidParameter(f"The file {place} has no header. Write the names of its columns first.")
        return cls(place, tuple(fields), delimiter, encoding)

    def names(self, *, sure: bool = False) -> tuple[str, ...]:
        """The fields as names; if one looks like a value, somebody must be sure that they are.

        What the fields hold is not told: they may be somebody's record.
        """
        first_places: dict[str, int] = {}
        for number, field in enumerate(self.fields, start=1):
            first = first_places.setdefault(field, number)
            if not field.strip() or first != number:
                what = f"{number:,} repeats field {first:,}" if field.strip() else f"{number:,} is empty"
                raise self._refusal(what, "If it holds names, give every column its own in the file.")
            if not sure and _is_value(field):
                remedy = "If it holds names, say --header."
                raise self._refusal(f"{number:,} reads like a number, a date or a truth value", remedy)
        return self.fields

    def _refusal(self, what: str, remedy: str) -> InvalidParameter:
        return InvalidParameter(
            f"The first line of {self.place} looks like a record, not like the names of columns: of its "
            f"{counted(len(self.fields), 'field')}, field {what}. If it is one, give the names yourself, as "
            f"in --names 'age,sex'. {remedy}"
        )

    def parse_names(self, text: str) -> tuple[str, ...]:
        """Names that somebody gives for a file without a header, as many as there are fields."""
        listed = [name.strip() for name in next(csv.reader([text]), [])]
        if len(listed) != len(self.fields):
            raise InvalidParameter(
                f"The first line of {self.place} has {counted(len(self.fields), 'field')}, and --names gives "
                f"{counted(len(listed), 'name')}. Give one for each, separated by commas."
            )
        if not all(listed) or len(set(listed)) != len(listed):
            raise InvalidParameter("--names has a name twice, or an empty one. Give every column its own.")
        return tuple(listed)


def _is_value(field: str) -> bool:
    """Whether a field reads like a value rather than like a name.

    >>> [_is_value(field) for field in ("31", "-1.5e3", "1 000,50", "2024-05-01T12:00", "true", "age", "q1")]
    [True, True, True, True, True, False, False]
    """
    text = field.strip()
    if _DIGITS.fullmatch(text) or text.lower() in ("true", "false"):
        return True
    return any(_reads(kind, text) for kind in (date, datetime))


def _reads(kind: type[date], text: str) -> bool:
    try:
        kind.fromisoformat(text)
    except ValueError:
        return False
    return True


def _encoding(place: Path) -> str:
    """The encoding that the first line shows: by the mark of UTF-16, or by letters that are no UTF-8."""
    try:
        with place.open("rb") as raw:
            line = raw.readline(_LONGEST)
    except OSError:
        return "utf-8"  # reading it again will tell
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return "utf-8" if b"\0" in line else "cp1252"
    return "utf-8"
