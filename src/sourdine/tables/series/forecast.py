"""What each view of a series will be worth, in the measure of the data, beside the same budget otherwise."""

from dataclasses import dataclass

from sourdine.tables.series.answers import quantile, row_deviation
from sourdine.tables.series.choice import view_errors
from sourdine.tables.series.plan import SeriesPlan


@dataclass(frozen=True, kw_only=True)
class ViewForecast:
    """The error of a view with the plan's confidence: as planned, by independent periods, and paid anew.

    It is that of a typical period: the root mean square over the periods of the horizon.
    """

    query: str
    label: str
    view: str
    error: float
    independent: float
    anew: float


def forecast_errors(plan: SeriesPlan) -> tuple[ViewForecast, ...]:
    """One forecast for each line and view."""
    views, choice = plan.block.views, plan.choice
    forecasts = []
    for line in plan.lines:
        reach = quantile(line.mechanism, plan.confidence) * line.step
        own = view_errors(line.mechanism.matrix, views, row_deviation(line.mechanism) * reach)
        for place, view in enumerate(views):
            ratio = own[place] / choice.errors[place] if choice.errors[place] else 0.0
            forecasts.append(
                ViewForecast(
                    query=line.query,
                    label=line.label,
                    view=view.label,
                    error=own[place],
                    independent=choice.independent[place] * ratio,
                    anew=choice.anew[place] * ratio,
                )
            )
    return tuple(forecasts)
