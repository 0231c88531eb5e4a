"""The best of a secret, random number of private runs as a mechanism that a ledger can pay for."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.joint import together, worst
from sourdine.accounting.repetition import MOST_RUNS, best_of
from sourdine.accounting.spend import Spend, foreign_names
from sourdine.accounting.transforms import group
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours, Norm
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.mechanisms.rounded_gaussian import RoundedGaussian


@dataclass(frozen=True, kw_only=True)
class BestOfRuns(Mechanism):
    """Runs one of several private computations, drawn anew each time, and tells the best run alone.

    After each run it stops with probability 1/mean. How many there were, and all but the best, stays secret.
    With delta(x) the largest profile of a run, the best has delta(x + 2y) <= mean * delta(x) for each y >= 0
    with (mean - 1) delta(y) <= e^y - 1 (docs/guarantees/selection.md); in Renyi terms Papernot and Steinke
    2022, theorem 2. Each of `runs` describes the spends of one setting for one changed unit, as files have
    them; `BestOfRuns.of` takes the spends themselves.

    >>> from sourdine.mechanisms import Laplace
    >>> run = Spend(mechanism=Laplace(scale=2), distance=Distance.l1(1))
    >>> one = Distance.hamming(neighbours=Neighbours.ADD_REMOVE)
    >>> BestOfRuns.of([[run]], mean=10).loss(one).epsilon
    Fraction(3, 2)
    """

    name: ClassVar[str] = "best-of-runs/1"
    norm: ClassVar[Norm] = Norm.HAMMING
    runs: tuple[str, ...]  # texts, so that what is written of it is what is compared
    mean: Fraction

    def __post_init__(self) -> None:
        runs = tuple(self.runs)
        check.keep(
            self,
            runs=runs,
            mean=check.between("BestOfRuns", "mean", self.mean, Fraction(1), Fraction(MOST_RUNS)),
        )
        try:
            settings = self.settings
        except (AttributeError, TypeError, ValueError) as problem:
            raise check.fail(
                "BestOfRuns", "runs", "describe spends as files have them", None, "Use BestOfRuns.of."
            ) from problem
        if not settings or not all(settings):
            raise check.fail("BestOfRuns", "runs", "hold the spends of one setting at least", len(runs))
        if tuple(map(_described, settings)) != runs:
            raise check.fail("BestOfRuns", "runs", "be as BestOfRuns.of writes them", len(runs))
        spends = [spend for setting in settings for spend in setting]
        if len({spend.distance.neighbours for spend in spends}) != 1:
            raise check.fail("BestOfRuns", "runs", "be about the same neighbours", len(runs))
        if names := foreign_names(spends):
            raise check.fail("BestOfRuns", "runs", "use mechanisms of this package only", names[0])

    @classmethod
    def of(cls, settings: Sequence[Sequence[Spend]], mean: Fraction | float) -> "BestOfRuns":
        """The best of runs that each have the spends of one of these settings."""
        average = check.between("BestOfRuns", "mean", mean, Fraction(1), Fraction(MOST_RUNS))
        return cls(runs=tuple(map(_described, settings)), mean=average)

    @cached_property
    def settings(self) -> tuple[tuple[Spend, ...], ...]:
        """The spends of each setting."""
        return tuple(tuple(map(Spend.from_json, json.loads(run))) for run in self.runs)

    @property
    def neighbours(self) -> Neighbours:
        """The pairs of data sets that all runs are about."""
        return self.settings[0][0].distance.neighbours

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """The largest answers of a mechanism that gives one number: each value has its own number of runs."""
        first = self.settings[0]
        if len(self.settings) != 1 or len(first) != 1 or first[0].count != 1 or first[0].sampling is not None:
            raise InvalidParameter(
                "Only one use of one mechanism can be sampled here. Training runs are chosen from by "
                "learning.select_best."
            )
        mechanism = first[0].mechanism
        truths = np.asarray(values)
        best = mechanism.sample(truths.ravel(), bits)
        going = np.flatnonzero(~exact.bernoulli(1 / self.mean, len(best), bits))
        while len(going):
            best[going] = np.maximum(best[going], mechanism.sample(truths.ravel()[going], bits))
            going = going[~exact.bernoulli(1 / self.mean, len(going), bits)]
        return best.reshape(truths.shape)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        if distance.neighbours is not self.neighbours:
            raise UnsupportedLoss(
                f"The runs are about {self.neighbours} neighbours, and this distance about "
                f"{distance.neighbours} ones. State the distance for {self.neighbours} neighbours."
            )
        each = [together([(spend.one_loss(), spend.count) for spend in run]) for run in self.settings]
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
        return max(spend.mechanism.error(confidence) for run in self.settings for spend in run)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        for mean in (Fraction(2), Fraction(9, 2)):
            run = Spend(mechanism=RoundedGaussian(sigma=10), distance=Distance.l2(6, coordinates=1))
            yield Example(
                mechanism=cls.of([[run]], mean),
                value=0,
                neighbour=6,
                distance=Distance.hamming(neighbours=Neighbours.ADD_REMOVE),
            )


def _described(spends: Sequence[Spend]) -> str:
    """The spends of one setting as one text, the same for equal ones."""
    return json.dumps([spend.to_json() for spend in spends], sort_keys=True, separators=(",", ":"))
