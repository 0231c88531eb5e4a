"""Counts of keys that lie in larger ones: towns in departments, departments in regions."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import either
from sourdine.frames.declared import Declared, by_hand, declare, mistake
from sourdine.frames.keys import Keys
from sourdine.frames.schema import Category, PrivacyUnit, Schema
from sourdine.tables.answers import ALL
from sourdine.tables.consistent import ADDING_UP, Margins, Nested, Structure
from sourdine.tables.intervals import Noisy, Reading
from sourdine.tables.measurement import Context, KeyAxis, Measurement, PlannedMeasurement, Scope, expect
from sourdine.tables.statistics.base import (
    Chart,
    Estimates,
    Example,
    Expected,
    Scale,
    Statistic,
    Style,
    grouped_by,
    records_of,
)

Path_ = tuple[str | int, ...]
_MOST = 1 << 20


class Hierarchy(Statistic):
    """How many records there are at every level of a hierarchy, as whole numbers that add up.

    `levels` names its levels, coarse to fine; the last is a column of the table. `rows` are public: one for
    each key of that column, with the larger ones that it lies in.

    >>> rows = [["north", "Lille"], ["south", "Nice"], ["south", "Toulon"]]
    >>> Hierarchy(levels=["region", "town"], rows=rows).label
    'town in region'
    """

    kind: Literal["hierarchy"] = "hierarchy"
    levels: tuple[str, ...] = Field(min_length=2, max_length=8)
    rows: tuple[Path_, ...] = Field(min_length=1, max_length=_MOST)
    style: ClassVar[Style] = Style(Chart.NESTED, Scale.COUNT)
    totals: ClassVar[bool] = True
    example: ClassVar[Example] = {"hierarchy": ["region", "town"], "rows": [["north", "Lille"]]}

    @by_hand
    def __init__(self, levels: Sequence[str], rows: Sequence[Sequence[str | int]]) -> None:
        declare(super().__init__, "Hierarchy", levels=levels, rows=rows)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping):
            return fields
        lists = {name: tuple(fields[name]) for name in ("levels",) if isinstance(fields.get(name), list)}
        rows = fields.get("rows")
        if isinstance(rows, list | tuple):
            lists["rows"] = tuple(tuple(row) if isinstance(row, list) else row for row in rows)
        return {**fields, **lists}

    @model_validator(mode="after")
    def _tree(self) -> "Hierarchy":
        if len(set(self.levels)) != len(self.levels):
            raise ValueError("levels must not repeat")
        if any(len(row) != len(self.levels) for row in self.rows):
            raise ValueError("every row must have a key for each level")
        levels_of: dict[str | int, int] = {}
        for place, (*_, key) in enumerate(self.rows, start=1):
            first = levels_of.setdefault(key, place)
            if first != place:
                raise ValueError(
                    f"rows {first:,} and {place:,}, without repeated ones, are of the same {self.column}, so "
                    "the place of that is not known. Keep one row for each"
                )
        if any(ALL in row for row in self.rows):
            raise ValueError(f"the key '{ALL}' names the sums over all")
        return self

    @property
    def column(self) -> str:
        """The column of the table: the finest level."""
        return self.levels[-1]

    @property
    def label(self) -> str:
        return " in ".join(reversed(self.levels))

    @property
    def about(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def adds(self) -> tuple[str, ...]:
        return self.levels

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        """The column of the table."""
        return (KeyAxis(self.column),)

    @classmethod
    def long(cls, kind: str, value: object, rest: Mapping[str, object], query: str) -> Mapping[str, object]:
        if isinstance(value, str):
            raise InvalidParameter(
                f"The query '{query}' asks for the hierarchy '{value}', which "
                + either(
                    "only a specification can name. Write ",
                    "no [hierarchies] block declares. Declare it, or write ",
                )
                + cls.how()
                + "."
            )
        return {"kind": kind, "levels": value, **rest}

    def check(self, schema: Schema, owner: str) -> None:
        """Every key of the column must have its place, and no other may have one."""
        keys, leaves = schema.keys(self.column), {row[-1] for row in self.rows}
        for key in keys:
            if key not in leaves:
                raise InvalidParameter(
                    f"The key {key!r} of the column '{self.column}' has no row in the hierarchy of "
                    f"'{owner}'. Give it one, or leave the key out of the column."
                )
        known = set(keys)
        for place, row in enumerate(self.rows, start=1):
            if row[-1] not in known:
                raise InvalidParameter(
                    f"Row {place:,} in the hierarchy of '{owner}' has a key that the column '{self.column}' "
                    "does not declare. Declare the same keys in both, or the hierarchy alone."
                )

    def structure(self, schema: Schema) -> Structure:
        """The levels, and what lies in what: the rows in the order of the column's keys."""
        paths = {row[-1]: row for row in self.rows}
        return Nested(tuple(paths[key] for key in schema.keys(self.column)))

    def inner(self, schema: Schema) -> Keys:
        """The key of every number: 'all' below its level."""
        return expect(Nested, self.structure(schema)).keys()

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return Margins(scope=scope, table=self)

    def estimate(self, reading: Reading, measured: Measurement, schema: Schema) -> Estimates:
        return Estimates(*expect(Margins, measured).estimate(expect(Noisy, reading), schema), whole=True)

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return None

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return records_of(unit)

    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        error = expect(Margins, line.measurement).error(line, context)
        return Expected(error, self.unit_of_measure(context.unit), ADDING_UP)

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        """Every column of keys in two larger ones."""
        for name in grouped_by(schema):
            keys = [key for key in schema.keys(name) if not isinstance(key, bool)]
            if keys:
                rows = tuple((("odd", "even")[place % 2], key) for place, key in enumerate(keys))
                yield cls(levels=(f"half of {name}", name), rows=rows)


