"""The error of every answer before anything is spent, in the column's own unit."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from scipy.special import ndtri

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.frames.expression import span
from sourdine.frames.quality import all_cells
from sourdine.mechanisms import Gaussian, KeyNoise, KeyThreshold, Laplace, TopK
from sourdine.tables.aggregate import (
    Aggregate,
    Count,
    Mean,
    Normal,
    Proportion,
    Quantiles,
    Sum,
    Top,
    Variance,
)
from sourdine.tables.consistent.structure import reaches
from sourdine.tables.measurement import Kind
from sourdine.tables.plan import Line, Plan
from sourdine.tables.quality import USELESS, smallest_share
from sourdine.tables.quantiles.method import QuantileMethod
from sourdine.tables.quantiles.naive import NaiveLaplace
from sourdine.tables.reading import Estimate, Noisy, NoisyMoments
from sourdine.tables.spread import like_noises

_TOLERANCE = 1e-4
_LEAST = Fraction(1, 1 << 20)
_EVENLY = "if values are spread evenly between their bounds"
_AT_MOST = "at most, mostly far less; no interval"
_BY_SIZE = "declare the table's size"
_BY_ITSELF = "noise on the quantile itself; no interval"
_BY_RADIUS = "with a radius, or 2^41 steps, no bound holds where values are equal; no interval"


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What an aggregate's error stays within, with the plan's confidence; None where it is not known.

    `note` says under which assumption, or what is missing.
    """

    query: str
    statistic: str
    noise: str
    share: Fraction
    error: float | None
    measure: str
    note: str = ""

    @property
    def words(self) -> str:
        """The error as people read it, without its note."""
        return "unknown" if self.error is None else f"± {_short(self.error)} {self.measure}".rstrip()


def forecasts(plan: Plan) -> list[Forecast]:
    """One forecast for each aggregate of each query, after those for keys that are chosen."""
    found = [_of_keys(line, plan) for line in plan.lines if line.measurement.kind is Kind.KEYS]
    for query in plan.queries:
        for each in query.ask:
            line = plan.line_for(query, each)
            error, measure, note = _error(each, line, plan)
            found.append(
                Forecast(
                    query=query.name,
                    statistic=each.label,
                    noise=noise_words(line, plan),
                    share=line.share,
                    error=error,
                    measure=measure,
                    note=note,
                )
            )
    return found


def smallest_seen(plan: Plan) -> float | None:
    """The smallest share of the records that data quality would tell from none.

    It is not known without the table's size, nor where nothing is told.
    """
    if plan.size is None or not plan.quality:
        return None
    line = plan.lines[-1]
    cells = len(all_cells(plan.schema, line.measurement.columns))
    return smallest_share(line.mechanism, cells, plan.confidence, plan.size)


def advice(plan: Plan) -> str:
    """Whether data quality is not worth its part of the budget; empty if it is, or if that is not known."""
    seen = smallest_seen(plan)
    if seen is None or seen <= USELESS:
        return ""
    least = "nothing" if seen >= 1 else f"no share below {100 * seen:.2g} %"
    return (
        f"Data quality would see {least} of {plan.size:,} records at this budget, which is of little use. "
        "Leave it out with quality = false under [privacy], and its part goes to the answers."
    )


def quality_forecast(plan: Plan) -> Forecast | None:
    """How far each count of data quality may be off, and the smallest share of the records that it would see.

    None where the plan leaves data quality out.
    """
    if not plan.quality:
        return None
    line, seen = plan.lines[-1], smallest_seen(plan)
    note = "declare the table's size to know which share of it is seen"
    if seen is not None:
        note = f"sees from {100 * seen:.2g} % of the records on" if seen < 1 else "sees nothing at this size"
    return Forecast(
        query=line.measurement.query.name,
        statistic=line.measurement.label,
        noise=noise_words(line, plan),
        share=line.share,
        error=line.mechanism.error(plan.confidence),
        measure=plan.unit_of(line)[1],
        note=note,
    )


def _of_keys(line: Line, plan: Plan) -> Forecast:
    """From how many units on a key is shown; how many keys that will be is not known before."""
    mechanism, measure = line.mechanism, plan.unit_of(line)[1]
    assert isinstance(mechanism, KeyThreshold)
    many, sure = mechanism.threshold, math.ceil(mechanism.threshold + mechanism.error(plan.confidence))
    return Forecast(
        query=line.measurement.query.name,
        statistic=line.measurement.label,
        noise=noise_words(line, plan),
        share=line.share,
        error=mechanism.error(plan.confidence),
        measure=measure,
        note=f"a key is shown from about {many:,} {measure} on, and nearly surely from {sure:,}",
    )


