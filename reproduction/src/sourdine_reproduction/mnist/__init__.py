"""The source's digits: a small network with and without privacy, as published, and a better private model."""

from importlib.util import find_spec

from sourdine.accounting import Sampler, Training, cost_of_training
from sourdine.core.lazy import install_line
from sourdine.report.view import Section, TextTable
from sourdine_reproduction.mnist import accuracy
from sourdine_reproduction.mnist.runs import (
    BATCH,
    DELTA,
    EPOCHS,
    FOLDER,
    NOISE,
    SIZE,
    folder_of,
    read_digits,
)
from sourdine_reproduction.registry import ClaimVerdict, Experiment, Result, Settings, experiment


@experiment("mnist", "Handwritten digits, learnt with and without privacy")
def mnist(settings: Settings) -> Result:
    """Accuracies of the source's settings and of ours; without the images, the accounting alone."""
    verdicts: tuple[ClaimVerdict, ...] = ()
    sections = [_costs()]
    missing = _missing(settings)
    folder = None if missing else folder_of(settings.data)
    if folder is None:
        sections.append(Section(title="What is learnt", paragraphs=(missing or _NO_IMAGES,)))
    else:
        learnt = accuracy.reproduce(read_digits(folder, settings), settings)
        verdicts = learnt.verdicts
        sections.insert(0, learnt.section)
    return Result(
        name="mnist",
        title="Digits, learnt with and without privacy",
        lead=(
            "A thesis trained a small network on MNIST, with and without differential privacy, and lost "
            "eight points of accuracy to it. It is done again here, with batches that fit the accounting, "
            "beside a private model that loses much less."
        ),
        verdicts=verdicts,
        sections=tuple(sections),
    )


_NO_IMAGES = (
    "Nothing was trained: the images are not at hand. Put the four files of MNIST (train-images-idx3-ubyte, "
    "train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, plain or with .gz) into a "
    f"folder {FOLDER}, and name the folder that holds it with --data."
)


def _missing(settings: Settings) -> str:
    if find_spec("torch") is None:
        return f"Nothing was trained: it needs torch. Install it with: {install_line('learn')}"
    return ""


def _costs() -> Section:
    """What the source's run costs: by its own method, certified, and as its batches were really drawn."""
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


__all__ = ["Experiment", "mnist"]
