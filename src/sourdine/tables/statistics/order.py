"""What quantiles are read off: the values of each group in order, with noise, or a tree of counts."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted
from sourdine.core.random.bits import Bits
from sourdine.frames.rank_counts import GroupRanks, SeparateRanks, check_counted, few_counts, ranks
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.frames.source import Source
from sourdine.tables.answers.estimate import GroupEstimate, Reading
from sourdine.tables.measurements.measurement import ColumnMeasurement as ColumnMeasured
from sourdine.tables.measurements.measurement import (
    Context,
    Exact,
    Measurement,
    PlannedMeasurement,
    expect,
    moved,
)
from sourdine.tables.privacy import Allotment
from sourdine.tables.quantiles.choice import AUTO, NO_INTERVAL, Allowance, Tuning, chosen
from sourdine.tables.quantiles.method import QuantileMethod
from sourdine.tables.quantiles.tree import BinTree, read_quantiles

MethodName = Literal[
    "tree",
    "auto",
    "joint",
    "recursive",
    "inverse",
    "smooth",
    "histogram",
    "monotone histogram",
    "naive",
]


@dataclass(frozen=True)
class NoisyRanks(Reading):
    """The places of quantiles in each group, one after the other, with intervals if the method gives any."""

    places: GroupEstimate


@dataclass(frozen=True, kw_only=True)
class Ordered(ColumnMeasured):
    """The values of a column in their order, in each group, for quantiles at some levels."""

    levels: tuple[float, ...]
    name: str
    alone: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return self.name

    def cuts(self, schema: Schema) -> tuple[int, ...]:
        """How many places the bins hold that values are counted in."""
        return ()

    def exact(
        self, source: Source, unit: PrivacyUnit, bits: Bits, beside: Sequence[Measurement] = ()
    ) -> list[Exact]:
        if self.scope.empty:
            return [SeparateRanks((), ())]
        exact = ranks(
            source,
            by=self.groupings(source),
            value=source.place_of(self.column),
            unit=unit,
            bits=bits,
            where=self.scope.sql(source),
            places=self.width(source.schema) + 1,
            cuts=self.cuts(source.schema),
            near=self.levels,
        )
        return [exact]

    @abstractmethod
    def _read(
        self, values: GroupRanks, line: PlannedMeasurement, context: Context, bits: Bits
    ) -> GroupEstimate:
        """The places of the quantiles of all groups, one after the other."""

    def read(self, exact: Exact, line: PlannedMeasurement, context: Context, bits: Bits) -> Reading:
        values = expect(GroupRanks, exact)  # type: ignore[type-abstract]
        return NoisyRanks(self._read(values, line, context, bits))

    def note(self, line: PlannedMeasurement) -> str:
        if line.choice is None:
            return ""
        return f"Method for the {self.label} in '{self.scope.query}': {line.choice.words}."


@dataclass(frozen=True, kw_only=True)
class TreeCounts(Ordered):
    """How many values lie in each bin of each level of a tree.

    `bins` are its finest bins, where they are wider than a step of the column's grid.
    """

    bins: int | None = None

    def tree(self, schema: Schema) -> BinTree:
        """The tree of bins over the column's grid."""
        places = self.width(schema) + 1
        return BinTree.over(places) if self.bins is None else BinTree.flat(places, self.bins)

    def cuts(self, schema: Schema) -> tuple[int, ...]:
        return self.tree(schema).widths

    def distance(self, schema: Schema, unit: PrivacyUnit, neighbours: Neighbours, squared: bool) -> Distance:
        """A value counts in one bin of every level."""
        copies = min(unit.max_groups, self.groups(schema)) * self.tree(schema).height
        return moved(neighbours, squared, length=unit.max_rows, copies=copies, each=unit.max_rows)

    def _read(
        self, values: GroupRanks, line: PlannedMeasurement, context: Context, bits: Bits
    ) -> GroupEstimate:
        return read_quantiles(
            values,
            self.tree(context.schema),
            mechanism=line.mechanism,
            levels=self.levels,
            confidence=context.confidence,
            bits=bits,
        )


