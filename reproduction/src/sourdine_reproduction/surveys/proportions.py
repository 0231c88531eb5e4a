"""The factor 1/n: a share by local reports and by a trusted curator, at the same epsilon, in trials."""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.display import Figure
from sourdine.core.random.bits import Bits
from sourdine.local.surveys.design import CentralComparison, best_survey
from sourdine.report.charts.base import COLOURS, Axis, Band, Row, Series, draw_lines
from sourdine.report.view import Section, TextTable
from sourdine.testing import SeededBits
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

Floats = NDArray[np.float64]
_WIDE = 2.0  # standard errors that a band reaches to either side


class MeasuredNumber(NamedTuple):
    """A number from trials, with the ends of its band: two standard errors to either side."""

    value: float
    lower: float
    upper: float


def mean(trials: ArrayLike) -> MeasuredNumber:
    """The mean of trials."""
    array = np.asarray(trials, float)
    error = _WIDE * float(array.std(ddof=1)) / math.sqrt(len(array))
    return MeasuredNumber(float(array.mean()), float(array.mean()) - error, float(array.mean()) + error)


def root_mean_square(errors: ArrayLike) -> MeasuredNumber:
    """The root of the mean squared error, its band taken on the squares.

    >>> root_mean_square([3.0, -3.0])
    MeasuredNumber(value=3.0, lower=3.0, upper=3.0)
    """
    squares = mean(np.asarray(errors, float) ** 2)
    low = max(squares.lower, squares.value / 4)  # few trials with one far off may reach below 0
    return MeasuredNumber(math.sqrt(squares.value), math.sqrt(low), math.sqrt(squares.upper))


def frequency(hits: int, trials: int) -> MeasuredNumber:
    """How often something happened, with its score interval (Wilson 1927)."""
    share, square = hits / trials, _WIDE**2 / trials
    middle = (share + square / 2) / (1 + square)
    reach = math.sqrt(square * (share * (1 - share) + square / 4)) / (1 + square)
    return MeasuredNumber(share, max(0.0, middle - reach), min(1.0, middle + reach))


def uniform(size: int, bits: Bits) -> Floats:
    """So many values in [0, 1)."""
    return np.asarray((bits.words(size) >> np.uint64(11)) * 2.0**-53, np.float64)


EPSILON = Fraction(1)
SHARE = 0.5
JUDGED = 10_000  # the number of people that the verdict is about: enough trials, and not few people
SIZES = tuple(10**power for power in range(2, 8))
NAMED = {
    (True, True): "local, population",
    (True, False): "local, people at hand",
    (False, True): "central, population",
    (False, False): "central, people at hand",
}
_COLOURS = ("#E69F00", COLOURS[1], "#56B4E9", COLOURS[0])
_REPORTS = 20_000_000  # made for each size at most, which says how often a size is tried
_FEWER = 2_000_000
ShareErrors = dict[tuple[bool, bool, int], MeasuredNumber]


def reproduce(settings: Settings) -> ExperimentPart:
    """Errors measured for n from 10^2 to 10^7, beside their formulas."""
    sizes = SIZES[:-2] if settings.quick else SIZES
    bits = SeededBits(13)
    errors: ShareErrors = {}
    for people in settings.watch("local against central", sizes):
        trials = _trials(people, settings.quick)
        for population in (True, False):
            local, central = _errors(people, trials, population, bits)
            errors[True, population, people] = root_mean_square(local)
            errors[False, population, people] = root_mean_square(central)
    return ExperimentPart((_factor(errors, JUDGED), _laplace()), _section(errors, sizes, settings.quick))


