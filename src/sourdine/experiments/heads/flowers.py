"""The published table: what each of its thirteen epsilons is worth."""

from sourdine.accounting import Sampler, cost_of_training
from sourdine.core.format import shorten_down, shorten_up
from sourdine.experiments.budget.flowers import DELTA, ROWS, SIZE, training
from sourdine.experiments.registry import ClaimVerdict, ExperimentPart, Settings, Standing, compare
from sourdine.report.pages.page import Section
from sourdine.report.table import Cell, TextTable


def reproduce(settings: Settings) -> ExperimentPart:
    """A verdict for each row, and one for all."""
    rows: list[tuple[Cell, ...]] = []
    verdicts: list[ClaimVerdict] = []
    enough: list[float] = []
    for number, row in enumerate(settings.watch("the published epsilons", ROWS), 1):
        poisson = cost_of_training(training(row), DELTA)
        shuffled = cost_of_training(training(row, Sampler.SHUFFLE), DELTA).epsilon
        enough.append(shuffled.upper)
        standing = compare(f"{float(row.epsilon):.1f}", poisson.source.epsilon)
        verdicts.append(
            ClaimVerdict(
                claim=f"flowers, row {number}: batch {row.batch}, noise {row.noise:g}, {row.epochs} epochs",
                published=row.epsilon,
                found=f"{poisson.source.epsilon:.2f} by the same method",
                standing=standing,
                why=f"Certified: {shorten_up(poisson.epsilon.upper, 3)} with Poisson batches; as batches "
                f"were drawn, between {shorten_down(shuffled.lower, 3)} and {shorten_up(shuffled.upper, 3)}.",
            )
        )
        rows.append(
            (
                row.batch,
                row.noise,
                row.clip,
                row.rate,
                row.epochs,
                row.accuracy,
                float(row.epsilon),
                round(poisson.source.epsilon, 2),
                poisson.epsilon,
                shuffled,
                str(standing),
            )
        )
    least, most = min(enough), max(enough)
    last = ClaimVerdict(
        claim="flowers: the ε of the table are guarantees for its runs",
        published="ε = 4 to 8.3",
        found=f"ε = {shorten_down(least, 3)} to {shorten_up(most, 3)} are surely enough",
        standing=Standing.WRONG,
        why="Batches were cut from shuffled epochs and accounted for as Poisson samples, which they are not.",
    )
    table = TextTable(
        name="published",
        title=f"As published: {SIZE:,} flowers, δ = 1e-4, 512 hidden units",
        columns=(
            "batch",
            "noise",
            "clip",
            "learning rate",
            "epochs",
            "accuracy, %",
            "ε, published",
            "ε, same method",
            "ε, certified (Poisson)",
            "ε, as drawn (shuffled)",
            "verdict",
        ),
        rows=tuple(rows),
        note="Same method: Rényi moments with the conversion of 2017. As drawn: from what an attack on one "
        "epoch proves to what is surely enough.",
    )
    section = Section(
        title="The published table",
        paragraphs=(
            "The accuracies need the flowers and the weights of VGG16, which are not at hand; the ε need "
            "neither. `sourdine train fit` trains the same head where both are.",
        ),
        tables=(table,),
    )
    return ExperimentPart((*verdicts, last), section)
