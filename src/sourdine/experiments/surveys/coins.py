"""The surveys: one coin, two coins, Warner's; their epsilon, bias and variance, and which coins are best."""

import math
from fractions import Fraction

import numpy as np

from sourdine.core.figure import Figure
from sourdine.experiments.registry import ClaimVerdict, ExperimentPart, Settings, Standing
from sourdine.experiments.surveys.proportions import MeasuredNumber, mean
from sourdine.local.estimate import needed
from sourdine.local.surveys.design import Survey, best_survey
from sourdine.mechanisms import BinaryResponse, KaryResponse, OneCoin, TwoCoins, Warner
from sourdine.report.charts.base import COLOURS, GREY, Axis, Row, Series, draw_lines
from sourdine.report.pages.page import Section
from sourdine.report.table import Cell, TextTable
from sourdine.testing import SeededBits

PEOPLE = 1000
SHARE = 0.3  # of the people of whom it is true, where one is needed
ERROR = 0.03  # three points, as polls have it
LN3 = math.log(3)
SECOND = (0.1, 0.25, 0.5, 0.75)  # how often the second coin says yes
EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
TRIED: dict[str, BinaryResponse | OneCoin] = {
    "two coins": TwoCoins(),
    "Warner, truth 0.8": Warner(truth=Fraction(4, 5)),
    "Warner, truth 0.6": Warner(truth=Fraction(3, 5)),
    "one coin": OneCoin(),
}
DESIGNS = {
    "two coins": Survey.of(TwoCoins()),
    "Warner, truth 3/4": Survey.of(Warner(truth=Fraction(3, 4))),
    "Warner, truth 0.8": Survey.of(TRIED["Warner, truth 0.8"]),
    "Warner, truth 0.6": Survey.of(TRIED["Warner, truth 0.6"]),
    "second coin yes 3 in 4": Survey.two_coins(yes=0.75),
    "the same at ε = ln 3": Survey.at(LN3, yes=0.75),
    "truth 3 in 4, else fair": Survey.two_coins(truth=0.75),
    "best at ε = 1": Survey.of(best_survey(1)),
    "one coin": Survey.of(OneCoin()),
}


def reproduce(settings: Settings) -> ExperimentPart:
    """Estimates tried out, designs compared, and how many people they need."""
    found = _try(2000 if settings.quick else 20_000)
    return ExperimentPart((*_verdicts(found), _kary()), _section(found))


def _try(trials: int) -> dict[str, tuple[MeasuredNumber, float]]:
    """The mean error and the deviation of estimates, for the same people asked again and again."""
    bits = SeededBits(11)
    truth = np.arange(PEOPLE) < SHARE * PEOPLE
    found = {}
    for name, response in TRIED.items():
        said = response.sample(np.broadcast_to(truth, (trials, PEOPLE)), bits).mean(axis=1)
        estimates = response.channel.estimate(said)
        found[name] = (mean(estimates - SHARE), float(estimates.std(ddof=1)))
    return found


