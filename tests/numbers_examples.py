"""One small call of every public callable that takes numbers.

The numbers are such that a byte, or half a float, holds them, and that sums of a few of them no longer fit.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from sourdine import accounting, anonymity, audit, frames, learning, local, mechanisms, tables
from sourdine.accounting import (
    PLD,
    Approximate,
    Pure,
    Renyi,
    Sampler,
    Spend,
    Training,
    ZeroConcentrated,
    explain,
)
from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.distance import Distance, Neighbours, Norm
from sourdine.core.distributions import GaussianLaw
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Mechanism
from sourdine.local import words
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.mechanisms.correlation import Participation, TreeMatrix
from sourdine.testing import SeededBits

HALF, QUARTER, SMALL = 0.5, 0.25, 2.0**-10


@dataclass(frozen=True)
class Example:
    """A call and the numbers that it takes."""

    call: Callable[..., Any]
    numbers: dict[str, Any]

    def answer(self, **changed: object) -> Any:
        """What the call gives, with some of the numbers in another type."""
        return self.call(**{**self.numbers, **changed})


def of(call: Callable[..., Any], **numbers: Any) -> tuple[Example, ...]:
    """The one example of a call."""
    return (Example(call, numbers),)


class _Batches(TypedDict):
    size: int
    batch_size: int
    epochs: int


class _Crossing(TypedDict):
    epsilon: float
    queries: int
    threshold: int
    sensitivity: float


class _Selection(TypedDict):
    epsilon: float
    sensitivity: float
    candidates: int


def _laplace(scale: Fraction) -> Mechanism:
    return Laplace(scale=scale)


def _gaussian(sigma: Fraction) -> Mechanism:
    return Gaussian(sigma=sigma)


_ADD = Neighbours.ADD_REMOVE
LAW = GaussianLaw(0.25)
RUN = Spend(mechanism=Gaussian(sigma=4), distance=Distance.l2(1))
RUNS = learning.BestOfRuns.of([[RUN]], 5).runs
LAPLACE = PrivacyLoss.pure(Fraction(1, 2))
GAUSSIAN = Gaussian(sigma=4).loss(Distance.l2(1, coordinates=1))
NORMAL = PrivacyLoss.symmetric(LAW, neighbours=_ADD)
CONTINUOUS = PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=_ADD)
EXCHANGED = PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.REPLACE)
REPLACED = PrivacyLoss.pure(Fraction(1, 2), neighbours=Neighbours.REPLACE)
TRAINING = Training(size=100, batch_size=10, noise_multiplier=2.0, epochs=1)
MANY = PLD().repeat(PLD().lift(NORMAL), 10)
POINTS = Approximate().lift(accounting.known(Fraction(1, 2), Fraction(1, 1000)))
SPEND = Spend(mechanism=Laplace(scale=20), distance=Distance.l1(1))
FAVOURS = accounting.Favours(each=0.25, alone=0.25, both=0.0)
CURVE = explain.explain_guarantee(1, 1e-3).curve
KARY = local.GRR(epsilon=1, categories=4)
QUESTION = local.Question(name="q", oracle=KARY)
CODES = np.tile(np.arange(4), 25)
NUMERIC = local.Piecewise(epsilon=1, lower=0, upper=1)
BOUNDED = local.BoundedLaplaceOracle(epsilon=1, lower=0, upper=1, cells=16)
WAVE = local.SquareWave(epsilon=1, lower=0, upper=1, cells=16)
PEOPLE = pd.DataFrame(
    {"age": [31, 54, 31, 54, 31, 54], "sex": list("fmfmfm"), "ill": ["a", "b", "b", "a", "c", "c"]}
)
RECORDS_OF_PEOPLE = anonymity.Records.read(PEOPLE, quasi=["age", "sex"], sensitive=["ill"])
SURVEY = local.Survey.two_coins()
COLUMNS = {
    "age": {"type": "integer", "lower": 0, "upper": 100},
    "sex": {"type": "category", "keys": ["f", "m"]},
}


@cache
def _counts(oracle: Any, values: tuple[float, ...]) -> Any:
    return oracle.tally(oracle.sample(np.array(values), SeededBits(1)))


def _numeric_counts(oracle: Any) -> Any:
    return _counts(oracle, tuple(np.linspace(0, 1, 100)))


def _kary_counts(oracle: Any = KARY) -> Any:
    return _counts(oracle, tuple(CODES.tolist()))


def _in_ledger(call: Callable[..., Any], **given: Any) -> Any:
    """The answer of a call that charges a ledger, of which only the values are compared."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.ledger"
        terms = Terms(budget=PureBudget(limit=Fraction(1000)), unit="record", neighbours=_ADD)
        Ledger.create(path, terms).close()
        found = call(ledger=path, bits=SeededBits(1), **given)
        return found.values, found.confidence


@cache
def _torch() -> Any:
    import torch

    torch.manual_seed(5)
    x = torch.randn(40, 4)
    return torch, x, (x.sum(1) > 0).long()


def _linear() -> Any:
    torch = _torch()[0]
    torch.manual_seed(5)
    return torch.nn.Linear(4, 2)


def _fit(**given: Any) -> Any:
    _, x, y = _torch()
    groups = {"plan": learning.TrainingPlan, "execution": learning.Execution}
    asked = {name: kind(**given.pop(name)) for name, kind in groups.items() if name in given}
    asked = {"execution": learning.Execution(physical_batch_size=10)} | asked | given
    found = learning.fit(_linear(), (x, y), bits=SeededBits(1), **asked)
    return found.plan, [tensor.tolist() for tensor in found.model.state_dict().values()]


_TWO_STEPS: dict[str, Any] = {"delta": SMALL, "noise_multiplier": 2, "steps": 2, "batch_size": 10}


def _candidate(**given: Any) -> Any:
    priced = learning.plan(learning.TrainingPlan(**_TWO_STEPS), size=40)

    def train() -> Any:
        execution = learning.Execution(physical_batch_size=10)
        return learning.fit(_linear(), _torch()[1:], learning.TrainingPlan(**_TWO_STEPS), execution=execution)

    return learning.Candidate(plan=priced, train=train, **given)


def _select_best(mean: float) -> Any:
    found = learning.select_best([_candidate()], mean=mean, score=lambda _: 1.0, bits=SeededBits(1))
    return found.spend


