"""Randomized surveys, statistical queries and the price of not trusting a curator: published and measured."""

from sourdine.experiments.registry import Experiment, Result, Settings, experiment
from sourdine.experiments.surveys import coins, endpoint, proportions, queries

__all__ = ["Experiment", "surveys"]


@experiment("surveys", "Surveys with coins, statistical queries, and local against central error")
def surveys(settings: Settings) -> Result:
    """Three surveys, the theorem on statistical queries, the factor 1/n, and the end of uniform values."""
    steps = (coins.reproduce, queries.reproduce, proportions.reproduce, endpoint.reproduce)
    parts = [step(settings) for step in steps]
    return Result(
        name="surveys",
        title="Surveys with coins, and what they can tell",
        lead=(
            "Two of the sources teach randomized answers and leave questions open: whether the estimate is "
            "biased, how it varies, and which coins are best. A third states how many people statistical "
            "queries need, and what is lost when nobody is trusted with the data. Here are answers, measured."
        ),
        verdicts=tuple(verdict for part in parts for verdict in part.verdicts),
        sections=tuple(part.section for part in parts),
    )
