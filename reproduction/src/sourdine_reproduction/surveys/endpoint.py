"""The end b of uniform values: the source's four ways, as it writes them and as they can be done."""

from fractions import Fraction

import numpy as np

from sourdine.core.display import Figure
from sourdine.core.random.bits import Bits
from sourdine.report.charts.base import GREY, Axis, Band, Row, Series, draw_lines
from sourdine.report.view import Cell, Section, TextTable
from sourdine.testing import SeededBits
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing
from sourdine_reproduction.surveys.endpoint_methods import (
    CentralEndpoint,
    EndpointMethod,
    LocalEndpoint,
    NoisyMaximum,
    PlainEndpoint,
    QueriedEndpoint,
)
from sourdine_reproduction.surveys.proportions import MeasuredNumber, root_mean_square, uniform

BOUND = 100
END = 10.0
EPSILON = Fraction(1)
SIZES = (100, 1000, 10_000, 100_000)
JUDGED = 10_000  # the number of values that verdicts are about
METHODS: dict[str, EndpointMethod] = {
    "plain, no privacy": PlainEndpoint(bound=Fraction(BOUND)),
    "central, high quantile": CentralEndpoint(bound=Fraction(BOUND), epsilon=EPSILON, cells=1 << 17),
    "local, thresholds": QueriedEndpoint(bound=Fraction(BOUND), epsilon=EPSILON),
    "local, twice the mean": LocalEndpoint(bound=Fraction(BOUND), epsilon=EPSILON),
    "central, noisy maximum": NoisyMaximum(bound=Fraction(BOUND), epsilon=EPSILON),
}
PLAIN, CENTRAL, QUERIED, TWICE, NOISY = METHODS
_COLOURS = (GREY, "#0072B2", "#009E73", "#D55E00", "#56B4E9")
_LARGEST = "local, noisy maximum"
EndpointErrors = dict[tuple[str, int], tuple[MeasuredNumber, float]]


def reproduce(settings: Settings) -> ExperimentPart:
    """Errors by number of values, for every way."""
    trials = 12 if settings.quick else 200
    sizes = SIZES[1:3] if settings.quick else SIZES
    bits = SeededBits(17)
    cases = [(name, people) for people in sizes for name in METHODS]
    errors: EndpointErrors = {
        (name, people): _errors(METHODS[name], people, trials, bits)
        for name, people in settings.watch("the end of uniform values", cases)
    }
    largest = {people: _largest(people, trials, bits) for people in sizes}
    return ExperimentPart(_verdicts(errors, largest[JUDGED]), _section(errors, largest, trials))


def _errors(method: EndpointMethod, people: int, trials: int, bits: Bits) -> tuple[MeasuredNumber, float]:
    """The error of fresh estimates, and how often their 95 % intervals hold the end."""
    estimates = [method.estimate(END * uniform(people, bits), bits) for _ in range(trials)]
    coverage = np.mean([each.lower <= END <= each.upper for each in estimates])
    return root_mean_square([each.value - END for each in estimates]), float(coverage)


def _largest(people: int, trials: int, bits: Bits) -> MeasuredNumber:
    """The error of the largest of values that everyone added noise to, as the source has it."""
    noise = METHODS[NOISY]
    assert isinstance(noise, NoisyMaximum)
    errors = [
        float(noise.mechanism.sample(END * uniform(people, bits), bits).max()) - END for _ in range(trials)
    ]
    return root_mean_square(errors)


def _verdicts(errors: EndpointErrors, largest: MeasuredNumber) -> tuple[ClaimVerdict, ...]:
    error = {name: errors[name, JUDGED][0].value for name in METHODS}
    exact = METHODS[PLAIN].deviation(END, JUDGED)
    return (
        judge(
            "notes.end.plain",
            finding=f"max (n + 1)/n, without bias: off by {error[PLAIN]:.2g} for b = {END:g}, n = {JUDGED:,}",
            standing=Standing.REPRODUCED,
            why=f"The maximum itself is always too small. The formula says b/√(n(n + 2)) = {exact:.2g}.",
        ),
        judge(
            "notes.end.central",
            finding=f"off by {error[NOISY]:.2g} however many values, where b at most {BOUND} is declared and "
            f"ε = 1; a high quantile by {error[CENTRAL]:.2g}",
            standing=Standing.LOOSE,
            why="Private, and of no use: one value can move the maximum over the whole declared range, so "
            "its noise never shrinks. The rank of a quantile moves by one.",
        ),
        judge(
            "notes.end.local",
            finding=f"off by {largest.value:,.0f}; twice a mean by {error[TWICE]:.2g}, thresholds by "
            f"{error[QUERIED]:.2g}",
            standing=Standing.LOOSE,
            why="Private, and of no use: the largest of n Laplace noises grows like ln n: more people make "
            "it worse. Means do not.",
        ),
        judge(
            "notes.end.queries",
            finding="log₂(B/b) + 2 queries, within 1.5 τ b",
            standing=Standing.REPRODUCED,
            why="Halving finds the size of b; one more threshold just below it gives b itself.",
        ),
    )


def _section(errors: EndpointErrors, largest: dict[int, MeasuredNumber], trials: int) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (name, people, error.value, error.lower, error.upper, METHODS[name].deviation(END, people), coverage)
        for (name, people), (error, coverage) in sorted(
            errors.items(), key=lambda item: (list(METHODS).index(item[0][0]), item[0][1])
        )
    ]
    rows += [
        (_LARGEST, people, each.value, each.lower, each.upper, None, None) for people, each in largest.items()
    ]
    near, far = (errors[name, JUDGED][0].value for name in (QUERIED, TWICE))
    central = errors[CENTRAL, JUDGED][0].value
    return Section(
        title="The end of uniform values",
        paragraphs=(
            f"Values are uniform on [0, {END:g}]; that their end is at most {BOUND} is declared, and what is "
            f"asked is the end. {trials} fresh samples for every number of values, ε = {float(EPSILON):g}.",
            "A curator's high quantile is off by about 7 b/n and more for smaller ε, which is as fast as the "
            "plain maximum. Local reports are off by about 1/√n: twice the mean in units of the declared "
            "bound, thresholds in units of b itself, once there are enough people for the search.",
        ),
        tables=(
            TextTable(
                name="ends",
                title="Root mean squared error of the end",
                columns=("way", "values", "error", "lower", "upper", "forecast", "intervals that hold"),
                rows=tuple(rows),
                note="Lower and upper: two standard errors of the measurement. Intervals are made for 95 %.",
            ),
        ),
        figures=(
            Figure(
                title=f"From {JUDGED:,} values a curator finds the end within {central:.2g}; local "
                f"thresholds within {near:.2g}, twice the local mean within {far:.2g}",
                chart=_chart(errors),
                note=f"The end is {END:g}. Bands are two standard errors of the measurement to either side.",
            ),
        ),
    )


def _chart(errors: EndpointErrors) -> dict[str, object]:
    rows: list[Row] = [
        {"way": name, "people": people, "error": error.value, "lower": error.lower, "upper": error.upper}
        for (name, people), (error, _) in errors.items()
    ]
    return dict(
        draw_lines(
            rows,
            x=Axis(field="people", title="values", log=True, form=",.0f"),
            y=Axis(field="error", title="root mean squared error, in units of the values", log=True),
            series=Series(field="way", names=tuple(METHODS), colours=_COLOURS),
            band=Band(lower="lower", upper="upper"),
        )
    )
