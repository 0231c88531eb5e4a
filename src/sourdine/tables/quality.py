"""What does not fit, exactly: for the holder of the data alone, outside every guarantee.

Whoever has read it knows something about the records that no noise hides. So it leaves a mark in what is
declared, and plans, certificates and reports show the mark.
"""

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.core import files as disk
from sourdine.core.display import Viewable
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import counted, entry, group
from sourdine.core.mechanism import Mechanism
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.text import parse_toml
from sourdine.frames.aggregate import Totals
from sourdine.frames.keys import Keys
from sourdine.frames.quality import CellState, all_cells, cells_of, quality_counts, records_without
from sourdine.frames.schema import LONGEST_KEY, Column, Flag, Integer, PrivacyUnit, Real, Schema, Text
from sourdine.frames.source import Source
from sourdine.tables.answers import Answer, Answers
from sourdine.tables.intervals import Floats, GroupEstimate, Noisy, noise
from sourdine.tables.measurement import (
    Context,
    Exact,
    Measurement,
    PlannedMeasurement,
    Scope,
    expect,
    moved,
    plural,
)

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


# What did not fit, told privately: how many records were missing, unreadable, unknown or clamped.
#
# All of it is post-processing of noisy counts, but what is said before: how much of the budget they take,
# and how small a share of the records they would show.


QUERY, READ, RECORDS, SHARE = "data quality", "records read", "records", "share of records"
_SHARES = tuple(Fraction(1, part) for part in (1000, 500, 200, 100, 50, 20))
_MOST = _SHARES[-1]
_ENOUGH = 0.002  # of the records: to see less than that is not worth more of the budget
USELESS = 0.2  # of the records: who does not see that much missing learns nothing
_FALSE_ALARMS = 1e-3  # of all warnings of a release together
_NOTABLE = {CellState.UNREADABLE: 0.001, CellState.UNKNOWN: 0.001}
_OFTEN = 0.01  # missing or clamped records that nobody wonders at
_FACTOR = 1.25  # by which a size may be off before it is called wrong
ADVICE = (
    "These counts are private, so declarations may be corrected by them. Whoever holds the data can count "
    "exactly with 'sourdine check', or Table.check in Python, which is not private."
)


@dataclass(frozen=True)
class DataQuality(Viewable):
    """How many records were read, and how many of them are in each cell of each column, with intervals.

    `answers` is a tidy table of its own; `warnings` name what is beyond what noise explains. Where a column
    tells units apart, at most `rows` records of each unit count.
    """

    answers: Answers
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<DataQuality of about {self.records[0]:,.0f} records, {counted(len(self.warnings), 'warning')}>"
        )

    @property
    def records(self) -> tuple[float, float, float]:
        """How many records were read, and the ends of its interval."""
        return self.answers[QUERY, READ].at()

    def count(self, column: str, what: str) -> tuple[float, float, float]:
        """How many records are in a cell, such as 'missing', and the ends of its interval."""
        return self.answers[QUERY, RECORDS].at(column, what)

    def share(self, column: str, what: str) -> tuple[float, float, float]:
        """The share of the records that is in a cell, and the ends of its interval."""
        return self.answers[QUERY, SHARE].at(column, what)

    def rows(self) -> Iterator[tuple[str, str, tuple[float, float, float], tuple[float, float, float]]]:
        """Column, cell, count and share with their intervals; none where no query uses a column."""
        answers = [each for each in self.answers.each if each.statistic in (RECORDS, SHARE)]
        if len(answers) == 2:
            for (key, *count), (_, *share) in zip(answers[0].rows(), answers[1].rows(), strict=True):
                yield str(key[0]), str(key[1]), (count[0], count[1], count[2]), (share[0], share[1], share[2])


def told_rows(quality: DataQuality) -> list[tuple[str, ...]]:
    """Every cell of what does not fit, as people read it: column, cell, count, its ends, and share."""
    return [
        (name, what, *(f"{number:,.0f}" for number in count), f"{100 * share[0]:.3g} %")
        for name, what, count, share in quality.rows()
        if what != CellState.FITS
    ]


def quality_share(
    distance: Distance, total: Fraction, *, squared: bool, cells: int, confidence: float, size: int | None
) -> Fraction:
    """The part of the budget for these counts: a twentieth, or less where that shows more than is needed."""
    if size is None:
        return _MOST
    smallest = smallest_share(noise(distance, _MOST * total, squared), cells, confidence, size)
    power = 0.5 if squared else 1.0
    return next(
        (share for share in _SHARES if smallest * float(_MOST / share) ** power <= _ENOUGH),
        _MOST,
    )


def smallest_share(mechanism: Mechanism, cells: int, confidence: float, size: int) -> float:
    """The least share of so many records that is told from none, with this confidence.

    Beyond what noise explains is what lies above the noise of all cells at once; a cell must hold that much
    and what its own noise may take away.
    """
    return (mechanism.error(_level(cells)) + mechanism.error(confidence)) / size


