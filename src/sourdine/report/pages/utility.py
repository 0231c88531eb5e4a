"""The page of a measurement of utility: accuracy and F1 against epsilon, for each model and noise."""

from collections.abc import Sequence
from fractions import Fraction

from sourdine.core.figure import Figure
from sourdine.core.format import counted, shorten_up
from sourdine.local.utility.measure import NOTICE, JudgedOn, Utility, UtilityPoint
from sourdine.local.utility.models import Floats, LearningModel
from sourdine.report.charts.base import Axis, Row, Series
from sourdine.report.charts.utility import draw_bars
from sourdine.report.pages.page import Page, Section
from sourdine.report.table import Cell, TextTable

METRICS = ("accuracy", "F1")
TESTED = {
    JudgedOn.UNTOUCHED: "untouched rows",
    JudgedOn.CLEANED_FEATURES: "cleaned features, true labels",
    JudgedOn.CLEANED: "cleaned rows and labels",
}
_NAMES = {
    LearningModel.NAIVE_BAYES: "Naive Bayes",
    LearningModel.LOGISTIC: "Logistic regression",
    LearningModel.TREE: "Decision tree",
}


def utility_page(name: str, utility: Utility) -> Page:
    """One page with exact scores: it is for whoever holds the rows."""
    return Page(
        title=f"{name}: {utility.label} is {_best_words(utility)}",
        lead=f"{NOTICE}. {what_words(utility)}",
        sections=(
            *(_section(utility, model) for model in utility.models),
            Section(
                title="All scores",
                paragraphs=(describe_utility_price(utility),),
                tables=(utility_table(utility),),
            ),
            Section(title="How to read it", points=reading_points(utility)),
        ),
    )


def what_words(utility: Utility) -> str:
    """What was done, in a few sentences."""
    return (
        f"{utility.train:,} rows were cleaned, a model learned '{utility.label}' from them, and "
        f"{utility.test:,} other rows tested it; {counted(utility.repeats, 'time')} for each ε and noise."
    )


def describe_utility_price(utility: Utility) -> str:
    """What epsilons are."""
    meaning = (
        f"that of every column, and each {utility.unit} pays for all of them: the price"
        if utility.by_column
        else f"for each {utility.unit}, and the price is what the cleaning really costs"
    )
    return f"ε as asked is {meaning}, exactly, by the mechanisms that were used."


def reading_points(utility: Utility) -> tuple[str, ...]:
    """What the scores are, and what they are not."""
    many = "of the last of the two labels" if len(utility.labels) == 2 else "the mean over the labels"
    return (
        f"Scores are exact counts over {counted(utility.test, 'row')}. They tell about these rows without "
        "any noise: use public or made-up rows, and do not publish scores of anybody's.",
        "Bars are one standard deviation over the cleanings, on one and the same split of the rows. They "
        "tell what the noise does, and not how other rows would do.",
        f"F1 is {many}"
        + (f", '{utility.labels[-1]}'." if len(utility.labels) == 2 else ".")
        + " A model that always says the commonest label is right "
        f"{100 * utility.commonest[0]:.1f} % of the time: accuracy at or below that is nothing learned.",
        "Untouched rows are read as declared: inside the bounds, on the grid, with the declared value for "
        "what is missing, or the middle of the range.",
        "Settings that were chosen by these scores on private rows would be outside the guarantee.",
    )


def utility_table(utility: Utility) -> TextTable:
    """Every point, with what is reached without noise."""
    several = len(utility.tested) > 1
    rows: list[tuple[Cell, ...]] = []
    for model in utility.models:
        for point in utility.points:
            if point.model is model:
                rows += [
                    (
                        _short(point.target),
                        _short(point.price),
                        *((point.method,) if utility.numbers else ()),
                        model,
                        *((TESTED[kind],) if several else ()),
                        _with_deviation(point.scores[kind].accuracy),
                        _with_deviation(point.scores[kind].f1),
                    )
                    for kind in utility.tested
                ]
        rows.append(_plain(utility, "no noise", model, utility.without_noise[model]))
    rows.append(_plain(utility, "none", "the commonest label", utility.commonest))
    return TextTable(
        name="utility",
        title=f"What is learned of '{utility.label}'",
        columns=(
            "ε asked, of a column" if utility.by_column else f"ε asked, of a {utility.unit}",
            f"price, ε of a {utility.unit}",
            *(("noise",) if utility.numbers else ()),
            "model",
            *(("tested on",) if several else ()),
            *METRICS,
        ),
        rows=tuple(rows),
        note=f"Mean ± one standard deviation over {counted(utility.repeats, 'cleaning')}.",
    )


