"""What quantiles are read off: the values of each group in order, with noise, or a tree of counts."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, setting
from sourdine.core.lazy import ndtri
from sourdine.core.random.bits import Bits
from sourdine.frames.declared import Declared, by_hand, declare
from sourdine.frames.keys import Keys
from sourdine.frames.rank_counts import GroupRanks, SeparateRanks, check_counted, few_counts, ranks
from sourdine.frames.schema import Number, PrivacyUnit, Schema, span
from sourdine.frames.source import Source
from sourdine.tables.intervals import GroupEstimate, Reading, like_noises
from sourdine.tables.measurement import ColumnMeasurement as ColumnMeasured
from sourdine.tables.measurement import Context, Exact, Measurement, PlannedMeasurement, Scope, expect, moved
from sourdine.tables.privacy import Allotment
from sourdine.tables.quantiles.api import (
    AUTO,
    METHODS,
    MOST_BINS,
    NO_INTERVAL,
    TREE,
    Allowance,
    Tuning,
    chosen,
)
from sourdine.tables.quantiles.histogram import MOST_CUTS, NaiveLaplace
from sourdine.tables.quantiles.method import MOST_PLACES, QuantileMethod
from sourdine.tables.quantiles.tree import BinTree, read_quantiles
from sourdine.tables.statistics.base import (
    EVENLY,
    Chart,
    Estimates,
    Example,
    Expected,
    OfColumn,
    Style,
    as_tuple,
    numbers_of,
    short,
)

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


# The values below which given shares of the records lie.


_EXACT = 1 << 53  # whole numbers below it are floats
_AT_MOST = "at most, mostly far less; no interval"
_BY_ITSELF = "noise on the quantile itself; no interval"
_BY_RADIUS = "with a radius, or 2^41 steps, no bound holds where values are equal; no interval"


class Normal(Declared):
    """A guess at how a column is spread, for forecasts only."""

    mean: int | float
    deviation: int | float = Field(gt=0)


class Quantiles(OfColumn):
    """The values below which given shares of the records lie.

    They are read off a tree of noisy counts, which also gives intervals, or found by one of the methods of
    `tables.quantiles`, which mostly come nearer and give none. "auto" takes what comes nearest as far as
    declarations tell. What may be set of a method is as in `sourdine.quantiles`; `law` is for forecasts only.
    """

    kind: Literal["quantiles"] = "quantiles"
    levels: tuple[float, ...] = Field(min_length=1, max_length=999)
    method: MethodName = "auto"
    law: Literal["uniform"] | Normal | None = None
    ties: bool | None = None
    radius: int | None = Field(default=None, ge=0, le=MOST_PLACES)
    cuts: int | None = Field(default=None, ge=1, le=MOST_CUTS)
    bins: int | None = Field(default=None, ge=1, le=MOST_BINS)
    style: ClassVar[Style] = Style(Chart.CURVE)
    other_names: ClassVar[tuple[str, ...]] = ("median", "quantile", "percentile")
    example: ClassVar[Example] = {"quantiles": "pay", "levels": [0.5]}
    bounded: ClassVar[bool] = False

    @by_hand
    def __init__(
        self,
        column: str,
        levels: float | Sequence[float],
        *,
        method: MethodName = "auto",
        law: Literal["uniform"] | Normal | None = None,
        ties: bool | None = None,
        radius: int | None = None,
        cuts: int | None = None,
        bins: int | None = None,
    ) -> None:
        exact = (levels,) if isinstance(levels, int | float) else tuple(levels)
        fields = {"method": method, "law": law, "ties": ties, "radius": radius, "cuts": cuts, "bins": bins}
        declare(super().__init__, "Quantiles", column=column, levels=exact, **fields)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, fields: Any) -> Any:
        return as_tuple(fields, "levels")

    @model_validator(mode="after")
    def _rising(self) -> "Quantiles":
        if not all(0 < level < 1 for level in self.levels):
            raise ValueError(
                f"levels must lie strictly between 0 and 1, as in {setting('levels', [0.25, 0.5, 0.75])}"
            )
        if not all(a < b for a, b in pairwise(self.levels)):
            raise ValueError(f"levels must rise, as in {setting('levels', [0.25, 0.5, 0.75])}")
        return self

    @property
    def form(self) -> str:
        return f"{self.kind}, {self.method}"

    @property
    def adds(self) -> tuple[str, ...]:
        return ("quantile",)  # the name of its levels among the keys

    @property
    def tuning(self) -> Tuning:
        """What is set of the method."""
        return Tuning(radius=self.radius, cuts=self.cuts, bins=self.bins, ties=self.ties)

    def check(self, schema: Schema, owner: str) -> None:
        """The column must hold numbers between declared bounds, and the method know what is set of it."""
        super().check(schema, owner)
        self.tuning.check(self.method)

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        if self.method == TREE:
            name = f"ranks of {self.column}"
            return TreeCounts(scope=scope, column=self.column, levels=self.levels, name=name, bins=self.bins)
        return Order(
            scope=scope,
            column=self.column,
            levels=self.levels,
            name=self.label,
            method=self.method,
            tuning=self.tuning,
        )

    def estimate(self, reading: Reading, measured: Measurement, schema: Schema) -> Estimates:
        places, column = expect(NoisyRanks, reading).places, self.number(schema)
        on_grid = GroupEstimate(
            *(_steps(part, column) for part in (places.value, places.lower, places.upper))
        )
        return Estimates(on_grid, measured.keys(schema).each_with(Keys.product([self.levels])))

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return self.between(schema)

    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        """In ranks, or in the column's unit under the law that was declared for the forecast."""
        column, mechanism, size = self.number(context.schema), line.mechanism, context.size
        step = float(column.step)
        if isinstance(mechanism, NaiveLaplace):
            return Expected(mechanism.error(context.confidence) * step, self.column, _BY_ITSELF)
        near = 0.0
        if isinstance(mechanism, QuantileMethod):
            bound = mechanism.ranks_off(context.confidence)
            if bound is None:
                return Expected(None, note=_BY_RADIUS)
            off, near, noted = dict.fromkeys(self.levels, bound), mechanism.near * step, _AT_MOST
            if near:
                noted = (
                    f"at most, of a value within {short(near)} of the answer; mostly far less; no interval"
                )
        else:
            tree = expect(TreeCounts, line.measurement).tree(context.schema)
            off = {level: _noisy_rank(tree.spread(level), line, context) for level in self.levels}
            # other places of the quantiles have more noises below them, and of wide bins only edges are known
            noted = EVENLY if self.levels != (0.5,) else ""
            if tree.leaf > 1:
                within = f"within bins of {short(tree.leaf * step)}"
                noted = f"{noted} and {within}" if noted else f"if values are spread evenly {within}"
        if self.law is None or size is None:
            of = "" if size is None else f"of about {size:,.0f}"
            return Expected(max(off.values()), "ranks", "; ".join(filter(None, (of, noted))))
        law = _Law(self.law, float(column.lower), float(column.upper))
        error = near + max(law.off(level, ranks / size) for level, ranks in off.items())
        return Expected(
            error, self.column, "; ".join(filter(None, (f"if it is {law.name} as declared", noted)))
        )

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        for name in numbers_of(schema):
            for method in (AUTO, TREE, *METHODS):
                yield cls.model_validate({"column": name, "levels": [0.5], "method": method})
                yield cls.model_validate({"column": name, "levels": [0.25, 0.75], "method": method})


