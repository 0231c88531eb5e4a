"""The surveys: one coin, two coins, Warner's; their epsilon, bias and variance, and which coins are best."""

import math
from fractions import Fraction

import numpy as np

from sourdine.core.display import Figure
from sourdine.local.estimate import needed
from sourdine.local.surveys.design import Survey, best_survey
from sourdine.mechanisms import BinaryResponse, KaryResponse, OneCoin, TwoCoins, Warner
from sourdine.report.charts.base import COLOURS, GREY, Axis, Row, Series, draw_lines
from sourdine.report.view import Cell, Section, TextTable
from sourdine.testing import SeededBits
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, answer, judge
from sourdine_reproduction.statements import Standing
from sourdine_reproduction.surveys.proportions import MeasuredNumber, mean

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
    errors = _try(2000 if settings.quick else 20_000)
    return ExperimentPart((*_verdicts(errors), *_kary()), _section(errors))


def _try(trials: int) -> dict[str, tuple[MeasuredNumber, float]]:
    """The mean error and the deviation of estimates, for the same people asked again and again."""
    bits = SeededBits(11)
    truth = np.arange(PEOPLE) < SHARE * PEOPLE
    errors = {}
    for name, response in TRIED.items():
        yeses = response.sample(np.broadcast_to(truth, (trials, PEOPLE)), bits).mean(axis=1)
        estimates = response.channel.estimate(yeses)
        errors[name] = (mean(estimates - SHARE), float(estimates.std(ddof=1)))
    return errors


def _verdicts(errors: dict[str, tuple[MeasuredNumber, float]]) -> tuple[ClaimVerdict, ...]:
    two, one = (Survey.of(TRIED[name]) for name in ("two coins", "one coin"))
    bias, deviation = errors["two coins"]
    formula = math.sqrt(float(two.variance(SHARE, PEOPLE)))
    unbiased = all(abs(each.value) <= each.upper - each.lower for each, _ in errors.values())
    warner = Survey.of(TRIED["Warner, truth 0.8"])
    single = errors["one coin"][0]
    return (
        answer(
            "slides.biased",
            finding=f"{'no' if unbiased else 'yes'}: mean error {bias.value:+.5f} ± "
            f"{(bias.upper - bias.lower) / 2:.5f}",
            why="r has mean p/2 + 1/4 exactly. So has every design here, by its own formula.",
        ),
        answer(
            "slides.variance",
            finding=f"3/(4n); {PEOPLE:,} people: deviation {formula:.4f}, measured {deviation:.4f}",
            why="For the people at hand, whatever the share p. If they were drawn from a population, p(1 − "
            "p)/n comes on top.",
        ),
        judge(
            "slides.ln3",
            finding=f"ratio exactly {math.exp(two.epsilon):.0f}, ε = {two.epsilon:.4f}",
            standing=Standing.REPRODUCED if abs(two.epsilon - LN3) < 1e-9 else Standing.WRONG,
            why="The printed proof divides a probability by itself; 3/4 over 1/4 was meant, in both "
            "directions.",
        ),
        answer(
            "slides.others",
            finding="a fair second coin is best; the first has odds (e^ε − 1)/2",
            why="Any ε-private yes or no can be made from Warner's answer with truth e^ε/(1 + e^ε), so none "
            "tells more. Two coins with a fair second one are Warner's in another dress.",
        ),
        judge(
            "thesis.coin",
            finding=f"a true no says yes half of the time; the estimate is off by {single.value:+.5f} ± "
            f"{(single.upper - single.lower) / 2:.5f} on average",
            standing=Standing.REPRODUCED
            if abs(single.value) <= single.upper - single.lower
            else Standing.OTHERWISE,
        ),
        judge(
            "thesis.objection",
            finding="ε is infinite" if one.epsilon == math.inf else f"ε = {one.epsilon:g}",
            standing=Standing.REPRODUCED if one.epsilon == math.inf else Standing.WRONG,
            why="Only a true no ever says no, and half of them do: each of those is known for certain. The "
            "thesis goes on to the second coin for this reason.",
        ),
        judge(
            "thesis.warner",
            finding=f"truth 3/4 is the same, 0.8 is worse (ε = {warner.epsilon:.3f}), 0.6 better",
            standing=Standing.WRONG if warner.epsilon > two.epsilon else Standing.REPRODUCED,
            why="Protection is the coin's: ε = ln(t/(1 − t)). At equal ε both designs are one and the same "
            "law.",
        ),
    )


def _kary() -> tuple[ClaimVerdict, ...]:
    """The printed estimate of k-ary response, and its mean squared error."""
    response, people, share = KaryResponse(epsilon=Fraction(1), categories=10), 1000, 0.5
    printed, true = (float(response.variance(f, people)) for f in (0.0, share))
    factor = (math.e + 9) / (math.e - 1)
    chance = (share * math.e + (1 - share)) / (
        math.e + 9
    )  # how often a category is reported that half of people have
    return (
        judge(
            "notes.kary.estimate",
            finding=f"((e^ε + K − 1) mean − 1)/(e^ε − 1); where {share:g} is true, at K = 10 and ε = 1, it "
            f"has mean {(chance * (math.e + 9) - 1) / (math.e - 1):g} and the printed one "
            f"{factor * (chance - 1):.2f}",
            standing=Standing.WRONG,
            why="So is the form before the last equals sign: it should divide by p.",
        ),
        judge(
            "notes.kary.error",
            finding=f"{true:.5f} at share 0.5, {printed:.5f} at share 0",
            standing=Standing.WRONG if true > 1.1 * printed else Standing.REPRODUCED,
            why="A term h(K − 2)/(n(e^ε − 1)) is missing: the formula holds at share 0, or for K = 2.",
        ),
    )


def _section(errors: dict[str, tuple[MeasuredNumber, float]]) -> Section:
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
        tables=(_designs(), _tried(errors), _needed()),
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
            100 * math.sqrt(float(survey.variance(share, PEOPLE, population=population)))
            for population in (False, True)
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


def _tried(errors: dict[str, tuple[MeasuredNumber, float]]) -> TextTable:
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
            for name, (bias, deviation) in errors.items()
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
        counts = {"surely": people.surely, "exact": people.exact, "open": free}
        rows += [
            {"by": names[by], "epsilon": epsilon, "people": count}
            for by, count in counts.items()
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
