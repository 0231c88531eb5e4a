"""How a training run is stated on the command line, and said back."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared.parse import number
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.accounting.dpsgd.training import Sampler, Training

Size = Annotated[int | None, typer.Option("--size", "-s", help="Examples in the data.")]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", "-b", help="Examples in a batch (Poisson: on average).")
]
Epochs = Annotated[int | None, typer.Option("--epochs", "-e", help="Passes over the data.")]
SamplingRate = Annotated[str | None, typer.Option(help="Instead of size and batch size.")]
Steps = Annotated[int | None, typer.Option(help="Instead of epochs: the steps.")]
Draw = Annotated[
    str,
    typer.Option("--sampler", help="How batches are drawn: poisson, truncated, allocation, fixed, shuffle."),
]
MaxBatchSize = Annotated[
    int | None,
    typer.Option(
        "--max-batch-size", help="The largest truncated batch. [default: 5 standard deviations more]"
    ),
]
Relation = Annotated[
    str | None,
    typer.Option("--neighbours", help="add-remove, zero-out or replace. [default: the sampler's own]"),
]
Group = Annotated[
    int, typer.Option("--group", help="Examples that are protected together, with Poisson batches.")
]

# what is asked beyond these is a slip of the pen; the accountants are not meant to answer it
_NOISE = Fraction(1, 10), 10**4
DELTA = Fraction(1, 10**20), Fraction(999, 1000)
_MOST_STEPS = 10**7
_MOST_SIZE = 2**50


def read_noise_multiplier(owner: str, text: str) -> float:
    """The noise of a run."""
    return float(number(owner, "noise-multiplier", text, *_NOISE))


def read_delta(owner: str, text: str) -> float:
    """The delta of a run."""
    return float(number(owner, "delta", text, *DELTA))


def read_sampling_rate(owner: str, text: str) -> float:
    """The sampling rate of a run."""
    return float(number(owner, "sampling-rate", text, Fraction(1, 10**9), 1))


def read_steps(owner: str, steps: int) -> int:
    """A count of steps that can be computed."""
    if not 1 <= steps <= _MOST_STEPS:
        remedy = "Take larger batches or fewer epochs, or state fewer steps."
        raise check.fail(owner, "steps", f"lie between 1 and {_MOST_STEPS:,}", steps, remedy)
    return steps


def read_sampler(owner: str, text: str) -> "Sampler":
    """How batches are drawn."""
    from sourdine.accounting.dpsgd.training import Sampler

    kinds = {str(kind): kind for kind in Sampler}
    if text not in kinds:
        raise check.fail(owner, "sampler", f"be one of {', '.join(kinds)}", text)
    return kinds[text]


def read_relation(owner: str, text: str | None) -> Neighbours | None:
    """The neighbours of a run, where they are stated."""
    if text is not None and text not in list(Neighbours):
        raise check.fail(owner, "neighbours", f"be one of {', '.join(Neighbours)}", text)
    return None if text is None else Neighbours(text)


def read_training(
    owner: str,
    *,
    size: int | None,
    batch_size: int | None,
    noise_multiplier: float,
    epochs: int | None,
    sampler: str,
    max_batch_size: int | None = None,
    neighbours: str | None = None,
    group: int = 1,
) -> "Training":
    """A run stated by its size, batch and epochs."""
    from sourdine.accounting.dpsgd.training import Training

    settings = {"--size": size, "--batch-size": batch_size, "--epochs": epochs}
    if missing := [name for name, value in settings.items() if value is None]:
        raise InvalidParameter(f"A training run also needs {' and '.join(missing)}.")
    whole = check.integer(owner, "size", size, 1, _MOST_SIZE)
    part = check.integer(owner, "batch-size", batch_size, 1, _MOST_SIZE)
    if part > whole:
        raise check.fail(owner, "batch-size", f"be at most the size of the data, {whole:,}", part)
    passes = check.integer(owner, "epochs", epochs, 1, _MOST_STEPS)
    scheme = read_sampler(owner, sampler)
    training = Training(
        size=whole,
        batch_size=part,
        noise_multiplier=noise_multiplier,
        epochs=passes,
        sampler=scheme,
        max_batch_size=max_batch_size,
        neighbours=read_relation(owner, neighbours),
        group=group,
    )
    read_steps(owner, training.steps)
    return training


def by_sampling_rate(sampling_rate: object, *others: object) -> bool:
    """Whether a run is stated by a sampling rate instead; a mixture is refused."""
    if sampling_rate is None:
        return False
    if any(other is not None for other in others):
        raise InvalidParameter(
            "A run is stated by -s, -b and -e, or else by --sampling-rate and --steps. Both were given."
        )
    return True


def need_poisson(owner: str, sampler: str) -> None:
    """A sampling rate alone says nothing about other samplers."""
    if read_sampler(owner, sampler) != "poisson":
        remedy = "State the run by -s, -b and -e."
        raise check.fail(owner, "sampler", "be poisson with a sampling rate", sampler, remedy)


def say_training(training: "Training") -> str:
    """A run in a few words."""
    return (
        f"{counted(training.size, 'example')}, batches of {training.batch_size:,} ({training.sampler}), "
        f"noise {training.noise_multiplier:g}, epochs {training.epochs:,}"
    )