def _steps(places: NDArray[np.float64], column: Number) -> NDArray[np.float64]:
    """Places as values of the column, each the nearest float; what is not known stays so."""
    low, step = span(column)[0], column.step
    distinct, which = np.unique(places, return_inverse=True)  # fractions are slow, and places meet often
    largest = max(abs(low), abs(low + int(np.nanmax(distinct, initial=0)))) * step.numerator
    if max(largest, step.denominator) < _EXACT:  # then a division of floats is rounded once
        return ((low + distinct) * step.numerator / step.denominator)[which]
    exact = [math.nan if math.isnan(p) else float((low + int(p)) * step) for p in distinct.tolist()]
    return np.array(exact)[which]


def _noisy_rank(many: float, line: PlannedMeasurement, context: Context) -> float:
    """What so many noises on a count add up to at most."""
    return float(like_noises(line.mechanism, many, context.confidence)) * math.sqrt(many)


@dataclass(frozen=True)
class _Law:
    """How values are spread between their bounds, as declared for a forecast."""

    law: Literal["uniform"] | Normal
    lower: float
    upper: float

    @property
    def name(self) -> str:
        return "normal" if isinstance(self.law, Normal) else "uniform"

    def quantile(self, share: float) -> float:
        """The value that this share lies below."""
        if share <= 0 or share >= 1:
            return self.lower if share <= 0 else self.upper
        if isinstance(self.law, Normal):
            value = self.law.mean + self.law.deviation * float(ndtri(share))
            return min(max(value, self.lower), self.upper)
        return self.lower + share * (self.upper - self.lower)

    def off(self, level: float, share: float) -> float:
        """How far a quantile is from one whose level is off by so large a share, to either side."""
        here = self.quantile(level)
        return max(self.quantile(level + share) - here, here - self.quantile(level - share))
