"""The fifth step: what epsilon buys. Errors of every answer, noise on a made-up table, and odds."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sourdine.accounting.explain import explain_guarantee, sentences
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted
from sourdine.core.text.notation import in_files
from sourdine.studio.desk import Desk, Sheet
from sourdine.studio.review import Message
from sourdine.tables import Forecast, ReleasePlan
from sourdine.tables.forecast import advice, forecasts, quality_forecast

SMALLEST, LARGEST = 0.01, 20.0  # of the slider
_TENFOLD = 120  # steps of the slider, so that 0.1, 1 and 10 are among them
_STEPS = round(_TENFOLD * math.log10(LARGEST / SMALLEST))


def budget_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The forecast at the declared epsilon."""
    specification = sheet.review.specification
    if specification is None:
        left = (
            (step, sheet.review.of(step)) for step in ("table", "people", "columns", "questions", "budget")
        )
        return {"ready": False, "left": [(step, _left(messages)) for step, messages in left if messages]}
    plan = specification.plan()
    return {
        "ready": True,
        "position": position_of(float(plan.privacy.epsilon)),
        "steps": _STEPS,
        "targets": [(query.name, each.label) for query in plan.queries for each in query.ask],
        **forecast_view(plan),
    }


def _left(messages: Sequence[Message]) -> str:
    """What a step still lacks: its first mistake, or how many fields wait."""
    wrong = [each.words for each in messages if not each.blank]
    return wrong[0] if wrong else f"{counted(len(messages), 'field')} to fill in."


def position_of(epsilon: float) -> int:
    """Where the slider stands: equal steps are equal factors."""
    return round(_TENFOLD * math.log10(min(max(epsilon, SMALLEST), LARGEST) / SMALLEST))


def epsilon_at(position: float) -> float:
    """The epsilon of a place of the slider, in two digits.

    >>> epsilon_at(position_of(1.0)), epsilon_at(0)
    (1.0, 0.01)
    """
    exact = SMALLEST * 10 ** (min(max(position, 0), _STEPS) / _TENFOLD)
    return float(f"{exact:.2g}")


def at_epsilon(sheet: Sheet, epsilon: float) -> ReleasePlan:
    """The plan of a specification at another epsilon."""
    specification = sheet.review.specification
    if specification is None:
        raise InvalidParameter("Fill in the steps before this one first.")
    if not 0 < epsilon <= 1 << 20:
        raise InvalidParameter("Epsilon must be above 0.")
    return specification.plan(Fraction(repr(epsilon)))


@in_files()
def forecast_view(plan: ReleasePlan) -> dict[str, Any]:
    """The errors of every answer, and what the epsilon means; no record is read."""
    last = quality_forecast(plan)
    rows = [*forecasts(plan), *([last] if last else [])]
    explanation = explain_guarantee(
        plan.privacy.epsilon, plan.privacy.delta or 0, unit=plan.unit.name, neighbours=plan.neighbours
    )
    return {
        "epsilon": float(plan.privacy.epsilon),
        "rows": [_row(each) for each in rows],
        "unknown": plan.size is None and any(each.note.startswith("declare") for each in rows),
        "confidence": f"{100 * plan.confidence:g}",
        "odds": sentences(explanation),
        "words": plan.privacy.words,
        "warning": plan.warning,
        "advice": advice(plan),
    }


def _row(each: Forecast) -> dict[str, str]:
    return {
        "query": each.query,
        "statistic": each.statistic,
        "error": each.words,
        "share": f"{100 * float(each.share):.3g} %",
        "noise": each.noise,
        "note": each.note,
    }
