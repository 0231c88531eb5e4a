"""The thesis's table of models trained on 102 kinds of flowers: its column of epsilons, computed again."""

from typing import NamedTuple

from sourdine.accounting import Sampler, Training, cost_of_training
from sourdine.core.format import shorten_up
from sourdine.report.view import Cell, Section, TextTable
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, compare, judge
from sourdine_reproduction.statements import Standing

SIZE = 6_552
KINDS = 102
DELTA = 1e-4


class PublishedRow(NamedTuple):
    """One row of the published table."""

    batch: int
    noise: float
    epochs: int
    epsilon: str
    accuracy: float
    clip: float
    rate: float


ROWS = (
    PublishedRow(64, 1.0, 150, "8.3", 57.0, 10.0, 0.0008),
    PublishedRow(64, 1.0, 143, "8.1", 56.8, 10.0, 0.0008),
    PublishedRow(64, 1.0, 125, "7.5", 56.7, 10.0, 0.0008),
    PublishedRow(64, 1.0, 120, "6.2", 56.1, 12.0, 0.0007),
    PublishedRow(64, 1.0, 105, "5.8", 54.4, 10.0, 0.0007),
    PublishedRow(32, 0.9, 97, "5.4", 50.6, 8.0, 0.0007),
    PublishedRow(64, 1.2, 105, "5", 50.4, 14.0, 0.0007),
    PublishedRow(64, 1.2, 102, "4.9", 50.0, 14.0, 0.0007),
    PublishedRow(32, 0.9, 95, "5.3", 49.8, 8.0, 0.0008),
    PublishedRow(32, 0.9, 77, "4.8", 49.0, 8.0, 0.0007),
    PublishedRow(64, 1.2, 95, "4.7", 48.3, 14.0, 0.0007),
    PublishedRow(32, 0.9, 60, "4.2", 46.1, 8.0, 0.0008),
    PublishedRow(64, 1.2, 69, "4", 43.6, 14.0, 0.0007),
)


def training(row: PublishedRow, sampler: Sampler = Sampler.POISSON) -> Training:
    """The run behind a row."""
    return Training(
        size=SIZE, batch_size=row.batch, noise_multiplier=row.noise, epochs=row.epochs, sampler=sampler
    )


def reproduce(settings: Settings) -> ExperimentPart:
    """The column of epsilons, and what a tenth of its delta would cost."""
    rows: list[tuple[Cell, ...]] = []
    verdicts: list[ClaimVerdict] = []
    growth: list[float] = []
    good = 0
    for row in settings.watch("the flowers table", ROWS):
        cost = cost_of_training(training(row), DELTA)
        shuffled = cost_of_training(training(row, Sampler.SHUFFLE), DELTA)
        growth.append(cost_of_training(training(row), DELTA / 10).source.epsilon / cost.source.epsilon - 1)
        standing = compare(f"{float(row.epsilon):.1f}", cost.source.epsilon)
        good += standing is Standing.REPRODUCED
        if standing is not Standing.REPRODUCED:
            verdicts.append(
                judge(
                    f"thesis.flowers.{row.epochs}",
                    finding=f"{cost.source.epsilon:.2f} by the same method",
                    standing=standing,
                    why="The table prints less than its own method gives. Certified, with Poisson batches: "
                    f"{shorten_up(cost.epsilon.upper, 3)}.",
                )
            )
        rows.append(
            (
                row.batch,
                row.noise,
                row.epochs,
                cost.steps,
                row.accuracy,
                float(row.epsilon),
                round(cost.source.epsilon, 3),
                cost.epsilon,
                shuffled.epsilon,
                str(standing),
            )
        )
    first = judge(
        "thesis.flowers.rows",
        finding=f"{good} of {len(ROWS)} rows come out to the digit, by the same method",
        standing=Standing.REPRODUCED if good == len(ROWS) - 2 else Standing.WRONG,
    )
    synthetic = judge(
        "thesis.synthetic",
        finding="ε of a copy is ε of its original, times the number of copies where all are used",
        standing=Standing.WRONG,
        why="Copies are of the same person, or the same flower. Counted as more people they make every ε too "
        "small.",
    )
    chance = judge(
        "thesis.flowers.chance",
        finding=f"{0.55 * KINDS:.1f} and {0.912 * 10:.1f}",
        standing=Standing.REPRODUCED,
    )
    last = judge(
        "thesis.flowers.delta",
        finding=f"{100 * min(growth):.1f} to {100 * max(growth):.1f} %",
        standing=Standing.REPRODUCED
        if round(100 * min(growth)) == 10 and round(100 * max(growth)) == 12
        else Standing.WRONG,
    )
    table = TextTable(
        name="flowers",
        title="102 flowers: 6,552 examples, δ = 1e-4",
        columns=(
            "batch",
            "noise",
            "epochs",
            "steps",
            "accuracy, %",
            "ε, published",
            "ε, same method",
            "ε, certified (Poisson)",
            "ε, shuffled",
            "verdict",
        ),
        rows=tuple(rows),
        note="Same method: Rényi moments with the conversion of 2017. Shuffled: from what an attack proves "
        "to what is surely enough.",
    )
    section = Section(
        title="The flowers table",
        paragraphs=(
            "Two rows print an ε below what the thesis's own method gives. In another place the thesis "
            "counts rotated and blurred copies of an image as more data, which would make every ε too "
            "small: the copies are of the same person, or the same flower.",
        ),
        tables=(table,),
    )
    return ExperimentPart((first, *verdicts, last, synthetic, chance), section)
