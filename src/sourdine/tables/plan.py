"""What a release will do, cost and be worth, from declarations alone: no record is read."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.display import Figure, Viewable, figure_of
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import either, setting
from sourdine.frames.aggregate import MOST_GROUPS, check_groups
from sourdine.frames.expressions import Case, Expression, Matched, walk
from sourdine.frames.quality import all_cells
from sourdine.frames.schema import DERIVED, PrivacyUnit, Schema, kind_of
from sourdine.frames.times import zone_data_version
from sourdine.mechanisms import PartitionThreshold
from sourdine.tables.compare import is_positive
from sourdine.tables.composition import Composition, nearest
from sourdine.tables.intervals import LinearNoise
from sourdine.tables.measurement import (
    EACH_RECORD,
    Context,
    GroupSums,
    Measurement,
    PlannedMeasurement,
    expect,
)
from sourdine.tables.privacy import Allotment, NoiseChoice, Privacy
from sourdine.tables.quality import Quality, quality_share
from sourdine.tables.query import Query, columns_of, with_expressions
from sourdine.tables.row_selection import SelectedIntervals
from sourdine.tables.selected_rows import selected_intervals
from sourdine.tables.statistics import Statistic
from sourdine.tables.statistics.base import Single
from sourdine.tables.statistics.keys import Partitions

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


def _choices_among(lines: Sequence[PlannedMeasurement]) -> tuple[PlannedMeasurement, ...]:
    return tuple(line for line in lines if isinstance(line.measurement, Partitions))


def _choice_for(measured: Measurement, lines: Sequence[PlannedMeasurement]) -> PlannedMeasurement | None:
    """The line that chooses the keys of a measurement, where they are not declared."""
    if not measured.scope.open:
        return None
    wanted = measured.scope.selection
    return next(line for line in _choices_among(lines) if line.measurement.scope.selection == wanted)


@dataclass(frozen=True, kw_only=True)
class ReleasePlan(Viewable):
    """Queries on a declared table under one guarantee.

    With `quality`, a small part of the budget tells how many records do not fit what is declared of the
    columns. `checked` says that somebody read, outside any guarantee, how well the data fits the
    declarations.
    `near` says that the records can be brought here; on a cluster they stay where they are. `noise` says
    which noise is taken where a delta is declared: without it the nearest, for each measurement.

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
    noise: NoiseChoice | None = None

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
        if self.noise is not None:
            if self.noise not in tuple(NoiseChoice):
                must = f"be {', '.join(NoiseChoice)}, or left out"
                raise check.fail("a plan", "noise", must, self.noise)
            object.__setattr__(self, "noise", NoiseChoice(self.noise))
            if self.noise is NoiseChoice.GAUSSIAN and self.privacy.delta is None:
                raise InvalidParameter(
                    f"Gaussian noise needs a delta. Declare one, such as {setting('delta', 1e-6)}."
                )
        for measured, _ in self._parts:
            check_groups(measured.known_groups(self.schema), f"The query '{measured.scope.query}'")
            if measured.scope.open:
                self._check_delta(measured)

    def _check_delta(self, measured: Measurement) -> None:
        """Refuse to choose keys without a delta: a key that one unit alone has must be let through rarely."""
        if self.privacy.delta is None or self.privacy.selection_delta == 0:
            raise InvalidParameter(
                f"The query '{measured.scope.query}' needs the {measured.label}, which are chosen privately. "
                "That takes a small delta, the chance that a key is shown which one "
                f"{self.unit.name} alone has. Declare one, such as {setting('delta', 1e-6)}, or declare the "
                "keys."
            )

    @property
    def joins(self) -> tuple[str, ...]:
        """The public tables that some expression asks about: whether a record has a row in them."""
        trees = (tree for query in self.queries for tree in (*query.where, *query.derived.values()))
        return tuple(
            dict.fromkeys(each.join for tree in trees for each in walk(tree) if isinstance(each, Matched))
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
    def _choices(self) -> dict[tuple[object, ...], tuple[Partitions, Fraction]]:
        """The choices of keys, each once, with their shares of the budget."""
        selections: dict[tuple[object, ...], tuple[Partitions, Fraction]] = {}
        for measured, share in self._parts:
            if isinstance(measured, Partitions):
                first, before = selections.setdefault(measured.scope.selection, (measured, Fraction(0)))
                selections[measured.scope.selection] = first, before + share
        return selections

    def context(self, measured: Measurement | None = None) -> Context:
        """What is declared beside the queries, for a measurement or for all."""
        return Context(
            schema=self.schema,
            unit=self.unit,
            neighbours=self.neighbours,
            confidence=self.confidence,
            near=self.near,
            size=None if measured is None else self.per_group(measured),
        )

    @cached_property
    def _measured(self) -> tuple[Measurement, ...]:
        """What is measured: choices of keys first, and data quality last, so no other draw depends on it."""
        asked = [measured for measured, _ in self._parts if measured.answer]
        quality = [Quality(columns=columns_of(self.queries, self.schema))] if self.quality else []
        return (*(measured for measured, _ in self._choices.values()), *asked, *quality)

    def _shares(self, allotment: Allotment) -> tuple[Fraction, ...]:
        """The share of the budget of each measurement; they add up to 1.

        The weights of queries share what data quality leaves.
        """
        quality = []
        if self.quality:
            measured = self._measured[-1]
            share = quality_share(
                measured.distance(self.schema, self.unit, self.neighbours, allotment.squared),
                allotment.total,
                squared=allotment.squared,
                cells=len(all_cells(self.schema, expect(Quality, measured).columns)),
                confidence=self.confidence,
                size=self.size,
            )
            quality.append(share)
        weight = sum((query.share for query in self.queries), Fraction(0)) / (1 - sum(quality, Fraction(0)))
        asked = (share / weight for measured, share in self._parts if measured.answer)
        return (*(share / weight for _, share in self._choices.values()), *asked, *quality)

    def _lines(self, pure: bool, gaussian: Collection[int] | None = None) -> Composition:
        """Every measurement with its noise: all pure, all paid in rho, or those at some places in rho."""
        guarantee = self.privacy.divided(bool(self._choices), pure)
        by_epsilon = Allotment(total=guarantee.epsilon)
        by_rho = None if pure or gaussian is not None else guarantee.allot()
        shares = self._shares(by_rho or by_epsilon)
        if gaussian is not None:
            by_rho = guarantee.allot(sum((shares[place] for place in gaussian), Fraction(0)))
        delta = Fraction(guarantee.selection_delta or 0) / max(1, len(self._choices))
        context = replace(self.context(), delta=delta)
        lines: list[PlannedMeasurement] = []
        for place, (measured, share) in enumerate(zip(self._measured, shares, strict=True)):
            in_rho = by_rho is not None and (gaussian is None or place in gaussian)
            size = self._size_of(measured, lines) if measured.answer else None
            allotment = by_rho if in_rho and by_rho else by_epsilon
            lines.append(measured.line(replace(context, size=size), allotment, share))
        return Composition(guarantee=guarantee, lines=tuple(lines))

    @cached_property
    def _composition(self) -> Composition:
        """The noise that is nearest, of all that is admissible at the declared guarantee."""
        declared = self.privacy
        if declared.delta is None or declared.selection_delta == declared.delta:
            return self._lines(pure=True)
        if self.noise in (NoiseChoice.LAPLACE, NoiseChoice.GAUSSIAN):
            return self._lines(pure=self.noise is NoiseChoice.LAPLACE)
        return nearest(self._lines, self.confidence)

    @property
    def guarantee(self) -> Privacy:
        """The guarantee of its noise: the declared one, or one with less delta where pure noise is taken."""
        return self._composition.guarantee

    @cached_property
    def lines(self) -> tuple[PlannedMeasurement, ...]:
        """Every measurement with its noise; their shares add up to 1."""
        return self._composition.lines

    @property
    def noise_taken(self) -> NoiseChoice:
        """The noise of the lines: all pure, all paid in rho, or some of each."""
        return self._composition.noise

    @cached_property
    def choices(self) -> tuple[PlannedMeasurement, ...]:
        """The lines that choose keys which nobody declared."""
        return _choices_among(self.lines)

    def choice_for(self, measured: Measurement) -> PlannedMeasurement | None:
        """The line that chooses the keys of a measurement, where they are not declared."""
        return _choice_for(measured, self.lines)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What was chosen by the declarations, and why."""
        lines = (line.note for line in self.lines if line.note)
        return (*self.caveats, *self._computed, *self._noise_note, *lines, *self._selected)

    @property
    def _noise_note(self) -> Iterator[str]:
        """What is to be known of the noise where a delta is declared and not all of it is paid in rho."""
        if self.privacy.delta is None or self.noise_taken is NoiseChoice.GAUSSIAN:
            return
        if self.noise_taken is NoiseChoice.NEAREST:
            count = sum(line.squared for line in self.lines)
            yield (
                f"Of {len(self.lines):,} measurements, {count:,} have noise that is paid in rho, and the "
                "others have noise of a pure epsilon."
            )
        else:
            keys = ", which is spent on the choice of keys alone" if self._choices else ""
            yield f"The noise has a pure epsilon and takes nothing of the declared delta{keys}."

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
        if self.noise_taken is NoiseChoice.LAPLACE:
            return None
        return f"Take noise that has one, with {setting('noise', 'laplace')}, or pay"

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
        return self._size_of(measured, self.lines)

    def _size_of(self, measured: Measurement, lines: Sequence[PlannedMeasurement]) -> float | None:
        size: float | None = self.size
        if (chooses := _choice_for(measured, lines)) is not None:
            size = expect(PartitionThreshold, chooses.mechanism).threshold
        return None if size is None else size / measured.outer_groups(self.schema)

    @property
    def warning(self) -> str:
        """What is doubtful about the guarantee; empty if nothing is."""
        from sourdine.accounting.explain.words import doubts  # shown once, when a plan is

        epsilon, delta = float(self.guarantee.epsilon), self.guarantee.delta
        if delta is None or self.size is None:
            return " ".join(doubts(epsilon, delta))
        from sourdine.accounting.dpsgd.training import warn_of_delta

        large = warn_of_delta(delta, self.size, f"the declared size of {self.size:,}")
        return " ".join([*doubts(epsilon), *([large] if large else [])])

    def __repr__(self) -> str:
        names = ", ".join(repr(query.name) for query in self.queries[:8]) + (
            ", …" if self.queries[8:] else ""
        )
        return f"<ReleasePlan of {names} at {self.guarantee.words}; nothing is spent>"

    def forecast(self) -> "tuple[Forecast, ...]":
        """The error of every answer before anything is spent, and from how many units on a key is shown."""
        from sourdine.tables.forecast import forecasts

        return tuple(forecasts(self))

    def chart(self, query: str | None = None) -> Figure:
        """The errors of a query by epsilon; with one query it need not be named."""
        return figure_of(self, query)
