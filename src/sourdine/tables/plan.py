"""What a release will do, cost and be worth, from declarations alone: no record is read."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape

from sourdine.accounting.ledger.budget import ConcentratedBudget
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.digits import plain
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Mechanism
from sourdine.frames.counting import check_groups
from sourdine.frames.schema import Schema
from sourdine.frames.unit import Unit
from sourdine.tables.aggregate import (
    Aggregate,
    Deviation,
    Mean,
    Proportion,
    Quantiles,
    Sum,
    Units,
    Variance,
)
from sourdine.tables.measurement import Kind, Measurement, measurements, source_of
from sourdine.tables.noise import noise
from sourdine.tables.quantiles.choice import AUTO, Allowance, Choice, chosen
from sourdine.tables.query import Query

MOST_EPSILON = 1 << 20
_POWERS = {1: "", 2: "²"}
EACH_RECORD = Unit()


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The guarantee of one release: pure epsilon, or (epsilon, delta) by zero-concentrated noise.

    >>> Privacy(epsilon=1).total
    Fraction(1, 1)
    """

    epsilon: Fraction
    delta: float | None = None

    def __post_init__(self) -> None:
        exact = check.positive("Privacy", "epsilon", self.epsilon, MOST_EPSILON)
        object.__setattr__(self, "epsilon", exact)
        if self.delta is not None:
            check.inside("Privacy", "delta", self.delta, 0, 1)

    @property
    def squared(self) -> bool:
        """Whether rho is spent, on distances in L2."""
        return self.delta is not None

    @cached_property
    def total(self) -> Fraction:
        """What there is to divide: epsilon, or the rho that stays within (epsilon, delta)."""
        if self.delta is None:
            return self.epsilon
        return ConcentratedBudget.within(self.epsilon, self.delta).limit

    @property
    def words(self) -> str:
        """The guarantee as people write it."""
        small = "" if self.delta is None else f", delta {self.delta:g}"
        return f"epsilon {float(self.epsilon):g}{small}"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One measurement of a plan: its noise, how far a unit moves it, and its share of the budget.

    `count` is how many groups a unit moves so far, where each group is asked on its own; `choice` is the
    method of quantiles, where there is one.
    """

    measurement: Measurement
    mechanism: Mechanism
    distance: Distance
    share: Fraction
    count: int = 1
    choice: Choice | None = None

    @property
    def spend(self) -> Spend:
        """What it costs."""
        return Spend(mechanism=self.mechanism, distance=self.distance, count=self.count)

    @property
    def note(self) -> str:
        """Which method was taken and why, where there is a choice; empty elsewhere."""
        if self.choice is None:
            return ""
        of = f"{self.measurement.label} in '{self.measurement.query.name}'"
        return f"Method for the {of}: {self.choice.words}. No interval is known for it."


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Queries on a declared table under one guarantee.

    >>> schema = Schema.read({"sex": {"type": "category", "keys": ["f", "m"]}})
    >>> query = Query.read({"name": "people", "ask": ["count"], "by": ["sex"]})
    >>> plan = Plan(schema=schema, queries=(query,), privacy=Privacy(epsilon=1))
    >>> plan.lines[0].mechanism
    Laplace(scale=Fraction(1, 1), granularity=None)
    """

    schema: Schema
    queries: tuple[Query, ...]
    privacy: Privacy
    unit: Unit = EACH_RECORD
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    size: int | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not self.queries:
            raise check.fail("a plan", "queries", "hold at least one query", [], "Say what to ask.")
        check.confidence("a plan", self.confidence)
        if self.size is not None:
            check.integer("a plan", "size", self.size, 1, 1 << 40)
        if self.neighbours is Neighbours.ZERO_OUT:
            must = "be add-remove or replace"
            raise check.fail("a plan", "neighbours", must, str(self.neighbours), "Tables have no other.")
        names = [query.name for query in self.queries]
        for name in names:
            if names.count(name) > 1:
                raise InvalidParameter(f"Two queries are called '{name}'. Give each its own name.")
        for query in self.queries:
            query.check(self.schema)
            for measured in measurements(query, self.schema):
                check_groups(measured.groups(self.schema))

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Every measurement with its noise; their shares add up to 1."""
        weight = sum((query.share for query in self.queries), Fraction(0))
        found = []
        for query in self.queries:
            for measured in measurements(query, self.schema):
                share = measured.share * query.share / weight
                if measured.kind is Kind.ORDER:
                    found.append(self._in_order(measured, share))
                    continue
                distance = measured.distance(self.schema, self.unit, self.neighbours, self.privacy.squared)
                mechanism = noise(distance, share * self.privacy.total, self.privacy.squared)
                found.append(Line(measurement=measured, mechanism=mechanism, distance=distance, share=share))
        return tuple(found)

    def _in_order(self, measured: Measurement, share: Fraction) -> Line:
        """Quantiles by a method that is asked in each group on its own.

        A unit changes up to `rows` values in each of up to `groups` groups. One that is replaced may leave a
        group and enter another, unless it may count in all of them: so each group is asked as if values come
        and go, and a value replaced counts as two (docs/guarantees/tables.md).
        """
        asked = measured.asked
        assert isinstance(asked, Quantiles)
        groups, replaced = measured.groups(self.schema), self.neighbours is Neighbours.REPLACE
        moves = replaced and groups > self.unit.groups
        distance = measured.distance(self.schema, self.unit, self.neighbours, self.privacy.squared)
        allowance = Allowance(
            budget=share * self.privacy.total,
            squared=self.privacy.squared,
            values=self.unit.rows * (2 if moves else 1),
            groups=min(self.unit.groups, groups),
        )
        size = self.per_group(measured)
        try:
            mechanism, choice = chosen(
                asked.method,
                at=asked.at,
                places=measured.width(self.schema) + 1,
                allowance=allowance,
                neighbours=Neighbours.ADD_REMOVE if moves else self.neighbours,
                size=None if size is None else math.ceil(size),
            )
        except InvalidParameter as problem:
            of = (
                f"The {asked.label} in '{measured.query.name}' cannot be found by the method '{asked.method}'"
            )
            raise InvalidParameter(f"{of}. {problem}") from None
        return Line(
            measurement=measured,
            mechanism=mechanism,
            distance=distance,
            share=share,
            count=allowance.groups,
            choice=choice,
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What was chosen by the declarations, and why."""
        return tuple(line.note for line in self.lines if line.note)

    @cached_property
    def picked(self) -> dict[str, str]:
        """The methods that were left to be picked, and why each was taken."""
        return {
            f"method of {line.measurement.label} in {line.measurement.query.name}": line.choice.words
            for line in self.lines
            if line.choice is not None
            and isinstance(line.measurement.asked, Quantiles)
            and line.measurement.asked.method == AUTO
        }

    @cached_property
    def spends(self) -> tuple[Spend, ...]:
        """What the release costs, as one block."""
        return tuple(line.spend for line in self.lines)

    def line_for(self, query: Query, each: Aggregate) -> Line:
        """The measurement that an aggregate of a query is read off."""
        wanted = source_of(each, query, self.schema)
        return next(
            line for line in self.lines if line.measurement.query is query and wanted.same(line.measurement)
        )

    def measure(self, each: Aggregate) -> str:
        """What an aggregate is counted in."""
        if isinstance(each, Proportion):
            return "share"
        if isinstance(each, Variance):
            return f"{each.column}²"
        if isinstance(each, Sum | Mean | Deviation | Quantiles):
            return each.column
        alone = isinstance(each, Units) or self.unit.column is None
        return plural(self.unit.name if alone else "record")

    def unit_of(self, line: Line) -> tuple[float, str]:
        """What a step of a measurement is worth, and in which measure."""
        measured = line.measurement
        if measured.kind is Kind.TOTAL:
            return float(measured.number(self.schema).step), str(measured.column)
        if measured.kind is Kind.MOMENTS:
            power = measured.degree
            return float(measured.number(self.schema).step) ** power, f"{measured.column}{_POWERS[power]}"
        if measured.kind is Kind.ORDER:
            return 1.0, "values"
        alone = measured.kind is Kind.UNITS or self.unit.column is None
        return 1.0, plural(self.unit.name if alone else "record")

    def per_group(self, measured: Measurement) -> float | None:
        """How many records a group of a query holds, were they spread evenly over the declared keys."""
        if self.size is None:
            return None
        return self.size / math.prod(len(self.schema.keys(name)) for name in measured.query.by)

    @property
    def warning(self) -> str:
        """What is doubtful about the guarantee; empty if nothing is."""
        if self.privacy.delta is not None and self.size is not None and self.privacy.delta * self.size > 1:
            return (
                f"The delta of {plain(self.privacy.delta)} is above 1 divided by the declared size of "
                f"{self.size:,}: such a guarantee would even allow to publish the whole record of somebody "
                "drawn at random. Take a delta far below that."
            )
        return ""

    def _repr_html_(self) -> str:
        from sourdine.tables.forecast import forecasts

        head = "<tr><th>query</th><th>statistic</th><th>noise</th><th>share</th><th>error</th></tr>"
        rows = "".join(
            f"<tr><td>{escape(each.query)}</td><td>{escape(each.statistic)}</td><td>{escape(each.noise)}</td>"
            f"<td>{float(each.share):.0%}</td><td>{escape(each.words)}</td></tr>"
            for each in forecasts(self)
        )
        return (
            f"<p>A plan at {escape(self.privacy.words)}; nothing is spent yet.</p><table>{head}{rows}</table>"
        )


def plural(unit: str) -> str:
    """Several of a unit."""
    if unit == "person":
        return "people"
    return unit if unit.endswith("s") else f"{unit}s"
