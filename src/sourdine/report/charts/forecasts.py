"""The errors of a plan by epsilon: what more of the budget would buy."""

import math
from dataclasses import replace
from fractions import Fraction

from sourdine.core.errors import InvalidParameter
from sourdine.core.figure import Figure, stack
from sourdine.report.charts.base import COLOURS, Axis, Row, Series, draw_lines
from sourdine.tables import Forecast, ReleasePlan

_STEPS = range(-6, 7)  # of a factor of the square root of two


def draw_forecasts(plan: ReleasePlan, query: str) -> Figure:
    """A line for each statistic of a query, those in the same measure together; a rule stands at the plan."""
    points = [(epsilon, each) for epsilon in _epsilons(plan) for each in _at(plan, epsilon, query)]
    known = [(epsilon, each) for epsilon, each in points if each.error]  # a logarithm has no place for 0
    if not known:
        raise InvalidParameter(
            f"The errors of '{query}' are not known beforehand, so there is nothing to draw. "
            "Declare the table's size, with size=."
        )
    here = float(plan.privacy.epsilon)
    figures = []
    for measure in dict.fromkeys(each.measure for _, each in known):
        lines = [(epsilon, each) for epsilon, each in known if each.measure == measure]
        figures.append(_figure(lines, measure, query, here))
    title = f"{query}: errors by epsilon"
    note = f"Dashed: the plan. Errors stay within this with {100 * plan.confidence:g} % confidence."
    chart = figures[0].chart if len(figures) == 1 else stack(figures)
    return Figure(title=title, chart=chart, note=note)


def _figure(lines: list[tuple[float, Forecast]], measure: str, query: str, here: float) -> Figure:
    names = tuple(dict.fromkeys(each.statistic for _, each in lines))[: len(COLOURS)]
    rows: list[Row] = [
        {"epsilon": epsilon, "error": each.error, "statistic": each.statistic}
        for epsilon, each in lines
        if each.statistic in names
    ]
    chart = draw_lines(
        rows,
        x=Axis(field="epsilon", title="epsilon", log=True),
        y=Axis(field="error", title=f"error, in {measure}" if measure else "error", log=True),
        series=Series(field="statistic", names=names),
        mark=here,
    )
    return Figure(title=", ".join(names), chart=chart)


def _epsilons(plan: ReleasePlan) -> list[float]:
    here = float(plan.privacy.epsilon)
    return [float(f"{here * math.sqrt(2) ** step:.4g}") for step in _STEPS]


def _at(plan: ReleasePlan, epsilon: float, query: str) -> list[Forecast]:
    """The forecasts of a query at another epsilon; none where there is no noise for it."""
    try:
        other = replace(plan, privacy=replace(plan.privacy, epsilon=Fraction(epsilon)))
        return [each for each in other.forecast() if each.query == query]
    except InvalidParameter:
        return []
