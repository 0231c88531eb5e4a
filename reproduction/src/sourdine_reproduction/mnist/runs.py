"""The runs: the source's network with and without privacy, and scattering features with a linear head."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sourdine_reproduction.data import digits_in
from sourdine_reproduction.registry import Settings

if TYPE_CHECKING:
    from sourdine.learning.baseline import Unprotected
    from sourdine.learning.data.labelled import Labelled
    from sourdine.learning.result import Trained

FOLDER = "mnist"
DELTA = 1e-5
SIZE = 60_000
BATCH, EPOCHS, NOISE, RATE = 64, 10, 1.0, 0.1
PLAIN, PRIVATE = "source's network, no privacy", "source's network, private"
OURS = {1: "scattering, ε = 1", 3: "scattering, ε = 3"}
NAMES = (PLAIN, PRIVATE, *OURS.values())
_REPEATS = 3
_QUICK_TRAIN, _QUICK_TEST, _QUICK_EPOCHS = 4_000, 1_000, 2
_OUR_BATCH, _MOMENTUM, _AVERAGING = 4096, 0.9, 0.98
_OUR_EPOCHS, _OUR_RATES = {1: 25, 3: 40}, {1: 0.25, 3: 0.5}


@dataclass(frozen=True, kw_only=True)
class RunsOutcome:
    """Several runs of one kind: what each reached, how long it took, and how it went."""

    name: str
    epsilon: float | None
    settings: str
    accuracies: tuple[float, ...]
    seconds: tuple[float, ...]
    curve: tuple[tuple[int, float | None, float], ...]  # of the first run: epoch, epsilon so far, accuracy

    @property
    def mean(self) -> float:
        """The mean accuracy, in percent."""
        return 100 * statistics.mean(self.accuracies)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the accuracies, in points."""
        return 100 * statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else None

    def words(self) -> str:
        """The accuracy in words."""
        more = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        return f"{self.mean:.2f}{more} %"


@dataclass(frozen=True, kw_only=True)
class DigitImages:
    """The images to learn from and to judge by, all or some of them, and their scattering features."""

    train: "Labelled"
    test: "Labelled"
    features: "tuple[Labelled, Labelled]"
    seconds: float  # that the features took


def folder_of(data: Path | None) -> Path | None:
    """Where the images are, if they are there."""
    return digits_in(data)


def read_digits(folder: Path, settings: Settings) -> DigitImages:
    """The images; with their features, computed once for all runs."""
    from sourdine.learning.data.files import read_idx_folder
    from sourdine.learning.data.labelled import Labelled
    from sourdine.learning.features.pipeline import Features

    parts = read_idx_folder(folder)
    assert parts.test is not None
    train, test = parts.train, parts.test
    if settings.quick:
        train, test = train.first(_QUICK_TRAIN), test.first(_QUICK_TEST)
    _, height, width = train.shape
    features = Features(height=height, width=width)
    start = time.perf_counter()
    examples = tuple(
        Labelled(
            features(each.inputs, lambda starts: settings.watch("scattering features", starts)),
            each.targets,
            each.classes,
        )
        for each in (train, test)
    )
    return DigitImages(
        train=train, test=test, features=(examples[0], examples[1]), seconds=time.perf_counter() - start
    )


def outcomes(digits: DigitImages, settings: Settings) -> dict[str, RunsOutcome]:
    """All runs, as often as they are repeated."""
    jobs: dict[str, Callable[[], Trained | Unprotected]] = {
        PLAIN: lambda: _plain(digits, settings),
        PRIVATE: lambda: _private(digits, settings),
        **{name: _ours(digits, settings, epsilon) for epsilon, name in OURS.items()},
    }
    turns = [name for name in NAMES for _ in range(1 if settings.quick else _REPEATS)]
    runs: dict[str, list[tuple[Trained | Unprotected, float]]] = {name: [] for name in NAMES}
    for name in settings.watch("training", turns):
        start = time.perf_counter()
        run = jobs[name]()
        runs[name].append((run, time.perf_counter() - start))
    return {name: _outcome(name, some) for name, some in runs.items()}


def _plain(digits: DigitImages, settings: Settings) -> "Unprotected":
    from torch.optim import SGD

    from sourdine.learning.baseline import fit_without_privacy
    from sourdine.learning.models import cnn

    return fit_without_privacy(
        cnn(digits.train.shape, 10),
        digits.train.pair,
        epochs=_QUICK_EPOCHS if settings.quick else EPOCHS,
        batch_size=BATCH,
        optimizer=lambda values: SGD(values, lr=RATE),
        public=digits.test.pair,
    )


def _private(digits: DigitImages, settings: Settings) -> "Trained":
    from torch.optim import SGD

    from sourdine.learning import Flat, TrainingPlan, fit
    from sourdine.learning.models import cnn

    epochs = _QUICK_EPOCHS if settings.quick else EPOCHS
    return fit(
        cnn(digits.train.shape, 10),
        digits.train.pair,
        TrainingPlan(noise_multiplier=NOISE, delta=DELTA, epochs=epochs, batch_size=BATCH),
        clipping=Flat(norm=1.0),
        optimizer=lambda values: SGD(values, lr=RATE),
        public=digits.test.pair,
    )


def _ours(digits: DigitImages, settings: Settings, epsilon: int) -> "Callable[[], Trained]":
    from torch.optim import SGD

    from sourdine.learning import Flat, TrainingPlan, fit
    from sourdine.learning.models import linear

    train, test = digits.features
    plan = TrainingPlan(
        epsilon=epsilon,
        delta=DELTA,
        epochs=_QUICK_EPOCHS * 2 if settings.quick else _OUR_EPOCHS[epsilon],
        batch_size=min(_OUR_BATCH, len(train) // 2),
    )
    return lambda: fit(
        linear(train.shape, 10),
        train.pair,
        plan,
        clipping=Flat(norm=1.0),
        optimizer=lambda values: SGD(values, lr=_OUR_RATES[epsilon], momentum=_MOMENTUM),
        averaging=_AVERAGING,
        public=test.pair,
    )


def _outcome(name: str, runs: "list[tuple[Trained | Unprotected, float]]") -> RunsOutcome:
    from sourdine.learning.result import Trained

    first = runs[0][0]
    private = isinstance(first, Trained)
    return RunsOutcome(
        name=name,
        epsilon=first.epsilon.upper if isinstance(first, Trained) else None,
        settings=_settings(first),
        accuracies=tuple(run.accuracy or 0.0 for run, _ in runs),
        seconds=tuple(seconds for _, seconds in runs),
        curve=tuple(
            (each.epoch, each.epsilon if private else None, 100 * (each.accuracy or 0.0))
            for each in first.history
        ),
    )


def _settings(run: "Trained | Unprotected") -> str:
    from sourdine.learning.result import Trained

    if not isinstance(run, Trained):
        return f"{run.history[-1].epoch} epochs of shuffled batches of {BATCH}"
    plan = run.plan
    return f"{plan.steps:,} steps, Poisson batches of {plan.batch_size:,}, noise {plan.noise_multiplier:.4g}"
