"""The error of every answer before anything is spent, in the column's own unit."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import either
from sourdine.frames.quality import all_cells
from sourdine.mechanisms import PartitionThreshold
from sourdine.tables.measurement import PlannedMeasurement, expect
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.quality import USELESS, smallest_share
from sourdine.tables.query import columns_of
from sourdine.tables.statistics.base import BY_SIZE, short

_TOLERANCE = 1e-4
_LEAST = Fraction(1, 1 << 20)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a statistic's error stays within, with the plan's confidence; None where it is not known.

    `note` says under which assumption, or what is missing.
    """

    query: str
    statistic: str
    noise: str
    share: Fraction
    error: float | None
    measure: str
    note: str = ""

    def __repr__(self) -> str:
        note = f", {self.note}" if self.note else ""
        return f"<Forecast {self.query!r}, {self.statistic!r}: {self.words}{note}>"

    @property
    def words(self) -> str:
        """The error as people read it, without its note."""
        return "unknown" if self.error is None else f"± {short(self.error)} {self.measure}".rstrip()


def forecasts(plan: ReleasePlan) -> list[Forecast]:
    """One forecast for each statistic of each query, after those for keys that are chosen."""
    lines = [_of_keys(line, plan) for line in plan.choices]
    for query, each, line in plan.readings():
        context = replace(plan.context(line.measurement), confidence=plan.confidence_of(query, each))
        expected = each.forecast(line, context)
        lines.append(
            Forecast(
                query=query.name,
                statistic=each.label,
                noise=noise_words(line, plan),
                share=line.share,
                error=expected.error,
                measure=expected.measure,
                note="; ".join(filter(None, (expected.note, plan.selection_note(query, each)))),
            )
        )
    return lines


def smallest_seen(plan: ReleasePlan) -> float | None:
    """The smallest share of the records that data quality would tell from none.

    It is not known without the table's size, nor where nothing is told.
    """
    if plan.size is None or not plan.quality:
        return None
    line = plan.lines[-1]
    cells = len(all_cells(plan.schema, columns_of(plan.queries, plan.schema)))
    return smallest_share(line.mechanism, cells, plan.confidence, plan.size)


def advice(plan: ReleasePlan) -> str:
    """Whether data quality is not worth its part of the budget; empty if it is, or if that is not known."""
    smallest = smallest_seen(plan)
    if smallest is None or smallest <= USELESS:
        return ""
    least = "nothing" if smallest >= 1 else f"no share below {100 * smallest:.2g} %"
    return (
        f"Data quality would see {least} of {plan.size:,} records at this budget, which is of little use. "
        f"Leave it out with {either('quality=False', 'quality = false under [privacy]')}, and its part goes "
        "to the answers."
    )


def quality_forecast(plan: ReleasePlan) -> Forecast | None:
    """How far each count of data quality may be off, and the smallest share of the records that it would see.

    None where the plan leaves data quality out.
    """
    if not plan.quality:
        return None
    line, smallest = plan.lines[-1], smallest_seen(plan)
    note = "declare the table's size to know which share of it is seen"
    if smallest is not None:
        note = (
            f"sees from {100 * smallest:.2g} % of the records on"
            if smallest < 1
            else "sees nothing at this size"
        )
    return Forecast(
        query=line.measurement.scope.query,
        statistic=line.measurement.label,
        noise=noise_words(line, plan),
        share=line.share,
        error=line.mechanism.error(plan.confidence),
        measure=line.measurement.step(plan.schema, plan.unit)[1],
        note=note,
    )


def _of_keys(line: PlannedMeasurement, plan: ReleasePlan) -> Forecast:
    """From how many units on a key is shown; how many keys that will be is not known before."""
    mechanism = expect(PartitionThreshold, line.mechanism)
    measure = line.measurement.step(plan.schema, plan.unit)[1]
    many, sure = mechanism.threshold, math.ceil(mechanism.threshold + mechanism.error(plan.confidence))
    return Forecast(
        query=line.measurement.scope.query,
        statistic=line.measurement.label,
        noise=noise_words(line, plan),
        share=line.share,
        error=mechanism.error(plan.confidence),
        measure=measure,
        note=f"a key is shown from about {many:,} {measure} on, and nearly surely from {sure:,}",
    )


def noise_words(line: PlannedMeasurement, plan: ReleasePlan) -> str:
    """The noise as people read it, in the measure of what it is added to."""
    return line.measurement.noise_words(line, plan.context())


def epsilon_for(plan: ReleasePlan, query: str, error: float, statistic: str | None = None) -> ReleasePlan:
    """The plan with the least epsilon, to four digits, that brings errors of a query within a target.

    All its errors, or that of one statistic; each in its own measure, which for a proportion is percentage
    points.
    """
    wanted = float(check.positive("a target", "error", error))
    queries = [each for each in plan.queries if each.name == query]
    if not queries:
        listed = ", ".join(f"'{each.name}'" for each in plan.queries)
        raise InvalidParameter(f"There is no query '{query}' to set a target for. The queries are {listed}.")
    labels = [each.label for each in queries[0].ask]
    if statistic is not None and statistic not in labels:
        listed = ", ".join(f"'{each}'" for each in labels)
        raise InvalidParameter(f"The query '{query}' has no statistic '{statistic}'. It asks for {listed}.")

    def at(epsilon: Fraction) -> ReleasePlan:
        return replace(plan, privacy=replace(plan.privacy, epsilon=epsilon))

    def worst(epsilon: Fraction) -> float:
        if not _possible(at(epsilon)):  # too small for the noise, or for the method of quantiles
            return math.inf
        worst_error = largest_error(at(epsilon), query, statistic).error
        assert worst_error is not None
        return worst_error

    most = Fraction(1 << 10)
    while most > _LEAST and not _possible(at(most)):  # some methods take no large one
        most /= 2
    low, high = _LEAST, _LEAST
    # upwards, since with more epsilon another method may be taken, of which less is known beforehand
    while worst(high) > wanted:
        if high >= most:
            raise InvalidParameter(
                f"No epsilon up to {float(most):g} brings the error of '{query}' to {error:g}. "
                "Ask for a larger error."
            )
        low, high = high, min(2 * high, most)
    while high > low * Fraction(1 + _TOLERANCE):
        middle = Fraction(math.sqrt(float(low) * float(high)))
        low, high = (low, middle) if worst(middle) <= wanted else (middle, high)
    unit = Fraction(10) ** (math.floor(math.log10(float(high))) - 4)
    return at(math.ceil(high / unit) * unit)


def _possible(plan: ReleasePlan) -> bool:
    """Whether every measurement has noise at this budget."""
    try:
        return bool(plan.lines)
    except InvalidParameter:
        return False


def largest_error(plan: ReleasePlan, query: str, statistic: str | None = None) -> Forecast:
    """The forecast of a query whose error is the largest number, among all or for one statistic."""
    labels = [
        each.label for each_query in plan.queries if each_query.name == query for each in each_query.ask
    ]
    wanted = labels if statistic is None else [statistic]
    errors = [each for each in forecasts(plan) if each.query == query and each.statistic in wanted]
    unknown = [each.note for each in errors if each.error is None]
    if BY_SIZE in unknown:
        raise InvalidParameter(
            f"The errors of '{query}' depend on how many records there are. Declare the table's size."
        )
    if unknown:
        raise InvalidParameter(f"Not all errors of '{query}' are known beforehand: {unknown[0]}.")
    return max(errors, key=lambda each: each.error or 0.0)
