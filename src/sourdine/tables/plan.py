"""What a release will do, cost and be worth, from declarations alone: no record is read."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from html import escape

from sourdine.accounting.large_delta import warn_of_delta
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Mechanism
from sourdine.core.select import MOST_CANDIDATES
from sourdine.frames.counting import check_groups
from sourdine.frames.levels import few_counts
from sourdine.frames.quality import all_cells
from sourdine.frames.schema import Schema
from sourdine.frames.unit import Unit
from sourdine.mechanisms import KeyThreshold, TopK
from sourdine.tables.aggregate import (
    Aggregate,
    Deviation,
    Mean,
    Proportion,
    Quantiles,
    Sum,
    Top,
    Units,
    Variance,
)
from sourdine.tables.measurement import (
    Kind,
    Measurement,
    measurements,
    quality_of,
    selection_of,
    source_of,
)
from sourdine.tables.noise import noise
from sourdine.tables.privacy import Privacy
from sourdine.tables.quality import quality_share
from sourdine.tables.quantiles.choice import AUTO, NO_INTERVAL, Allowance, Choice, chosen
from sourdine.tables.query import Query
from sourdine.tables.tree import Tree

_POWERS = {1: "", 2: "²"}
EACH_RECORD = Unit()


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
        if isinstance(self.mechanism, KeyThreshold):
            return self._chooses(self.mechanism)
        if self.choice is None:
            return ""
        of = f"{self.measurement.label} in '{self.measurement.query.name}'"
        bare = "" if self.measurement.kind is Kind.TREE else f" {NO_INTERVAL}"
        return f"Method for the {of}: {self.choice.words}.{bare}"

    def _chooses(self, mechanism: KeyThreshold) -> str:
        """How keys are chosen."""
        return (
            f"The {self.measurement.label} were chosen privately: a key is shown if the count of units that "
            f"have it reaches {mechanism.threshold:,} with {mechanism.noise} noise of scale "
            f"{float(mechanism.scale):.4g}. Keys that one unit alone has are shown with a probability of at "
            f"most {mechanism.leak():.3g}."
        )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Queries on a declared table under one guarantee.

    With `quality`, a small part of the budget tells how many records do not fit what is declared of the
    columns. `checked` says that somebody read, outside any guarantee, how well the data fits the
    declarations.
    `near` says that the records can be brought here; on a cluster they stay where they are.

    >>> schema = Schema.read({"sex": {"type": "category", "keys": ["f", "m"]}})
    >>> query = Query.read({"name": "people", "ask": ["count"], "by": ["sex"]})
    >>> plan = Plan(schema=schema, queries=(query,), privacy=Privacy(epsilon=1))
    >>> for line in plan.lines:
    ...     print(line.measurement.label, line.mechanism, line.share)
    count Laplace(scale=Fraction(20, 19), granularity=None) 19/20
    data quality Laplace(scale=Fraction(20, 1), granularity=None) 1/20
    """

    schema: Schema
    queries: tuple[Query, ...]
    privacy: Privacy
    unit: Unit = EACH_RECORD
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    size: int | None = None
    confidence: float = 0.95
    caveats: tuple[str, ...] = ()
    quality: bool = True
    checked: bool = False
    near: bool = True

    def __post_init__(self) -> None:
        if not self.queries:
            raise check.fail("a plan", "queries", "hold at least one query", [], "Say what to ask.")
        check.keep(self, confidence=check.confidence("a plan", self.confidence))
        if self.size is not None:
            check.keep(self, size=check.integer("a plan", "size", self.size, 1, 1 << 40))
        if self.neighbours is Neighbours.ZERO_OUT:
            must = "be add-remove or replace"
            raise check.fail("a plan", "neighbours", must, str(self.neighbours), "Tables have no other.")
        for name, times in Counter(query.name for query in self.queries).items():
            if times > 1:
                raise InvalidParameter(f"Two queries are called '{name}'. Give each its own name.")
        chooses = False
        for query in self.queries:
            query.check(self.schema)
            for measured in measurements(query, self.schema):
                check_groups(measured.known_groups(self.schema), f"The query '{query.name}'")
                if measured.open:
                    self._check_delta(measured)
                    chooses = True
        if self.privacy.delta is not None and self.privacy.reserve is None:
            half = self.privacy.delta / 2 if chooses else 0.0
            object.__setattr__(self, "privacy", replace(self.privacy, reserve=half))

    def _check_delta(self, measured: Measurement) -> None:
        """Refuse to choose keys without a delta: a key that one unit alone has must be let through rarely."""
        if self.privacy.delta is None or self.privacy.reserve == 0:
            raise InvalidParameter(
                f"The query '{measured.query.name}' needs the {measured.label}, which are chosen privately. "
                "That takes a small delta, the chance that a key is shown which one "
                f"{self.unit.name} alone has. Declare one, such as delta = 1e-6, or declare the keys."
            )

    @cached_property
    def _choices(self) -> tuple[Measurement, ...]:
        """The choices of keys, each once, with their shares of the budget."""
        found: dict[tuple[object, ...], Measurement] = {}
        for query in self.queries:
            for measured in measurements(query, self.schema):
                if measured.kind is Kind.KEYS:
                    share = measured.share * query.share / self._weight
                    held = found.setdefault(selection_of(measured), replace(measured, share=Fraction(0)))
                    found[selection_of(measured)] = replace(held, share=held.share + share)
        return tuple(found.values())

    @cached_property
    def _weight(self) -> Fraction:
        """What the weights of queries are divided by, so that they share what data quality leaves."""
        kept = Fraction(0) if self._quality is None else self._quality.share
        return sum((query.share for query in self.queries), Fraction(0)) / (1 - kept)

    @cached_property
    def _quality(self) -> Line | None:
        """The line that tells how many records do not fit; it is the last, so no other draw depends on it."""
        if not self.quality:
            return None
        measured, squared = quality_of(self.queries), self.privacy.squared
        distance = measured.distance(self.schema, self.unit, self.neighbours, squared)
        share = quality_share(
            distance,
            self.privacy.total,
            squared=squared,
            cells=len(all_cells(self.schema, measured.columns)),
            confidence=self.confidence,
            size=self.size,
        )
        return Line(
            measurement=replace(measured, share=share),
            mechanism=noise(distance, share * self.privacy.total, squared),
            distance=distance,
            share=share,
        )

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Every measurement with its noise; their shares add up to 1."""
        found = list(self.choices)
        for query in self.queries:
            for measured in measurements(query, self.schema):
                share = measured.share * query.share / self._weight
                if measured.kind is Kind.KEYS:
                    continue
                if measured.kind in (Kind.ORDER, Kind.TOP):
                    ask = self._in_order if measured.kind is Kind.ORDER else self._ranked
                    found.append(ask(measured, share))
                    continue
                found.append(self._summed(measured, share))
        return tuple(found) if self._quality is None else (*found, self._quality)

    def _summed(self, measured: Measurement, share: Fraction) -> Line:
        """Sums with the least noise for how far a unit moves them."""
        distance = measured.distance(self.schema, self.unit, self.neighbours, self.privacy.squared)
        mechanism = noise(distance, share * self.privacy.total, self.privacy.squared)
        return Line(measurement=measured, mechanism=mechanism, distance=distance, share=share)

    @cached_property
    def choices(self) -> tuple[Line, ...]:
        """The lines that choose keys which nobody declared."""
        return tuple(self._choosing(measured) for measured in self._choices)

    def _choosing(self, measured: Measurement) -> Line:
        """A choice of keys: a unit counts once for each of at most `groups` of them."""
        budget = measured.share * self.privacy.total
        minimum = max(self.schema.text(name).at_least or 1 for name in measured.open)
        mechanism = KeyThreshold.within(
            **({"rho": budget} if self.privacy.squared else {"epsilon": budget}),
            delta=Fraction(self.privacy.reserve or 0) / len(self._choices),
            keys=self.unit.groups,
            minimum=minimum,
            neighbours=self.neighbours,
        )
        distance = measured.distance(self.schema, self.unit, self.neighbours, self.privacy.squared)
        return Line(measurement=measured, mechanism=mechanism, distance=distance, share=measured.share)

    def _ranked(self, measured: Measurement, share: Fraction) -> Line:
        """The top keys of each group of a query, each group asked on its own.

        A unit changes counts by one, in at most `groups` groups, all the same way when it is added or
        removed; one that is replaced may leave as many as it enters.
        """
        asked = measured.asked
        assert isinstance(asked, Top)
        replaced = self.neighbours is Neighbours.REPLACE
        groups = min(self.unit.groups * (2 if replaced else 1), measured.outer_groups(self.schema))
        budget = share * self.privacy.total / groups
        keys = MOST_CANDIDATES if measured.open else len(self.schema.keys(asked.column))
        mechanism = TopK.within(
            **({"rho": budget} if self.privacy.squared else {"epsilon": budget}),
            candidates=keys,
            k=asked.k,
            monotone=not replaced,
        )
        distance = measured.distance(self.schema, self.unit, self.neighbours, self.privacy.squared)
        return Line(measurement=measured, mechanism=mechanism, distance=distance, share=share, count=groups)

    def choice_for(self, measured: Measurement) -> Line | None:
        """The line that chooses the keys of a measurement, where they are not declared."""
        if not measured.open:
            return None
        same = (line for line in self.choices if selection_of(line.measurement) == selection_of(measured))
        return next(same)

    def _in_order(self, measured: Measurement, share: Fraction) -> Line:
        """Quantiles by a method that is asked in each group on its own, or by the tree that is taken for it.

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
        size, places = self.per_group(measured), measured.width(self.schema) + 1
        try:
            found, choice = chosen(
                asked.method,
                at=asked.at,
                places=places,
                allowance=allowance,
                neighbours=Neighbours.ADD_REMOVE if moves else self.neighbours,
                size=None if size is None else math.ceil(size),
                tuning=asked.tuning,
                counted=not (self.near or few_counts(groups, places)),
            )
        except InvalidParameter as problem:
            of = (
                f"The {asked.label} in '{measured.query.name}' cannot be found by the method '{asked.method}'"
            )
            raise InvalidParameter(f"{of}. {problem}") from None
        if isinstance(found, Tree):
            return replace(self._summed(measured.counted(found), share), choice=choice)
        return Line(
            measurement=measured,
            mechanism=found,
            distance=distance,
            share=share,
            count=allowance.groups,
            choice=choice,
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What was chosen by the declarations, and why."""
        return (*self.caveats, *(line.note for line in self.lines if line.note))

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
        if isinstance(each, Top):
            return "rank"
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
        alone = measured.kind in (Kind.UNITS, Kind.KEYS, Kind.TOP) or self.unit.column is None
        alone = alone and measured.kind is not Kind.QUALITY
        return 1.0, plural(self.unit.name if alone else "record")

    def per_group(self, measured: Measurement) -> float | None:
        """How many records a group of a query holds, were they spread evenly over the declared keys.

        Of keys that are chosen, the least that are shown: one record a unit at the threshold.
        """
        size: float | None = self.size
        if (chooses := self.choice_for(measured)) is not None and measured.kind is not Kind.TOP:
            assert isinstance(chooses.mechanism, KeyThreshold)
            size = chooses.mechanism.threshold
        return None if size is None else size / measured.outer_groups(self.schema)

    @property
    def warning(self) -> str:
        """What is doubtful about the guarantee; empty if nothing is."""
        if self.privacy.delta is None or self.size is None:
            return ""
        return warn_of_delta(self.privacy.delta, self.size, f"the declared size of {self.size:,}")

    def _repr_html_(self) -> str:
        from sourdine.tables.forecast import forecasts, quality_forecast

        head = "<tr><th>query</th><th>statistic</th><th>noise</th><th>share</th><th>error</th></tr>"
        rows = "".join(
            f"<tr><td>{escape(each.query)}</td><td>{escape(each.statistic)}</td><td>{escape(each.noise)}</td>"
            f"<td>{float(each.share):.0%}</td><td>{escape(each.words)}</td></tr>"
            for each in (*forecasts(self), *filter(None, [quality_forecast(self)]))
        )
        return (
            f"<p>A plan at {escape(self.privacy.words)}; nothing is spent yet.</p><table>{head}{rows}</table>"
        )


def plural(unit: str) -> str:
    """Several of a unit."""
    if unit == "person":
        return "people"
    return unit if unit.endswith("s") else f"{unit}s"