def _level(cells: int) -> float:
    """The confidence of one interval, so that all of them and that of the total seldom fail together."""
    return 1 - _FALSE_ALARMS / (cells + 1)


def data_quality(
    numbers: Sequence[float],
    mechanism: Mechanism,
    *,
    columns: Sequence[str],
    schema: Schema,
    unit: PrivacyUnit,
    size: int | None,
    confidence: float,
) -> DataQuality:
    """What noisy counts tell: records in all, and in each cell of each column, with what stands out.

    The cells of a column add up to all records, so their number is the mean over the columns.
    """
    cells = all_cells(schema, columns)
    # one row a cell, which stands first in it: the noises of all are alike
    turned = np.array([np.roll(numbers, -place) for place in range(len(numbers))], dtype=float)
    alone, whole = np.eye(len(numbers))[0], np.full(len(numbers), 1 / max(1, len(columns)))
    noisy = Noisy(numbers=turned, mechanism=mechanism, confidence=confidence)
    total, shares = noisy.linear(whole), _shares(noisy, alone, whole)
    keys = tuple((name, str(cell)) for name, cell in cells)
    answers = [_answer(READ, _one(total).rounded(whole=True), whole=True)]
    if cells:
        answers += [
            _answer(RECORDS, noisy.linear(alone).rounded(whole=True), keys, whole=True),
            _answer(SHARE, shares.rounded().within(0, 1), keys, measure="share"),
        ]
    strict = Noisy(numbers=turned, mechanism=mechanism, confidence=_level(len(cells)))
    usual = {share: _beyond(strict, alone, whole, share) for share in {*_NOTABLE.values(), _OFTEN}}
    warnings = [
        *_of_size(strict.linear(whole), total, unit, size),
        *(
            _of_cell(name, cell, schema.columns[name], _one(shares, place))
            for place, (name, cell) in enumerate(cells)
            if cell is not CellState.FITS and usual[_NOTABLE.get(cell, _OFTEN)][place]
        ),
    ]
    return DataQuality(Answers(tuple(answers), confidence), tuple(warnings))


def _answer(
    statistic: str,
    estimate: GroupEstimate,
    keys: tuple[tuple[str, ...], ...] = ((),),
    *,
    measure: str = "records",
    whole: bool = False,
) -> Answer:
    return Answer(
        query=QUERY,
        statistic=statistic,
        kind="quality",
        columns=("column", "what") if keys[0] else (),
        keys=Keys.of(keys, len(keys[0])),
        estimate=estimate,
        measure=measure,
        whole=whole,
        span=(0.0, 1.0) if measure == "share" else None,
    )


def _one(estimate: GroupEstimate, place: int = 0) -> GroupEstimate:
    return GroupEstimate(
        *(end[place : place + 1] for end in (estimate.value, estimate.lower, estimate.upper))
    )


def _shares(noisy: Noisy, alone: Floats, whole: Floats) -> GroupEstimate:
    """The share of all records that each cell holds.

    A count that noise takes far below 0 leaves no share that it could come from. Then those are told that
    a count of 0 could come from, and likewise above all records.
    """
    ratio, least = noisy.ratio(alone, whole), noisy.linear(whole).lower
    none = (least > 0) & (ratio.lower == 0) & (ratio.upper == 1)
    with np.errstate(divide="ignore"):
        few = np.minimum(1.0, noisy.reach(alone[:1]) / least)
        many = np.maximum(0.0, 1 - noisy.reach(alone - whole) / least)
    return GroupEstimate(
        ratio.value,
        np.where(none & (ratio.value == 1), many, ratio.lower),
        np.where(none & (ratio.value == 0), few, ratio.upper),
    )


def _beyond(noisy: Noisy, alone: Floats, whole: Floats, share: float) -> NDArray[np.bool_]:
    """Which cells surely hold more than this share: what they have beyond it exceeds its noise."""
    weights = alone - share * whole
    more: NDArray[np.bool_] = noisy.numbers @ weights > noisy.reach(weights)
    return more


def _of_size(
    surely: GroupEstimate, about: GroupEstimate, unit: PrivacyUnit, size: int | None
) -> Iterator[str]:
    """Whether the number of records contradicts the declared size.

    Where units are bounded, up to `groups` times as many records as are counted here may count in a query.
    """
    if size is None:
        return
    records = f"{about.value[0]:,.0f} records (between {about.lower[0]:,.0f} and {about.upper[0]:,.0f})"
    if surely.lower[0] > _FACTOR * size:
        yield (
            f"The table holds about {records}, far more than the declared size of {size:,}. Errors were "
            "forecast for fewer records. Check the table, or declare its size anew."
        )
    elif _FACTOR * max(0.0, surely.upper[0]) * unit.max_groups < size:
        bounded = (
            ""
            if unit.column is None
            else f", counting at most {unit.max_rows:,} of each {unit.name} and none without one"
        )
        yield (
            f"The table holds about {records}{bounded}, far fewer than the declared size of {size:,}. Errors "
            "are larger than was forecast. Check that the table is whole"
            + ("" if unit.column is None else f", that its records have a '{unit.column}',")
            + " and what size is declared."
        )