def _fit_in_steps(every: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return _fit(plan=_TWO_STEPS, checkpoint=learning.Checkpoint(Path(folder) / "run", every=every))


def _measure(**given: Any) -> None:
    """How long it takes differs from run to run."""
    learning.measure(_linear(), _torch()[1:], **given)


def _step(**given: Any) -> Any:
    step = learning.Step(_linear(), bits=SeededBits(1), **given)
    return step.mechanism, step.batch_size, step.steps, step.physical_batch_size


def _sum_by(method: str, **given: Any) -> Any:
    torch, x, y = _torch()
    model = _linear()
    act = getattr(learning.Engine(model, learning.Flat()), method)
    sums = act(lambda: torch.nn.functional.cross_entropy(model(x), y, reduction="none"), **given)
    return {name: each.tolist() for name, each in sums.items()}


def _check_places(examples_per_unit: int) -> Any:
    torch, x, y = _torch()
    model = _linear()
    step = learning.Step(model, noise_multiplier=1.0, batch_size=10, steps=1, exact=True, bits=SeededBits(1))
    losses = lambda x, y: torch.nn.functional.cross_entropy(model(x), y, reduction="none")
    step.check_places(losses, (x, y), examples_per_unit=examples_per_unit)


def _csv_log(every: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return learning.CsvLog(Path(folder) / "run.csv", every=every)._every


def _added(examples_per_unit: int) -> Any:
    torch, x, y = _torch()
    model = _linear()
    step = learning.Step(model, noise_multiplier=1.0, batch_size=10, steps=1, bits=SeededBits(1))
    step.add(
        lambda x, y: torch.nn.functional.cross_entropy(model(x), y, reduction="none"),
        x,
        y,
        examples_per_unit=examples_per_unit,
    )


def _taken(examples_per_unit: int) -> Any:
    torch, x, y = _torch()
    model = _linear()
    step = learning.Step(model, noise_multiplier=1.0, batch_size=10, steps=1, bits=SeededBits(1))
    losses = lambda x, y: torch.nn.functional.cross_entropy(model(x), y, reduction="none")
    step.take(losses, (x, y), examples_per_unit=examples_per_unit)


def _plan_of_forty() -> Any:
    return learning.plan(
        learning.TrainingPlan(noise_multiplier=2, delta=0.01, epochs=1, batch_size=10), size=40
    )


def _loaded(**given: Any) -> int:
    return len(learning.loader(_torch()[1:], _plan_of_forty(), **given))


def _solve(**given: Any) -> Any:
    _, x, y = _torch()
    found = learning.solve((x, y), bits=SeededBits(1), **given)
    return found.noise, found.epsilon, found.delta, found.width, found.classes


def _memory() -> Any:
    from sourdine.learning import Memory
    from sourdine.learning.memory.model import FIRST, Course, MemoryLine, Stage

    flat = Course(((1, 200),), (MemoryLine(200, 50),))
    return Memory(live={stage: MemoryLine(100, 0) for stage in FIRST}, most=dict.fromkeys(Stage, flat))


def _table(**given: Any) -> Any:
    found = tables.Table(PEOPLE, unit="record", columns=COLUMNS, **given)
    return found.plan({"name": "n", "ask": ["count"]}, epsilon=1)


def _series_plan(**numbers: Any) -> Any:
    block = {"period": "day", "first": "2026-01-01", "periods": 3, "publish": ["total"]}
    table = tables.Table(PEOPLE, unit="record", columns=COLUMNS)
    return table.series_plan({"name": "n", "ask": ["count"]}, series=block, **numbers)


def _synthetic_plan(**numbers: Any) -> Any:
    return tables.Table(PEOPLE, unit="record", columns=COLUMNS).synthetic_plan(**numbers)


def _synthesize(**numbers: Any) -> Any:
    people = tables.Table(PEOPLE, unit="record", columns=COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.ledger"
        Ledger.create(path, epsilon=1000, delta=1e-3, unit="record").close()
        return people.synthesize(ledger=path, bits=SeededBits(1), **numbers).values.to_arrow().to_pylist()


def _plan(**given: Any) -> Any:
    return tables.Table(PEOPLE, unit="record", columns=COLUMNS).plan({"name": "n", "ask": ["count"]}, **given)


def _specification() -> tables.Specification:
    return tables.Specification.read(
        {
            "table": {"source": "people.csv"},
            "privacy": {"unit": "record", "epsilon": 1, "ledger": "none.ledger"},
            "columns": COLUMNS,
            "queries": [{"name": "n", "ask": ["count"]}],
        }
    )


def _ledger_that_is_missing(epsilon: Any) -> Any:
    """The words that say how to make it; a number that is refused stays refused."""
    try:
        return _specification().open_ledger(epsilon)
    except InvalidParameter as problem:
        if problem.name == "epsilon":
            raise
        return str(problem)


def _numbers(kind: Any, fixed: dict[str, Any] | None = None, **numbers: Any) -> tuple[Example, ...]:
    """A pydantic declaration."""
    return of(lambda **given: kind(**(fixed or {}), **given), **numbers)


def _error(mechanism: Any, **numbers: Any) -> tuple[Example, ...]:
    return of(mechanism.error, confidence=HALF, **numbers)


_BATCHES = _Batches(size=100, batch_size=50, epochs=2)
_RANGE = {"lower": 0, "upper": 1}

CORE = {
    "core.Distance": of(lambda **n: Distance(norm=Norm.L2, **n), amount=100, coordinates=100, largest=100),
    "core.Distance.l1": of(Distance.l1, value=100, coordinates=100, largest=100),
    "core.Distance.l2": (
        Example(Distance.l2, {"value": 100, "coordinates": 100, "largest": 100}),
        Example(Distance.l2, {"square": 100}),
    ),
    "core.Distance.linf": of(Distance.linf, value=100),
    "core.Distance.hamming": of(Distance.hamming, value=100),
    "core.PrivacyLoss": of(
        lambda **n: PrivacyLoss(remove=LAW, add=LAW, neighbours=_ADD, **n), epsilon=100, rho=100, delta=SMALL
    ),
    "core.PrivacyLoss.symmetric": of(
        lambda **n: PrivacyLoss.symmetric(LAW, neighbours=_ADD, **n), epsilon=100, rho=100, delta=SMALL
    ),
    "core.PrivacyLoss.pure": of(PrivacyLoss.pure, epsilon=100, rho=100),
    "core.PrivacyLoss.profile": of(LAPLACE.profile, epsilon=QUARTER),
}

ACCOUNTING = {
    "accounting.PLD": of(PLD, width=QUARTER, relative_width=SMALL),
    "accounting.PLD.delta": of(lambda epsilon: PLD().delta(MANY, epsilon), epsilon=1),
    "accounting.PLD.epsilon": of(lambda delta: PLD().epsilon(MANY, delta), delta=SMALL),
    "accounting.PLD.repeat": of(lambda count: PLD().repeat(MANY, count), count=100),
    "accounting.PLD.why_wide": of(lambda delta: PLD().why_wide(MANY, delta), delta=SMALL),
    "accounting.Accountant.repeat": of(lambda count: Pure().repeat(Pure().lift(LAPLACE), count), count=100),
    "accounting.Approximate": of(Approximate, width=QUARTER),
    "accounting.Approximate.delta": of(lambda epsilon: Approximate().delta(POINTS, epsilon), epsilon=QUARTER),
    "accounting.Approximate.epsilon": of(lambda delta: Approximate().epsilon(POINTS, delta), delta=2.0**-8),
    "accounting.AttackLimit": (
        Example(accounting.AttackLimit, {"advantage": QUARTER}),
        Example(accounting.AttackLimit, {"true_positives": HALF, "false_positives": QUARTER}),
    ),
    "accounting.AttackLimit.excess": of(accounting.AttackLimit(advantage=0.5).excess, success=QUARTER),
    "accounting.AttackLimit.success": of(
        lambda share: accounting.AttackLimit(advantage=0.5).success(MANY, share), share=QUARTER
    ),
    "accounting.attack_advantage": of(lambda share: accounting.attack_advantage(MANY, share), share=QUARTER),
    "accounting.attack_true_positives": of(
        lambda **n: accounting.attack_true_positives(MANY, **n), false_positives=QUARTER, share=QUARTER
    ),
    "accounting.calibrate_to_attack": (
        Example(
            lambda **n: accounting.calibrate_to_attack(_laplace, Distance.l1(1), **n),
            {"advantage": QUARTER, "count": 1},
        ),
        Example(
            lambda **n: accounting.calibrate_to_attack(_laplace, Distance.l1(1), **n),
            {"true_positives": HALF, "false_positives": QUARTER},
        ),
    ),
    "accounting.FixedSize": of(accounting.FixedSize, batch_size=50, size=100),
    "accounting.Poisson": of(accounting.Poisson, sampling_rate=QUARTER),
    "accounting.PoissonGroup": of(accounting.PoissonGroup, sampling_rate=QUARTER, group=3),
    "accounting.PoissonReplace": of(accounting.PoissonReplace, sampling_rate=QUARTER, alone=QUARTER, group=3),
    "accounting.Pure.delta": of(lambda epsilon: Pure().delta(Pure().lift(LAPLACE), epsilon), epsilon=QUARTER),
    "accounting.Pure.epsilon": of(lambda delta: Pure().epsilon(Pure().lift(LAPLACE), delta), delta=SMALL),
    "accounting.RandomAllocation": of(accounting.RandomAllocation, batches=3),
    "accounting.Renyi.delta": of(lambda epsilon: Renyi().delta(Renyi().lift(NORMAL), epsilon), epsilon=1),
    "accounting.Renyi.epsilon": of(lambda delta: Renyi().epsilon(Renyi().lift(NORMAL), delta), delta=SMALL),
    "accounting.Renyi.order": of(lambda delta: Renyi().order(Renyi().lift(NORMAL), delta), delta=SMALL),
    "accounting.Shuffled": of(accounting.Shuffled, batch_size=50, size=100),
    "accounting.Spend": of(
        lambda count: Spend(mechanism=Laplace(scale=20), distance=Distance.l1(1), count=count), count=100
    ),
    "accounting.Training": (
        *of(Training, size=120, batch_size=50, noise_multiplier=2, epochs=100, group=2),
        Example(
            partial(Training, sampler=Sampler.CYCLIC, noise_multiplier=2, epochs=1),
            {"size": 100, "batch_size": 20, "parts": 2},
        ),
        *of(
            partial(Training, sampler=Sampler.TRUNCATED),
            size=120,
            batch_size=50,
            noise_multiplier=2,
            epochs=100,
            max_batch_size=90,
        ),
    ),
    "accounting.TruncatedPoisson": of(
        accounting.TruncatedPoisson, batch_size=50, size=120, max_batch_size=100
    ),
    "accounting.ZeroConcentrated.delta": of(
        lambda epsilon: ZeroConcentrated().delta(ZeroConcentrated().lift(GAUSSIAN), epsilon), epsilon=1
    ),
    "accounting.ZeroConcentrated.epsilon": of(
        lambda delta: ZeroConcentrated().epsilon(ZeroConcentrated().lift(GAUSSIAN), delta), delta=SMALL
    ),
    "accounting.advanced_composition": of(
        accounting.advanced_composition, epsilon=QUARTER, delta=SMALL, count=100, slack=SMALL
    ),
    "accounting.calibrate_noise": of(
        lambda **n: accounting.calibrate_noise(_laplace, Distance.l1(1), **n), epsilon=100, delta=0, count=100
    ),
    "accounting.calibrate_plan": of(
        lambda **n: accounting.calibrate_plan(
            lambda scale: [Spend(mechanism=Laplace(scale=scale), distance=Distance.l1(1))], **n
        ),
        epsilon=100,
        delta=0,
    ),
    "accounting.cost_of_steps": of(
        accounting.cost_of_steps,
        noise_multiplier=2,
        sampling_rate=QUARTER,
        steps=100,
        delta=SMALL,
        width=QUARTER,
        group=2,
    ),
    "accounting.cost_of_training": of(
        lambda **n: accounting.cost_of_training(TRAINING, **n), delta=SMALL, width=QUARTER
    ),
    "accounting.epochs_within": of(
        lambda **n: accounting.epochs_within(TRAINING, **n), epsilon=1, delta=SMALL
    ),
    "accounting.epsilon_for_error": of(
        lambda **n: accounting.epsilon_for_error(_laplace, Distance.l1(1), **n),
        error=100,
        delta=0,
        confidence=HALF,
        count=100,
    ),
    "accounting.dpsgd_epsilon": of(
        accounting.dpsgd_epsilon,
        noise_multiplier=2,
        sampling_rate=QUARTER,
        steps=100,
        delta=SMALL,
        width=QUARTER,
        group=2,
    ),
    "accounting.dpsgd_epsilons": of(
        lambda **n: accounting.dpsgd_epsilons(2, QUARTER, 100, SMALL, **n),
        width=QUARTER,
        group=2,
    ),
    "accounting.fixed_size": of(lambda **n: accounting.fixed_size(REPLACED, **n), batch_size=50, size=100),
    "accounting.gdp_epsilon": of(accounting.gdp_epsilon, square=1, delta=SMALL),
    "accounting.mu_of_epsilon": of(accounting.mu_of_epsilon, epsilon=1),
    "accounting.odometer_epsilon": of(accounting.odometer_epsilon, spent=1, delta=SMALL),
    "accounting.group": of(lambda size: accounting.group(LAPLACE, size), size=100),
    "accounting.group_distance": of(
        lambda size: accounting.group_distance(Distance.l2(1, coordinates=1), size), size=100
    ),
    "accounting.known": of(accounting.known, epsilon=1, delta=SMALL),
    "accounting.known_at": of(lambda delta: accounting.known_at(NORMAL, delta), delta=SMALL),
    "accounting.noise_for": of(
        accounting.noise_for, epsilon=2, delta=SMALL, sampling_rate=QUARTER, steps=100, group=2
    ),
    "accounting.noise_for_training": of(
        lambda **n: accounting.noise_for_training(TRAINING, **n), epsilon=2, delta=SMALL
    ),
    "accounting.poisson": of(
        lambda sampling_rate: accounting.poisson(LAPLACE, sampling_rate), sampling_rate=QUARTER
    ),
    "accounting.poisson_group": of(
        lambda **n: accounting.poisson_group(CONTINUOUS, **n), sampling_rate=QUARTER, group=3
    ),
    "accounting.poisson_replace": of(
        lambda **n: accounting.poisson_replace(EXCHANGED, **n), sampling_rate=QUARTER, alone=QUARTER, group=3
    ),
    "accounting.random_allocation": of(
        lambda batches: accounting.random_allocation(CONTINUOUS, batches), batches=3
    ),
    "accounting.shuffle_model": of(accounting.shuffle_model, epsilon=HALF, reports=100, delta=SMALL),
    "accounting.shuffle_model_bound": of(
        accounting.shuffle_model_bound, epsilon=HALF, reports=100, delta=SMALL
    ),
    "accounting.shuffled_attack": of(
        accounting.shuffled_attack, noise_multiplier=2, batches=100, delta=SMALL
    ),
    "accounting.steps_within": of(
        accounting.steps_within, noise_multiplier=2, sampling_rate=QUARTER, epsilon=1, delta=SMALL, group=2
    ),
    "accounting.truncated_poisson": of(
        lambda **n: accounting.truncated_poisson(CONTINUOUS, **n), batch_size=50, size=120, max_batch_size=100
    ),
    "accounting.uses_within": of(lambda **n: accounting.uses_within([SPEND], **n), epsilon=100, delta=0),
    "accounting.Favours": of(accounting.Favours, each=HALF, alone=QUARTER, both=QUARTER, third=QUARTER),
    "accounting.Favours.blanket": of(FAVOURS.blanket, epsilon=1),
    "accounting.blanket_model": of(
        lambda **n: accounting.blanket_model(FAVOURS, **n), epsilon=1, reports=100, delta=SMALL
    ),
    "accounting.Curve.accuracy": of(CURVE.accuracy, prior=QUARTER),
    "accounting.Curve.exceeding": of(CURVE.exceeding, epsilon=HALF),
    "accounting.Curve.expected": of(CURVE.expected, mean=100, upper=1000),
    "accounting.Curve.posterior": of(CURVE.posterior, prior=QUARTER, chance=QUARTER),
    "accounting.Curve.precision": of(CURVE.precision, prior=QUARTER, false_positives=QUARTER),
    "accounting.Curve.reach": of(CURVE.reach, chance=QUARTER),
    "accounting.Explanation.posterior": of(explain.explain_guarantee(1).posterior, prior=QUARTER),
    "accounting.explain_cost": of(
        lambda delta: explain.explain_cost(MANY, delta, subject="this", unit="person"), delta=SMALL
    ),
    "accounting.explain_guarantee": of(explain.explain_guarantee, epsilon=1, delta=SMALL),
    "accounting.explain_training": of(lambda delta: explain.explain_training(TRAINING, delta), delta=SMALL),
    "accounting.posterior_bounds": of(explain.posterior_bounds, prior=QUARTER, epsilon=1),
    "accounting.sentences": of(
        lambda prior: explain.sentences(explain.explain_guarantee(1), prior), prior=QUARTER
    ),
}

_RESPONSE = mechanisms.KaryResponse(epsilon=1, categories=4)
_CROSSING = _Crossing(epsilon=1, queries=100, threshold=100, sensitivity=2)
_SELECTION = _Selection(epsilon=1, sensitivity=2, candidates=100)
_STAIRS = {"epsilon": 1, "sensitivity": 2, "granularity": SMALL}

MECHANISMS = {
    "mechanisms.AboveThreshold": of(mechanisms.AboveThreshold, **_CROSSING),
    "mechanisms.SparseVector": of(mechanisms.SparseVector, **_CROSSING, answers=50),
    "mechanisms.Crossing.error": _error(mechanisms.AboveThreshold(**_CROSSING)),
    "mechanisms.Response.error": _error(_RESPONSE, reports=100),
    "mechanisms.Response.variance": of(lambda reports: _RESPONSE.variance(HALF, reports), reports=100),
    "mechanisms.Channel.half_width": of(_RESPONSE.channel.half_width, confidence=HALF, reports=100),
    "mechanisms.Channel.variance": of(lambda reports: _RESPONSE.channel.variance(HALF, reports), reports=100),
    "mechanisms.BoundedLaplace": of(mechanisms.BoundedLaplace, scale=1, lower=0, upper=100, cells=100),
    "mechanisms.BoundedLaplace.calibrated": of(
        mechanisms.BoundedLaplace.calibrated, epsilon=1, lower=0, upper=100, cells=100, sensitivity=50
    ),
    "mechanisms.IntervalNoise.error": (
        *_error(mechanisms.BoundedLaplace(scale=1, lower=0, upper=100, cells=100)),
        *_error(mechanisms.BoundedStaircase(drop=1, lower=0, upper=100, cells=100, period=50, inner=20)),
    ),
    "mechanisms.BoundedStaircase": of(
        mechanisms.BoundedStaircase, drop=1, lower=0, upper=100, cells=100, period=50, inner=20
    ),
    "mechanisms.BoundedStaircase.calibrated": of(
        mechanisms.BoundedStaircase.calibrated,
        epsilon=1,
        lower=0,
        upper=100,
        cells=100,
        sensitivity=50,
        inner=20,
    ),
    "mechanisms.Exponential": of(mechanisms.Exponential, **_SELECTION),
    "mechanisms.Exponential.error": _error(mechanisms.Exponential(**_SELECTION)),
    "mechanisms.PermuteAndFlip": of(mechanisms.PermuteAndFlip, **_SELECTION),
    "mechanisms.PermuteAndFlip.error": _error(mechanisms.PermuteAndFlip(**_SELECTION)),
    "mechanisms.TopK": of(mechanisms.TopK, **_SELECTION, k=50),
    "mechanisms.TopK.error": _error(mechanisms.TopK(**_SELECTION, k=50)),
    "mechanisms.TopK.within": (
        Example(mechanisms.TopK.within, {**_SELECTION, "k": 50}),
        Example(lambda rho: mechanisms.TopK.within(rho=rho, candidates=100, k=50), {"rho": HALF}),
    ),
    "mechanisms.FinitePair.error": _error(mechanisms.FinitePair.between((HALF, HALF), (1, 0))),
    "mechanisms.CorrelatedGaussian": of(
        lambda **n: mechanisms.CorrelatedGaussian(correlation=mechanisms.NoiseCorrelation.POWER, **n),
        sigma=100,
        periods=50,
        exponent=HALF,
        resolution=100,
        fan=50,
        times=50,
        separation=2,
        granularity=SMALL,
    ),
    "mechanisms.CorrelatedGaussian.error": _error(
        mechanisms.CorrelatedGaussian(sigma=100, periods=5, correlation=mechanisms.NoiseCorrelation.POWER)
    ),
    "mechanisms.CorrelatedNoise.from_matrix": of(
        lambda **n: mechanisms.CorrelatedGaussian.from_matrix(TreeMatrix(9, 3), Participation(), **n),
        noise=100,
        granularity=SMALL,
    ),
    "mechanisms.CorrelatedLaplace": of(
        lambda **n: mechanisms.CorrelatedLaplace(correlation=mechanisms.NoiseCorrelation.TREE, **n),
        scale=100,
        periods=50,
        exponent=HALF,
        resolution=100,
        fan=50,
        times=50,
        separation=2,
        granularity=SMALL,
    ),
    "mechanisms.CorrelatedLaplace.error": _error(
        mechanisms.CorrelatedLaplace(scale=100, periods=5, correlation=mechanisms.NoiseCorrelation.TREE)
    ),
    "mechanisms.Gaussian": of(mechanisms.Gaussian, sigma=100, granularity=SMALL),
    "mechanisms.RoundedGaussian": of(mechanisms.RoundedGaussian, sigma=100, granularity=SMALL),
    "mechanisms.RoundedGaussian.error": _error(mechanisms.RoundedGaussian(sigma=100)),
    "mechanisms.Gaussian.error": _error(mechanisms.Gaussian(sigma=100)),
    "mechanisms.Geometric": of(mechanisms.Geometric, scale=100, lower=0, upper=100),
    "mechanisms.Geometric.error": _error(mechanisms.Geometric(scale=100)),
    "mechanisms.KaryResponse": of(mechanisms.KaryResponse, epsilon=1, categories=100),
    "mechanisms.PartitionThreshold": of(
        lambda **n: mechanisms.PartitionThreshold(noise=mechanisms.KeyNoise.LAPLACE, **n),
        scale=2,
        threshold=100,
        keys=100,
    ),
    "mechanisms.PartitionThreshold.error": _error(
        mechanisms.PartitionThreshold(noise=mechanisms.KeyNoise.LAPLACE, scale=2, threshold=100)
    ),
    "mechanisms.PartitionThreshold.leak": of(
        mechanisms.PartitionThreshold(noise=mechanisms.KeyNoise.LAPLACE, scale=2, threshold=100).leak,
        units=50,
    ),
    "mechanisms.PartitionThreshold.within": (
        Example(
            mechanisms.PartitionThreshold.within, {"epsilon": 1, "delta": SMALL, "keys": 100, "minimum": 100}
        ),
        Example(lambda rho: mechanisms.PartitionThreshold.within(rho=rho, delta=SMALL), {"rho": HALF}),
    ),
    "mechanisms.Laplace": of(mechanisms.Laplace, scale=100, granularity=SMALL),
    "mechanisms.Laplace.error": _error(mechanisms.Laplace(scale=100)),
    "mechanisms.Staircase": of(mechanisms.Staircase, **_STAIRS, inner=100),
    "mechanisms.Staircase.error": _error(mechanisms.Staircase.for_absolute_error(epsilon=1)),
    "mechanisms.Staircase.for_absolute_error": of(mechanisms.Staircase.for_absolute_error, **_STAIRS),
    "mechanisms.Staircase.for_squared_error": of(mechanisms.Staircase.for_squared_error, **_STAIRS),
    "mechanisms.TruncatedGeometric": of(mechanisms.TruncatedGeometric, scale=100, lower=0, upper=100),
    "mechanisms.TruncatedGeometric.calibrated": of(
        mechanisms.TruncatedGeometric.calibrated, epsilon=1, lower=0, upper=100, sensitivity=50
    ),
    "mechanisms.TruncatedGeometric.error": _error(
        mechanisms.TruncatedGeometric(scale=100, lower=0, upper=100)
    ),
    "mechanisms.Warner": of(mechanisms.Warner, truth=0.75),
}

_HADAMARD = local.HadamardResponse(epsilon=1, categories=4)
_BLOCKS = local.HadamardResponse(epsilon=3, categories=8, blocks=2)
TREE = words.WordTree(epsilon=1, letters=3)
_DISTRIBUTION = WAVE.distribution(_numeric_counts(WAVE))
_QUERIES = local.QueryPlan(epsilon=1, queries=2, tolerance=HALF)

LOCAL = {
    "local.BoundedLaplaceOracle": of(local.BoundedLaplaceOracle, epsilon=1, **_RANGE, cells=100),
    "local.BoundedStaircaseOracle": of(
        local.BoundedStaircaseOracle, epsilon=1, **_RANGE, cells=100, inner=20
    ),
    "local.BoundedOracle.decoding": of(BOUNDED.decoding, reports=100),
    "local.BoundedOracle.error": _error(BOUNDED, reports=100),
    "local.BoundedOracle.mean": of(
        lambda confidence: BOUNDED.mean(_numeric_counts(BOUNDED), confidence), confidence=HALF
    ),
    "local.NumericOracle.estimate": of(
        lambda confidence: NUMERIC.estimate(_numeric_counts(NUMERIC), confidence), confidence=HALF
    ),
    "local.Distribution.edges": of(_DISTRIBUTION.edges, bins=4),
    "local.Distribution.quantiles": of(
        lambda confidence: _DISTRIBUTION.quantiles([HALF], confidence, SeededBits(1)), confidence=HALF
    ),
    "local.Distribution.shares": of(
        lambda **n: _DISTRIBUTION.shares(**n, bits=SeededBits(1)), bins=4, confidence=HALF
    ),
    "local.Duchi": of(local.Duchi, epsilon=1, **_RANGE, cells=64),
    "local.UnbiasedOracle.error": _error(NUMERIC, reports=100),
    "local.UnbiasedOracle.mean": of(
        lambda confidence: NUMERIC.mean(_numeric_counts(NUMERIC), confidence), confidence=HALF
    ),
    "local.UnbiasedOracle.honest_mean": of(
        lambda attackers: NUMERIC.honest_mean(
            NUMERIC.mean(NUMERIC.tally(np.arange(200) % NUMERIC.codes)), attackers
        ),
        attackers=100,
    ),
    "local.FrequencyOracle.estimate": of(
        lambda confidence: KARY.estimate(_kary_counts(), confidence), confidence=HALF
    ),
    "local.HadamardResponse": of(local.HadamardResponse, epsilon=1, categories=4, blocks=2),
    "local.HadamardResponse.error": _error(_HADAMARD, reports=100),
    "local.HadamardResponse.estimate": of(
        lambda confidence: _HADAMARD.estimate(_kary_counts(_HADAMARD), confidence), confidence=HALF
    ),
    "local.HadamardResponse.honest_people": of(
        lambda attackers: _BLOCKS.honest_people(
            _BLOCKS.estimate(_BLOCKS.tally(np.arange(200) % _BLOCKS.codes)), attackers
        ),
        attackers=100,
    ),
    "local.HadamardResponse.variance": of(lambda reports: _HADAMARD.variance(HALF, reports), reports=100),
    "local.Hybrid": of(local.Hybrid, epsilon=1, **_RANGE, cells=100, window=40, share=QUARTER),
    "local.GRR": of(local.GRR, epsilon=1, categories=100),
    "local.LocalCrowd": of(
        lambda **n: local.LocalCrowd(np.zeros(200), **n, bits=SeededBits(1)).ask(lambda x: x),
        epsilon=1,
        group=100,
        confidence=HALF,
    ),
    "local.OLH": of(local.OLH, epsilon=1, categories=100, groups=64),
    "local.Memo.total_epsilon": of(local.Memo(KARY, bytes(range(32))).total_epsilon, distinct=100),
    "local.OUE": of(local.OUE, epsilon=1, categories=100),
    "local.OUE.true_bits": of(
        lambda count: local.OUE(epsilon=1, categories=4).true_bits(count, SeededBits(1)), count=100
    ),
    "local.Piecewise": of(local.Piecewise, epsilon=1, **_RANGE, cells=100, window=40),
    "local.ProjectiveGeometry": of(local.ProjectiveGeometry, epsilon=1, categories=4, order=3),
    "local.QueryPlan": of(local.QueryPlan, epsilon=1, queries=100, tolerance=HALF, confidence=HALF, each=100),
    "local.QueryPlan.answer": of(
        lambda confidence: _QUERIES.answer(
            [lambda x: x, lambda x: 1 - x], np.tile([0.0, 1.0], 200), SeededBits(1), confidence
        ),
        confidence=HALF,
    ),
    "local.QueryPlan.deviation": of(_QUERIES.deviation, people=100, mean=QUARTER),
    "local.Question": of(lambda **n: local.Question(name="q", oracle=KARY, **n), format=2),
    "local.Question.estimate": of(
        lambda confidence: QUESTION.estimate(
            replace(_kary_counts(), fingerprint=QUESTION.fingerprint), confidence
        ),
        confidence=HALF,
    ),
    "local.SquareWave": of(local.SquareWave, epsilon=1, **_RANGE, cells=100, window=40),
    "local.SubsetSelection": of(local.SubsetSelection, epsilon=1, categories=100, size=50),
    "local.Survey.at": of(local.Survey.at, epsilon=1, yes=QUARTER),
    "local.Survey.estimate": of(lambda confidence: SURVEY.estimate(60, 100, confidence), confidence=HALF),
    "local.Survey.people": of(SURVEY.people, error=QUARTER, confidence=HALF),
    "local.Survey.two_coins": of(local.Survey.two_coins, truth=QUARTER, yes=QUARTER),
    "local.Survey.variance": of(lambda people: SURVEY.variance(HALF, people), people=100),
    "local.SUE": of(local.SUE, epsilon=1, categories=100),
    "local.SUE.true_bits": of(
        lambda count: local.SUE(epsilon=1, categories=4).true_bits(count, SeededBits(1)), count=100
    ),
    "local.WordTree": of(words.WordTree, epsilon=1, letters=12, groups=8),
    "local.WordTree.error": _error(words.WordTree(epsilon=1), reports=100),
    "local.find_words": of(
        lambda **n: words.find_words(TREE, TREE.sample(["tea"] * 9, SeededBits(1)), **n).candidates,
        keep=100,
        false_rate=QUARTER,
        confidence=HALF,
    ),
    "local.least_share": of(
        lambda **n: words.least_share(TREE, **n), reports=100, keep=100, false_rate=QUARTER
    ),
    "local.best_survey": of(local.best_survey, epsilon=1),
    "local.regress": of(
        lambda **n: local.regress(local.Survey.two_coins(), [0, 1, 1], [[0.0], [1.0], [0.0]], **n).confidence,
        confidence=HALF,
    ),
    "local.best_each": of(local.best_each, epsilon=2, queries=10),
    "local.choose": of(local.choose, epsilon=1, categories=100, frequency=QUARTER),
    "local.choose_numeric": of(local.choose_numeric, epsilon=1, lower=0, upper=100),
}

ANONYMITY = {
    "anonymity.Demand": of(
        lambda **n: anonymity.Demand(diversity=anonymity.Diversity.RECURSIVE, **n),
        k=100,
        l=2,
        c=2,
        t=QUARTER,
        alpha=HALF,
    ),
    "anonymity.Intervals": of(lambda **n: anonymity.Intervals(**n, widths=(10, 50)), lower=0, upper=100),
    "anonymity.generalise": of(
        lambda suppress: anonymity.generalise(
            PEOPLE, anonymity.Demand(k=2), quasi=["age", "sex"], suppress=suppress
        ),
        suppress=QUARTER,
    ),
    "anonymity.generalise_records": of(
        lambda suppress: anonymity.generalise_records(
            RECORDS_OF_PEOPLE, anonymity.Demand(k=2), suppress=suppress
        ),
        suppress=QUARTER,
    ),
    "anonymity.journalist_risk": of(
        lambda threshold: anonymity.journalist_risk(RECORDS_OF_PEOPLE, RECORDS_OF_PEOPLE, threshold),
        threshold=QUARTER,
    ),
    "anonymity.measure": of(
        lambda **n: anonymity.measure(PEOPLE, quasi=["age", "sex"], sensitive=["ill"], **n),
        threshold=QUARTER,
        subsets=2,
    ),
    "anonymity.measure_records": of(
        lambda **n: anonymity.measure_records(RECORDS_OF_PEOPLE, **n), threshold=QUARTER, subsets=2
    ),
    "anonymity.prosecutor_risk": of(
        lambda threshold: anonymity.prosecutor_risk(RECORDS_OF_PEOPLE, threshold), threshold=QUARTER
    ),
    "anonymity.uniqueness": of(lambda largest: anonymity.uniqueness(RECORDS_OF_PEOPLE, largest), largest=2),
}

TABLES = {
    "tables.BoundsPlan": of(
        lambda **n: tables.BoundsPlan(column="age", **n), epsilon=1, outside=QUARTER, confidence=HALF
    ),
    "tables.BoundsPlan.check_size": of(
        lambda size: tables.BoundsPlan(column="age", epsilon=1).check_size(size, "Take more."), size=1 << 14
    ),
    "tables.ReleasePlan": of(
        lambda **n: tables.ReleasePlan(
            schema=frames.Schema.read(COLUMNS),
            queries=(tables.Query.read({"name": "n", "ask": ["count"]}),),
            privacy=tables.Privacy(epsilon=1),
            **n,
        ),
        size=100,
        confidence=HALF,
    ),
    "tables.Privacy": of(tables.Privacy, epsilon=1, delta=SMALL, selection_delta=SMALL / 2),
    "tables.Privacy.allot": of(tables.Privacy(epsilon=1, delta=SMALL).allot, part=HALF),
    "tables.Quantiles": _numbers(
        tables.Quantiles, {"column": "age", "levels": (HALF,)}, radius=100, cuts=100, bins=100
    ),
    "tables.Query": _numbers(tables.Query, {"name": "n", "ask": (tables.Count(),)}, weight=100),
    "tables.Specification.plan": of(_specification().plan, epsilon=1),
    "tables.Specification.open_ledger": of(_ledger_that_is_missing, epsilon=1),
    "tables.Table": of(_table, size=100),
    "tables.Table.find_bounds": of(
        lambda **n: _in_ledger(tables.Table.find_bounds, source=PEOPLE, column="age", unit="record", **n),
        epsilon=1,
        outside=QUARTER,
        size=1 << 14,
    ),
    "tables.Table.plan": of(_plan, epsilon=1, delta=SMALL, selection_delta=SMALL / 2, confidence=HALF),
    "tables.Table.series_plan": of(_series_plan, epsilon=1, delta=SMALL, confidence=HALF),
    "tables.Table.synthesize": of(_synthesize, epsilon=1, delta=SMALL, rows=100, selection_delta=SMALL / 2),
    "tables.Table.synthetic_plan": of(
        _synthetic_plan, epsilon=1, delta=SMALL, rows=100, selection_delta=SMALL / 2
    ),
    "tables.Top": _numbers(tables.Top, {"column": "sex"}, k=100),
    "tables.epsilon_for": of(lambda error: tables.epsilon_for(_plan(epsilon=1), "n", error), error=100),
    "tables.find_bounds": of(
        lambda **n: _in_ledger(tables.find_bounds, table=PEOPLE, column="age", unit="record", **n),
        epsilon=1,
        outside=QUARTER,
        size=1 << 14,
        confidence=HALF,
    ),
}

FRAMES = {
    "frames.Category": _numbers(frames.Category, {"keys": (1, 2, 100)}, missing=100),
    "frames.CountedValues.values_between": of(
        frames.CountedValues(np.array([3, 5]), np.array([60, 120])).values_between, first=50, last=100
    ),
    "frames.Integer": _numbers(frames.Integer, lower=0, upper=100, missing=50),
    "frames.BernsteinSums": of(frames.BernsteinSums, width=100, degree=2, max_rows=100),
    "frames.Real": _numbers(frames.Real, lower=0, upper=100, granularity=QUARTER, missing=50),
    "frames.Text": _numbers(frames.Text, at_least=100),
    "frames.PlainSum": of(lambda **n: frames.PlainSum(value="1", **n), reach=100, max_rows=100),
    "frames.PrivacyUnit": of(
        lambda **n: frames.PrivacyUnit(name="person", column="id", **n), max_rows=100, max_groups=100
    ),
}

AUDIT = {
    "audit.bound_epsilon": of(
        lambda **n: audit.bound_epsilon(next(Laplace.examples()), **n, bits=SeededBits(1)),
        samples=1024,
        delta=SMALL,
        false_alarm=SMALL,
    ),
    "audit.bound_from_scores": of(
        lambda **n: audit.bound_from_scores(np.arange(40.0), np.arange(40) % 2 == 0, **n),
        delta=SMALL,
        confidence=HALF,
    ),
    "audit.largest_bound": of(audit.largest_bound, candidates=200, delta=SMALL, confidence=HALF),
    "audit.claim": of(lambda delta: audit.claim(NORMAL, delta), delta=SMALL),
    "audit.examine": of(
        lambda **n: audit.examine(next(Laplace.examples()), **n, bits=SeededBits(1)),
        samples=1024,
        false_alarm=SMALL,
    ),
    "audit.tally": of(
        lambda count: audit.tally((one := next(Laplace.examples())), one.value, count, SeededBits(1)),
        count=100,
    ),
}

LEARNING = {
    "learning.AllocatedBatches": of(
        learning.AllocatedBatches, size=100, batch_size=50, epochs=100, present=100, group=1
    ),
    "learning.AllocatedBatches.draw": of(
        lambda after: list(learning.AllocatedBatches(**_BATCHES).draw(SeededBits(1), after=after)),
        after=2,
    ),
    "learning.BLT": of(learning.BLT, buffers=2),
    "learning.Banded": of(learning.Banded, bands=2),
    "learning.CyclicBatches": of(
        learning.CyclicBatches, size=100, batch_size=50, epochs=100, parts=2, group=1
    ),
    "learning.CyclicBatches.training": of(learning.CyclicBatches(**_BATCHES).training, noise_multiplier=2),
    "learning.CyclicBatches.draw": of(
        lambda after: list(learning.CyclicBatches(**_BATCHES).draw(SeededBits(1), after=after)),
        after=2,
    ),
    "learning.TruncatedBatches": of(
        learning.TruncatedBatches, size=100, batch_size=50, epochs=100, max_batch_size=60, group=1
    ),
    "learning.TruncatedBatches.draw": of(
        lambda after: list(learning.TruncatedBatches(**_BATCHES).draw(SeededBits(1), after=after)),
        after=2,
    ),
    "learning.Augmentation": of(learning.Augmentation, shift=2, rotate=10, crop=HALF, blur=HALF, copies=2),
    "learning.Automatic": of(learning.Automatic, norm=2, stability=QUARTER),
    "learning.Flat": of(learning.Flat, norm=2),
    "learning.PerLayer": of(learning.PerLayer, norm=2),
    "learning.QuantileClipping": of(
        learning.QuantileClipping, norm=2, quantile=HALF, rate=QUARTER, deviation=QUARTER
    ),
    "learning.QuantileClipping.sine": of(
        learning.QuantileClipping(norm=2).sine, noise_multiplier=2, batch_size=100
    ),
    "learning.CsvLog": of(_csv_log, every=3),
    "learning.EarlyStopping": of(learning.EarlyStopping, patience=3, least=0.125),
    "learning.Engine.clipped_sum": of(partial(_sum_by, "clipped_sum"), examples=40, examples_per_unit=2),
    "learning.Engine.gradients_of": of(
        partial(_sum_by, "gradients_of"), unit=1, examples=40, examples_per_unit=2
    ),
    "learning.Engine.whole_sum": of(partial(_sum_by, "whole_sum"), examples=40, examples_per_unit=2),
    "learning.Step.check_places": of(_check_places, examples_per_unit=1),
    "learning.FixedBatches": of(learning.FixedBatches, size=100, batch_size=50, epochs=100, group=1),
    "learning.PoissonBatches": of(
        learning.PoissonBatches, size=100, batch_size=50, epochs=100, present=100, group=2
    ),
    "learning.ShuffledBatches": of(learning.ShuffledBatches, size=100, batch_size=50, epochs=100, group=1),
    "learning.Batches.training": of(learning.PoissonBatches(**_BATCHES).training, noise_multiplier=2),
    "learning.FixedBatches.draw": of(
        lambda after: list(learning.FixedBatches(**_BATCHES).draw(SeededBits(1), after=after)),
        after=2,
    ),
    "learning.PoissonBatches.draw": of(
        lambda after: list(learning.PoissonBatches(**_BATCHES).draw(SeededBits(1), after=after)),
        after=2,
    ),
    "learning.ShuffledBatches.draw": of(
        lambda after: list(learning.ShuffledBatches(**_BATCHES).draw(SeededBits(1), after=after)),
        after=2,
    ),
    "learning.Memory.largest": of(lambda limit: _memory().largest(limit), limit=1000),
    "learning.Memory.peak": of(lambda units: _memory().peak(units), units=100),
    "learning.BestOfRuns": of(lambda **n: learning.BestOfRuns(runs=RUNS, **n), mean=5),
    "learning.BestOfRuns.of": of(lambda mean: learning.BestOfRuns.of([[RUN]], mean), mean=5),
    "learning.BestOfRuns.error": _error(learning.BestOfRuns(runs=RUNS, mean=Fraction(5))),
    "learning.Candidate": of(lambda norm: _candidate(norm=norm).norm, norm=2),
    "learning.select_best": of(_select_best, mean=2),
    "learning.NoisyGradient": of(learning.NoisyGradient, sigma=100),
    "learning.NoisyGradient.error": _error(learning.NoisyGradient(sigma=100)),
    "learning.PricedPlan.spend": of(
        lambda norm: learning.plan(
            learning.TrainingPlan(size=100, batch_size=50, epochs=1, noise_multiplier=2, delta=SMALL)
        ).spend(norm),
        norm=2,
    ),
    "learning.Step": of(_step, noise_multiplier=2, batch_size=10, steps=3, physical_batch_size=4),
    "learning.Step.add": of(_added, examples_per_unit=1),
    "learning.Step.of": of(
        lambda **n: learning.Step.of(_linear(), _plan_of_forty(), **n).physical_batch_size,
        physical_batch_size=4,
    ),
    "learning.Step.take": of(_taken, examples_per_unit=1),
    "learning.PricedPlan.draw": of(
        lambda **n: len(list(_plan_of_forty().draw(SeededBits(1), **n))), present=30
    ),
    "learning.PricedPlan.drawing": of(
        lambda **n: len(list(_plan_of_forty().drawing(SeededBits(1), **n).each())), present=30
    ),
    "learning.loader": of(_loaded, num_workers=0, physical_batch_size=8),
    "learning.fit": of(lambda **n: _fit(plan=_TWO_STEPS, **n), averaging=HALF),
    "learning.Checkpoint": (
        Example(lambda every: learning.Checkpoint("run", every=every).every, {"every": 2}),
        Example(_fit_in_steps, {"every": 1}),
    ),
    "learning.Execution": (
        Example(learning.Execution, {"physical_batch_size": 10}),
        Example(lambda **n: _fit(plan=_TWO_STEPS, execution=n), {"physical_batch_size": 10}),
    ),
    "learning.UnitIds": (
        Example(lambda **n: learning.UnitIds([1, 2], **n).max_examples, {"max_examples": 2}),
        Example(
            lambda **n: _fit(plan=_TWO_STEPS, units=learning.UnitIds(np.arange(40) // 2, **n)),
            {"max_examples": 2},
        ),
    ),
    "learning.measure": of(_measure, examples_per_unit=2, memory=1 << 30, batch_size=8),
    "learning.memory_of": of(
        lambda **n: learning.memory_of(_linear(), _torch()[1:], **n),
        examples_per_unit=2,
        batch_size=8,
        room=100,
    ),
    "learning.TrainingPlan": (
        Example(lambda **n: _fit(plan=_TWO_STEPS | n), {"size": 40, "group": 2}),
        Example(
            learning.TrainingPlan,
            {"size": 100, "delta": SMALL, "epsilon": 2, "epochs": 2, "batch_size": 50, "group": 2},
        ),
        Example(lambda **n: learning.TrainingPlan(delta=SMALL, **n), {"noise_multiplier": 2, "steps": 100}),
        Example(
            lambda **n: learning.TrainingPlan(delta=SMALL, epsilon=2, epochs=1, sampler="truncated", **n),
            {"max_batch_size": 60},
        ),
    ),
    "learning.plan": of(
        lambda size: learning.plan(
            learning.TrainingPlan(delta=SMALL, noise_multiplier=2, steps=2, batch_size=10), size=size
        ),
        size=100,
    ),
    "learning.repeat": of(lambda times: learning.repeat(times, lambda: None), times=2),  # type: ignore[arg-type, return-value]
    "learning.solve": of(_solve, classes=2, epsilon=2, delta=SMALL, norm=2, most=50, ridge=QUARTER),
    "learning.with_group_norm": of(
        lambda groups: repr(learning.with_group_norm(_linear(), groups=groups)), groups=2
    ),
}

EXAMPLES: dict[str, tuple[Example, ...]] = {
    **CORE,
    **ACCOUNTING,
    **MECHANISMS,
    **LOCAL,
    **ANONYMITY,
    **TABLES,
    **FRAMES,
    **AUDIT,
    **LEARNING,
}

# what the library makes and people read, and what it calls itself with numbers that it made
RECORDS = {
    "accounting.AtOrder",
    "accounting.Bracket",
    "accounting.Deployment",
    "accounting.Explanation",
    "accounting.Training.uses_until",
    "accounting.TrainingCost",
    "anonymity.Generalised",
    "anonymity.Ladder.label",
    "anonymity.InformationLoss",
    "anonymity.InformationLoss.of",
    "anonymity.Measures",
    "anonymity.Records",
    "anonymity.Risk",
    "anonymity.Sensitivity",
    "anonymity.Uniqueness",
    "audit.LowerBound",
    "audit.Verdict",
    "frames.RankSource.values_between",
    "frames.ranks",
    "learning.BLT.candidates",
    "learning.Banded.candidates",
    "learning.BinaryTree.candidates",
    "learning.LeastNoise.candidates",
    "learning.Execution.prepare",
    "learning.NoiseForecast",
    "learning.PricedPlan",
    "learning.StepForecast",
    "learning.TrainingPlan",
    "learning.Progress",
    "learning.Solved",
    "learning.Selected",
    "learning.Trained",
    "local.AnswerRegression",
    "local.CentralComparison",
    "local.Counts",
    "local.Distribution",
    "local.Distribution.fitted",
    "local.Estimate",
    "local.FoundWord",
    "local.WordFindings",
    "local.WordTree.estimate",
    "tables.Answer",
    "tables.Answer.at",
    "tables.Answer.blind",
    "tables.Answers",
    "tables.CrossCells.at",
    "tables.CrossCells.numbers",
    "tables.CrossCells.text",
    "tables.Crosstab",
    "tables.ExactQuality",
    "tables.Forecast",
    "tables.FoundBounds",
    "tables.TableRelease",
}
SLOW = {name for name in EXAMPLES if name.startswith("learning.")} | {
    "accounting.calibrate_noise",
    "accounting.calibrate_to_attack",
    "accounting.cost_of_steps",
    "accounting.epochs_within",
    "accounting.epsilon_for_error",
    "accounting.dpsgd_epsilon",
    "accounting.dpsgd_epsilons",
    "accounting.explain_cost",
    "accounting.explain_training",
    "accounting.noise_for",
    "accounting.noise_for_training",
    "accounting.shuffle_model",
    "accounting.shuffled_attack",
    "accounting.steps_within",
    "anonymity.generalise",
    "anonymity.measure",
    "audit.bound_epsilon",
    "audit.examine",
    "local.Distribution.shares",
    "local.Survey.people",
    "mechanisms.BoundedLaplace.calibrated",
    "mechanisms.BoundedStaircase.calibrated",
    "tables.Table",
    "tables.Table.find_bounds",
    "tables.Table.plan",
    "tables.Table.series_plan",
    "tables.Table.synthesize",
    "tables.Table.synthetic_plan",
    "tables.epsilon_for",
    "tables.find_bounds",
}
