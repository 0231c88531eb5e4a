"""Figure 5: deciles of salaries, against epsilon, on a register made to have the published deciles."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sourdine.core.display import Figure
from sourdine.report.view import Section
from sourdine.tables.quantiles.api import Grid
from sourdine.testing import SeededBits
from sourdine_reproduction.data import SALARY, read_numbers, salaries_in
from sourdine_reproduction.quantiles.measure import METHODS, ByEpsilon, method_for, rmse
from sourdine_reproduction.registry import ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

PUBLISHED = (34_902, 38_574, 41_848, 46_862, 56_844, 67_121, 75_254, 84_751, 99_637)
SIZE = 400_000
BOUNDS = (0.0, 1_000_000.0)
EPSILONS = (0.19, 0.25, 0.32, 0.4, 0.5, 0.6, 0.75, 0.9)
_NEGLIGIBLE = PUBLISHED[0] / 100
_TAIL = 4.0  # above the last decile, the share of people who earn x falls like x^-4


def register(size: int) -> NDArray[np.float64]:
    """Salaries in whole dollars, in rising order, whose deciles are the published ones exactly.

    Even between the deciles, from 1 up to the first, and falling like a power above the last.

    >>> [int(register(SIZE)[i * 40_000 - 1]) for i in (1, 5, 9)]
    [34902, 56844, 99637]
    """
    share = np.arange(1, size + 1) / size
    knots, values = np.arange(10) / 10, np.array([1.0, *PUBLISHED])
    inner = np.interp(share, knots, values)
    rest = np.maximum(1 - share, 0.5 / size)
    above = PUBLISHED[-1] * (0.1 / np.minimum(rest, 0.1)) ** (1 / _TAIL)
    return np.minimum(np.rint(np.where(share > 0.9, above, inner)), BOUNDS[1])


def salaries(data: Path | None) -> NDArray[np.float64]:
    """The salaries in a folder of downloaded data, in rising order and whole dollars; or the register."""
    path = salaries_in(data)
    if path is None:
        return register(SIZE)
    values = read_numbers(path, (SALARY,))[SALARY]
    return np.sort(np.clip(np.rint(values[~np.isnan(values)]), *BOUNDS))


_NOT_THE_SAME = (
    "The salaries of the source are not at hand: this is on a register made to have the published deciles. "
    "Real ones have gaps."
)
_MADE_UP = (
    "The salaries of the source are not at hand. This register has its nine published deciles, exactly, and "
    "is even between them."
)


def _deciles(ordered: NDArray[np.float64]) -> str:
    """How near the file is to that of the source."""
    deciles = [ordered[max(-(-len(ordered) * i // 10) - 1, 0)] for i in range(1, 10)]
    return (
        f"These are {len(ordered):,} salaries of the file that the source names. Their deciles are "
        f"{', '.join(f'{each:,.0f}' for each in deciles)}; those of the source were "
        f"{', '.join(f'{each:,}' for each in PUBLISHED)}."
    )


def reproduce(settings: Settings) -> ExperimentPart:
    """The figure, with answers to all three methods drawn anew for each epsilon."""
    bits = SeededBits(5)
    epsilons = EPSILONS[::3] if settings.quick else EPSILONS
    answers = dict.fromkeys(METHODS, 5 if settings.quick else 40) | {"joint": 3 if settings.quick else 15}
    ordered, grid = salaries(settings.data), Grid.declared(BOUNDS, 1)
    size, real = len(ordered), salaries_in(settings.data) is not None
    cases = [(name, epsilon) for epsilon in epsilons for name in METHODS]
    means = {
        (name, epsilon): float(
            rmse(method_for(name, grid.places, epsilon, size), ordered, grid, answers[name], bits).mean()
        )
        for name, epsilon in settings.watch("salaries", cases)
    }
    errors = ByEpsilon.beside(means, settings, "fig5-salaries")
    table = errors.table("salaries", f"{size:,} salaries: error in dollars by ε", 1.03)
    last = epsilons[-1]
    mine, theirs, best = (means[name, last] for name in ("histogram", "inverse sensitivity", "joint"))
    least, note = epsilons[0], "" if real else _NOT_THE_SAME
    ratios = [means["histogram", epsilon] / means["inverse sensitivity", epsilon] for epsilon in epsilons]
    low = [means[name, least] for name in ("histogram", "inverse sensitivity")]

    def standing(*, same: bool) -> Standing:
        """A made-up register decides nothing about the salaries of the source."""
        if not real:
            return Standing.UNTESTED
        return Standing.REPRODUCED if same else Standing.OTHERWISE

    verdicts = (
        judge(
            "report.salaries.twenty",
            finding=f"{theirs:.3g} and {mine:.3g}, joint {best:.3g}, at ε = {last:g} and n = {size:,}",
            standing=standing(same=max(mine, theirs) < _NEGLIGIBLE),
            why=f"Inverse sensitivity and histogram. {note}".strip(),
        ),
        judge(
            "report.salaries.closer",
            finding=f"{theirs:.3g} against {mine:.3g} at ε = {last:g}",
            standing=standing(same=theirs < mine),
            why=note,
        ),
        judge(
            "report.salaries.order",
            finding=f"a factor of {min(ratios):.1f} to {max(ratios):.1f}",
            standing=standing(same=max(ratios) < 10),
            why=note,
        ),
        judge(
            "report.salaries.small",
            finding=f"{low[0]:.0f} against {low[1]:.0f} at ε = {least:g}",
            standing=standing(same=low[0] < low[1]),
            why=f"Ours overturns it{'' if real else ' on these'}: the histogram is behind at every ε. The "
            f"published curve lies lower since its code took half of the noise. {note}".strip(),
        ),
    )
    section = Section(
        title="Figure 5: salaries",
        paragraphs=(
            (_deciles(ordered) if real else _MADE_UP)
            + " They are in whole dollars; the bounds are declared, 0 and 1,000,000. "
            "Errors are root mean squared errors over the deciles, in dollars; the published curves are "
            "moving averages over 200 runs.",
        ),
        tables=(table,),
        figures=(
            Figure(
                title=f"Joint answers about {size:,} salaries are off by {best:.2g} dollars at ε = {last:g}; "
                f"the histogram by {mine:.0f}",
                chart=errors.draw(", in dollars"),
            ),
        ),
    )
    return ExperimentPart(verdicts, section)
