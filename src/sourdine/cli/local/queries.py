"""`sourdine local queries`: statistical queries, each answered by people who report one bit."""

import math
import operator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, lines_of, number
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sourdine.local import QueryPlan

_FAR = 1 << 60


def queries(
    values: Annotated[
        Path | None, typer.Argument(help="A number of each person, one per line. Without: only the plan.")
    ] = None,
    *,
    epsilon: Annotated[str, typer.Option(help="What all reports of one person may reveal, such as 1.")],
    above: Annotated[
        list[str] | None, typer.Option(help="Ask how many are above this number; may be given several times.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--queries", help="How many queries are planned, unless they are given.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="What each answer may be off by.")] = 0.05,
    confidence: Annotated[float, typer.Option(help="That all answers are within it.")] = 0.95,
    each: Annotated[
        int | None,
        typer.Option(help="How many queries a person answers, at so many parts of epsilon. Without: best."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How many people statistical queries need, and their answers by local reports of the people in a file.

    Everyone reports one bit to each query they are asked, in an order that is drawn. Queries are fixed
    beforehand; those that depend on earlier answers are asked in Python (LocalCrowd).

    Examples: sourdine local queries --epsilon 1 --queries 10 --tolerance 0.05 ·
    sourdine local queries ages.txt --epsilon 1 --above 18 --above 65
    """
    from sourdine.local import QueryPlan, best_each

    owner = "local queries"
    level = number(owner, "epsilon", epsilon, Fraction(1, 1 << 20), 512)
    edges = [float(number(owner, "above", text, -_FAR, _FAR)) for text in above or ()]
    if (count is None) == (not edges) or (values is not None and not edges):
        raise InvalidParameter(
            "Which queries? Give --above once for each, or their number with --queries for a plan alone."
        )
    many = len(edges) if count is None else check.integer(owner, "queries", count, 1, 1 << 20)
    per_person = best_each(level, many) if each is None else each
    plan = QueryPlan(epsilon=level, queries=many, tolerance=tolerance, confidence=confidence, each=per_person)
    document = {
        "epsilon": float(level),
        "queries": many,
        "tolerance": tolerance,
        "confidence": confidence,
        "each": per_person,
        "people": {"exact": plan.enough, "surely": plan.surely, "published": plan.published},
    }
    answers = None if values is None else _answers(plan, _numbers(values), edges)
    if as_json:
        show.document(document | ({} if answers is None else {"answers": answers}))
        return
    enough = f"{plan.enough:,}" if plan.enough is not None else f"at most {plan.surely:,}"
    show.say(
        f"{many:,} {'query' if many == 1 else 'queries'} within {plain(tolerance)}, all of them with "
        f"confidence {plain(confidence)}, at epsilon {epsilon} for each person: {enough} people by exact "
        f"probabilities, {plan.surely:,} by Hoeffding's inequality. Each person answers {per_person} of "
        f"them. The published t/(epsilon^2 tau^2) is {plan.published:,}, which makes a standard error of "
        f"{plan.deviation(max(plan.published, many)):.2g}."
    )
    if answers is not None:
        columns = ("above", "share", "interval")
        rows = [
            (plain(one["above"]), f"{one['share']:.4f}", f"{one['lower']:.4f} to {one['upper']:.4f}")
            for one in answers
        ]
        show.table(columns, rows, numbers=columns)
        show.say(
            f"Intervals of {plain(100 * confidence)} %, each for itself, about the population that these "
            f"people were drawn from. It cost each of them epsilon {epsilon}; asking again costs it again."
        )


def _numbers(path: Path) -> "NDArray[np.float64]":
    import numpy as np

    numbers = []
    for place, line in enumerate(lines_of(path), 1):
        try:
            value = float(line)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise InvalidParameter(
                f"Line {place} of {path} is no number. Everybody must be asked the same. Mend it, or take it "
                "out."
            )
        numbers.append(value)
    return np.array(numbers)


def _answers(plan: "QueryPlan", values: "NDArray[np.float64]", edges: list[float]) -> list[dict[str, float]]:
    from sourdine.core.random.bits import SYSTEM
    from sourdine.local.shuffle import permutation

    order = values[permutation(len(values), SYSTEM)]  # who is asked what must not depend on the file's order
    tests = [partial(operator.lt, edge) for edge in edges]
    answer = plan.answer(tests, order, confidence=plan.confidence)
    return [
        {"above": edge, "share": float(value), "lower": float(low), "upper": float(high)}
        for edge, value, low, high in zip(edges, answer.value, answer.lower, answer.upper, strict=True)
    ]
