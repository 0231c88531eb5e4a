"""The fifth step: what epsilon buys. Errors of every answer, noise on a made-up table, and odds."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sourdine.accounting.explain import explain_guarantee, sentences
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import plain
from sourdine.studio.desk import Desk, Sheet
from sourdine.tables import Answer, Forecast, ReleasePlan, rehearse
from sourdine.tables.forecast import advice, forecasts, quality_forecast
from sourdine.tables.statistics import BY_KIND

SMALLEST, LARGEST = 0.01, 20.0  # of the slider
_TENFOLD = 120  # steps of the slider, so that 0.1, 1 and 10 are among them
_STEPS = round(_TENFOLD * math.log10(LARGEST / SMALLEST))
_MOST_BARS = 24
_WITHOUT = Fraction(1 << 10)  # an epsilon whose noise nobody sees


def budget_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The forecast at the declared epsilon."""
    specification = sheet.review.specification
    if specification is None:
        return {"ready": False}
    plan = specification.plan()
    return {
        "ready": True,
        "position": position_of(float(plan.privacy.epsilon)),
        "steps": _STEPS,
        "targets": [(query.name, each.label) for query in plan.queries for each in query.ask],
        **forecast_view(plan),
    }


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


def forecast_view(plan: ReleasePlan) -> dict[str, Any]:
    """The errors of every answer, and what the epsilon means; no record is read."""
    last = quality_forecast(plan)
    explanation = explain_guarantee(
        plan.privacy.epsilon, plan.privacy.delta or 0, unit=plan.unit.name, neighbours=plan.neighbours
    )
    return {
        "epsilon": float(plan.privacy.epsilon),
        "rows": [_row(each) for each in [*forecasts(plan), *([last] if last else [])]],
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


@dataclass(frozen=True)
class NoiseBar:
    """One group of a made-up answer: without noise, with noise, and its interval, as parts of the width."""

    label: str
    exact: float
    noisy: float
    lower: float
    upper: float
    words: str


def noise_view(plan: ReleasePlan, place: int = -1) -> dict[str, Any]:
    """One answer of a made-up table, with noise beside none."""
    noisy, exact = rehearse(plan).values.each, rehearse(_without_noise(plan)).values.each
    drawn = [
        number
        for number, each in enumerate(noisy)
        if each.kind in BY_KIND and each.bounded and len(exact[number].keys) == len(each.keys)
    ]
    if not drawn:
        return {"bars": [], "choices": []}
    several = [number for number in drawn if len(noisy[number].keys) > 1]
    chosen = place if place in drawn else (several or drawn)[0]
    bars, least, most = _bars(noisy[chosen], exact[chosen])
    return {
        "bars": bars,
        "least": plain(float(f"{least:.4g}")),
        "most": plain(float(f"{most:.4g}")),
        "choices": [
            (number, f"{noisy[number].query}: {noisy[number].statistic}", number == chosen)
            for number in drawn
        ],
        "title": f"{noisy[chosen].query}: {noisy[chosen].statistic}",
        "measure": noisy[chosen].measure,
        "more": max(0, len(noisy[chosen].keys) - _MOST_BARS),
    }


def _without_noise(plan: ReleasePlan) -> ReleasePlan:
    """The same plan with so much epsilon that its noise cannot be seen."""
    epsilon = _WITHOUT
    while epsilon > 1:
        try:
            made = replace(plan, privacy=replace(plan.privacy, epsilon=epsilon))
            if made.lines:
                return made
        except SourdineError:
            pass
        epsilon /= 2
    return plan


def _bars(noisy: Answer, exact: Answer) -> tuple[list[NoiseBar], float, float]:
    """The groups of an answer, and the ends of the axis they are drawn on."""
    rows = list(zip(noisy.rows(), exact.rows(), strict=True))[:_MOST_BARS]
    ends = [number for one, other in rows for number in (*one[1:], other[1]) if math.isfinite(number)]
    least, most = min([0.0, *ends]), max([0.0, *ends])
    bars = [
        NoiseBar(
            label=", ".join(map(str, key)) or "all",
            exact=_part(other[1], least, most),
            noisy=_part(value, least, most),
            lower=_part(low, least, most),
            upper=_part(high, least, most),
            words=f"{plain(value)} ({plain(low)} to {plain(high)}); without noise about {plain(other[1])}",
        )
        for (key, value, low, high), other in rows
    ]
    return bars, least, most


def _part(number: float, least: float, most: float) -> float:
    if not math.isfinite(number):
        return 0.0 if number < 0 else 1000.0
    return round(1000 * (number - least) / ((most - least) or 1.0), 1)
