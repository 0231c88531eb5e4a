"""Where inverse sensitivity fails: values that many people share, the open question of the source's end."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core.display import Figure
from sourdine.core.random.bits import Bits
from sourdine.report.charts.base import Axis, Row
from sourdine.report.view import Section, TextTable
from sourdine.tables.quantiles import InverseSensitivity, QuantileMethod
from sourdine.tables.quantiles.api import Grid
from sourdine.testing import SeededBits
from sourdine_reproduction.quantiles.measure import LEVELS, draw_errors, method_for, rmse, uniform
from sourdine_reproduction.registry import ExperimentPart, Settings, answer, judge
from sourdine_reproduction.statements import Standing

SIZE = 3000
RANGE = 500_000.0
SHARED = RANGE / 4
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
_FINE = RANGE / 2**50  # a step so small that the grid is as good as continuous
_FLOOR = 0.1


def crowd(share: float, bits: Bits) -> NDArray[np.float64]:
    """Values around one that this share of people have; as many below it as above, evenly spread."""
    equal = round(share * SIZE)
    below = (SIZE - equal) // 2
    above = SIZE - equal - below
    spread = SHARED * uniform(below + above, bits)
    return np.sort(np.concatenate([spread[:below], np.full(equal, SHARED), SHARED + spread[below:]]))


def reproduce(settings: Settings) -> ExperimentPart:
    """Errors by the share of people with the same value."""
    bits = SeededBits(6)
    samples = 5 if settings.quick else 30
    coarse, fine = Grid.declared((0.0, RANGE), 1), Grid.declared((0.0, RANGE), _FINE)
    methods: dict[str, tuple[QuantileMethod, Grid]] = {
        "histogram": (method_for("histogram", coarse.places, 1.0, SIZE), coarse),
        "inverse sensitivity": (_inverse(fine, 0), fine),
        "smooth, ρ = 1": (_inverse(fine, 1), fine),
        "smooth, ρ = 100": (_inverse(fine, 100), fine),
        "joint": (method_for("joint", coarse.places, 1.0, SIZE), coarse),
    }
    streams = {name: SeededBits(60 + i) for i, name in enumerate(methods)}  # no method moves another's draws
    shares = SHARES[::2] if settings.quick else SHARES
    means: dict[tuple[str, float], float] = {}
    for share in settings.watch("repeated values", shares):
        sets = [crowd(share, bits) for _ in range(samples)]
        for name, (method, grid) in methods.items():
            errors = [float(rmse(method, values, grid, 1, streams[name])[0]) for values in sets]
            means[name, share] = float(np.mean(errors))
    table = TextTable(
        name="repeated",
        title="Error by the share of people with the same value",
        columns=("share", *methods),
        rows=tuple((share, *(_shown(means[name, share]) for name in methods)) for share in shares),
    )
    rows: list[Row] = [
        {"method": name, "share": 100 * share, "error": max(error, _FLOOR)}
        for (name, share), error in means.items()
    ]
    counts, lost, narrow, wide, best = (means[name, 1.0] for name in methods)
    verdicts = (
        judge(
            "report.uniform",
            finding=f"off by {lost:,.0f} of {RANGE:,.0f} when all are equal",
            standing=Standing.REPRODUCED if lost > 0.1 * RANGE else Standing.WRONG,
            why="Among the reals one value has no length, so the answer is uniform. On a grid of 2^50 steps, "
            "as here, it keeps one step: the middle deciles come out, and the outer ones are lost.",
        ),
        answer(
            "report.repeated",
            finding=f"{'yes' if counts < lost else 'no'}: off by {counts:,.0f} against {lost:,.0f}; smooth "
            f"{narrow:.2g} (ρ = 1), {wide:.2g} (ρ = 100); joint {best:.2g}",
            why="Where all values are equal. But a radius that fits the data is better still, and takes no "
            "longer (O(n) after a sort, where the source knows O(n² log n)), and joint answers need none.",
        ),
    )
    section = Section(
        title="Repeated values",
        paragraphs=(
            f"{SIZE:,} values between 0 and {RANGE:,.0f}, of which some share is the same; nine deciles at "
            "ε = 1. Plain inverse sensitivity gives a repeated value no room among the reals: what is "
            "farther away wins by its mere length. The smooth method gives it room within a radius ρ. The "
            f"histogram is off by about a cut, here {RANGE * np.log(SIZE) / 1.5 / SIZE:,.0f} wide. The joint "
            "mechanism sets equal values apart at random before it answers.",
        ),
        tables=(table,),
        figures=(
            Figure(
                title="When nearly all values are the same, inverse sensitivity misses them; a histogram "
                "comes near, a radius helps, joint answers hit",
                chart=draw_errors(
                    rows,
                    x=Axis(field="share", title="people with the same value, in %"),
                    y=Axis(field="error", title="root mean squared error", log=True, form=",.6~g"),
                ),
                note=f"Errors below {_FLOOR:g} are drawn there.",
            ),
        ),
    )
    return ExperimentPart(verdicts, section)


def _inverse(grid: Grid, rho: float) -> InverseSensitivity:
    return InverseSensitivity(
        epsilon=Fraction(1), levels=LEVELS, places=grid.places, radius=round(rho / grid.step)
    )


def _shown(error: float) -> int | float:
    """In whole dollars where cents do not matter."""
    return round(error) if error >= 100 else error
