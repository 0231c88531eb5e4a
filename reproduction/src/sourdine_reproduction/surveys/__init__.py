"""Randomized surveys, statistical queries and the price of not trusting a curator: published and measured."""

from sourdine_reproduction.registry import Experiment, Result, Settings, experiment
from sourdine_reproduction.surveys import coins, endpoint, proportions, queries

__all__ = ["Experiment", "surveys"]


@experiment("surveys", "Surveys with coins, statistical queries, and local against central error")
def surveys(settings: Settings) -> Result:
    """Three surveys, the theorem on statistical queries, the factor 1/n, and the end of uniform values."""
    return Result.of(
        *(each.reproduce(settings) for each in (coins, queries, proportions, endpoint)),
        name="surveys",
        title="Surveys with coins, and what they can tell",
        lead=(
            "Two of the sources teach randomized answers and leave questions open: whether the estimate is "
            "biased, how it varies, and which coins are best. A third states how many people statistical "
            "queries need, and what is lost when nobody is trusted with the data. Here are answers, measured."
        ),
    )
