"""The best of several private trainings, paid for once, as the best of a secret number of runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.repetition import best_epsilon
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning.pricing import PricedPlan
from sourdine.learning.result import Trained
from sourdine.learning.selecting.best_of_runs import BestOfRuns


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A way to train: its plan, its clipping norm, and a function that carries it out without a ledger."""

    plan: PricedPlan
    train: Callable[[], Trained]
    norm: float = 1.0

    def __post_init__(self) -> None:
        check.keep(self, norm=float(check.positive("Candidate", "norm", self.norm)))

    @property
    def spend(self) -> Spend:
        """What one run of it spends."""
        return self.plan.spend(self.norm)


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The best run: which candidate it was, its model and its score; nothing of other runs is held."""

    candidate: int
    trained: Trained
    score: float
    spend: Spend
    delta: float
    receipt: Receipt | None

    @cached_property
    def epsilon(self) -> float:
        """What the choice and the model cost together, at `delta`; that of `trained` alone is less."""
        mechanism = self.spend.mechanism
        assert isinstance(mechanism, BestOfRuns)
        return best_epsilon(mechanism.settings, mechanism.mean, self.delta)


def selection_spend(candidates: Sequence[Candidate], mean: Fraction | float) -> Spend:
    """What it costs to tell the best of a random number of runs of these candidates."""
    mechanism = BestOfRuns.of([(each.spend,) for each in candidates], mean)
    return Spend(mechanism=mechanism, distance=Distance.hamming(neighbours=mechanism.neighbours))


def select_best(
    candidates: Sequence[Candidate],
    *,
    mean: Fraction | float,
    score: Callable[[Trained], float] | None = None,
    ledger: Ledger | Path | str | None = None,
    purpose: str = "choose among trainings",
    bits: Bits = SYSTEM,
) -> Selected:
    """Train candidates drawn at random, a random number of times with this mean, and tell the best run alone.

    The ledger is charged for the choice before the first run. `score` reads the trained model, or public
    data: the accuracy on public data unless given. How many runs there were stays secret, and whoever can
    time the call learns something of it. A run that costs something else than its plan says is refused.
    """
    if not candidates:
        raise check.fail("select_best", "candidates", "hold one at least", list(candidates))
    spend = selection_spend(candidates, mean)
    assert isinstance(spend.mechanism, BestOfRuns)
    stop = 1 / spend.mechanism.mean
    receipt = None
    with opened(ledger) as payer:
        if payer is not None:
            receipt = payer.charge(spend, purpose=purpose, secure=bits.secure)
    best: tuple[float, int, int, Trained] | None = None
    while True:
        place = int(exact.uniform(len(candidates), 1, bits)[0])
        trained = candidates[place].train()
        if trained.receipt is not None or trained.spends != (candidates[place].spend,):
            raise InvalidParameter(
                "A candidate must be trained by the plan that it states, and without a ledger: the choice is "
                "what is paid for. Pass fit(...) the same plan and clipping, and no ledger."
            )
        run = (_score(trained, score), int(bits.words(1)[0]), place, trained)  # chance decides among equals
        if best is None or run[:2] > best[:2]:
            best = run
        if bool(exact.bernoulli(stop, 1, bits)[0]):
            break
    return Selected(
        candidate=best[2],
        trained=best[3],
        score=best[0],
        spend=spend,
        delta=max(each.plan.delta for each in candidates),
        receipt=receipt,
    )


def _score(trained: Trained, score: Callable[[Trained], float] | None) -> float:
    value = trained.accuracy if score is None else float(score(trained))
    if value is None:
        raise InvalidParameter("There is nothing to choose by. Train with public=, or pass a score.")
    return -math.inf if math.isnan(value) else value  # what cannot be compared is worst