def noise_words(line: Line, plan: Plan) -> str:
    """The noise as people read it, in the measure of what it is added to."""
    mechanism, (step, measure) = line.mechanism, plan.unit_of(line)
    if isinstance(mechanism, KeyThreshold):
        size = "sigma" if mechanism.noise is KeyNoise.GAUSSIAN else "scale"
        noise = f"{mechanism.noise}, {size} {float(mechanism.scale):.4g} {measure}"
        return f"{noise}, threshold {mechanism.threshold:,}"
    if isinstance(mechanism, TopK):
        return f"exponential mechanism, epsilon {float(mechanism.epsilon / mechanism.k):.4g} for each rank"
    if isinstance(mechanism, QuantileMethod):
        assert line.choice is not None
        return f"{line.choice.name} method, epsilon {float(mechanism.epsilon):.4g} for one value"
    if isinstance(mechanism, Gaussian):
        return f"Gaussian, sigma {float(mechanism.sigma) * step:.4g} {measure}"
    assert isinstance(mechanism, Laplace)
    return f"Laplace, scale {float(mechanism.scale) * step:.4g} {measure}"


def epsilon_for(plan: Plan, query: str, error: float, statistic: str | None = None) -> Plan:
    """The plan with the least epsilon, to four digits, that brings errors of a query within a target.

    All its errors, or that of one statistic; each in its own measure, which for a proportion is percentage
    points.
    """
    wanted = float(check.positive("a target", "error", error))
    asked = [each for each in plan.queries if each.name == query]
    if not asked:
        listed = ", ".join(f"'{each.name}'" for each in plan.queries)
        raise InvalidParameter(f"There is no query '{query}' to set a target for. The queries are {listed}.")
    labels = [each.label for each in asked[0].ask]
    if statistic is not None and statistic not in labels:
        listed = ", ".join(f"'{each}'" for each in labels)
        raise InvalidParameter(f"The query '{query}' has no statistic '{statistic}'. It asks for {listed}.")

    def at(epsilon: Fraction) -> Plan:
        return replace(plan, privacy=replace(plan.privacy, epsilon=epsilon))

    def worst(epsilon: Fraction) -> float:
        if not _possible(at(epsilon)):  # too small for the noise, or for the method of quantiles
            return math.inf
        found = largest_error(at(epsilon), query, statistic).error
        assert found is not None
        return found

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


def _possible(plan: Plan) -> bool:
    """Whether every measurement has noise at this budget."""
    try:
        return bool(plan.lines)
    except InvalidParameter:
        return False


def largest_error(plan: Plan, query: str, statistic: str | None = None) -> Forecast:
    """The forecast of a query whose error is the largest number, among all or for one statistic."""
    labels = [each.label for asked in plan.queries if asked.name == query for each in asked.ask]
    wanted = labels if statistic is None else [statistic]
    found = [each for each in forecasts(plan) if each.query == query and each.statistic in wanted]
    unknown = [each.note for each in found if each.error is None]
    if _BY_SIZE in unknown:
        raise InvalidParameter(
            f"The errors of '{query}' depend on how many records there are. Declare the table's size."
        )
    if unknown:
        raise InvalidParameter(f"Not all errors of '{query}' are known beforehand: {unknown[0]}.")
    return max(found, key=lambda each: each.error or 0.0)


