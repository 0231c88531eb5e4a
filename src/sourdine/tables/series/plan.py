"""What a series will measure, cost and be worth: from declarations alone, before its first period."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import Any

from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours, root_above
from sourdine.core.errors import InvalidParameter
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.frames.times import Date, Datetime
from sourdine.mechanisms import CorrelatedGaussian, CorrelatedLaplace, CorrelatedNoise, Gaussian, Laplace
from sourdine.mechanisms.correlation import CorrelationMatrix, Participation
from sourdine.mechanisms.gaussian import LEAST_SIGMA
from sourdine.tables.measurement import GroupSums, RecordCounts, Scope, Total, UnitCounts, moved
from sourdine.tables.privacy import Privacy
from sourdine.tables.query import Query
from sourdine.tables.series.choice import MatrixChoice, choose_matrix
from sourdine.tables.series.declaration import SeriesBlock, SeriesCalendar
from sourdine.tables.series.keys import KeyChoice, choose_keys

_MOST_NOISE = 1 << 29  # steps of noise; more is drawn on a coarser grid
_TRIES = 60


@dataclass(frozen=True, kw_only=True)
class SeriesLine:
    """One thing that is measured in each period: its noise, and how far a unit moves it in one of them."""

    query: str
    label: str
    measurement: GroupSums
    mechanism: CorrelatedNoise
    distance: Distance
    share: Fraction
    step: float

    @property
    def spend(self) -> Spend:
        """What it costs for the whole horizon."""
        return Spend(mechanism=self.mechanism, distance=self.distance)

    def extension(self, periods: int) -> "tuple[SeriesLine, Spend]":
        """The same over more periods with the same noise, and what that costs beyond what was paid.

        Together they cost as much as the longer series does (docs/guarantees/series.md).
        """
        longer = replace(self.mechanism, periods=periods)
        amount = self.mechanism.moved_steps(self.distance)
        pattern = self.mechanism.participation
        if isinstance(self.mechanism, CorrelatedGaussian):
            more = longer.matrix.squared_length(pattern) - self.mechanism.matrix.squared_length(pattern)
        else:
            more = longer.matrix.length(pattern) - self.mechanism.matrix.length(pattern)
        return replace(self, mechanism=longer), self._steps_spend(amount * max(more, 0), 1)

    def repeat(self, rows: int) -> Spend:
        """What it costs to draw so many rows again that were shown and are lost."""
        reach = self.mechanism.matrix.row_reach(self.mechanism.participation)
        amount = self.mechanism.moved_steps(self.distance)
        gaussian = isinstance(self.mechanism, CorrelatedGaussian)
        return self._steps_spend(amount * (reach**2 if gaussian else reach), rows)

    def _steps_spend(self, amount: Fraction, count: int) -> Spend:
        """Noise of this size on whole numbers that move so far; the square of it in L2."""
        neighbours = self.distance.neighbours
        amount = max(amount, Fraction(1, 1 << 40))  # a distance is never 0
        if isinstance(self.mechanism, CorrelatedGaussian):
            distance = Distance.l2(square=amount, neighbours=neighbours)
            return Spend(mechanism=Gaussian(sigma=self.mechanism.unit_noise), distance=distance, count=count)
        distance = Distance.l1(amount, neighbours=neighbours)
        return Spend(mechanism=Laplace(scale=self.mechanism.unit_noise), distance=distance, count=count)


@dataclass(frozen=True, kw_only=True)
class SeriesPlan:
    """All that is fixed when a series starts. Nothing in it comes from the data."""

    schema: Schema
    queries: tuple[Query, ...]
    privacy: Privacy
    unit: PrivacyUnit
    neighbours: Neighbours
    block: SeriesBlock
    confidence: float = 0.95
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check.keep(self, confidence=check.confidence("a series", self.confidence))
        for query in self.queries:
            query.check(self.schema)
            if query.derived:
                raise InvalidParameter(
                    f"The query '{query.name}' of a series computes a column of its own. Declare it among "
                    "the columns, so that it stays the same for all periods."
                )
            if query.compare or query.show:
                raise InvalidParameter(
                    f"The query '{query.name}' of a series compares or picks answers. What a series tells is "
                    "declared as 'publish'. Leave out 'compare' and 'show'."
                )
            if len(self.schema.open(query.by)) > 1:
                raise InvalidParameter(
                    f"The query '{query.name}' groups by two columns whose keys nobody declared. In a series "
                    "one of them at most has its keys chosen privately. Declare those of the others."
                )
        self._share_delta()
        if self.unit.column is None and self.block.participation != Participation():
            raise InvalidParameter(
                "Where each record is a unit it counts in one period. To let units come again, name the "
                'column that tells them apart: column = "person_id".'
            )
        for name in (self.block.arrived, self.block.happened):
            if name is not None and not isinstance(self.schema.columns.get(name), Date | Datetime):
                raise InvalidParameter(
                    f"The series rests on the column '{name}', which is not declared as a date. Declare it: "
                    f'[columns.{name}] type = "date", first = 2026-01-01, last = 2026-12-31.'
                )
        self.check_days(self.block.calendar)
        self.lines, self.key_choices  # noqa: B018 (so that what cannot be planned is refused here)

    def check_days(self, calendar: SeriesCalendar) -> None:
        """Refuse periods in which no record could count, whatever arrives."""
        for name in (self.block.arrived, self.block.happened if self.block.late == "drop" else None):
            column = self.schema.columns.get(name or "")
            if not isinstance(column, Date | Datetime):
                continue
            first, last = (date(each.year, each.month, each.day) for each in (column.first, column.last))
            if calendar.end(1) < first or calendar.start(calendar.periods) > last:
                raise InvalidParameter(
                    f"Periods of the series lie outside of the days that the column '{name}' is declared "
                    f"for, {first} to {last}: records of other days are left out, and nothing would count. "
                    "Let its 'first' and 'last' hold the whole series, with room if it shall be extended."
                )

    @property
    def zone(self) -> str | None:
        """On whose clock records arrive, if it is declared."""
        column = self.schema.columns.get(self.block.arrived or "")
        return column.zone if isinstance(column, Date | Datetime) else None

    def _share_delta(self) -> None:
        """Half of delta pays for keys that are chosen privately, unless something else is declared."""
        if not any(self.schema.open(query.by) for query in self.queries):
            return
        if self.privacy.delta is None or self.privacy.selection_delta == 0:
            raise InvalidParameter(
                "Keys that nobody declared are chosen privately, which takes a small delta: the chance that "
                f"a key is shown which one {self.unit.name} alone has. Declare one, such as delta = 1e-6, or "
                "declare the keys."
            )
        if self.privacy.selection_delta is None:
            half = replace(self.privacy, selection_delta=self.privacy.delta / 2)
            object.__setattr__(self, "privacy", half)

    @cached_property
    def choice(self) -> MatrixChoice:
        """The correlation of all noise of the series, and why."""
        block = self.block
        return choose_matrix(
            block.periods,
            block.views,
            block.participation,
            squared=self.privacy.squared,
            extensible=block.extensible,
        )

    @cached_property
    def lines(self) -> tuple[SeriesLine, ...]:
        """What is measured, with the noise that its share of the budget allows."""
        whole = sum((query.share for query in self.queries), Fraction(0))
        return tuple(
            self._line(query.name, label, measurement, self._part(query) / whole)
            for query in self.queries
            for label, measurement in self._measures(query)
        )

    def _part(self, query: Query) -> Fraction:
        """What each thing that a query asks for has of its weight; a choice of keys counts as one more."""
        return query.share / (len(query.ask) + len(self.schema.open(query.by)))

    @cached_property
    def key_choices(self) -> tuple[KeyChoice, ...]:
        """How keys are chosen that nobody declared: once for each column, for all queries by it."""
        groups: dict[str, list[Query]] = {}
        for query in self.queries:
            for name in self.schema.open(query.by):
                groups.setdefault(name, []).append(query)
        whole = sum((query.share for query in self.queries), Fraction(0))
        delta = Fraction(self.privacy.selection_delta or 0) / max(len(groups), 1)
        choices = []
        for name, queries in groups.items():
            share = sum((self._part(query) for query in queries), Fraction(0)) / whole
            choices.append(
                choose_keys(
                    name,
                    tuple(self._scope(query) for query in queries),
                    schema=self.schema,
                    block=self.block,
                    unit=self.unit,
                    neighbours=self.neighbours,
                    budget={"rho" if self.privacy.squared else "epsilon": share * self.privacy.total},
                    delta=delta,
                    share=share,
                )
            )
        return tuple(choices)

    def _scope(self, query: Query) -> Scope:
        return Scope(query=query.name, by=query.by, where=query.where, open=self.schema.open(query.by))

    def _measures(self, query: Query) -> list[tuple[str, GroupSums]]:
        measures: list[tuple[str, GroupSums]] = []
        scope = self._scope(query)
        for each in query.ask:
            label, measurement = each.label, each.measurement(scope, self.schema)
            if not isinstance(measurement, RecordCounts | UnitCounts | Total):
                raise InvalidParameter(
                    f"The query '{query.name}' asks for the {label}, which does not add up over periods. A "
                    'series counts records ("count"), units ("units") and sums ({ sum = "pay" }). A mean is '
                    "a sum divided by a count: ask for both, and divide what is published."
                )
            measures.append((label, measurement))
        return measures

    def _line(self, query: str, label: str, measurement: GroupSums, share: Fraction) -> SeriesLine:
        distance = self._distance(measurement)
        mechanism = correlated_noise(
            self.choice.matrix,
            self.block.participation,
            distance,
            share * self.privacy.total,
            self.privacy.squared,
        )
        step = measurement.step(self.schema, self.unit)[0]
        return SeriesLine(
            query=query,
            label=label,
            measurement=measurement,
            mechanism=mechanism,
            distance=distance,
            share=share,
            step=step,
        )

    def _distance(self, measurement: GroupSums) -> Distance:
        """What a unit moves in one period, or, where a total of records is declared, in all of them."""
        squared, total = self.privacy.squared, self.block.total
        if total is None:
            return measurement.distance(self.schema, self.unit, self.neighbours, squared)
        summation = measurement.statistic(self.schema, self.unit)
        return moved(
            self.neighbours,
            squared,
            length=summation.reach * total,
            copies=1,
            each=summation.coordinates * total,
            signed=measurement.signed,
        )

    @property
    def spends(self) -> tuple[Spend, ...]:
        """The one charge for the whole horizon."""
        return (*(line.spend for line in self.lines), *(each.spend for each in self.key_choices))

    @property
    def declared(self) -> dict[str, str]:
        """All that the series rests on, as the ledger notes it."""
        reading = {"reading": " ".join(self.caveats)} if self.caveats else {}
        return {"series": declared_text(self)} | reading

    @property
    def remedy(self) -> str | None:
        """How a ledger of pure epsilon could pay, where the noise has none."""
        return "Leave out the delta, or pay" if self.privacy.squared else None

    @property
    def words(self) -> str:
        """What is planned, in a few sentences."""
        calendar, block = self.block.calendar, self.block
        return (
            f"{block.periods} periods by {block.period}, from {calendar.name(1)} to "
            f"{calendar.name(block.periods)}, paid once: {self.privacy.words} for each {self.unit.name}, who "
            f"counts {block.participation.words}. {self.choice.words(block.views)}"
            + "".join(f" {each.words(self.unit.name, block.period)}" for each in self.key_choices)
            + "".join(f" {each}" for each in self.caveats)
        )


def correlated_noise(
    matrix: CorrelationMatrix,
    participation: Participation,
    distance: Distance,
    budget: Fraction,
    squared: bool,
) -> CorrelatedNoise:
    """The least noise that costs at most so much rho, or epsilon, over all periods."""
    step: Fraction | None = None
    kind = CorrelatedGaussian if squared else CorrelatedLaplace
    length = matrix.squared_length(participation) if squared else matrix.length(participation)
    for _ in range(_TRIES):
        # a trial with any noise tells how far the rounded numbers move
        trial = kind.from_matrix(matrix, participation, (step or 1) * 1024, step)
        amount = trial.moved_steps(distance) if distance.coordinates or step is None else Fraction(0)
        size = root_above(amount * length / (2 * budget)) if squared else amount * length / budget
        if size <= _MOST_NOISE:
            least = LEAST_SIGMA if squared else Fraction(1, 1 << 30)
            return kind.from_matrix(matrix, participation, max(size, least) * (step or 1), step)
        step = (step or Fraction(1)) * 2
    raise InvalidParameter(
        "The budget is so small that the noise would drown the whole series. Ask for a larger epsilon, for "
        "fewer periods, or for units that count less often."
    )


def listed_queries(queries: Sequence[Query]) -> str:
    """The names of queries, for a ledger's line."""
    return ", ".join(query.name for query in queries)


def declared_text(plan: SeriesPlan) -> str:
    """All that a series rests on, as one text, but for keys: they may be added at the end of a list."""
    columns = {
        name: {field: value for field, value in column.model_dump(mode="json").items() if field != "keys"}
        for name, column in plan.schema.columns.items()
    }
    block = plan.block.model_dump(mode="json", exclude={"state"})
    content: dict[str, Any] = {
        "columns": columns,
        "queries": [query.model_dump(mode="json") for query in plan.queries],
        "privacy": {
            "epsilon": str(plan.privacy.epsilon),
            "delta": plan.privacy.delta,
            "unit": plan.unit.name,
            "column": plan.unit.column,
            "max_rows": plan.unit.max_rows,
            "max_groups": plan.unit.max_groups,
            "neighbours": str(plan.neighbours),
        },
        "series": block,
    }
    if plan.key_choices:  # series without them were started before there was such a word
        content["privacy"]["selection_delta"] = plan.privacy.selection_delta
    return json.dumps(content, sort_keys=True, ensure_ascii=False)
