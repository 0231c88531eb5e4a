"""Many runs over lists of settings: what each costs, and what all cost together."""

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.dpsgd.training import Sampler
from sourdine.accounting.pld.accountant import PLD
from sourdine.accounting.rdp.accountant import Renyi
from sourdine.accounting.spend import Spend, plan_cost
from sourdine.accounting.transforms import best_of_runs
from sourdine.core import check
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning.planning import TrainingPlan, plan
from sourdine.learning.pricing import PricedPlan

MOST_RUNS = 10**5
_HOPELESS = 1000.0  # an epsilon beyond which nothing is promised, and a closer look would take long
_OPEN = 1e-3  # how much of epsilon may stay open, relative


_IN_JOURNALS = {"batch_size": "batch", "noise_multiplier": "noise"}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One choice of everything that is varied; of `epsilon` and `noise_multiplier` one is stated."""

    learning_rate: float
    batch_size: int
    epochs: int
    clip: float
    epsilon: float | None = None
    noise_multiplier: float | None = None
    hidden: int | None = None

    def to_json(self) -> dict[str, object]:
        """The setting as a journal holds it, by the names that the first journals had."""
        return {_IN_JOURNALS.get(name, name): value for name, value in asdict(self).items()}


def product(
    *,
    learning_rate: Sequence[float],
    batch_size: Sequence[int],
    epochs: Sequence[int],
    clip: Sequence[float],
    epsilon: Sequence[float] = (),
    noise_multiplier: Sequence[float] = (),
    hidden: Sequence[int] = (),
) -> tuple[Setting, ...]:
    """Every combination of the listed values, the last list running fastest.

    >>> made = product(learning_rate=[1], batch_size=[8, 16], epochs=[1], clip=[1], noise_multiplier=[2])
    >>> [each.batch_size for each in made]
    [8, 16]
    """
    if bool(epsilon) == bool(noise_multiplier):
        must = "be listed, or else 'noise_multiplier', and not both"
        raise check.fail("a sweep", "epsilon", must, tuple(epsilon))
    lists: dict[str, Sequence[float | None]] = {
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "epochs": epochs,
        "clip": clip,
        "epsilon": epsilon or (None,),
        "noise_multiplier": noise_multiplier or (None,),
        "hidden": hidden or (None,),
    }
    for name, values in lists.items():
        if len(set(values)) < max(1, len(values)):
            raise check.fail("a sweep", name, "list each value once, and at least one", tuple(values))
    return tuple(
        Setting(
            learning_rate=step,
            batch_size=of,
            epochs=long,
            clip=norm,
            epsilon=level,
            noise_multiplier=scale,
            hidden=units,
        )
        for step, of, long, norm, level, scale, units in itertools.product(
            learning_rate,
            batch_size,
            epochs,
            clip,
            epsilon or (None,),
            noise_multiplier or (None,),
            hidden or (None,),
        )
    )


def some_of(settings: Sequence[Setting], count: int, bits: Bits = SYSTEM) -> tuple[Setting, ...]:
    """So many of the settings, drawn at random and kept in their order."""
    count = check.integer("a sweep", "random", count, 1, len(settings))
    left = list(range(len(settings)))
    drawn = [left.pop(int(exact.uniform(len(left), 1, bits)[0])) for _ in range(count)]
    return tuple(settings[place] for place in sorted(drawn))


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Settings, each run so many times on the same data. All of it is public, and fixed beforehand."""

    settings: tuple[Setting, ...]
    repeats: int
    size: int
    delta: float
    sampler: Sampler = Sampler.POISSON

    def __post_init__(self) -> None:
        if not self.settings:
            raise check.fail("a sweep", "settings", "hold at least one setting", self.settings)
        check.keep(self, repeats=check.integer("a sweep", "repeats", self.repeats, 1, 1000))
        if self.runs > MOST_RUNS:
            raise check.fail("a sweep", "runs", f"be at most {MOST_RUNS:,}", self.runs)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return self.repeats * len(self.settings)

    @cached_property
    def plans(self) -> tuple[PricedPlan, ...]:
        """The plan of each setting; those that cost the same are computed once."""
        plans: dict[tuple[object, ...], PricedPlan] = {}
        for each in self.settings:
            key = self._key(each)
            if key not in plans:
                plans[key] = plan(self.plan_of(each))
        return tuple(plans[self._key(each)] for each in self.settings)

    def plan_of(self, setting: Setting) -> TrainingPlan:
        """What one setting asks for."""
        return TrainingPlan(
            size=self.size,
            delta=self.delta,
            epsilon=setting.epsilon,
            noise_multiplier=setting.noise_multiplier,
            epochs=setting.epochs,
            batch_size=setting.batch_size,
            sampler=self.sampler,
        )

    @property
    def steps(self) -> int:
        """The steps of all runs."""
        return self.repeats * sum(each.steps for each in self.plans)

    @cached_property
    def spends(self) -> tuple[Spend, ...]:
        """What a ledger is charged for all runs."""
        spends = [planned.spend(each.clip) for each, planned in zip(self.settings, self.plans, strict=True)]
        return tuple(spend for spend in spends for _ in range(self.repeats))

    @cached_property
    def epsilon(self) -> Bracket:
        """What whoever sees every run has seen, at the delta of one: all runs composed.

        Clipping to another norm with noise in proportion costs the same, so runs are taken at a norm of 1.
        """
        alike = [planned.spend() for planned in self.plans for _ in range(self.repeats)]
        moments = Renyi()
        rough = moments.epsilon(plan_cost(alike, moments), self.delta).upper
        if rough > _HOPELESS:
            return Bracket(0.0, rough)
        accountant = PLD(width=min(1.0, _OPEN * max(rough, 1.0)))
        bracket = accountant.epsilon(plan_cost(alike, accountant), self.delta)
        return Bracket(min(bracket.lower, rough), min(bracket.upper, rough))

    @cached_property
    def epsilon_of_best(self) -> float:
        """What the best run would cost alone, had the number of runs been drawn at random with this mean."""
        moments = Renyi()
        curves = [moments.curve(plan_cost([each.spend()], moments)) for each in dict.fromkeys(self.plans)]
        return best_of_runs(np.array(moments.orders), np.max(curves, axis=0), self.runs, self.delta)

    def _key(self, setting: Setting) -> tuple[object, ...]:
        return setting.batch_size, setting.epochs, setting.epsilon, setting.noise_multiplier
