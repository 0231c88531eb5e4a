"""What has to be said otherwise: the price of a row, the staircase, bounds and labels."""

from fractions import Fraction

from sourdine.core.distance import Distance
from sourdine.local.cleaner import Method
from sourdine.mechanisms import Staircase
from sourdine.report.view import Section, TextTable
from sourdine_reproduction.cleaner.measure import uncalibrated
from sourdine_reproduction.cleaner.pima import FEATURES
from sourdine_reproduction.registry import ExperimentPart, answer, judge
from sourdine_reproduction.statements import Standing

_RANGE = 1000
_EPSILONS = tuple(map(Fraction, ("0.1", "1", "4", "10")))


def reproduce() -> ExperimentPart:
    """The claims about guarantees, which need no data."""
    levels = [(each, _level(each, Method.LAPLACE), _level(each, Method.STAIRCASE)) for each in _EPSILONS]
    _, laplace, staircase = levels[1]
    verdicts = (
        judge(
            "slides.laplace",
            finding=f"{laplace:g} exactly at ε = 1",
            standing=Standing.REPRODUCED,
            why="Over the whole declared range the normalisers cancel. With the table's own bounds it fails.",
        ),
        judge(
            "slides.staircase",
            finding=f"{_unbounded(1):g} exactly at ε = 1",
            standing=Standing.REPRODUCED,
            why="A change within the range crosses one step at most. In the printed density step j has the "
            "factor b^j where b^(j + 1) makes it add up to 1.",
        ),
        judge(
            "slides.staircase.bounded",
            finding=f"{staircase:.3f} at ε = 1",
            standing=Standing.WRONG,
            why="The slide before claims ε without bounds. In the code a step already takes all of ε, and "
            "what rejection leaves differs between inputs as well. The drop has to be made smaller until the "
            "exact worst ratio is ε.",
        ),
        answer(
            "slides.total",
            finding=f"{len(FEATURES) + 1}",
            why="One record has nine cells, and what they cost adds up.",
        ),
    )
    section = Section(
        title="What the published cleaning gives away",
        points=(
            "Bounds, the categories of the outcome and the medians that fill gaps were taken from the table, "
            "so they tell about people without any noise: whoever is oldest is told exactly. Here bounds and "
            "typical values are declared.",
            "The classifier was judged by outcomes that had been randomised themselves: even a perfect one "
            "would be told to be wrong 27 % of the time at ε = 1. Here it is judged by true outcomes too.",
            "Trained on cleaned rows, a classifier knows the noise and not the people. On true rows it finds "
            "next to none of the ill: its F1 stays far below that of a fair coin up to ε = 2 a column.",
        ),
        tables=(
            TextTable(
                name="levels",
                title="The exact ε of one cell, as published",
                columns=("ε as stated", "bounded Laplace", "bounded staircase"),
                rows=tuple((float(stated), low, high) for stated, low, high in levels),
                note="The worst log-ratio over all pairs of values and all answers, with declared bounds.",
            ),
        ),
    )
    return ExperimentPart(verdicts, section)


def _unbounded(epsilon: int) -> float:
    """The exact ε of a staircase over the whole range, for one number that is replaced by any other."""
    noise = Staircase.for_absolute_error(epsilon=epsilon, sensitivity=_RANGE)
    return float(noise.loss(Distance.l1(_RANGE, coordinates=1)).epsilon)


def _level(epsilon: Fraction, method: Method) -> float:
    noise = uncalibrated(epsilon, Fraction(0), Fraction(1), method)
    return float(noise.loss(Distance.l1(1, coordinates=1)).epsilon)
