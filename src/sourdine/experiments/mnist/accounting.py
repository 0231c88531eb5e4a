"""What the source's run costs: by its own method, certified, and as its batches were really drawn."""

from sourdine.accounting import Sampler, Training, cost_of_training
from sourdine.experiments.mnist.runs import BATCH, DELTA, EPOCHS, NOISE, SIZE
from sourdine.report.pages.page import Section
from sourdine.report.table import TextTable


def reproduce() -> Section:
    """Its epsilon, three times."""
    poisson, shuffled = (
        cost_of_training(
            Training(size=SIZE, batch_size=BATCH, noise_multiplier=NOISE, epochs=EPOCHS, sampler=sampler),
            DELTA,
        )
        for sampler in (Sampler.POISSON, Sampler.SHUFFLE)
    )
    source = poisson.source.epsilon
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
    return Section(
        title="What the source's run costs",
        paragraphs=(
            "Epsilon needs no images: it follows from how many there are, how batches are drawn, the noise "
            "and the number of steps. The thesis prints none for its digits; this is what its tool says of "
            "them. Its batches were cut from shuffled epochs, for which that number is no guarantee. Ours "
            "are Poisson samples.",
        ),
        tables=(table,),
    )
