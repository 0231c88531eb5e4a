"""`sourdine local compare`: what it costs not to trust a curator."""

import math
from fractions import Fraction
from typing import Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, number

_COLUMNS = ("a share by", "among these people", "in their population")


def compare(
    *,
    epsilon: Annotated[str, typer.Option(help="What one person may reveal, such as 1.")],
    people: Annotated[int, typer.Option(help="How many people there are.")],
    share: Annotated[float, typer.Option(help="The share that is to be found.")] = 0.5,
    as_json: AsJson = False,
) -> None:
    """Standard errors of a share at one epsilon: by everybody's own noise, and by a trusted curator's.

    Example: sourdine local compare --epsilon 1 --people 10000
    """
    from sourdine.local import CentralComparison

    level = number("local compare", "epsilon", epsilon, Fraction(1, 1 << 20), 512)
    both = CentralComparison(epsilon=level, people=people, share=share)
    among, population = both.local / both.central, both.drawn_local / both.drawn_central
    if as_json:
        show.document(
            {
                "epsilon": float(level),
                "people": people,
                "share": share,
                "among_these_people": {"local": math.sqrt(both.local), "central": math.sqrt(both.central)},
                "in_their_population": {
                    "local": math.sqrt(both.drawn_local),
                    "central": math.sqrt(both.drawn_central),
                },
                "variance_ratio": {"among_these_people": among, "in_their_population": population},
            }
        )
        return
    show.table(
        _COLUMNS,
        [
            ("local reports", _points(both.local), _points(both.drawn_local)),
            ("a curator", _points(both.central), _points(both.drawn_central)),
        ],
        numbers=_COLUMNS[1:],
    )
    show.say(
        f"Standard errors for {people:,} people at epsilon {epsilon}, each way with the best noise there is "
        f"for a yes or a no. Among these people the variance of local reports is {among:,.4g} times a "
        "curator's, which is half the number of people at any epsilon. About the population they were drawn "
        f"from it is {population:.3g} times: so many times the people make up for not trusting anybody."
    )


def _points(variance: float) -> str:
    """A standard error in percentage points."""
    return f"{100 * math.sqrt(variance):.3g} %"
