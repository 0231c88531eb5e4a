"""The best of a secret, random number of private runs as a mechanism that a ledger can pay for."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.pld.joint import together, worst
from sourdine.accounting.repetition import MOST_RUNS, best_of
from sourdine.accounting.spend import Spend
from sourdine.accounting.transforms import group
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours, Norm
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.randomness import exact
from sourdine.core.randomness.bits import SYSTEM, Bits
from sourdine.mechanisms.rounded_gaussian import RoundedGaussian


@dataclass(frozen=True, kw_only=True)
class BestOfRuns(Mechanism):
    """Runs one of several private computations, drawn anew each time, and tells the best run alone.

    After each run it stops with probability 1/mean. How many there were, and all but the best, stays secret.
    With delta(x) the largest profile of a run, the best has delta(x + 2y) <= mean * delta(x) for each y >= 0
    with (mean - 1) delta(y) <= e^y - 1 (docs/guarantees/selection.md); in Renyi terms Papernot and Steinke
    2022, theorem 2. Each of `runs` holds the spends of one setting for one changed unit.

    >>> from sourdine.mechanisms import Laplace
    >>> run = Spend(mechanism=Laplace(scale=2), distance=Distance.l1(1))
    >>> one = Distance.hamming(neighbours=Neighbours.ADD_REMOVE)
    >>> BestOfRuns(runs=((run,),), mean=10).loss(one).epsilon
    Fraction(3, 2)
    """

    name: ClassVar[str] = "best-of-runs/1"
    norm: ClassVar[Norm] = Norm.HAMMING
    runs: tuple[tuple[Spend, ...], ...]
    mean: Fraction

    def __post_init__(self) -> None:
        runs = tuple(tuple(each) for each in self.runs)
        if not runs or not all(runs):
            raise check.fail("BestOfRuns", "runs", "hold the spends of one setting at least", self.runs)
        mean = check.between("BestOfRuns", "mean", self.mean, Fraction(1), Fraction(MOST_RUNS))
        if len({spend.distance.neighbours for run in runs for spend in run}) != 1:
            raise check.fail("BestOfRuns", "runs", "be about the same neighbours", len(runs))
        check.keep(self, runs=runs, mean=mean)

    @property
    def neighbours(self) -> Neighbours:
        """The pairs of data sets that all runs are about."""
        return self.runs[0][0].distance.neighbours

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """The largest answers of a mechanism that gives one number: each value has its own number of runs."""
        if len(self.runs) != 1 or len(self.runs[0]) != 1 or self.runs[0][0].count != 1:
            raise InvalidParameter(
                "Only one use of one mechanism can be sampled here. Training runs are chosen from by "
                "learning.select_best."
            )
        mechanism = self.runs[0][0].mechanism
        held = np.asarray(values)
        best = mechanism.sample(held.ravel(), bits)
        going = np.flatnonzero(~exact.bernoulli(1 / self.mean, len(best), bits))
        while len(going):
            best[going] = np.maximum(best[going], mechanism.sample(held.ravel()[going], bits))
            going = going[~exact.bernoulli(1 / self.mean, len(going), bits)]
        return best.reshape(held.shape)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        if distance.neighbours is not self.neighbours:
            raise UnsupportedLoss(
                f"The runs are about {self.neighbours} neighbours, and this distance about "
                f"{distance.neighbours} ones. State the distance for {self.neighbours} neighbours."
            )
        each = [together([(spend.one_loss(), spend.count) for spend in run]) for run in self.runs]
        law = worst([side for one in each for side in (one.remove, one.add)])
        one = PrivacyLoss.symmetric(
            law,
            neighbours=self.neighbours,
            epsilon=max(loss.epsilon for loss in each),
            rho=max(loss.rho for loss in each),
            delta=max(loss.delta for loss in each),
        )
        best = best_of(one, self.mean)
        changed = floor(distance.amount)
        return best if changed == 1 else group(best, max(1, changed))

    def error(self, confidence: float = 0.95) -> float:
        """That of the least exact run: the best of several is chosen, not averaged."""
        return max(spend.mechanism.error(confidence) for run in self.runs for spend in run)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        for mean in (Fraction(2), Fraction(9, 2)):
            run = Spend(mechanism=RoundedGaussian(sigma=10), distance=Distance.l2(6, coordinates=1))
            yield Example(
                mechanism=cls(runs=((run,),), mean=mean),
                value=0,
                neighbour=6,
                distance=Distance.hamming(neighbours=Neighbours.ADD_REMOVE),
            )
