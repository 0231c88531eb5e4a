"""What the source's run costs: by its own method, certified, and as its batches were really drawn."""

from sourdine.accounting import Sampler, Training, cost_of_training
from sourdine.core.format import shorten_up
from sourdine.experiments.mnist.runs import BATCH, DELTA, EPOCHS, NOISE, SIZE
from sourdine.experiments.registry import ClaimVerdict, ExperimentPart, Standing
from sourdine.report.pages.page import Section
from sourdine.report.table import TextTable


def reproduce() -> ExperimentPart:
    """Its epsilon, three times."""
    poisson, shuffled = (
        cost_of_training(
            Training(size=SIZE, batch_size=BATCH, noise_multiplier=NOISE, epochs=EPOCHS, sampler=drawn), DELTA
        )
        for drawn in (Sampler.POISSON, Sampler.SHUFFLE)
    )
    source = poisson.source.epsilon
    verdict = ClaimVerdict(
        claim="MNIST: the privacy of 10 epochs in batches of 64 with noise 1",
        published=f"ε = {source:.2f} by its tool",
        found=f"ε = {shorten_up(poisson.epsilon.upper, 3)} if batches are Poisson samples; as they were "
        f"drawn, between {shuffled.epsilon.lower:.3g} and {shorten_up(shuffled.epsilon.upper, 3)}",
        standing=Standing.WRONG,
        why="Its batches were cut from shuffled epochs and accounted for as Poisson samples, so the number "
        "is no guarantee for its run. Ours are Poisson samples.",
    )
    table = TextTable(
        name="accounting",
        title="60,000 images, batches of 64, noise 1, 10 epochs, δ = 1e-5",
        columns=("method", "batches", "ε", "a guarantee"),
        rows=(
            ("the source's (Rényi moments, conversion of 2017)", "Poisson", round(source, 4), "yes, loose"),
            ("certified, by the law of the privacy loss", "Poisson", poisson.epsilon, "yes"),
            ("certified", "shuffled epochs, as in the source", shuffled.epsilon, "yes"),
        ),
        note="A range goes from what can surely be lost to what is surely enough; the upper end is claimed.",
    )
    section = Section(
        title="What the source's run costs",
        paragraphs=(
            "Epsilon needs no images: it follows from how many there are, how batches are drawn, the noise "
            "and the number of steps.",
        ),
        tables=(table,),
    )
    return ExperimentPart((verdict,), section)
