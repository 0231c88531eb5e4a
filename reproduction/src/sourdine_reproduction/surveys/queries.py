"""The theorem on statistical queries: how many people t queries need, and how to ask them."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core.display import Figure
from sourdine.local.surveys.design import Survey, coverage
from sourdine.local.surveys.statistical_query import Query, QueryPlan, best_each
from sourdine.report.charts.base import Axis, Band, Row, Series, draw_lines
from sourdine.report.view import Cell, Section, TextTable
from sourdine.testing import SeededBits
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing
from sourdine_reproduction.surveys.proportions import MeasuredNumber, frequency, uniform

QUERIES = 10
TOLERANCE = 0.05
EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(4))
WAYS = {1: "everyone one, at ε", QUERIES: "everyone ten, at ε/10"}
TIMES = (0.5, 1, 2, 3, 4, 6, 8, 10, 14, 20)  # of the published number
MEANS = np.arange(1, QUERIES + 1) / (QUERIES + 1)


def reproduce(settings: Settings) -> ExperimentPart:
    """How often all answers are within tolerance, by number of people and by way of asking."""
    trials = 24 if settings.quick else 1000
    sizes = {epsilon: _sizes(epsilon) for epsilon in (EPSILONS[1:] if settings.quick else EPSILONS)}
    cases = [(epsilon, name) for epsilon, named in sizes.items() for name in named]
    errors = {
        (epsilon, name): _within(_plan(epsilon), sizes[epsilon][name], trials)
        for epsilon, name in settings.watch("statistical queries", cases)
    }
    return ExperimentPart((_verdict(sizes),), _section(settings, trials, sizes, errors))


def _plan(epsilon: Fraction, each: int = 1) -> QueryPlan:
    return QueryPlan(epsilon=epsilon, queries=QUERIES, tolerance=TOLERANCE, each=each)


def _sizes(epsilon: Fraction) -> dict[str, int]:
    plan = _plan(epsilon)
    assert plan.enough is not None  # this tolerance needs few enough people
    return {"published": plan.published, "exact": plan.enough, "surely": plan.surely}


def _thresholds() -> list[Query]:
    """Queries whose true means on uniform values are 1/11, ..., 10/11."""

    def below(end: float) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]]:
        return lambda values: values < end

    return [below(float(end)) for end in MEANS]


def _within(plan: QueryPlan, people: int, trials: int) -> tuple[MeasuredNumber, MeasuredNumber]:
    """How often one answer, and all of them, are within the tolerance, for people drawn anew each time."""
    bits, queries = SeededBits(people + plan.each), _thresholds()
    near = np.array(
        [
            np.abs(plan.answer(queries, uniform(people, bits), bits).value - MEANS) <= plan.tolerance
            for _ in range(trials)
        ]
    )
    return frequency(int(near.sum()), near.size), frequency(int(near.all(axis=1).sum()), trials)


def _exactly(plan: QueryPlan, people: int) -> tuple[float, float]:
    """The same by binomial probabilities, for groups that share nobody."""
    survey = Survey.of(plan.oracle)
    p, q = survey.channel
    near = coverage(survey.rate(MEANS), (p - q) * plan.tolerance, people // QUERIES)
    return float(near.mean()), float(near.prod())


def _verdict(sizes: dict[Fraction, dict[str, int]]) -> ClaimVerdict:
    one = sizes[Fraction(1)]
    single, together = (100 * share for share in _exactly(_plan(Fraction(1)), one["published"]))
    return judge(
        "notes.queries",
        finding=f"{one['exact']:,} for 95 %, {one['surely']:,} by Hoeffding",
        standing=Standing.WRONG if one["exact"] > 1.1 * one["published"] else Standing.REPRODUCED,
        why="The published number makes the standard error about τ, and larger for ε above 1: of single "
        f"answers {single:.0f} % are within τ, and all ten together in {together:.1f} % of cases. The "
        "notes name no probability of success; for any that is near 1 a factor ln(t/β) is missing.",
    )


def _section(
    settings: Settings,
    trials: int,
    sizes: dict[Fraction, dict[str, int]],
    errors: dict[tuple[Fraction, str], tuple[MeasuredNumber, MeasuredNumber]],
) -> Section:
    rows, curve = _curve(settings, trials)
    one = sizes[Fraction(1)]
    _, together = _exactly(_plan(Fraction(1)), one["published"])
    most = _least_gain()
    return Section(
        title="Statistical queries",
        paragraphs=(
            "A statistical query asks for the mean of a function over a population, within a tolerance τ. A "
            "group of people answers each query with one bit by everyone. The queries here are the shares of "
            f"uniform values below {QUERIES} thresholds; the people are drawn anew in each of {trials:,} "
            "trials.",
            "Everyone may answer one query at ε, or several that were fixed beforehand at a part of ε each. "
            "Small ε are better not split: the variance of a report grows like 1/ε², and the number of "
            "reports only like the number of parts.",
        ),
        tables=(_table(sizes, errors), rows),
        figures=(
            Figure(
                title=f"The published {one['published']:,} people bring all ten answers within τ in "
                f"{100 * together:.1f} % of cases; it takes {one['exact']:,} for 95 %",
                chart=curve,
                note=f"ε = 1, τ = {TOLERANCE}. Measured, with two standard errors to either side; the rule "
                "stands at the published number.",
            ),
            Figure(
                title=f"Up to ε = {most:g} everyone had best answer one query, later about ε/2.2 of them",
                chart=_ways(),
                note=f"By formula, for {one['exact']:,} people and queries with mean 1/2; drawing included.",
            ),
        ),
    )


def _table(
    sizes: dict[Fraction, dict[str, int]],
    errors: dict[tuple[Fraction, str], tuple[MeasuredNumber, MeasuredNumber]],
) -> TextTable:
    rows: list[tuple[Cell, ...]] = []
    for epsilon, named in sizes.items():
        for name, people in named.items():
            single, together = errors[epsilon, name]
            error = _plan(epsilon).deviation(people) / TOLERANCE
            words = f"{100 * together.lower:.1f} to {100 * together.upper:.1f} %"
            exact = (f"{100 * share:.1f} %" for share in _exactly(_plan(epsilon), people))
            measured = (f"{100 * single.value:.1f} %", f"{100 * together.value:.1f} %", words)
            rows.append((float(epsilon), name, people, error, *exact, *measured))
    return TextTable(
        name="queries",
        title=f"{QUERIES} queries within {TOLERANCE}: people, and how often it comes true",
        columns=(
            "ε",
            "by",
            "people",
            "standard error / τ",
            "one answer",
            "all ten",
            "one, measured",
            "all ten, measured",
            "band",
        ),
        rows=tuple(rows),
        note="The numbers of people by exact probabilities and surely are for 95 % of all ten at once, "
        "whatever the means are. The band is two standard errors of the measurement to either side.",
    )


def _curve(settings: Settings, trials: int) -> tuple[TextTable, dict[str, object]]:
    """How often all ten are within tolerance, against the number of people."""
    times = TIMES[::3] if settings.quick else TIMES
    cases = [(each, int(count * _plan(Fraction(1)).published)) for each in WAYS for count in times]
    rows: list[Row] = []
    for each, people in settings.watch("ways of asking", cases):
        fewer = max(24, trials // (3 * each))  # everyone makes that many reports
        _, together = _within(_plan(Fraction(1), each), people, fewer)
        figures = {"all": together.value, "lower": together.lower, "upper": together.upper}
        rows.append({"way": WAYS[each], "people": people, **figures})
    chart = draw_lines(
        rows,
        x=Axis(field="people", title="people asked", log=True, form=",.0f"),
        y=Axis(field="all", title="trials with all ten answers within τ", form=".0%"),
        series=Series(field="way", names=tuple(WAYS.values())),
        band=Band(lower="lower", upper="upper"),
        mark=_plan(Fraction(1)).published,
    )
    table = TextTable(
        name="ways",
        title="How often all ten answers are within τ, at ε = 1",
        columns=("way", "people", "share of trials", "lower", "upper"),
        rows=tuple(tuple(row.values()) for row in rows),
    )
    return table, dict(chart)


def _ways() -> dict[str, object]:
    names = {1: "one", 2: "two", 5: "five", QUERIES: "all ten"}
    people = _sizes(Fraction(1))["exact"]
    rows: list[Row] = [
        {
            "each": names[each],
            "epsilon": float(epsilon),
            "error": _plan(Fraction(float(epsilon)), each).deviation(people),
        }
        for each in names
        for epsilon in np.geomspace(0.25, 32, 22)
    ]
    return dict(
        draw_lines(
            rows,
            x=Axis(field="epsilon", title="ε of a person", log=True, ticks=(0.25, 0.5, 1, 2, 4, 8, 16, 32)),
            y=Axis(field="error", title="standard error of an answer (share)", log=True),
            series=Series(field="each", names=tuple(names.values())),
        )
    )


def _least_gain() -> float:
    """The largest epsilon, to a tenth, up to which everyone should answer one query."""
    return next(e / 10 for e in range(10, 100) if best_each(Fraction(e + 1, 10), QUERIES) > 1)
