"""Accuracy against epsilon, head by head."""

import statistics
from collections import defaultdict
from collections.abc import Callable

from sourdine.core.display import Figure
from sourdine.report.charts.base import Axis, Band, Row, Series, draw_lines
from sourdine.report.view import Section, TextTable
from sourdine_reproduction.heads.setting import LINEAR, PERCEPTRON, SQUARES, HeadExamples, our_head, squares
from sourdine_reproduction.registry import ExperimentPart, Settings

DELTA = 1e-5
EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
_FEW = (0.3, 3.0)
_REPEATS, _HIDDEN = 3, 64
NAMES = (LINEAR, PERCEPTRON, SQUARES)


def reproduce(examples: HeadExamples, settings: Settings) -> ExperimentPart:
    """All heads at all epsilons, several times each."""
    heads: dict[str, Callable[[float], float | None]] = {
        LINEAR: lambda epsilon: our_head(examples, epsilon=epsilon, delta=DELTA).accuracy,
        PERCEPTRON: lambda epsilon: our_head(examples, epsilon=epsilon, delta=DELTA, hidden=_HIDDEN).accuracy,
        SQUARES: lambda epsilon: squares(examples, epsilon=epsilon, delta=DELTA).accuracy,
    }
    levels = _FEW if settings.quick else EPSILONS
    turns = [
        (name, epsilon)
        for name in NAMES
        for epsilon in levels
        for _ in range(1 if settings.quick else _REPEATS)
    ]
    accuracies: defaultdict[tuple[str, float], list[float]] = defaultdict(list)
    for name, epsilon in settings.watch("accuracy against epsilon", turns):
        accuracies[name, epsilon].append(100 * (heads[name](epsilon) or 0.0))
    rows: list[Row] = [
        {
            "head": name,
            "epsilon": epsilon,
            "accuracy": statistics.mean(each),
            "lower": min(each),
            "upper": max(each),
        }
        for (name, epsilon), each in accuracies.items()
    ]
    first = {name: statistics.mean(accuracies[name, levels[0]]) for name in NAMES}
    best = max(first, key=lambda name: first[name])
    chart = draw_lines(
        rows,
        x=Axis(field="epsilon", title="ε, at δ = 1e-5", log=True, ticks=levels),
        y=Axis(field="accuracy", title="accuracy on test images, %"),
        series=Series(field="head", names=NAMES),
        band=Band(lower="lower", upper="upper"),
    )
    table = TextTable(
        name="by_epsilon",
        title="Accuracy in %, by head and ε (δ = 1e-5)",
        columns=("head", *(f"ε = {epsilon:g}" for epsilon in levels)),
        rows=tuple(
            (name, *(round(statistics.mean(accuracies[name, epsilon]), 2) for epsilon in levels))
            for name in NAMES
        ),
    )
    title = f"At ε = {levels[0]:g} {best} is best, with {first[best]:.1f} % right"
    section = Section(
        title="Accuracy against ε",
        paragraphs=(
            f"{len(examples.train):,} examples. Linear and perceptron ({_HIDDEN} units) are trained by noisy "
            "gradients of large batches; least squares is one release of noisy sums, with nothing to tune.",
        ),
        tables=(table,),
        figures=(
            Figure(title=title, chart=chart, note="Bands go from the worst to the best of the repeats."),
        ),
    )
    return ExperimentPart((), section)