@dataclass(frozen=True, kw_only=True)
class Order(Ordered):
    """Values of which a method chooses quantiles, in each group on its own."""

    method: MethodName
    tuning: Tuning

    def distance(self, schema: Schema, unit: PrivacyUnit, neighbours: Neighbours, squared: bool) -> Distance:
        """Values that change in one group."""
        return Distance.hamming(unit.max_rows, neighbours=neighbours)

    def line(self, context: Context, allotment: Allotment, share: Fraction) -> PlannedMeasurement:
        """The method that is asked in each group on its own, or the tree that is taken for it.

        A unit changes up to `rows` values in each of up to `groups` groups. One that is replaced may leave a
        group and enter another, unless it may count in all of them: so each group is asked as if values come
        and go, and a value replaced counts as two (docs/guarantees/tables.md).
        """
        schema, unit = context.schema, context.unit
        groups, places = self.groups(schema), self.width(schema) + 1
        moves = context.neighbours is Neighbours.REPLACE and groups > unit.max_groups
        allowance = Allowance(
            budget=share * allotment.total,
            squared=allotment.squared,
            values=unit.max_rows * (2 if moves else 1),
            groups=min(unit.max_groups, groups),
        )
        try:
            mechanism, choice = chosen(
                self.method,
                levels=self.levels,
                places=places,
                allowance=allowance,
                neighbours=Neighbours.ADD_REMOVE if moves else context.neighbours,
                size=None if context.size is None else math.ceil(context.size),
                tuning=self.tuning,
                counted=not (context.near or few_counts(groups, places)),
            )
        except InvalidParameter as problem:
            of = f"The {self.label} in '{self.scope.query}' cannot be found by the method '{self.method}'"
            raise InvalidParameter(f"{of}. {problem}") from None
        picked = self.method == AUTO
        if isinstance(mechanism, BinTree):
            bins = mechanism.fan if mechanism.leaf > 1 or mechanism.height == 1 else None
            tree = TreeCounts(
                scope=self.scope, column=self.column, levels=self.levels, name=self.name, bins=bins
            )
            return replace(tree.line(context, allotment, share), choice=choice, picked=picked, wanted=self)
        return PlannedMeasurement(
            measurement=self,
            mechanism=mechanism,
            distance=self.distance(schema, unit, context.neighbours, allotment.squared),
            share=share,
            count=allowance.groups,
            choice=choice,
            picked=picked,
            squared=allotment.squared,
        )

    def check_source(self, source: Source) -> None:
        schema = source.schema
        check_counted(source, self.label, self.groups(schema), self.width(schema) + 1)

    def _read(
        self, values: GroupRanks, line: PlannedMeasurement, context: Context, bits: Bits
    ) -> GroupEstimate:
        assert isinstance(line.mechanism, QuantileMethod)
        answers = line.mechanism.sample_groups(values, bits).ravel().astype(float)
        return GroupEstimate(answers, np.full(answers.shape, np.nan), np.full(answers.shape, np.nan))

    def note(self, line: PlannedMeasurement) -> str:
        return f"{super().note(line)} {NO_INTERVAL}"

    def step(self, schema: Schema, unit: PrivacyUnit) -> tuple[float, str]:
        return 1.0, "values"

    def noise_words(self, line: PlannedMeasurement, context: Context) -> str:
        assert line.choice is not None
        assert isinstance(line.mechanism, QuantileMethod)
        return f"{line.choice.name} method, epsilon {float(line.mechanism.epsilon):.4g} for one value"

    def moves(self, line: PlannedMeasurement, context: Context) -> str:
        each = counted(int(line.distance.amount), "value")
        return each if line.count == 1 else f"{each} in each of {line.count:,} groups"