class HierarchyBlock(Declared):
    """A hierarchy as a specification has it: in a public file with a column for each level, or by rows."""

    levels: tuple[str, ...] = Field(min_length=2, max_length=8)
    file: str | None = Field(default=None, min_length=1)
    rows: tuple[Path_, ...] | None = None

    @model_validator(mode="after")
    def _stated(self) -> "HierarchyBlock":
        if (self.file is None) == (self.rows is None):
            raise ValueError('it needs either a file, as in file = "places.csv", or rows')
        return self


def read_hierarchies(blocks: Mapping[str, Any], folder: Path) -> dict[str, Hierarchy]:
    """The hierarchies of the `[hierarchies]` block, with the rows of their files."""
    return {name: _read(name, block, folder) for name, block in blocks.items()}


def _read(name: str, block: object, folder: Path) -> Hierarchy:
    owner = f"hierarchies.{name}"
    if isinstance(block, Mapping):
        rows = block.get("rows")
        listed = {"levels": tuple(block["levels"])} if isinstance(block.get("levels"), list) else {}
        if isinstance(rows, list):
            listed["rows"] = tuple(tuple(row) if isinstance(row, list) else row for row in rows)
        block = {**block, **listed}
    try:
        hierarchy = HierarchyBlock.model_validate(block)
        rows = hierarchy.rows or ()
        if hierarchy.file is not None:
            try:
                rows = _rows(folder / hierarchy.file, hierarchy.levels)
            except InvalidParameter as problem:
                raise InvalidParameter(f"The hierarchy '{name}' cannot be made. {problem}") from None
        return Hierarchy.model_validate({"levels": hierarchy.levels, "rows": rows})
    except ValidationError as problem:
        raise mistake(problem, owner) from None


def _rows(path: Path, levels: Sequence[str]) -> tuple[Path_, ...]:
    """The different rows of a public file; what is empty in any level is left out."""
    from sourdine.frames.joins import read_public

    columns = read_public(path, levels)
    rows = zip(*(columns[name] for name in levels), strict=True)
    return tuple(dict.fromkeys(row for row in rows if all(row)))


def with_hierarchies(block: Mapping[str, object], hierarchies: Mapping[str, Hierarchy]) -> dict[str, Any]:
    """A query's block in which { hierarchy = "place" } has become the hierarchy of that name."""
    statistics = block.get("ask")
    listed = statistics if isinstance(statistics, list | tuple) else [statistics]
    if not any(isinstance(each, Mapping) and "hierarchy" in each for each in listed):
        return dict(block)
    complete: list[object] = []
    for each in listed:
        name = each.get("hierarchy") if isinstance(each, Mapping) else None
        if isinstance(name, str) and name not in hierarchies:
            raise InvalidParameter(
                f"The query '{block.get('name')}' asks for the hierarchy '{name}', which is not declared. "
                f"Declare it under [hierarchies.{name}] with levels and a file or rows."
            )
        complete.append(hierarchies[name] if isinstance(name, str) else each)
    return {**block, "ask": complete}


def with_columns(columns: Mapping[str, object], hierarchies: Mapping[str, Hierarchy]) -> dict[str, Any]:
    """Declared columns, and the finest levels of hierarchies that nobody declared: their keys are known."""
    more = {
        each.column: Category(keys=tuple(row[-1] for row in each.rows)).model_dump()  # type: ignore[arg-type]
        for each in hierarchies.values()
    }
    return {**more, **columns}
