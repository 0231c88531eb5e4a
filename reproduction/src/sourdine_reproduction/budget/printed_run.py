"""The run that the thesis prints: 60,000 examples, batches of 64, noise 1, 15 epochs."""

from dataclasses import replace

from sourdine.accounting import Sampler, Training, cost_of_training
from sourdine.core.format import shorten_down, shorten_up
from sourdine.report.view import Cell, Section, TextTable
from sourdine_reproduction.budget.flowers import ROWS, training
from sourdine_reproduction.registry import ExperimentPart, Settings, compare, judge
from sourdine_reproduction.statements import STATEMENTS, Standing

RUN = Training(size=60_000, batch_size=64, noise_multiplier=1.0, epochs=15)
DELTA = 1e-5


def reproduce(settings: Settings) -> ExperimentPart:
    """Steps, rate, epsilon and order as printed; then what the run costs by how its batches are drawn."""
    kinds = (Sampler.POISSON, Sampler.FIXED, Sampler.SHUFFLE)
    runs = [replace(RUN, sampler=kind) for kind in kinds]
    costs = [cost_of_training(run, DELTA) for run in settings.watch("the printed run", runs)]
    here, _, shuffled = costs
    printed = (
        ("thesis.steps", float(here.steps), f"{here.steps}"),
        ("thesis.rate", 100 * here.sampling_rate, f"{100 * here.sampling_rate:.4f}"),
        ("thesis.order", here.source.order, f"{here.source.order:g}"),
    )
    verdicts = [
        judge(name, finding=shown, standing=compare(STATEMENTS[name].published, number))
        for name, number, shown in printed
    ]
    same = compare("1.17", here.source.epsilon) is Standing.REPRODUCED
    verdicts.append(
        judge(
            "thesis.epsilon",
            finding=f"{here.source.epsilon:.4f} by the same method; {shorten_up(here.epsilon.upper)} "
            "certified",
            standing=Standing.LOOSE if same and here.epsilon.upper < 1.17 else Standing.WRONG,
            why="For batches drawn by Poisson sampling. The whole law of the loss gives less than moments at "
            "a few orders with the conversion of 2017.",
        )
    )
    flowers = [cost_of_training(training(row, Sampler.SHUFFLE), 1e-4).epsilon.upper for row in ROWS]
    verdicts.append(
        judge(
            "thesis.batches",
            finding=f"{shorten_down(shuffled.epsilon.lower)} to {shorten_up(shuffled.epsilon.upper)} for the "
            f"printed run; {shorten_down(min(flowers), 3)} to {shorten_up(max(flowers), 3)} are surely "
            "enough for the flowers",
            standing=Standing.WRONG if shuffled.epsilon.lower > 1.17 else Standing.LOOSE,
            why="The thesis trains on shuffled batches (DataLoader with shuffle=True), which are not "
            "independent samples. An attack on one epoch proves the lower end.",
        )
    )
    rows: list[tuple[Cell, ...]] = [
        (str(cost.sampler), str(cost.neighbours), cost.epsilon, cost.renyi.epsilon, cost.source.epsilon)
        for cost in costs
    ]
    table = TextTable(
        name="samplers",
        title="One run, three ways to draw its batches",
        columns=("batches", "neighbours", "ε, certified", "ε, Rényi", "ε as the thesis computes it"),
        rows=tuple(rows),
        note="The last column is a guarantee in the first row only. Each row has its own neighbours.",
    )
    section = Section(
        title="The printed run",
        paragraphs=(
            "The thesis prints one call of its tool: 60,000 examples, batches of 64, noise 1, 15 epochs, "
            "δ = 1e-5. Its numbers come out again. They hold for Poisson batches, while the thesis trains on "
            "shuffled ones.",
        ),
        tables=(table,),
    )
    return ExperimentPart(tuple(verdicts), section)