def _error(each: Aggregate, line: Line, plan: Plan) -> tuple[float | None, str, str]:
    """Error, measure and note of one aggregate."""
    measured, schema = line.measurement, plan.schema
    if isinstance(each, Quantiles):
        return _rank_error(each, line, plan)
    if isinstance(each, Top):
        note = "a key this far above the last that is listed is not left out"
        return line.mechanism.error(plan.confidence), plan.unit_of(line)[1], note
    if measured.kind is Kind.MARGINS:
        reach = reaches(measured.structure(schema), line.mechanism, plan.confidence)
        return float(reach.max()), plan.measure(each), "at most, for numbers that add up; mostly less"
    if measured.degree == 0:
        step = float(measured.number(schema).step) if measured.kind is Kind.TOTAL else 1.0
        return line.mechanism.error(plan.confidence) * step, plan.measure(each), ""
    size = plan.per_group(measured)
    linear = isinstance(each, Count | Sum)
    if size is None and not linear:
        return None, "", _BY_SIZE
    width, degree = measured.width(schema), measured.degree
    # values spread evenly between the bounds give all Bernstein polynomials the same sum
    numbers = np.full((1, degree + 1), (size or 1.0) * float(width) ** degree / (degree + 1))
    noisy = Noisy(numbers=numbers, mechanism=line.mechanism, confidence=plan.confidence)
    moments = NoisyMoments(noisy=noisy, width=width, degree=degree)
    note = _EVENLY if not measured.query.by else f"{_EVENLY}, for groups of {size or 0:,.0f}"
    if isinstance(each, Proportion):
        groups = f", in groups of {size or 0:,.0f}" if measured.query.by else ""
        return 100 * _half(moments.mean()), "percentage points", f"for a share near one half{groups}"
    if isinstance(each, Count):
        return _half(moments.count()), plan.measure(each), ""
    column = measured.number(schema)
    wide = width * float(column.step)
    if isinstance(each, Sum):
        return _half(moments.total(span(column)[0])) * float(column.step), plan.measure(each), ""
    if isinstance(each, Mean):
        return _half(moments.mean()) * wide, plan.measure(each), note
    if isinstance(each, Variance):
        return _half(moments.variance()) * wide**2, plan.measure(each), note
    return _half(moments.deviation()) * wide, plan.measure(each), note


def _rank_error(each: Quantiles, line: Line, plan: Plan) -> tuple[float | None, str, str]:
    """In ranks, or in the column's unit under the law that was declared for the forecast."""
    column, mechanism = line.measurement.number(plan.schema), line.mechanism
    size, step = plan.per_group(line.measurement), float(column.step)
    if isinstance(mechanism, NaiveLaplace):
        return mechanism.error(plan.confidence) * step, each.column, _BY_ITSELF
    near, noted = 0.0, ""
    if isinstance(mechanism, QuantileMethod):
        bound = mechanism.ranks_off(plan.confidence)
        if bound is None:
            return None, "", _BY_RADIUS
        ranks, near, noted = dict.fromkeys(each.at, bound), mechanism.near * step, _AT_MOST
        if near:
            noted = f"at most, of a value within {_short(near)} of the answer; mostly far less; no interval"
    else:
        tree = line.measurement.tree(plan.schema)
        ranks = {level: _noisy_rank(tree.spread(level), line, plan) for level in each.at}
        # other places of the quantiles have more noises below them, and of wide bins only the edges are known
        noted = _EVENLY if each.at != (0.5,) else ""
        if tree.leaf > 1:
            within = f"within bins of {_short(tree.leaf * step)}"
            noted = f"{noted} and {within}" if noted else f"if values are spread evenly {within}"
    if each.law is None or size is None:
        return max(ranks.values()), "ranks", "; ".join(_stated(size, noted))
    law = _Law(each.law, float(column.lower), float(column.upper))
    error = near + max(law.off(level, off / size) for level, off in ranks.items())
    return error, each.column, "; ".join([f"if it is {law.name} as declared", *([noted] if noted else [])])


def _noisy_rank(many: float, line: Line, plan: Plan) -> float:
    """What so many noises on a count add up to at most."""
    return float(like_noises(line.mechanism, many, plan.confidence)) * math.sqrt(many)


def _stated(size: float | None, noted: str) -> list[str]:
    """The size that ranks are of, and what else is noted."""
    return [*([] if size is None else [f"of about {size:,.0f}"]), *([noted] if noted else [])]


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
            found = self.law.mean + self.law.deviation * float(ndtri(share))
            return min(max(found, self.lower), self.upper)
        return self.lower + share * (self.upper - self.lower)

    def off(self, level: float, share: float) -> float:
        """How far a quantile is from one whose level is off by so large a share, to either side."""
        here = self.quantile(level)
        return max(self.quantile(level + share) - here, here - self.quantile(level - share))


def _half(found: Estimate) -> float:
    return float((found.upper[0] - found.lower[0]) / 2)


def _short(error: float) -> str:
    return f"{error:,.0f}" if error >= 1000 else f"{error:.3g}"