def _of_cell(name: str, cell: CellState, column: Column, share: GroupEstimate) -> str:
    """A cell that holds more records than noise explains: what they are, what became of them, what to do."""
    low, value, high = (100 * float(end[0]) for end in (share.lower, share.value, share.upper))
    many = f"About {value:.3g} % of the records (between {low:.3g} % and {high:.3g} %)"
    return f"{many} {_IS[cell].format(name=name)}, and {_became(cell, column)}. {_remedy(cell, column)}"


_IS: Mapping[CellState, str] = {
    CellState.MISSING: "are missing in the column '{name}'",
    CellState.UNREADABLE: "cannot be read in the column '{name}'",
    CellState.UNKNOWN: "have a key in the column '{name}' that is not declared",
    CellState.BELOW: "lie below the lower bound of the column '{name}'",
    CellState.ABOVE: "lie above the upper bound of the column '{name}'",
    CellState.OUTSIDE: "cannot be read in the column '{name}', or lie before its first or after its last",
}


def _became(cell: CellState, column: Column) -> str:
    if cell in (CellState.BELOW, CellState.ABOVE):
        assert isinstance(column, Integer | Real)
        return f"counted as {value_words(column.lower if cell is CellState.BELOW else column.upper)}"
    if isinstance(column, Text) and column.missing == "other":
        return f"counted under '{column.other}'"
    if column.missing == "drop":
        return "were left out of every answer that needs it"
    return f"counted as {value_words(column.missing)}"


def _remedy(cell: CellState, column: Column) -> str:
    if cell is CellState.UNKNOWN:
        return (
            "Check the list of its keys, their spelling, their case and blanks around them: in a file of "
            f"text, {group('text', strip=' ')} leaves those out."
        )
    if cell is CellState.MISSING:
        return (
            "Check that it is the right column, the encoding of a file of text, and what a missing value "
            "should count as."
        )
    if cell in (CellState.BELOW, CellState.ABOVE):
        return "Check its bounds, and the unit of measure they are in."
    if cell is CellState.OUTSIDE:
        return (
            "Check its first, its last and its zone, and how dates are written there: in text, declare "
            f"{entry('format', '%d.%m.%Y')} or the like."
        )
    if isinstance(column, Flag):
        return "Check how yes and no are written there."
    if isinstance(column, Text):
        return f"Check for texts of more than {LONGEST_KEY} characters, and for control characters."
    return (
        "Check how its numbers are written: the decimal sign, signs between thousands, units. In a file of "
        f"text, {group('text', decimal=',', thousands='.', strip=' %')} or the like says so."
    )


def value_words(declared: object) -> str:
    """A declared value as people write it."""
    number = isinstance(declared, int | float) and not isinstance(declared, bool)
    return f"{declared:,.15g}" if number else str(declared)


_WHOLE_TABLE = Scope(query="(all queries)")


@dataclass(frozen=True, kw_only=True)
class Quality(Measurement):
    """How many records fit each of some columns, over the whole table."""

    scope: Scope = _WHOLE_TABLE
    columns: tuple[str, ...]
    alone: ClassVar[bool] = True
    answer: ClassVar[bool] = False

    @property
    def label(self) -> str:
        return "data quality"

    def distance(self, schema: Schema, unit: PrivacyUnit, neighbours: Neighbours, squared: bool) -> Distance:
        """In each column whose fit is counted, all cells together move by `max_rows`."""
        most = max((len(cells_of(schema.columns[name])) for name in self.columns), default=1)
        return moved(
            neighbours,
            squared,
            length=unit.max_rows,
            copies=max(1, len(self.columns)),
            each=min(unit.max_rows, most),
        )

    def exact(
        self, source: Source, unit: PrivacyUnit, bits: Bits, beside: Sequence[Measurement] = ()
    ) -> list[Exact]:
        counts = quality_counts(source, self.columns, unit=unit, bits=bits)
        return [Totals(keys=Keys.product([]), sums=(np.array([counts], dtype=np.int64),))]

    def read(self, exact: Exact, line: PlannedMeasurement, context: Context, bits: Bits) -> Noisy:
        ((numbers,),) = expect(Totals, exact).sums
        drawn = line.mechanism.sample(numbers, bits)
        return Noisy(numbers=drawn, mechanism=line.mechanism, confidence=context.confidence)

    def step(self, schema: Schema, unit: PrivacyUnit) -> tuple[float, str]:
        return 1.0, plural("record")
