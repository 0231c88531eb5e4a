"""How many records there are for each combination of keys, with the sums over columns."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import setting
from sourdine.frames.declared import by_hand, declare
from sourdine.frames.keys import KeyColumn, Keys
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.tables.answers.answer import ALL
from sourdine.tables.answers.estimate import Counted, GroupEstimate, Noisy, Reading
from sourdine.tables.consistent.crossed import Crossed
from sourdine.tables.consistent.structure import ADDING_UP, Margins, Structure
from sourdine.tables.measurements.group_sums import RecordCounts
from sourdine.tables.measurements.measurement import (
    Context,
    KeyAxis,
    Measurement,
    PlannedMeasurement,
    Scope,
    expect,
)
from sourdine.tables.statistics.base import (
    Chart,
    Estimates,
    Example,
    Expected,
    Scale,
    Statistic,
    Style,
    as_tuple,
    grouped_by,
    records_of,
)


class Contingency(Statistic):
    """How many records there are for each combination of the keys of some columns, with margins.

    Margins are sums of noisy cells; or, if `consistent`, each is measured too, and all are made into whole
    numbers that add up. `margins` are those: 'all' for the total, a column, or several; without it, the total
    and each column by itself. If `rolled`, there are sums over the last columns alone: the last, the last two
    and so on, as ROLLUP has them in SQL.
    """

    kind: Literal["contingency"] = "contingency"
    columns: tuple[str, ...] = Field(min_length=1, max_length=6)
    consistent: bool = False
    margins: tuple[str | tuple[str, ...], ...] | None = Field(default=None, max_length=64)
    rolled: bool = Field(default=False, exclude_if=lambda value: not value)
    style: ClassVar[Style] = Style(Chart.HEAT, Scale.COUNT)
    totals: ClassVar[bool] = True
    example: ClassVar[Example] = {"contingency": ["sex", "region"]}

    @by_hand
    def __init__(
        self,
        columns: Sequence[str],
        *,
        consistent: bool = False,
        margins: Sequence[str | Sequence[str]] | None = None,
        rolled: bool = False,
    ) -> None:
        fields = {"columns": tuple(columns), "consistent": consistent, "margins": margins, "rolled": rolled}
        declare(super().__init__, "Contingency", **fields)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, fields: Any) -> Any:
        lists = as_tuple(as_tuple(fields, "columns"), "margins")
        if isinstance(lists, Mapping) and isinstance(lists.get("margins"), tuple):
            listed = (tuple(each) if isinstance(each, list) else each for each in lists["margins"])
            return {**lists, "margins": tuple(listed)}
        return lists

    @model_validator(mode="after")
    def _unlike(self) -> "Contingency":
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("columns must not repeat")
        if len(self.columns) < 2 and not self.rolled:
            raise ValueError("columns must be at least 2; group by one, and count")
        if self.rolled and self.consistent:
            raise ValueError("rolled sums are those of the cells; leave 'consistent' or 'rolled' out")
        if self.margins is not None and not self.consistent:
            raise ValueError(f"margins need {setting('consistent', True)}")
        for margin in self.summed:
            if not set(margin) < set(self.columns):
                raise ValueError("margins must be 'all', or some of the columns and not all of them")
        if len({frozenset(margin) for margin in self.summed}) != len(self.summed):
            raise ValueError("margins must not repeat")
        return self

    @property
    def summed(self) -> tuple[tuple[str, ...], ...]:
        """The margins that are measured beside the cells, each by its columns in their order."""
        columns = self.columns if len(self.columns) > 1 else ()
        margins = (ALL, *columns) if self.margins is None else self.margins
        wanted = [(each,) if isinstance(each, str) else each for each in margins]
        plain = [() if each == (ALL,) else each for each in wanted]
        return tuple(
            each
            if not set(each) <= set(self.columns)
            else tuple(name for name in self.columns if name in each)
            for each in plain
        )

    @property
    def label(self) -> str:
        # a single column has a name of its own already
        return " by ".join(self.columns if len(self.columns) > 1 else (*self.columns, "total"))

    @property
    def form(self) -> str:
        return "margins" if self.consistent else self.kind

    @property
    def about(self) -> tuple[str, ...]:
        return self.columns

    @property
    def adds(self) -> tuple[str, ...]:
        return self.columns

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        """The columns of the table."""
        return tuple(map(KeyAxis, self.columns))

    @classmethod
    def long(cls, kind: str, value: object, rest: Mapping[str, object], query: str) -> Mapping[str, object]:
        return {"kind": kind, "columns": value, **rest}

    def check(self, schema: Schema, owner: str) -> None:
        """Every column must have known keys, none of which is the name of a margin."""
        for name in self.columns:
            if ALL in schema.keys(name):
                raise InvalidParameter(
                    f"The column '{name}' in '{owner}' has the key '{ALL}', which names the margins of a "
                    "contingency table. Rename the key, or group by the column instead."
                )

    def structure(self, schema: Schema) -> Structure:
        """The cells and the margins that are measured."""
        shape = tuple(len(schema.keys(name)) for name in self.columns)
        margins = [tuple(self.columns.index(name) for name in margin) for margin in self.summed]
        return Crossed(shape, (tuple(range(len(shape))), *margins))

    def inner(self, schema: Schema) -> Keys:
        """The key of every number: 'all' where it is a sum over a column."""
        crossed = expect(Crossed, self.structure(schema))
        return crossed.keys([schema.keys(name) for name in self.columns])

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        if self.consistent:
            return Margins(scope=scope, table=self)
        return RecordCounts(scope=scope, name=self.label, within=self.axes)

    def estimate(self, reading: Reading, measured: Measurement, schema: Schema) -> Estimates:
        if self.consistent:
            return Estimates(*expect(Margins, measured).estimate(expect(Noisy, reading), schema), whole=True)
        sizes = [len(schema.keys(name)) for name in self.columns]
        gone = [
            each
            for many in range(1, len(sizes) + 1)
            for each in combinations(range(len(sizes)), many)
            if not self.rolled or each[0] == len(sizes) - many
        ]
        cells = expect(Counted, reading)
        return Estimates(*_with_margins(cells, measured.keys(schema), sizes, gone), whole=True)

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return None

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return records_of(unit)

    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        """That of a cell, or of all numbers where they add up."""
        measure = self.unit_of_measure(context.unit)
        if self.consistent:
            return Expected(expect(Margins, line.measurement).error(line, context), measure, ADDING_UP)
        return Expected(line.mechanism.error(context.confidence), measure)

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        for two in permutations(grouped_by(schema), 2):
            yield cls(columns=two)
            yield cls(columns=two, consistent=True)
            yield cls(columns=two, consistent=True, margins=(two[0],))


def _with_margins(
    cells: Counted, keys: Keys, sizes: Sequence[int], summed: Sequence[tuple[int, ...]]
) -> tuple[GroupEstimate, Keys]:
    """The cells, then the sums over some sets of columns, whose intervals allow for all their noises."""
    if not keys:
        return cells.count(), keys
    noisy, shape = cells.noisy, (-1, *sizes)
    places = np.arange(len(keys)).reshape(shape)
    parts, named = [cells.count()], [keys]
    outer = len(keys.columns) - len(sizes)
    for gone in summed:
        value = noisy.numbers[:, 0].reshape(shape).sum(axis=tuple(axis + 1 for axis in gone)).ravel()
        reach = noisy.reach(np.ones(int(np.prod([sizes[axis] for axis in gone]))))
        parts.append(GroupEstimate(value, value - reach, value + reach))
        first = tuple(0 if axis in gone else slice(None) for axis in range(len(sizes)))
        table_keys = keys.take(places[(slice(None), *first)].ravel())
        every = KeyColumn.one(ALL, table_keys.size)
        columns = [every if at - outer in gone else column for at, column in enumerate(table_keys.columns)]
        named.append(Keys(tuple(columns), table_keys.size))
    joined = [np.concatenate([getattr(part, end) for part in parts]) for end in ("value", "lower", "upper")]
    return GroupEstimate(*joined), Keys.joined(named)
