"""The thesis's curves of epsilon, drawn again, and what it reads off them."""

from dataclasses import replace

from sourdine.accounting import TrainingCost, cost_of_training
from sourdine.report.pages.training import curve_figures
from sourdine.report.view import Section, TextTable
from sourdine_reproduction.budget.printed_run import DELTA, RUN
from sourdine_reproduction.registry import ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

_MANY = 16 * RUN.size


def reproduce(settings: Settings) -> ExperimentPart:
    """Three readings of the curves, checked by numbers; the curves themselves unless it should be quick."""
    here = cost_of_training(RUN, DELTA)
    more = cost_of_training(replace(RUN, size=_MANY), DELTA)
    first = cost_of_training(replace(RUN, epochs=1), DELTA)
    half = cost_of_training(replace(RUN, batch_size=32), DELTA)
    less, least = (cost_of_training(RUN, delta) for delta in (1e-6, 1e-7))
    verdicts = (
        judge(
            "thesis.batch",
            finding=f"batch 64: {_both(here)}; batch 32: {_both(half)}",
            standing=_when(
                half.epsilon.upper < here.epsilon.lower and half.source.epsilon < here.source.epsilon,
                Standing.REPRODUCED,
            ),
        ),
        judge(
            "thesis.size",
            finding=f"{RUN.size:,}: {_both(here)}; {_MANY:,}: {_both(more)}",
            standing=Standing.LOOSE
            if here.epsilon.lower / more.epsilon.upper > 2 * here.source.epsilon / more.source.epsilon
            else Standing.REPRODUCED,
            why="It reads the thesis's own curve, and rightly. That the curve flattens is how loose the "
            "conversion of 2017 is: certified, sixteen times the data cost a fifth.",
        ),
        judge(
            "thesis.first",
            finding=f"1 epoch: {_both(first)}; {RUN.epochs}: {_both(here)}",
            standing=_when(
                first.source.epsilon > 0.5 and first.epsilon.lower > 0.1 * here.epsilon.upper,
                Standing.REPRODUCED,
            ),
            why="Certified, too, one epoch of fifteen costs a quarter of the whole. Most of the high start "
            "of the curve belongs to the conversion: log(1/δ)/(order − 1) is paid before any step.",
        ),
        judge(
            "thesis.price",
            finding=f"1e-5: {_both(here)}; 1e-6: {_both(less)}; 1e-7: {_both(least)}",
            standing=_when(
                here.epsilon.upper < less.epsilon.lower
                and less.epsilon.upper < least.epsilon.lower
                and here.source.epsilon < less.source.epsilon < least.source.epsilon,
                Standing.REPRODUCED,
            ),
        ),
    )
    cases = {
        "the printed run": here,
        f"{_MANY:,} examples": more,
        "1 epoch": first,
        "batches of 32": half,
        "δ = 1e-6": less,
        "δ = 1e-7": least,
    }
    table = TextTable(
        name="readings",
        title="The printed run, with one thing changed",
        columns=("run", "steps", "ε, as the thesis computes it", "ε, Rényi", "ε, certified"),
        rows=tuple(
            (name, cost.steps, cost.source.epsilon, cost.renyi.epsilon, cost.epsilon)
            for name, cost in cases.items()
        ),
    )
    section = Section(
        title="The curves",
        paragraphs=(
            "The thesis draws ε against the Rényi order, the size of the data, the batch, the noise, the "
            "epochs, δ and its logarithm, and noise and batch together, all with the conversion of 2017. "
            "One of its readings is about that conversion rather than about training.",
        ),
        tables=(table,),
        figures=() if settings.quick else curve_figures(RUN, DELTA, settings.watch),
    )
    return ExperimentPart(verdicts, section)


def _both(cost: TrainingCost) -> str:
    return f"{cost.source.epsilon:.2f} (certified {cost.epsilon.upper:.2f})"


def _when(true: bool, standing: Standing) -> Standing:
    """The standing that numbers confirm, or its opposite."""
    if true:
        return standing
    return Standing.WRONG if standing is Standing.REPRODUCED else Standing.REPRODUCED