def _plain(utility: Utility, noise: str, model: str, scores: tuple[float, float]) -> tuple[Cell, ...]:
    return (
        "–",
        "–",
        *((noise,) if utility.numbers else ()),
        model,
        *((TESTED[JudgedOn.UNTOUCHED],) if len(utility.tested) > 1 else ()),
        *(f"{score:.3f}" for score in scores),
    )


def _section(utility: Utility, model: LearningModel) -> Section:
    points = [point for point in utility.points if point.model is model]
    figures = [
        _figure(utility, points, place, kind) for kind in _shown(utility) for place in range(len(METRICS))
    ]
    return Section(title=_NAMES[model], figures=tuple(figures))


def _shown(utility: Utility) -> list[JudgedOn]:
    """What was tested on, untouched rows first."""
    return sorted(utility.tested, key=lambda kind: kind is not JudgedOn.UNTOUCHED)


def _figure(utility: Utility, points: list[UtilityPoint], place: int, kind: JudgedOn) -> Figure:
    """One score against the price; levels to compare with are of untouched rows, and stand with those."""
    metric = METRICS[place]
    best = _best(points, metric, kind)
    reached = float(_of(best, metric, kind).mean())
    title = f"At a price of ε = {_short(best.price)}, {_score_words(metric, reached)}"
    title += f" with {best.method} noise" if utility.numbers else ""
    levels: dict[str, float] = {}
    if kind is JudgedOn.UNTOUCHED:
        level = utility.without_noise[best.model][place]
        title += f"; without noise {_level(metric, level)}"
        levels = {"without noise": level}
        if metric == METRICS[0]:
            levels["always the commonest label"] = utility.commonest[place]
    else:
        title += f", tested on {TESTED[kind]}"
    return Figure(
        title=title,
        chart=_chart(utility, points, metric, kind, levels),
        note=f"Points are means over {counted(utility.repeats, 'cleaning')}, bars one standard "
        f"deviation to either side. Tested on {utility.test:,} {TESTED[kind]}.",
    )


def _chart(
    utility: Utility, points: list[UtilityPoint], metric: str, kind: JudgedOn, levels: dict[str, float]
) -> dict[str, object]:
    names = tuple(str(method) for method in utility.methods) if utility.numbers else ("randomized response",)
    rows: list[Row] = []
    for point in points:
        scores = _of(point, metric, kind)
        place = utility.methods.index(point.method)
        rows.append(
            {
                "noise": names[place],
                "epsilon": float(point.price),
                "score": float(scores.mean()),
                "deviation": float(scores.std(ddof=1)),
            }
        )
    return dict(
        draw_bars(
            rows,
            x=Axis(field="epsilon", title=f"price, ε of a {utility.unit}", log=True),
            y=Axis(field="score", title=f"{metric}, on {TESTED[kind]}"),
            series=Series(field="noise", names=names),
            levels=levels,
        )
    )


def _of(point: UtilityPoint, metric: str, kind: JudgedOn) -> Floats:
    scores = point.scores[kind]
    return scores.accuracy if metric == "accuracy" else scores.f1


def _best(points: Sequence[UtilityPoint], metric: str, kind: JudgedOn) -> UtilityPoint:
    """The best at the highest price: at a low one, high scores are chance."""
    top = max(point.price for point in points)
    return max(
        (point for point in points if point.price == top),
        key=lambda point: float(_of(point, metric, kind).mean()),
    )


def _best_words(utility: Utility) -> str:
    kind = _shown(utility)[0]
    best = _best(utility.points, METRICS[0], kind)
    reached = 100 * float(best.scores[kind].accuracy.mean())
    plain = 100 * utility.without_noise[best.model][0]
    cleaned = (
        f"guessed right {reached:.1f} % of the time from rows cleaned at a price of ε = {_short(best.price)}"
    )
    other = (
        f", and {plain:.1f} % without noise" if kind is JudgedOn.UNTOUCHED else f", tested on {TESTED[kind]}"
    )
    return cleaned + other


def _score_words(metric: str, score: float) -> str:
    return (
        f"guesses are right {100 * score:.1f} % of the time" if metric == "accuracy" else f"F1 is {score:.2f}"
    )


def _level(metric: str, score: float) -> str:
    return f"{100 * score:.1f} %" if metric == "accuracy" else f"{score:.2f}"


def _short(value: Fraction) -> str:
    return shorten_up(float(value))


def _with_deviation(scores: Floats) -> str:
    return f"{scores.mean():.3f} ± {scores.std(ddof=1):.3f}"