def _trials(people: int, quick: bool) -> int:
    """How often a number of people is tried."""
    reports, most = (_FEWER, 400) if quick else (_REPORTS, 2000)
    return min(most, max(10, reports // people))


def _errors(people: int, trials: int, population: bool, bits: Bits) -> tuple[list[float], list[float]]:
    """How far both ways are off the share of the people, or of the population they are drawn from."""
    oracle, geometric = best_survey(EPSILON), CentralComparison(epsilon=EPSILON, people=people).mechanism
    truth = np.arange(people) < SHARE * people
    local, central = [], []
    for _ in range(trials):
        if population:
            truth = uniform(people, bits) < SHARE
        yeses = float(oracle.sample(truth, bits).mean())
        local.append(float(oracle.channel.estimate(yeses)) - SHARE)
        central.append(float(geometric.sample(int(truth.sum()), bits)) / people - SHARE)
    return local, central


def _formula(local: bool, population: bool, people: int) -> float:
    """The same by formula."""
    both = CentralComparison(epsilon=EPSILON, people=people, share=SHARE)
    if local:
        return math.sqrt(both.drawn_local if population else both.local)
    return math.sqrt(both.drawn_central if population else both.central)


def _factor(errors: ShareErrors, people: int) -> ClaimVerdict:
    measured = (errors[True, False, people].value / errors[False, False, people].value) ** 2
    both = CentralComparison(epsilon=EPSILON, people=10**9, share=SHARE)
    stays = both.drawn_local / both.drawn_central
    return judge(
        "notes.factor",
        finding=f"2/n exactly, whatever ε; measured 1/{measured:,.0f} at n = {people:,}",
        standing=Standing.REPRODUCED,
        why="About the people at hand, and in squared error: the error itself loses √(n/2). About a "
        f"population the loss never exceeds a constant, {stays:.2f} at ε = 1 and share 0.5, since drawing "
        "people varies both.",
    )


def _laplace() -> ClaimVerdict:
    people = 1000
    printed = 1 / people**2
    return judge(
        "notes.central",
        finding=f"2/(n²ε²); so {2 * printed:.1e} instead of {printed:.1e} at ε = 1 and n = {people:,}",
        standing=Standing.WRONG,
        why="Right in its order. Laplace noise of scale b has variance 2b², as the notes say on p. 8. The "
        "printed scale ε/(nΔ) is upside down, too: it is Δ/ε, where Δ = 1/n.",
    )


def _section(errors: ShareErrors, sizes: tuple[int, ...], quick: bool) -> Section:
    most = sizes[-1]
    both = CentralComparison(epsilon=EPSILON, people=most, share=SHARE)
    hand = math.sqrt(both.local / both.central)
    population = math.sqrt(both.drawn_local / both.drawn_central)
    rows = tuple(
        (name, people, _trials(people, quick), *each, _formula(local, population, people))
        for (local, population), name in NAMED.items()
        for people in sizes
        for each in (errors[local, population, people],)
    )
    return Section(
        title="Local against central",
        paragraphs=(
            f"A share of {SHARE:g} at ε = {float(EPSILON):g}: once from everyone's own randomized answer, "
            "once from a count to which a curator adds geometric noise. What a curator gains depends on what "
            "is asked. About the people at hand, the noise is the only error. About a population, the people "
            "are drawn, and that error no curator takes away.",
        ),
        tables=(
            TextTable(
                name="shares",
                title="Root mean squared error of a share",
                columns=("what", "people", "trials", "measured", "lower", "upper", "by formula"),
                rows=rows,
                note="Lower and upper: two standard errors of the measurement.",
            ),
        ),
        figures=(
            Figure(
                title=f"With {most:,} people a curator is {hand:,.0f} times closer about those people, and "
                f"{population:.1f} times closer about the population",
                chart=_chart(errors),
                note="Measured; bands are two standard errors of the measurement to either side.",
            ),
        ),
    )


def _chart(errors: ShareErrors) -> dict[str, object]:
    rows: list[Row] = [
        {
            "what": NAMED[local, population],
            "people": people,
            "error": each.value,
            "lower": each.lower,
            "upper": each.upper,
        }
        for (local, population, people), each in errors.items()
    ]
    return dict(
        draw_lines(
            rows,
            x=Axis(field="people", title="people", log=True, form=",.0f"),
            y=Axis(field="error", title="root mean squared error of the share", log=True, form=".0e"),
            series=Series(field="what", names=tuple(NAMED.values()), colours=_COLOURS),
            band=Band(lower="lower", upper="upper"),
        )
    )
