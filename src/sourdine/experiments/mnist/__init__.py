"""The source's digits: a small network with and without privacy, as published, and a better private model."""

from importlib.util import find_spec

from sourdine.experiments.mnist import accounting, accuracy
from sourdine.experiments.mnist.runs import FOLDER, folder_of, read_digits
from sourdine.experiments.registry import ClaimVerdict, Experiment, Result, Settings, experiment
from sourdine.report.pages.page import Section


@experiment("mnist", "Handwritten digits, learnt with and without privacy")
def mnist(settings: Settings) -> Result:
    """Accuracies of the source's settings and of ours; without the images, the accounting alone."""
    verdicts: tuple[ClaimVerdict, ...] = ()
    sections = [accounting.reproduce()]
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
        return "Nothing was trained: it needs torch. Install it with: pip install 'sourdine[learn]'."
    return ""


__all__ = ["Experiment", "mnist"]