def _verdicts(found: dict[str, tuple[MeasuredNumber, float]]) -> tuple[ClaimVerdict, ...]:
    two, one = (Survey.of(TRIED[name]) for name in ("two coins", "one coin"))
    bias, deviation = found["two coins"]
    formula = math.sqrt(float(two.variance(SHARE, PEOPLE)))
    unbiased = all(abs(each.value) <= each.upper - each.lower for each, _ in found.values())
    warner = Survey.of(TRIED["Warner, truth 0.8"])
    return (
        ClaimVerdict(
            claim="two coins: the share of yes is p ≈ 2r − 1/2; is it biased?",
            published="left open; one may hope not",
            found=f"no: mean error {bias.value:+.5f} ± {(bias.upper - bias.lower) / 2:.5f}",
            standing=Standing.ANSWERED if unbiased else Standing.WRONG,
            why="r has mean p/2 + 1/4 exactly. So has every design here, by its own formula.",
        ),
        ClaimVerdict(
            claim="two coins: what of the variance?",
            published="left open",
            found=f"3/(4n); {PEOPLE:,} people: deviation {formula:.4f}, measured {deviation:.4f}",
            standing=Standing.ANSWERED if abs(deviation / formula - 1) < 0.05 else Standing.WRONG,
            why="For the people at hand, whatever the share p. If they were drawn from a population, p(1 − "
            "p)/n comes on top.",
        ),
        ClaimVerdict(
            claim="two coins are ln 3-private",
            published="ratio at most 3",
            found=f"ratio exactly {math.exp(two.epsilon):.0f}, ε = {two.epsilon:.4f}",
            standing=Standing.REPRODUCED,
            why="The printed proof divides a probability by itself; 3/4 over 1/4 was meant, in both "
            "directions.",
        ),
        ClaimVerdict(
            claim="two coins: other probabilities than 1/2, 1/2?",
            published="left open",
            found="a fair second coin is best; the first has odds (e^ε − 1)/2",
            standing=Standing.ANSWERED,
            why="Any ε-private yes or no can be made from Warner's answer with truth e^ε/(1 + e^ε), so none "
            "tells more. Two coins with a fair second one are Warner's in another dress.",
        ),
        ClaimVerdict(
            claim="one coin (heads: truth, tails: yes): p ≈ 2r − 1, with plausible denial",
            published="a yes is deniable",
            found="the estimate is right, but ε is infinite" if one.epsilon == math.inf else "finite ε",
            standing=Standing.OVERSTATED,
            why="Only a true no ever says no, and half of them do: each of those is known for certain.",
        ),
        ClaimVerdict(
            claim="Warner's biased coin protects even better than two coins",
            published="better",
            found=f"truth 3/4 is the same, 0.8 is worse (ε = {warner.epsilon:.3f}), 0.6 better",
            standing=Standing.OVERSTATED,
            why="Protection is the coin's: ε = ln(t/(1 − t)). At equal ε both designs are one and the same "
            "law.",
        ),
    )


def _kary() -> ClaimVerdict:
    """The printed mean squared error of k-ary response."""
    response, people, share = KaryResponse(epsilon=Fraction(1), categories=10), 1000, 0.5
    printed, true = (float(response.variance(f, people)) for f in (0.0, share))
    return ClaimVerdict(
        claim="k-ary response: mean squared error (K − 2 + e^ε)/(n(e^ε − 1)²), at K = 10, ε = 1, n = 1,000",
        published=f"{printed:.5f} for every share",
        found=f"{true:.5f} at share 0.5",
        standing=Standing.UNDERSTATED,
        why="A term h(K − 2)/(n(e^ε − 1)) is missing: the formula holds at share 0, or for K = 2.",
    )


def _section(found: dict[str, tuple[MeasuredNumber, float]]) -> Section:
    free = needed(0.25, ERROR, 0.95)
    best = Survey.of(best_survey(1)).people(ERROR)
    ratio = float(Survey.at(LN3, yes=0.1).variance(0.5, 1) / Survey.at(LN3).variance(0.5, 1))
    return Section(
        title="Coins",
        paragraphs=(
            "A design is two probabilities: of a yes where it is true, and of a yes where it is not. Its ε "
            "is the worst over both answers: max(ln(p/q), ln((1 − q)/(1 − p))).",
            "“At hand” is about the people who answer; “drawn” is about the population that they were drawn "
            "from.",
        ),
        tables=(_designs(), _tried(found), _needed()),
        figures=(
            Figure(
                title=f"At ε = ln 3 a fair second coin varies least, whatever the share: one that says yes "
                f"once in ten has {ratio:.1f} times its variance at 50 %",
                chart=_variances(),
                note="By formula, for the people at hand. All four designs cost the same.",
            ),
            Figure(
                title=f"Within {100 * ERROR:g} points takes {best.exact:,} people at ε = 1, where an open "
                f"question takes {free:,}",
                chart=_people(free),
                note="For 95 % of surveys. Exact: binomial probabilities, whatever the share (up to a "
                "million people). Surely: Hoeffding's inequality.",
            ),
        ),
    )


