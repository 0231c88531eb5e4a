"""What can be asked of the records of a group."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.frames.schema import Declared, Number, Schema, decimal, sensible
from sourdine.tables.answer import ALL
from sourdine.tables.condition import Condition
from sourdine.tables.hierarchy import Hierarchy
from sourdine.tables.quantiles.choice import MOST_BINS, Tuning
from sourdine.tables.quantiles.method import MOST_PLACES
from sourdine.tables.quantiles.threshold import MOST_CUTS


class Count(Declared):
    """How many records there are."""

    kind: Literal["count"] = "count"

    @property
    def label(self) -> str:
        """What is asked, in a few words."""
        return "count"

    def check(self, schema: Schema, owner: str) -> None:
        """Any table has a count."""


class Units(Declared):
    """How many different units there are."""

    kind: Literal["units"] = "units"

    @property
    def label(self) -> str:
        """What is asked, in a few words."""
        return "units"

    def check(self, schema: Schema, owner: str) -> None:
        """Any table has units."""


class _OfColumn(Declared):
    """Something asked of the numbers of a column."""

    kind: str
    column: str

    @property
    def label(self) -> str:
        """What is asked, in a few words."""
        return f"{self.kind} of {self.column}"

    def check(self, schema: Schema, owner: str) -> None:
        """The column must hold numbers between declared bounds."""
        schema.number(f"The {self.kind} asked for in '{owner}'", self.column)


class Sum(_OfColumn):
    """The sum of a column."""

    kind: Literal["sum"] = "sum"


class Mean(_OfColumn):
    """The mean of a column."""

    kind: Literal["mean"] = "mean"


class Variance(_OfColumn):
    """The variance of a column: the mean of squares less the square of the mean."""

    kind: Literal["variance"] = "variance"


class Deviation(_OfColumn):
    """The standard deviation of a column."""

    kind: Literal["deviation"] = "deviation"


class Proportion(Declared):
    """The share of records for which a condition holds, among those whose column is not missing."""

    kind: Literal["proportion"] = "proportion"
    of: Condition

    @property
    def label(self) -> str:
        """What is asked, in a few words."""
        return f"proportion with {self.of.words}"

    def check(self, schema: Schema, owner: str) -> None:
        """The condition must fit the schema."""
        self.of.check(schema, owner)


class Histogram(_OfColumn):
    """How many records lie in each bin of a column; a bin holds its lower edge, and the last one both."""

    kind: Literal["histogram"] = "histogram"
    edges: tuple[int | float, ...] = Field(min_length=2, max_length=1 << 16)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        return _as_tuple(given, "edges")

    @model_validator(mode="after")
    def _rising(self) -> "Histogram":
        if not all(map(sensible, self.edges)):
            raise ValueError("edges must be numbers up to 1e100 in size")
        if not all(a < b for a, b in pairwise(self.edges)):
            raise ValueError("edges must rise, as in edges = [0, 20, 40]")
        return self

    def check(self, schema: Schema, owner: str) -> None:
        """Every bin must hold a step of the column's grid."""
        super().check(schema, owner)
        places = self.places(schema.number(owner, self.column))
        if not all(a < b for a, b in pairwise(places)):
            raise InvalidParameter(
                f"The histogram of '{self.column}' in '{owner}' has a bin narrower than the column's grid. "
                "Use wider bins, or declare a finer granularity."
            )

    def places(self, column: Number) -> tuple[int, ...]:
        """The edges in steps of the column's grid."""
        return tuple(math.ceil(decimal(edge) / column.step) for edge in self.edges)

    @property
    def bins(self) -> tuple[str, ...]:
        """The bins as people write them."""
        pairs = list(pairwise(self.edges))
        names = [f"{low:g} to below {high:g}" for low, high in pairs[:-1]]
        return (*names, f"{pairs[-1][0]:g} to {pairs[-1][1]:g}")


