"""What a release will do, cost and be worth, from declarations alone: no record is read."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.figure import Figure
from sourdine.core.format import plain
from sourdine.core.text.notation import either, setting
from sourdine.core.view import Viewable, figure_of
from sourdine.frames.columns import kind_of
from sourdine.frames.derived import DERIVED
from sourdine.frames.expressions import Case, Expression, walk
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.schema import Schema
from sourdine.frames.statistics.quality import all_cells
from sourdine.frames.statistics.totals import MOST_GROUPS, check_groups
from sourdine.frames.times.zones import zone_data_version
from sourdine.mechanisms import PartitionThreshold
from sourdine.tables.answers.row_intervals import SelectedIntervals
from sourdine.tables.answers.selection import LinearNoise
from sourdine.tables.comparison.declared import is_positive
from sourdine.tables.comparison.selection import selected_intervals
from sourdine.tables.measurements.group_sums import GroupSums
from sourdine.tables.measurements.measurement import (
    EACH_RECORD,
    Context,
    Measurement,
    PlannedMeasurement,
    expect,
)
from sourdine.tables.privacy import Privacy
from sourdine.tables.quality.private import Quality, quality_share
from sourdine.tables.query import Query, columns_of, with_expressions
from sourdine.tables.statistics import Statistic
from sourdine.tables.statistics.base import Single
from sourdine.tables.statistics.partitions import Partitions

if TYPE_CHECKING:
    from sourdine.tables.forecast import Forecast


DECLARATIONS, CHECKED = "the declarations", "were checked against the data, which is not private"


def _about(query: Query) -> Iterator[str]:
    """The columns of a query's statistics."""
    return (name for each in query.ask for name in each.about)


def _by(tree: Expression, name: str) -> str:
    """How a column with a name of its own is computed."""
    return "" if tree.label == name else f" as {tree.text}"


def _otherwise(tree: Expression) -> str:
    """A note where CASE counts what is missing under its last value."""
    if any(isinstance(each, Case) and each.otherwise is not None for each in walk(tree)):
        return " Where a condition of CASE is missing, ELSE holds."
    return ""


