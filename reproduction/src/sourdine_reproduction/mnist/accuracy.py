"""What is learnt: the published accuracies beside those of the same settings, and of better ones."""

import math

from sourdine.core.display import Figure
from sourdine.core.lazy import fdtri
from sourdine.report.charts.base import COLOURS, Axis, Row, Series, draw_lines
from sourdine.report.view import Section, TextTable
from sourdine_reproduction.mnist.runs import NAMES, OURS, PLAIN, PRIVATE, DigitImages, RunsOutcome, outcomes
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

PUBLISHED = {PLAIN: 99.0, PRIVATE: 91.2}
_NEAR = 0.5  # points, or two standard deviations where that is more


def reproduce(digits: DigitImages, settings: Settings) -> ExperimentPart:
    """All runs, what they say of the source's claims, and how they went."""
    results = outcomes(digits, settings)
    return ExperimentPart(() if settings.quick else _verdicts(results), _section(results, digits, settings))


def _verdicts(results: dict[str, RunsOutcome]) -> tuple[ClaimVerdict, ...]:
    plain, private = results[PLAIN], results[PRIVATE]
    lost = plain.mean - private.mean
    ours = ", ".join(
        f"{plain.mean - results[name].mean:.2f} points at ε = {epsilon}" for epsilon, name in OURS.items()
    )
    return (
        _beside("thesis.mnist.plain", plain, PUBLISHED[PLAIN]),
        _beside("thesis.mnist.private", private, PUBLISHED[PRIVATE]),
        judge(
            "thesis.mnist.lost",
            finding=f"{lost:.1f} points ({100 * lost / plain.mean:.1f} %) with the same settings",
            standing=Standing.WRONG,
            why="99.0 and 91.2 are 7.8 points apart, which rounds to 8, and 7.9 %; whatever was rounded, at "
            "most 8.0 %. 8.1 % is the rounded 8 of 99.0. Privacy need not cost so much: large batches, "
            f"fixed features and a linear model lose {ours}.",
        ),
        _spread(plain, private),
    )


def _spread(plain: RunsOutcome, private: RunsOutcome) -> ClaimVerdict:
    """The ratio of deviations, beside what chance makes of it (an F-test at 5 %)."""
    runs = len(plain.accuracies) - 1, len(private.accuracies) - 1
    ratio = (private.deviation or 0.0) / (plain.deviation or math.inf)
    least = ratio / math.sqrt(fdtri(runs[1], runs[0], 0.975)) if min(runs) else 0.0
    most = ratio * math.sqrt(fdtri(runs[0], runs[1], 0.975)) if min(runs) else math.inf
    return judge(
        "thesis.mnist.deviation",
        finding=f"{ratio:.2f} times, from {runs[0] + 1} and {runs[1] + 1} runs",
        standing=Standing.REPRODUCED if most > 3 else Standing.OTHERWISE,
        why=f"So few runs tell little: anything from {least:.2g} to {most:.2g} times fits them.",
    )


def _beside(name: str, outcome: RunsOutcome, published: float) -> ClaimVerdict:
    near = abs(outcome.mean - published) <= max(_NEAR, 2 * (outcome.deviation or 0.0))
    why = "" if near else "The same settings, with today's software."
    if not near and outcome.epsilon is not None:
        why = f"The same settings; ε = {outcome.epsilon:.3g} is certified for our Poisson batches."
    return judge(
        name, finding=outcome.words(), standing=Standing.REPRODUCED if near else Standing.OTHERWISE, why=why
    )


def _section(results: dict[str, RunsOutcome], digits: DigitImages, settings: Settings) -> Section:
    size, judged = len(digits.train), len(digits.test)
    first = (
        f"{size:,} images to learn from and {judged:,} to judge by, which count as public. δ is 1e-5, the "
        "batches of private runs are Poisson samples, one image is protected, and every ε is the certified "
        "upper end."
    )
    recipe = (
        "Scattering features are fixed: how much of each size and direction there is in the patches of an "
        "image. They are normalised image by image, so they cost no privacy. A linear model of them has few "
        "parameters to add noise to, and starts at zero. Large batches drown the noise; momentum and an "
        f"average over the steps smooth it. The features took {digits.seconds:.0f} seconds, once for all."
    )
    paragraphs = [first, recipe]
    if settings.quick:
        paragraphs.insert(
            0,
            "QUICK: fewer images, fewer epochs and one run each. These accuracies say nothing about the "
            "published ones. Leave --quick out to compare.",
        )
    return Section(
        title="What is learnt",
        paragraphs=tuple(paragraphs),
        tables=(_table(results, {} if settings.quick else PUBLISHED),),
        figures=_figures(results),
    )


def _table(results: dict[str, RunsOutcome], published: dict[str, float]) -> TextTable:
    return TextTable(
        name="accuracy",
        title="Accuracy on the test images, %",
        columns=("run", "settings", "ε", "published", "mean", "standard deviation", "each", "seconds a run"),
        rows=tuple(
            (
                name,
                each.settings,
                "none" if each.epsilon is None else round(each.epsilon, 4),
                published.get(name),
                round(each.mean, 2),
                None if each.deviation is None else round(each.deviation, 2),
                ", ".join(f"{100 * accuracy:.2f}" for accuracy in each.accuracies),
                round(sum(each.seconds) / len(each.seconds)),
            )
            for name, each in results.items()
        ),
        note="Each run has its ε for itself: whoever sees several models has seen more. The settings were "
        "chosen on these public images; on private ones, trying settings costs extra.",
    )


def _figures(results: dict[str, RunsOutcome]) -> tuple[Figure, ...]:
    series = Series(field="run", names=NAMES, colours=COLOURS)
    rows: list[Row] = [
        {"run": name, "epoch": epoch, "epsilon": epsilon, "accuracy": accuracy}
        for name, each in results.items()
        for epoch, epsilon, accuracy in each.curve
    ]
    up = Axis(field="accuracy", title="accuracy, %")
    private = [row for row in rows if row["epsilon"] is not None]
    names = tuple(name for name in NAMES if results[name].epsilon is not None)
    return (
        Figure(
            title="Accuracy against epochs, first run of each",
            chart=draw_lines(rows, x=Axis(field="epoch", title="epochs"), y=up, series=series),
        ),
        Figure(
            title="Accuracy against the ε spent so far",
            chart=draw_lines(
                private,
                x=Axis(field="epsilon", title="ε"),
                y=up,
                series=Series(field="run", names=names, colours=COLOURS[1:]),
            ),
            note="Every model on the way is covered by the ε below it.",
        ),
    )
