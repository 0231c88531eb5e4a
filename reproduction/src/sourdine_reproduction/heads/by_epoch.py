"""Accuracy against epochs: by learning rate and by batch size, with and without privacy."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from sourdine.core.display import Figure
from sourdine.report.charts.base import Axis, Band, Row, Series, draw_lines
from sourdine.report.view import Section
from sourdine_reproduction.budget.flowers import DELTA, SIZE
from sourdine_reproduction.heads.setting import HeadExamples, open_head, source_head
from sourdine_reproduction.registry import ExperimentPart, Settings

RATES = (0.001, 0.01, 0.1, 0.5)
BATCHES = (16, 64, 256, 1024)
_BATCH, _RATE, _NOISE, _CLIP = 64, 0.1, 1.0, 1.0
_EPOCHS, _REPEATS = 15, 2
Curve = list[float]


def reproduce(examples: HeadExamples, settings: Settings) -> ExperimentPart:
    """Four figures."""
    few = replace(examples, train=examples.train.first(SIZE))
    epochs, repeats = (3, 1) if settings.quick else (_EPOCHS, _REPEATS)
    rates = RATES[1:3] if settings.quick else RATES
    batches = BATCHES[1:3] if settings.quick else BATCHES

    def private(batch: int, rate: float) -> Curve:
        run = source_head(few, batch=batch, noise=_NOISE, clip=_CLIP, rate=rate, epochs=epochs, delta=DELTA)
        return [100 * (each.accuracy or 0.0) for each in run.history]

    def unprotected(batch: int, rate: float) -> Curve:
        run = open_head(few, batch=batch, rate=rate, epochs=epochs)
        return [100 * (each.accuracy or 0.0) for each in run.history]

    def by_rate(train: Callable[[int, float], Curve], label: str) -> dict[str, list[Curve]]:
        turns = [rate for rate in rates for _ in range(repeats)]
        curves: dict[str, list[Curve]] = {}
        for rate in settings.watch(label, turns):
            curves.setdefault(f"steps of {rate:g}", []).append(train(_BATCH, rate))
        return curves

    def by_batch(train: Callable[[int, float], Curve], label: str) -> dict[str, list[Curve]]:
        turns = [batch for batch in batches for _ in range(repeats)]
        curves: dict[str, list[Curve]] = {}
        for batch in settings.watch(label, turns):
            curves.setdefault(f"batches of {batch}", []).append(train(batch, _RATE))
        return curves

    figures = (
        _figure("Without privacy, by learning rate", by_rate(unprotected, "learning rates, open")),
        _figure("With noise 1, by learning rate", by_rate(private, "learning rates, private")),
        _figure("Without privacy, by batch size", by_batch(unprotected, "batch sizes, open")),
        _figure("With noise 1, by batch size", by_batch(private, "batch sizes, private")),
    )
    section = Section(
        title="Accuracy against epochs",
        paragraphs=(
            f"{len(few.train):,} examples, the source's perceptron of 512 units, batches of {_BATCH} and "
            f"steps of {_RATE:g} where nothing else is said; with privacy, noise {_NOISE:g} and gradients "
            f"clipped to {_CLIP:g}. With the same noise, a larger batch has a larger ε: every example is in "
            "more of them.",
        ),
        figures=figures,
    )
    return ExperimentPart((), section)


def _figure(subject: str, curves: dict[str, list[Curve]]) -> Figure:
    last = {name: statistics.mean(curve[-1] for curve in some) for name, some in curves.items()}
    best = max(last, key=lambda name: last[name])
    return Figure(
        title=f"{subject}: {best} end highest, at {last[best]:.1f} %",
        chart=draw_lines(
            [row for name, some in curves.items() for row in _rows(name, some)],
            x=Axis(field="epoch", title="epochs"),
            y=Axis(field="accuracy", title="accuracy on test images, %"),
            series=Series(field="run", names=tuple(curves)),
            band=Band(lower="lower", upper="upper"),
        ),
        note="Bands go from the worst to the best of the repeats.",
    )


def _rows(name: str, curves: Sequence[Curve]) -> list[Row]:
    return [
        {
            "run": name,
            "epoch": epoch,
            "accuracy": statistics.mean(each),
            "lower": min(each),
            "upper": max(each),
        }
        for epoch, each in enumerate(zip(*curves, strict=True), 1)
    ]