def _designs() -> TextTable:
    rows: list[tuple[Cell, ...]] = []
    for name, survey in DESIGNS.items():
        points = [
            100 * math.sqrt(float(survey.variance(share, PEOPLE, population=drawn)))
            for drawn in (False, True)
            for share in (0.1, 0.5)
        ]
        rows.append((name, *survey.channel, survey.epsilon, *points))
    return TextTable(
        name="designs",
        title="Designs: what an answer costs, and how well many of them tell",
        columns=(
            "design",
            "yes if true",
            "yes if not",
            "ε",
            "at hand, 10 %",
            "at hand, 50 %",
            "drawn, 10 %",
            "drawn, 50 %",
        ),
        rows=tuple(rows),
        note=f"The last four columns are deviations of the estimate from {PEOPLE:,} people in percentage "
        "points, where the share is 10 % or 50 %.",
    )


def _needed() -> TextTable:
    rows = []
    for name, survey in DESIGNS.items():
        people = survey.people(ERROR)
        rows.append((name, survey.epsilon, people.normal, people.exact, people.surely))
    return TextTable(
        name="people",
        title=f"How many to draw, to be within {100 * ERROR:g} points in 95 % of surveys",
        columns=("design", "ε", "normal", "exact", "surely"),
        rows=tuple(rows),
        note="Of the population's share, whatever it is. Exact by binomial probabilities; surely by "
        "Hoeffding's inequality, for any larger number too.",
    )


def _tried(found: dict[str, tuple[MeasuredNumber, float]]) -> TextTable:
    return TextTable(
        name="tried",
        title=f"Tried out: {PEOPLE:,} people of whom it is true of {100 * SHARE:g} %",
        columns=("design", "mean error", "± two standard errors", "deviation", "by formula"),
        rows=tuple(
            (
                name,
                f"{bias.value:+.6f}",
                (bias.upper - bias.lower) / 2,
                deviation,
                math.sqrt(float(Survey.of(TRIED[name]).variance(SHARE, PEOPLE))),
            )
            for name, (bias, deviation) in found.items()
        ),
    )


def _variances() -> dict[str, object]:
    names = {yes: f"second coin says yes in {100 * yes:g} %" for yes in SECOND}
    rows: list[Row] = [
        {
            "coin": names[yes],
            "share": float(share),
            "variance": float(Survey.at(LN3, yes=yes).variance(share, 1)),
        }
        for yes in SECOND
        for share in np.linspace(0, 1, 11).round(2)
    ]
    return dict(
        draw_lines(
            rows,
            x=Axis(field="share", title="share of people of whom it is true", form=".0%"),
            y=Axis(field="variance", title="variance of the estimate × number of people", log=True),
            series=Series(field="coin", names=tuple(names.values())),
        )
    )


def _people(free: int) -> dict[str, object]:
    names = {"surely": "surely (Hoeffding)", "exact": "exact", "open": "open question, no privacy"}
    rows: list[Row] = []
    for epsilon in EPSILONS:
        people = Survey.of(best_survey(epsilon)).people(ERROR)
        told = {"surely": people.surely, "exact": people.exact, "open": free}
        rows += [
            {"by": names[by], "epsilon": epsilon, "people": count}
            for by, count in told.items()
            if count is not None
        ]
    return dict(
        draw_lines(
            rows,
            x=Axis(field="epsilon", title="ε of an answer", log=True, ticks=(0.1, 0.2, 0.5, 1, 2, 5)),
            y=Axis(field="people", title="people to draw", log=True, form=",.0f"),
            series=Series(field="by", names=tuple(names.values()), colours=(*COLOURS[:2], GREY)),
        )
    )