class Contingency(Declared):
    """How many records there are for each combination of the keys of some columns, with margins.

    Margins are sums of noisy cells; or, if `consistent`, each is measured too, and all are made into whole
    numbers that add up. `margins` are those: 'all' for the total, a column, or several; without it, the total
    and each column by itself.
    """

    kind: Literal["contingency"] = "contingency"
    columns: tuple[str, ...] = Field(min_length=2, max_length=6)
    consistent: bool = False
    margins: tuple[str | tuple[str, ...], ...] | None = Field(default=None, max_length=64)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        held = _as_tuple(_as_tuple(given, "columns"), "margins")
        if isinstance(held, Mapping) and isinstance(held.get("margins"), tuple):
            listed = (tuple(each) if isinstance(each, list) else each for each in held["margins"])
            return {**held, "margins": tuple(listed)}
        return held

    @model_validator(mode="after")
    def _unlike(self) -> "Contingency":
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("columns must not repeat")
        if self.margins is not None and not self.consistent:
            raise ValueError("margins need consistent = true")
        for margin in self.summed:
            if not set(margin) < set(self.columns):
                raise ValueError("margins must be 'all', or some of the columns and not all of them")
        if len({frozenset(margin) for margin in self.summed}) != len(self.summed):
            raise ValueError("margins must not repeat")
        return self

    @property
    def summed(self) -> tuple[tuple[str, ...], ...]:
        """The margins that are measured beside the cells, each by its columns in their order."""
        asked = (ALL, *self.columns) if self.margins is None else self.margins
        wanted = [(each,) if isinstance(each, str) else each for each in asked]
        plain = [() if each == (ALL,) else each for each in wanted]
        return tuple(
            each
            if not set(each) <= set(self.columns)
            else tuple(name for name in self.columns if name in each)
            for each in plain
        )

    @property
    def label(self) -> str:
        """What is asked, in a few words."""
        return " by ".join(self.columns)

    def check(self, schema: Schema, owner: str) -> None:
        """Every column must have known keys, none of which is the name of a margin."""
        for name in self.columns:
            if ALL in schema.keys(name):
                raise InvalidParameter(
                    f"The column '{name}' in '{owner}' has the key '{ALL}', which names the margins of a "
                    "contingency table. Rename the key, or group by the column instead."
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


class Normal(Declared):
    """A guess at how a column is spread, for forecasts only."""

    mean: int | float
    deviation: int | float = Field(gt=0)


class Quantiles(_OfColumn):
    """The values below which given shares of the records lie.

    They are read off a tree of noisy counts, which also gives intervals, or found by one of the methods of
    `tables.quantiles`, which mostly come nearer and give none. "auto" takes what comes nearest as far as
    declarations tell. What may be set of a method is as in `sourdine.quantiles`; `law` is for forecasts only.
    """

    kind: Literal["quantiles"] = "quantiles"
    at: tuple[float, ...] = Field(min_length=1, max_length=999)
    method: MethodName = "auto"
    law: Literal["uniform"] | Normal | None = None
    ties: bool | None = None
    radius: int | None = Field(default=None, ge=0, le=MOST_PLACES)
    cuts: int | None = Field(default=None, ge=1, le=MOST_CUTS)
    bins: int | None = Field(default=None, ge=1, le=MOST_BINS)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        return _as_tuple(given, "at")

    @model_validator(mode="after")
    def _rising(self) -> "Quantiles":
        if not all(0 < level < 1 for level in self.at):
            raise ValueError("at must lie strictly between 0 and 1, as in at = [0.25, 0.5, 0.75]")
        if not all(a < b for a, b in pairwise(self.at)):
            raise ValueError("at must rise, as in at = [0.25, 0.5, 0.75]")
        return self

    @property
    def tuning(self) -> Tuning:
        """What is set of the method."""
        return Tuning(radius=self.radius, cuts=self.cuts, bins=self.bins, ties=self.ties)

    def check(self, schema: Schema, owner: str) -> None:
        """The column must hold numbers between declared bounds, and the method know what is set of it."""
        super().check(schema, owner)
        self.tuning.check(self.method)


class Top(Declared):
    """The k keys of a column that most records have, or most units where a column tells units apart.

    They come in order, without their counts.
    """

    kind: Literal["top"] = "top"
    column: str
    k: int = Field(ge=1, le=1 << 12)

    @property
    def label(self) -> str:
        """What is asked, in a few words."""
        return f"top {self.k} of {self.column}"

    def check(self, schema: Schema, owner: str) -> None:
        """The column must have more keys than are asked for, or such as are chosen privately."""
        if schema.open([self.column]):
            return
        keys = len(schema.keys(self.column))
        if keys <= self.k:
            raise InvalidParameter(
                f"The top {self.k} of '{self.column}' in '{owner}' would be all its {keys} keys. "
                "Ask for fewer, or for the count by this column."
            )


Aggregate = Annotated[
    Count
    | Units
    | Sum
    | Mean
    | Variance
    | Deviation
    | Proportion
    | Histogram
    | Contingency
    | Quantiles
    | Top
    | Hierarchy,
    Field(discriminator="kind"),
]
KINDS = (
    "count",
    "units",
    "sum",
    "mean",
    "variance",
    "deviation",
    "proportion",
    "histogram",
    "contingency",
    "quantiles",
    "top",
    "hierarchy",
)


def columns_of(each: Aggregate) -> tuple[str, ...]:
    """The columns that an aggregate is about."""
    if isinstance(each, Contingency):
        return each.columns
    if isinstance(each, Proportion):
        return (each.of.column,)
    return () if isinstance(each, Count | Units) else (each.column,)


def _as_tuple(given: Any, name: str) -> Any:
    """A list, or one thing alone, as the model takes it."""
    if not isinstance(given, Mapping) or name not in given:
        return given
    value = given[name]
    if isinstance(value, list):
        return {**given, name: tuple(value)}
    return {**given, name: (value,)} if isinstance(value, str | int | float) else given