@dataclass(frozen=True, kw_only=True)
class ReleasePlan(Viewable):
    """Queries on a declared table under one guarantee.

    With `quality`, a small part of the budget tells how many records do not fit what is declared of the
    columns. `checked` says that somebody read, outside any guarantee, how well the data fits the
    declarations.
    `near` says that the records can be brought here; on a cluster they stay where they are.

    >>> schema = Schema.read({"sex": {"type": "category", "keys": ["f", "m"]}})
    >>> query = Query.read({"name": "people", "ask": ["count"], "by": ["sex"]})
    >>> plan = ReleasePlan(schema=schema, queries=(query,), privacy=Privacy(epsilon=1))
    >>> for line in plan.lines:
    ...     print(line.measurement.label, line.mechanism, line.share)
    count Laplace(scale=Fraction(20, 19), granularity=None) 19/20
    data quality Laplace(scale=Fraction(20, 1), granularity=None) 1/20
    """

    schema: Schema
    queries: tuple[Query, ...]
    privacy: Privacy
    unit: PrivacyUnit = EACH_RECORD
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
                how = either('people.sql("SELECT ...", name="by region")', 'name = "by region"')
                raise InvalidParameter(
                    f"Two queries are called '{name}'. Give each its own name"
                    + (f", as in {how}." if name == "sql" else ".")
                )
        object.__setattr__(self, "schema", with_expressions(self.schema, self.queries))
        for query in self.queries:
            query.check(self.schema)
        chooses = False
        for measured, _ in self._parts:
            check_groups(measured.known_groups(self.schema), f"The query '{measured.scope.query}'")
            if measured.scope.open:
                self._check_delta(measured)
                chooses = True
        if self.privacy.delta is not None and self.privacy.selection_delta is None:
            half = self.privacy.delta / 2 if chooses else 0.0
            object.__setattr__(self, "privacy", replace(self.privacy, selection_delta=half))

    def _check_delta(self, measured: Measurement) -> None:
        """Refuse to choose keys without a delta: a key that one unit alone has must be let through rarely."""
        if self.privacy.delta is None or self.privacy.selection_delta == 0:
            raise InvalidParameter(
                f"The query '{measured.scope.query}' needs the {measured.label}, which are chosen privately. "
                "That takes a small delta, the chance that a key is shown which one "
                f"{self.unit.name} alone has. Declare one, such as {setting('delta', 1e-6)}, or declare the "
                "keys."
            )

    @cached_property
    def _parts(self) -> list[tuple[Measurement, Fraction]]:
        """Every measurement of every query, with its share of the query's weight."""
        return [
            (measured, share * query.share)
            for query in self.queries
            for measured, share in query.measurements(self.schema)
        ]

    @cached_property
    def _selections(self) -> int:
        """How many choices of keys there are."""
        return len({measured.scope.selection for measured, _ in self._parts if measured.scope.open})

    @cached_property
    def _choices(self) -> dict[tuple[object, ...], tuple[Partitions, Fraction]]:
        """The choices of keys, each once, with their shares of the budget."""
        selections: dict[tuple[object, ...], tuple[Partitions, Fraction]] = {}
        for measured, share in self._parts:
            if isinstance(measured, Partitions):
                first, before = selections.setdefault(measured.scope.selection, (measured, Fraction(0)))
                selections[measured.scope.selection] = first, before + share / self._weight
        return selections

    def context(self, measured: Measurement | None = None) -> Context:
        """What is declared beside the queries, for a measurement or for all."""
        return Context(
            schema=self.schema,
            unit=self.unit,
            neighbours=self.neighbours,
            privacy=self.privacy,
            confidence=self.confidence,
            near=self.near,
            size=None if measured is None else self.per_group(measured),
            delta=Fraction(self.privacy.selection_delta or 0) / max(1, self._selections),
        )

    @cached_property
    def _weight(self) -> Fraction:
        """What the weights of queries are divided by, so that they share what data quality leaves."""
        share_of_quality = Fraction(0) if self._quality is None else self._quality.share
        return sum((query.share for query in self.queries), Fraction(0)) / (1 - share_of_quality)

    @cached_property
    def _quality(self) -> PlannedMeasurement | None:
        """The line that tells how many records do not fit; it is the last, so no other draw depends on it."""
        if not self.quality:
            return None
        measured, squared = Quality(columns=columns_of(self.queries, self.schema)), self.privacy.squared
        share = quality_share(
            measured.distance(self.schema, self.unit, self.neighbours, squared),
            self.privacy.total,
            squared=squared,
            cells=len(all_cells(self.schema, measured.columns)),
            confidence=self.confidence,
            size=self.size,
        )
        return measured.line(self.context(), share)

    @cached_property
    def lines(self) -> tuple[PlannedMeasurement, ...]:
        """Every measurement with its noise; their shares add up to 1."""
        planned = [
            measured.line(self.context(measured), share / self._weight)
            for measured, share in self._parts
            if measured.answer
        ]
        return (*self.choices, *planned, *([] if self._quality is None else [self._quality]))

    @cached_property
    def choices(self) -> tuple[PlannedMeasurement, ...]:
        """The lines that choose keys which nobody declared."""
        return tuple(measured.line(self.context(), share) for measured, share in self._choices.values())

    def choice_for(self, measured: Measurement) -> PlannedMeasurement | None:
        """The line that chooses the keys of a measurement, where they are not declared."""
        if not measured.scope.open:
            return None
        wanted = measured.scope.selection
        return next(line for line in self.choices if line.measurement.scope.selection == wanted)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What was chosen by the declarations, and why."""
        lines = (line.note for line in self.lines if line.note)
        return (*self.caveats, *self._computed, *lines, *self._selected)

    @property
    def _selected(self) -> Iterator[str]:
        """What the intervals of answers are whose rows noise chooses."""
        for (query, label), intervals in self.intervals.items():
            if intervals.note:
                yield f"Noise chooses which rows of '{label}' in '{query}' are shown: {intervals.note}."

    @cached_property
    def _computed(self) -> tuple[str, ...]:
        """What computed columns lie within, which follows from what is declared."""
        names = (name for query in self.queries for name in (*query.by, *query.derived, *_about(query)))
        columns = {name: self.schema.columns[name] for name in names}
        trees = {name: each for name, each in columns.items() if isinstance(each, DERIVED)}
        return tuple(
            f"{name} is computed of each record{_by(each.expression, name)}: {kind_of(each).words}."
            f"{_otherwise(each.expression)}"
            for name, each in trees.items()
        )

    @cached_property
    def picked(self) -> dict[str, str]:
        """The methods that were left to be picked, and why each was taken."""
        return {
            f"method of {line.measurement.label} in {line.measurement.scope.query}": line.choice.words
            for line in self.lines
            if line.choice is not None and line.picked
        }

    @property
    def declared(self) -> dict[str, str]:
        """What was declared of the columns, each as one text, and the methods that were picked by it.

        A check of the declarations against the data is noted too.
        """
        columns = {name: column.model_dump_json() for name, column in self.schema.columns.items()}
        declarations = {"reading": " ".join(self.caveats)} if self.caveats else {}
        if any(getattr(column, "zone", None) for column in self.schema.columns.values()):
            declarations["time zones"] = f"IANA time zone database {zone_data_version()}"
        return declarations | self.picked | columns | ({DECLARATIONS: CHECKED} if self.checked else {})

    @property
    def remedy(self) -> str | None:
        """How a ledger of pure epsilon could pay, where the noise has none."""
        if not self.privacy.squared:
            return None
        if self.privacy.selection_delta:
            small = plain(self.privacy.delta or 0)
            return f"Leave all of the delta to the choice of keys with selection_delta = {small}, or pay"
        return "Leave out the delta, or pay"

    @cached_property
    def spends(self) -> tuple[Spend, ...]:
        """What the release costs, as one block."""
        return tuple(line.spend for line in self.lines)

    def readings(self) -> Iterator[tuple[Query, Statistic, PlannedMeasurement]]:
        """Every statistic of every query, and the line that it is read off."""
        for query in self.queries:
            wanted = query.wanted(self.schema)
            for each in query.ask:
                yield query, each, next(line for line in self.lines if line.answers(wanted[each.label]))

    @cached_property
    def intervals(self) -> dict[tuple[str, str], SelectedIntervals]:
        """The intervals of each answer whose rows HAVING or LIMIT choose, by its query and its label."""
        return {
            (query.name, label): intervals
            for query in self.queries
            if query.show.hides
            for label, intervals in self._intervals_of(query).items()
        }

    def _intervals_of(self, query: Query) -> dict[str, SelectedIntervals]:
        asked = {each.label: (each, line) for of, each, line in self.readings() if of is query}
        noises: dict[str, tuple[LinearNoise | None, float | None]] = {}
        for label, (each, line) in asked.items():
            if isinstance(each, Single) and isinstance(line.measurement, GroupSums):
                reading = line.measurement.expected(line, self.context(line.measurement))
                noise = each.estimate_of(reading, self.schema).noise
                noises[label] = noise, 0.0 if is_positive(each, self.schema) else None
        return selected_intervals(
            query.show,
            query.compare,
            rows=query.steps.chosen,
            lines={label: line for label, (_, line) in asked.items()},
            keys={label: self.most_rows(line.measurement) for label, (_, line) in asked.items()},
            noises=noises,
        )

    def most_rows(self, measured: Measurement) -> int:
        """The most groups that an answer may have, by declarations alone.

        Keys that are chosen are at most as many as the declared records have, and one for the others.
        """
        known = measured.known_groups(self.schema)
        if not measured.scope.open:
            return known
        most = MOST_GROUPS if self.size is None else min(MOST_GROUPS, self.size * self.unit.max_groups)
        return known * (most + 1)

    def confidence_of(self, query: Query, each: Statistic) -> float:
        """The confidence that each interval of an answer is read with: more where all hold at once."""
        intervals = self.intervals.get((query.name, each.label))
        return self.confidence if intervals is None else intervals.level(self.confidence)

    def selection_note(self, query: Query, each: Statistic) -> str:
        """What the intervals of an answer are, where noise chooses its rows; else empty."""
        intervals = self.intervals.get((query.name, each.label))
        return "" if intervals is None else intervals.note

    def per_group(self, measured: Measurement) -> float | None:
        """How many records a group of a query holds, were they spread evenly over the declared keys.

        Of keys that are chosen, the least that are shown: one record a unit at the threshold.
        """
        size: float | None = self.size
        if (chooses := self.choice_for(measured)) is not None:
            size = expect(PartitionThreshold, chooses.mechanism).threshold
        return None if size is None else size / measured.outer_groups(self.schema)

    @property
    def warning(self) -> str:
        """What is doubtful about the guarantee; empty if nothing is."""
        from sourdine.accounting.explain.words import doubts  # shown once, when a plan is

        epsilon, delta = float(self.privacy.epsilon), self.privacy.delta
        if delta is None or self.size is None:
            return " ".join(doubts(epsilon, delta))
        from sourdine.accounting.dpsgd.training import warn_of_delta

        large = warn_of_delta(delta, self.size, f"the declared size of {self.size:,}")
        return " ".join([*doubts(epsilon), *([large] if large else [])])

    def __repr__(self) -> str:
        names = ", ".join(repr(query.name) for query in self.queries[:8]) + (
            ", …" if self.queries[8:] else ""
        )
        return f"<ReleasePlan of {names} at {self.privacy.words}; nothing is spent>"

    def forecast(self) -> "tuple[Forecast, ...]":
        """The error of every answer before anything is spent, and from how many units on a key is shown."""
        from sourdine.tables.forecast import forecasts

        return tuple(forecasts(self))

    def chart(self, query: str | None = None) -> Figure:
        """The errors of a query by epsilon; with one query it need not be named."""
        return figure_of(self, query)
