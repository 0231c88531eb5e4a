"""How the noise of a run is asked to be correlated, and the factors that this comes to."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from sourdine.core import check
from sourdine.learning.correlation.factor import (
    MOST_BANDS,
    MOST_BUFFERS,
    BandedFactor,
    Factor,
    TreeFactor,
)
from sourdine.learning.correlation.optimum import best_banded, best_buffered

_WIDEST = 64  # bands that are tried unless told: each is a copy of the model


@dataclass(frozen=True)
class FactorCandidate:
    """A factor, and into how many parts the data are cut that take turns, if chance is to hide units in them.

    Without a factor the noise of each step is its own, and batches are drawn from all of the data: DP-SGD.
    """

    factor: Factor | None
    parts: int | None = None


@dataclass(frozen=True, kw_only=True)
class GradientCorrelation(ABC):
    """How noise is correlated over the steps of a run that takes its examples in a fixed order."""

    @abstractmethod
    def candidates(self, *, steps: int, batches: int) -> Iterator[FactorCandidate]:
        """What it may come to, for so many steps and batches an epoch; the one with the least noise is taken.

        `batches` are whole ones: a part may take no more turns in an epoch.
        """


@dataclass(frozen=True, kw_only=True)
class Banded(GradientCorrelation):
    """Noise is taken back over the next `bands` steps, which need so many copies of the model less one.

    With fewer bands than an epoch has batches, the data are cut into as many parts, which take turns, and
    batches are drawn from them by chance, which hides who was in them (Choquette-Choo et al. 2023); with
    `sampling=False` the order of all examples is fixed. Unless told, the best of 2, 4, ... 64 bands is taken.

    >>> Banded(bands=16)
    Banded(bands=16, sampling=True)
    """

    bands: int | None = None
    sampling: bool = True

    def __post_init__(self) -> None:
        _check_flag(self, "sampling", self.sampling)
        if self.bands is not None:
            check.keep(self, bands=check.integer("Banded", "bands", self.bands, 1, MOST_BANDS))

    def candidates(self, *, steps: int, batches: int) -> Iterator[FactorCandidate]:
        every = max(batches, 1)
        if self.bands is not None and self.bands > every:
            remedy = f"An epoch has {every:,} batches, and noise of two uses of a unit may not meet."
            raise check.fail("Banded", "bands", "be at most the batches of an epoch", self.bands, remedy)
        widest = min(every, _WIDEST)
        widths = [self.bands] if self.bands is not None else [*_doubled(widest), widest]
        for bands in widths if self.sampling or self.bands is not None else [widest]:
            parts = bands if self.sampling and bands < every else None
            yield FactorCandidate(best_banded(steps, bands), parts)


@dataclass(frozen=True, kw_only=True)
class BLT(GradientCorrelation):
    """Noise is taken back over all later steps, by a few `buffers`, each a copy of the model.

    The order of the examples is fixed: no chance hides who is in a batch (McMahan, Xu, Zhang 2024).
    """

    buffers: int = 3

    def __post_init__(self) -> None:
        check.keep(self, buffers=check.integer("BLT", "buffers", self.buffers, 1, MOST_BUFFERS))

    def candidates(self, *, steps: int, batches: int) -> Iterator[FactorCandidate]:
        yield FactorCandidate(best_buffered(steps, self.buffers, max(batches, 1)))


@dataclass(frozen=True, kw_only=True)
class BinaryTree(GradientCorrelation):
    """Sums over 1, 2, 4, ... steps have noise of their own (Kairouz et al. 2021), in a fixed order of
    examples.

    It needs a copy of the model for each doubling of the steps. `BLT` has less noise and needs fewer.
    """

    def candidates(self, *, steps: int, batches: int) -> Iterator[FactorCandidate]:
        yield FactorCandidate(TreeFactor(steps=steps))


@dataclass(frozen=True, kw_only=True)
class LeastNoise(GradientCorrelation):
    """Whichever has the least noise in sums of gradients at the same epsilon: all of the above, and DP-SGD.

    With `sampling=False` the order of the examples is fixed, and noise may be independent in each step.
    """

    sampling: bool = True

    def __post_init__(self) -> None:
        _check_flag(self, "sampling", self.sampling)

    def candidates(self, *, steps: int, batches: int) -> Iterator[FactorCandidate]:
        alone = None if self.sampling else BandedFactor(steps=steps, coefficients=(1.0,))
        yield FactorCandidate(alone)
        for kind in (Banded(sampling=self.sampling), BLT(), BinaryTree()):
            yield from kind.candidates(steps=steps, batches=batches)


def _doubled(widest: int) -> Iterator[int]:
    bands = 2
    while bands < widest:
        yield bands
        bands *= 2


def _check_flag(owner: object, name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise check.fail(type(owner).__name__, name, "be True or False", value)
