"""What heads learn from, and which are compared: the source's perceptron, a linear one, and least squares.

They learn from what a frozen VGG16 sees in flowers if both are at hand, or else from frozen features of
digits, or of made-up images.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sourdine_reproduction.data import digits_in, flowers_in, weights_in
from sourdine_reproduction.registry import Settings

if TYPE_CHECKING:
    from sourdine.learning.baseline import Unprotected
    from sourdine.learning.data.labelled import Labelled, Parts
    from sourdine.learning.least_squares.solve import Solved
    from sourdine.learning.result import Trained

CLASSES = 10
_QUICK = 1_200, 400
_MADE_UP = 12_000, 2_000
_FLOWER = 112  # pixels in height and width
_SIDE, _COARSE, _SHIFT, _NOISE = 28, 7, 3, 0.35


@dataclass(frozen=True, kw_only=True)
class HeadExamples:
    """Features to learn from and to judge by, which count as public, and where they come from."""

    train: "Labelled"
    test: "Labelled"
    words: str
    flowers: bool = False  # the published ones, seen by VGG16


def read_examples(settings: Settings) -> HeadExamples:
    """Features by VGG16 or by random filters, of all images or of some."""
    place, weights = flowers_in(settings.data), weights_in(settings.data)
    if place is not None and weights is not None:
        return _flowers(place, weights, settings)
    from sourdine.learning.data.files import read_idx_folder
    from sourdine.learning.data.labelled import Labelled
    from sourdine.learning.features.random_filters import RandomFilters

    folder = digits_in(settings.data)
    parts = made_up(*(_QUICK if settings.quick else _MADE_UP)) if folder is None else read_idx_folder(folder)
    assert parts.test is not None
    train, test = parts.train, parts.test
    if settings.quick:
        train, test = train.first(_QUICK[0]), test.first(_QUICK[1])
    features = RandomFilters(filters=16, patches=3)
    looked = [
        Labelled(
            features(each.inputs, lambda starts: settings.watch("random-filter features", starts)),
            each.targets,
            each.classes,
        )
        for each in (train, test)
    ]
    kind = "digits of MNIST" if folder is not None else "MADE-UP images, since MNIST is not at hand"
    words = (
        f"{len(train):,} {kind} to learn from and {len(test):,} to judge by, which count as public. Their "
        f"features are fixed: {features.numbers(train.shape)} means of 16 random filters over 3 x 3 patches, "
        "the same for all heads. They stand for what VGG16 saw in the flowers."
    )
    if folder is None:
        words += (
            " Put the four files of MNIST into a folder mnist, and name the folder that holds it with --data."
        )
    return HeadExamples(train=looked[0], test=looked[1], words=words)


def _flowers(place: Path, weights: Path, settings: Settings) -> HeadExamples:
    """What VGG16 sees in flowers of half the published side, as in the source.

    Most are learnt from, as there: of the published sets the largest, the others are judged by.
    """
    from sourdine.learning.data.flowers import CHOOSE, JUDGE, LEARN, is_flowers_folder, read_flowers_folder
    from sourdine.learning.data.images import read_image_folder
    from sourdine.learning.data.labelled import Labelled
    from sourdine.learning.features.vgg import VggFeatures

    watch: Callable[[Sequence[tuple[Path, int]]], Iterable[tuple[Path, int]]]
    watch = lambda images: settings.watch("reading flowers", images)
    if is_flowers_folder(place):
        parts = read_flowers_folder(place, _FLOWER, learn=(JUDGE,), judge=(LEARN, CHOOSE), progress=watch)
    else:
        parts = read_image_folder(place, _FLOWER, progress=watch)
    assert parts.test is not None
    features = VggFeatures(weights=weights)
    examples = []
    for each, count in zip((parts.train, parts.test), _QUICK, strict=True):
        order = np.random.default_rng(3).permutation(len(each))[: count if settings.quick else None]
        rows = features(each.inputs[order], lambda starts: settings.watch("features by VGG16", starts))
        examples.append(Labelled(rows, each.targets[order], each.classes))
    words = (
        f"{len(examples[0]):,} of 102 flowers to learn from and {len(examples[1]):,} to judge by, which "
        f"count as public. Their features are fixed: {features.numbers(parts.train.shape):,} numbers that "
        f"VGG16 with the published weights sees in images of {_FLOWER} x {_FLOWER} pixels, the same for all "
        "heads."
    )
    return HeadExamples(train=examples[0], test=examples[1], words=words, flowers=True)


def made_up(train: int, test: int) -> "Parts":
    """Ten smooth shapes, shifted a little and under noise: nobody's images, drawn from a fixed seed."""
    import torch

    from sourdine.learning.data.labelled import Labelled, Parts

    random = np.random.default_rng(10)
    coarse = random.normal(size=(CLASSES, _COARSE, _COARSE))
    shapes = coarse.repeat(_SIDE // _COARSE, 1).repeat(_SIDE // _COARSE, 2) > 0.3

    def draw(count: int) -> Labelled:
        labels = random.integers(0, CLASSES, count)
        shifts = random.integers(-_SHIFT, _SHIFT + 1, (count, 2))
        images = np.stack(
            [
                np.roll(shapes[label], tuple(shift), (0, 1))
                for label, shift in zip(labels, shifts, strict=True)
            ]
        )
        noisy = np.clip(images + random.normal(0, _NOISE, images.shape), 0, 1)
        return Labelled(
            torch.from_numpy(noisy.astype(np.float32))[:, None],
            torch.from_numpy(labels.astype(np.int64)),
            tuple(map(str, range(CLASSES))),
        )

    return Parts(draw(train), draw(test))


HIDDEN = 512
LINEAR, PERCEPTRON, SQUARES = "linear head", "perceptron of 64 units", "least squares"
_MOMENTUM, _AVERAGING, _RATE, _EPOCHS = 0.9, 0.98, 0.5, 30


def source_head(
    examples: HeadExamples, *, batch: int, noise: float, clip: float, rate: float, epochs: int, delta: float
) -> "Trained":
    """The source's: a perceptron with 512 units between, plain steps, small batches."""
    from torch.optim import SGD

    from sourdine.learning import Execution, Flat, TrainingPlan, fit
    from sourdine.learning.models import mlp

    return fit(
        mlp(examples.train.shape, len(examples.train.classes), (HIDDEN,)),
        examples.train.pair,
        TrainingPlan(noise_multiplier=noise, delta=delta, epochs=epochs, batch_size=batch),
        clipping=Flat(norm=clip),
        optimizer=lambda values: SGD(values, lr=rate),
        public=examples.test.pair,
        execution=Execution(physical_batch_size=2 * batch),
    )


def open_head(examples: HeadExamples, *, batch: int, rate: float, epochs: int) -> "Unprotected":
    """The same without privacy."""
    from torch.optim import SGD

    from sourdine.learning.baseline import fit_without_privacy
    from sourdine.learning.models import mlp

    return fit_without_privacy(
        mlp(examples.train.shape, len(examples.train.classes), (HIDDEN,)),
        examples.train.pair,
        epochs=epochs,
        batch_size=batch,
        optimizer=lambda values: SGD(values, lr=rate),
        public=examples.test.pair,
    )


def our_head(examples: HeadExamples, *, epsilon: float, delta: float, hidden: int | None = None) -> "Trained":
    """Large batches, momentum, an average over the steps; linear, or with some units between."""
    from torch.optim import SGD

    from sourdine.learning import Execution, Flat, TrainingPlan, fit
    from sourdine.learning.models import linear, mlp

    shape, classes = examples.train.shape, len(examples.train.classes)
    size = max(1, len(examples.train) // 15)
    return fit(
        linear(shape, classes) if hidden is None else mlp(shape, classes, (hidden,)),
        examples.train.pair,
        TrainingPlan(epsilon=epsilon, delta=delta, epochs=_EPOCHS, batch_size=size),
        clipping=Flat(norm=1.0),
        optimizer=lambda values: SGD(values, lr=_RATE, momentum=_MOMENTUM),
        averaging=_AVERAGING,
        public=examples.test.pair,
        execution=Execution(physical_batch_size=1024),
    )


def squares(examples: HeadExamples, *, epsilon: float, delta: float) -> "Solved":
    """One release of noisy sums."""
    from sourdine.learning.least_squares.solve import solve

    return solve(
        examples.train.pair,
        classes=len(examples.train.classes),
        epsilon=epsilon,
        delta=delta,
        public=examples.test.pair,
    )
