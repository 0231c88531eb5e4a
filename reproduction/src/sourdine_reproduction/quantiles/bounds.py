"""Figure 2: the bounds on the mean error against n, with rho = 1 / sqrt(n)."""

import math

import numpy as np

from sourdine.core.display import Figure
from sourdine.report.charts.base import Axis, Row, Series, Slider, draw_lines
from sourdine.report.view import Section, TextTable
from sourdine.tables.quantiles.theorems import Stated, histogram_error, inverse_error, least_size
from sourdine_reproduction.quantiles.measure import read_pairs
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

EPSILONS = (0.25, 0.5, 1.0)
SIZES = tuple(round(10**exponent) for exponent in np.arange(3, 5.51, 0.125).tolist())
_END = 8000  # where the figure ends
_CLOSE = 1e-4  # between a curve and its formula
DECILE = 1  # the one that the source drew, by its numbers
_COLOURS = {
    "histogram, published": "#E69F00",
    "histogram, corrected": "#D55E00",
    "inverse sensitivity, published": "#56B4E9",
    "inverse sensitivity, corrected": "#0072B2",
}


def both(size: int, epsilon: float) -> dict[str, Stated[float]]:
    """The two methods' bounds."""
    return {
        "histogram": histogram_error(size, epsilon, decile=DECILE),
        "inverse sensitivity": inverse_error(size, epsilon, rho=1 / math.sqrt(size)),
    }


def reproduce(settings: Settings) -> ExperimentPart:
    """The bounds as published and as corrected, and the published curve beside the published formula."""
    rows: list[Row] = []
    for epsilon in EPSILONS:
        for size in SIZES:
            for name, stated in both(size, epsilon).items():
                sides = (("published", stated.published), ("corrected", stated.corrected))
                rows += [
                    {"bound": f"{name}, {kind}", "epsilon": epsilon, "n": size, "error": min(value, 1.0)}
                    for kind, value in sides
                ]
    table = TextTable(
        name="bounds",
        title="Bounds on the mean distance from the first decile of uniform values, ρ = 1/√n",
        columns=("ε", "n", *_COLOURS),
        rows=tuple(
            (
                epsilon,
                size,
                *(side for stated in both(size, epsilon).values() for side in _sides(stated)),
            )
            for epsilon in EPSILONS
            for size in SIZES[::4]
        ),
    )
    names, least = tuple(_COLOURS), f"{least_size(1.0).corrected:,}"
    chart = draw_lines(
        rows,
        x=Axis(field="n", title="number of values", log=True, form="~s"),
        y=Axis(field="error", title="bound on the mean error, in parts of the range", log=True),
        series=Series(field="bound", names=names, colours=tuple(_COLOURS.values())),
        slider=Slider(field="epsilon", title="ε", values=EPSILONS, start=1.0),
    )
    section = Section(
        title="Figure 2: bounds",
        paragraphs=(
            "Corrected, the histogram's bound says something only for nine times as many values. Its answers "
            "are better than either bound by far: see the next figures.",
        ),
        tables=(table,),
        figures=(
            Figure(
                title=f"At ε = 1 the histogram's bound says nothing below n = {least}, and not below 905",
                chart=chart,
                note="Bounds above 1 are drawn at 1: no answer is farther away than the range is long.",
            ),
        ),
    )
    return ExperimentPart((_curves(settings), _meeting(), _sixty_four()), section)


def _sides(stated: Stated[float]) -> tuple[float, float]:
    return stated.published, stated.corrected


def _curves(settings: Settings) -> ClaimVerdict:
    """The published curve, point by point."""
    gap, points = 0.0, 0
    for epsilon in EPSILONS:
        curve = read_pairs(settings.data, f"fig2-histogram-bound-eps{epsilon:g}.dat")
        if curve is not None:
            ours = [
                histogram_error(int(n), epsilon, decile=DECILE, rounded=False).published
                for n in curve[0][::10]
            ]
            gap = max(gap, float(np.abs(np.array(ours) - curve[1][::10]).max()))
            points += len(ours)
    sample = histogram_error(7980, 1.0, decile=DECILE, rounded=False)
    measurement = f"{sample.published:.4f} at n = 7,980 and ε = 1, by the formula"
    if points:
        measurement += f"; {points} points of the curves agree to {gap:.1g}"
    return judge(
        "report.figure2",
        finding=measurement,
        standing=Standing.REPRODUCED if gap < _CLOSE else Standing.WRONG,
        why="Drawn for the first decile, and without the rounding of the printed theorem "
        f"({histogram_error(910, 1.0, decile=DECILE).published:.4f} instead of "
        f"{histogram_error(910, 1.0, decile=DECILE, rounded=False).published:.4f} at n = 910). Whether the "
        "formula is a bound is judged with the theorems.",
    )


def _meeting() -> ClaimVerdict:
    """Which bound is lower for large n: the one whose leading term is smaller."""
    least = {}
    for side in ("published", "corrected"):
        lower = [
            n
            for n in SIZES
            if getattr(both(n, 1.0)["histogram"], side) < getattr(both(n, 1.0)["inverse sensitivity"], side)
        ]
        least[side] = lower[0] if lower else None
    sides = {
        side: f"from about {float(f'{n:.2g}'):,.0f} on" if n else f"nowhere up to {SIZES[-1]:,}"
        for side, n in least.items()
    }
    inside = least["corrected"] is not None and least["corrected"] <= _END
    return judge(
        "report.meeting",
        finding=f"lower {sides['published']} by the printed formulas, {sides['corrected']} as corrected",
        standing=Standing.REPRODUCED if inside else Standing.WRONG,
        why="The order is as stated, but the printed bound has ε for ε/9. In the whole of the figure, up to "
        f"n = {_END:,}, the histogram's bound is the higher one once it is a bound. The source itself says "
        "that neither is tight, and that they compare guarantees, not methods.",
    )


def _sixty_four() -> ClaimVerdict:
    """The term with epsilon, at the printed choice of epsilon and rho, for one decile and for nine."""
    size = 1_000_000
    alone, shared = (
        4 / (size * epsilon / math.sqrt(size)) * math.exp(-math.sqrt(size) * epsilon / 2)
        for epsilon in (64 / math.sqrt(size), 64 / math.sqrt(size) / 9)
    )
    same = math.isclose(alone, math.exp(-32) / 16)
    return judge(
        "report.64",
        finding=f"{alone:.2g}, which is e⁻³²/16, for one decile; ε is {64 / math.sqrt(5000):.2f} at n = "
        f"5,000 and {64 / math.sqrt(size):.3f} at a million",
        standing=Standing.REPRODUCED if same else Standing.WRONG,
        why=f"For nine deciles that share ε the term is {shared:.2g} whatever n, more than all else in the "
        "bound once n is above 100,000.",
    )
