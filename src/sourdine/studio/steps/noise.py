"""Noise on a made-up table: one answer with noise beside none, drawn anew wherever the slider stands.

The made-up table is counted once. Another epsilon changes the noise alone, so a move of the slider draws it.
"""

import math
import threading
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from sourdine.core.errors import SourdineError
from sourdine.core.format import plain
from sourdine.core.randomness.bits import SYSTEM
from sourdine.frames.mock import mock_source
from sourdine.frames.source import Source
from sourdine.tables import Answer, ReleasePlan, rehearse
from sourdine.tables.comparison.show import EVERYTHING
from sourdine.tables.release import computing
from sourdine.tables.scans import exact_of
from sourdine.tables.statistics import BY_KIND

_MOST_BARS = 24
_BELOW, _ABOVE = 0.15, 0.5  # of what is seen without noise: so much room is left on its two sides
_WITHOUT = Fraction(1 << 10)  # an epsilon whose noise nobody sees


@dataclass(frozen=True)
class NoiseBar:
    """One group of a made-up answer: without noise, with noise, and its interval, as parts of the width."""

    label: str
    exact: float
    noisy: float
    lower: float
    upper: float
    words: str


@dataclass
class MockTable:
    """The made-up table of some questions, what was counted in it, and its answers without noise."""

    plan: ReleasePlan
    source: Source
    exact: tuple[Answer, ...]
    drawn: tuple[int, ...]
    counted: list[tuple[object, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, plan: ReleasePlan) -> "MockTable":
        """The table of a plan, and which of its answers have intervals."""
        noisy, exact = rehearse(plan).values.each, rehearse(_without_noise(plan)).values.each
        drawn = [
            number
            for number, each in enumerate(noisy)
            if each.kind in BY_KIND and each.bounded and len(exact[number].keys) == len(each.keys)
        ]
        source = computing(plan, mock_source(plan.schema, plan.unit, plan.size))
        return cls(plan, source, tuple(exact), tuple(drawn))

    def serves(self, plan: ReleasePlan) -> bool:
        """Whether a plan differs by its budget alone."""
        one, other = self.plan, plan
        return (one.queries, one.schema, one.unit, one.size, one.neighbours) == (
            other.queries,
            other.schema,
            other.unit,
            other.size,
            other.neighbours,
        )

    def draw(self, plan: ReleasePlan, number: int) -> Answer:
        """An answer of a plan with new noise."""
        wanted = self.exact[number]
        for query, statistic, line in plan.readings():
            if (query.name, statistic.label) != (wanted.query, wanted.statistic):
                continue
            if line.measurement.scope.open or query.compare or query.show != EVERYTHING:
                break  # which keys there are is chosen first, and answers are computed of answers
            with self.lock:
                part = next((part for known, part in self.counted if known == line.measurement), None)
                if part is None:
                    (part,) = exact_of([line], plan, self.source, SYSTEM)
                    self.counted.append((line.measurement, part))
            context = plan.context()
            reading = line.measurement.read(part, line, context, SYSTEM)
            return statistic.answer(reading, line.measurement, context)
        return rehearse(plan).values.each[number]


_NEWEST: list[MockTable] = []  # of the specification that somebody looks at


def noise_view(plan: ReleasePlan, place: int = -1) -> dict[str, Any]:
    """One answer of a made-up table, with noise beside none."""
    table = next((each for each in _NEWEST if each.serves(plan)), None)
    if table is None:
        table = MockTable.of(plan)
        _NEWEST[:] = [table]
    if not table.drawn:
        return {"bars": [], "choices": []}
    several = [number for number in table.drawn if len(table.exact[number].keys) > 1]
    chosen = place if place in table.drawn else (several or table.drawn)[0]
    exact, noisy = table.exact[chosen], table.draw(plan, chosen)
    bars, least, most = _bars(noisy, exact) if noisy.bounded else ([], 0.0, 0.0)
    return {
        "bars": bars,
        "least": plain(least),
        "most": plain(most),
        "choices": [
            (number, f"{table.exact[number].query}: {table.exact[number].statistic}", number == chosen)
            for number in table.drawn
        ],
        "title": f"{exact.query}: {exact.statistic}",
        "measure": exact.measure,
        "more": max(0, len(exact.keys) - _MOST_BARS),
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
    """The groups of an answer, and the ends of the axis they are drawn on, which no noise moves."""
    rows = list(zip(noisy.rows(), exact.rows(), strict=False))[:_MOST_BARS]
    ends = [0.0, *(other[1] for _, other in rows if math.isfinite(other[1]))]
    width = (max(ends) - min(ends)) or 1.0
    least, most = _round(min(ends) - _BELOW * width), _round(max(ends) + _ABOVE * width)
    if exact.span is not None and exact.span[0] <= 0 <= exact.span[1]:  # such as shares, none below 0
        least, most = max(least, exact.span[0]), min(most, exact.span[1])
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


def _round(number: float) -> float:
    """An end of the axis as people write it."""
    return float(f"{number:.2g}")


def _part(number: float, least: float, most: float) -> float:
    """Where a number stands, from 0 to 1000; what lies beyond stands at the edge."""
    if not math.isfinite(number):
        return 0.0 if number < 0 else 1000.0
    return round(min(max(1000 * (number - least) / (most - least), 0.0), 1000.0), 1)
