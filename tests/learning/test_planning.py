import dataclasses
import math
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from sourdine.accounting import PLD, Sampler, cost_of_steps, dpsgd_epsilon, plan_cost
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.learning import Memory, PricedPlan, StepForecast, TrainingPlan, plan
from sourdine.learning.memory.model import Course, MemoryLine, Stage

run_plan = partial(TrainingPlan, size=10_000, delta=1e-5)
ALONE, IN_PARTS = (Course(points=(), lines=(MemoryLine(1 << power, 1 << 14),)) for power in (19, 20))
MEMORY = Memory(live={}, most={Stage.AGAIN: ALONE, Stage.MORE: IN_PARTS})


def test_noise_for_a_budget_keeps_to_it_and_hardly_less_would() -> None:
    made = plan(run_plan(epsilon=2, epochs=5, batch_size=100))
    assert made.steps == 500
    assert made.sampling_rate == 0.01
    assert made.epsilon.upper <= 2
    assert dpsgd_epsilon(made.noise_multiplier * 0.998, 0.01, 500, 1e-5).lower > 2


@cache
def sampled(sampler: str) -> PricedPlan:
    return plan(run_plan(epsilon=4, epochs=2, batch_size=500, sampler=sampler))


def test_the_reverse() -> None:
    made = plan(run_plan(noise_multiplier=1.1, steps=321, batch_size=128))
    assert made.epsilon == cost_of_steps(1.1, 0.0128, 321, 1e-5).epsilon


def test_both_stop_where_the_budget_ends() -> None:
    made = plan(run_plan(noise_multiplier=1.0, epsilon=1.5, batch_size=100))
    assert made.epsilon.upper <= 1.5
    assert dpsgd_epsilon(1.0, 0.01, made.steps + 3, 1e-5).upper > 1.5
    assert plan(run_plan(noise_multiplier=1.0, epsilon=1.5, batch_size=100, epochs=1)).steps == 100
    assert plan(run_plan(noise_multiplier=1.0, epsilon=1.5, batch_size=100, steps=10**9)).steps == made.steps


@pytest.mark.parametrize(
    ("sampler", "neighbours"),
    [
        ("poisson", Neighbours.ADD_REMOVE),
        pytest.param("fixed", Neighbours.REPLACE, marks=pytest.mark.slow),
        ("shuffle", Neighbours.ZERO_OUT),
        pytest.param("truncated", Neighbours.ZERO_OUT, marks=pytest.mark.slow),
        pytest.param("allocation", Neighbours.ADD_REMOVE, marks=pytest.mark.slow),
    ],
)
def test_every_sampler_pays_what_is_true_for_it(sampler: str, neighbours: Neighbours) -> None:
    made = sampled(sampler)
    assert made.neighbours is neighbours
    assert made.epsilon.upper <= 4
    spend = made.spend(norm=3.0)
    paid = PLD().epsilon(plan_cost([spend], PLD()), 1e-5)
    assert spend.distance.neighbours is neighbours
    assert paid.upper == pytest.approx(made.epsilon.upper, abs=5e-3)
    assert made.batches.sampler is made.sampler


@pytest.mark.slow
def test_poisson_needs_the_least_noise() -> None:
    poisson, fixed, shuffle = (
        sampled(each).noise_multiplier for each in (Sampler.POISSON, Sampler.FIXED, Sampler.SHUFFLE)
    )
    assert poisson < min(fixed, shuffle)


@pytest.mark.slow
def test_the_batch_that_is_chosen_is_worth_its_size() -> None:
    made = plan(run_plan(epsilon=2, epochs=10))

    def ratio(batch: int) -> float:
        other = plan(run_plan(epsilon=2, epochs=10, batch_size=batch))
        return other.batch_size * math.sqrt(other.steps) / other.noise_multiplier

    assert made.steps >= 100
    assert ratio(made.batch_size) >= 0.94 * ratio(1000)
    assert ratio(made.batch_size // 2) < 0.96 * ratio(1000)


def test_with_few_epochs_the_smallest_batch_is_left() -> None:
    assert plan(TrainingPlan(size=300, delta=1e-4, epsilon=2, epochs=1)).batch_size == 16
    assert plan(TrainingPlan(size=10, delta=1e-4, epsilon=2, epochs=1)).batch_size == 10


def test_forecasts_follow_from_what_a_step_takes() -> None:
    forecast = StepForecast(
        parameters=10_000, physical_batch_size=64, memory=MEMORY, seconds=0.01, seconds_each=0.001
    )
    made = plan(run_plan(noise_multiplier=2.0, epochs=2, batch_size=100), forecast=forecast)
    assert made.memory == (1 << 20) + 64 * (1 << 14)
    assert plan(run_plan(noise_multiplier=2.0, epochs=2, batch_size=20), forecast=forecast).memory == (
        1 << 19
    ) + 43 * (1 << 14)
    fixed = plan(run_plan(noise_multiplier=2.0, epochs=2, batch_size=20, sampler="fixed"), forecast=forecast)
    assert fixed.memory == (1 << 19) + 20 * (1 << 14)
    assert made.seconds == pytest.approx(200 * 0.11)
    assert made.signal_to_noise == pytest.approx(100 / (2 * 100))
    assert plan(run_plan(noise_multiplier=2.0, epochs=2, batch_size=100)).seconds is None


def test_it_is_told_in_words() -> None:
    forecast = StepForecast(
        parameters=10_000, physical_batch_size=64, memory=MEMORY, seconds=0.01, seconds_each=0.001
    )
    words = plan(run_plan(noise_multiplier=2.0, epochs=2, batch_size=100), forecast=forecast).words()
    assert words["units"] == "10,000"
    assert words["steps"] == "200 (2 epochs)"
    assert words["memory"] == "about 2 MiB for tensors"
    assert words["time"] == "about 22.0 seconds on this machine"
    assert words["signal to noise"].startswith("0.5 a step")
    assert "at delta 1e-5, add-remove neighbours" in words["epsilon"]


def test_it_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan(run_plan(noise_multiplier=2.0, epochs=2, batch_size=100)).noise_multiplier = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"epochs": 1, "batch_size": 100}, "epsilon"),
        ({"epsilon": 1, "epochs": 1, "batch_size": 10_001}, "batch_size"),
        ({"epsilon": 1, "epochs": 1, "batch_size": 0}, "batch_size"),
        ({"noise_multiplier": 1, "epochs": 1}, "batch_size"),
        ({"epsilon": 1, "batch_size": 10}, "epochs"),
        ({"epsilon": 1, "epochs": 1, "steps": 1, "batch_size": 10}, "steps"),
        ({"epsilon": 1, "steps": 5, "batch_size": 10, "sampler": "fixed"}, "steps"),
        ({"epsilon": 1, "epochs": 1, "batch_size": 10, "sampler": "circular"}, "sampler"),
        ({"epsilon": 0.01, "noise_multiplier": 0.3, "batch_size": 100}, "noise_multiplier"),
        ({"epsilon": -1, "epochs": 1, "batch_size": 10}, "epsilon"),
        ({"noise_multiplier": 0, "epochs": 1, "batch_size": 10}, "noise_multiplier"),
        ({"epsilon": 1, "epochs": 0, "batch_size": 10}, "epochs"),
    ],
)
def test_bad_plans_name_what_is_wrong(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidParameter, match=f"'{field}'"):
        plan(run_plan(**given))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"sampler": "shuffle", "group": 2}, "group"),
        ({"sampler": "fixed", "neighbours": "add-remove"}, "neighbours"),
        ({"neighbours": "nobody"}, "neighbours"),
        ({"max_batch_size": 20}, "max_batch_size"),
        ({"sampler": "truncated", "max_batch_size": 9}, "max_batch_size"),
        ({"group": 0}, "group"),
        ({"size": 9}, "batch_size"),
        ({"size": 0}, "size"),
        ({"epochs": 1.5}, "epochs"),
    ],
)
def test_what_no_data_could_mend_is_refused_before_there_are_any(given: dict[str, Any], field: str) -> None:
    stated = {"epsilon": 1, "delta": 1e-5, "epochs": 1, "batch_size": 10}
    with pytest.raises(InvalidParameter, match=f"'{field}'"):
        TrainingPlan(**{**stated, **given})


def test_what_is_validated_is_what_is_kept() -> None:
    """A NumPy integer of eight bits would go from 255 to 0."""
    made = TrainingPlan(
        epsilon=Fraction(1, 2),  # type: ignore[arg-type]
        delta=np.float32(0.5),  # type: ignore[arg-type]
        epochs=np.uint8(255),  # type: ignore[arg-type]
        batch_size=np.int8(10),  # type: ignore[arg-type]
        sampler="fixed",
    )
    assert [type(each) for each in (made.epsilon, made.delta, made.epochs, made.batch_size)] == [
        float, float, int, int,
    ]  # fmt: skip
    assert made.sampler is Sampler.FIXED


def test_the_size_of_the_plan_goes_before_that_of_the_data() -> None:
    stated = run_plan(noise_multiplier=2.0, epochs=1, batch_size=100)
    assert plan(stated, size=500).size == 10_000
    free = dataclasses.replace(stated, size=None)
    assert plan(free, size=500).size == 500
    with pytest.raises(InvalidParameter, match="'size' of TrainingPlan must be given"):
        plan(free)


def test_delta_zero_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="'delta'"):
        plan(TrainingPlan(size=100, delta=0, noise_multiplier=1, epochs=1, batch_size=10))


def test_one_epoch_is_not_many() -> None:
    assert plan(run_plan(noise_multiplier=2.0, epochs=1, batch_size=100)).words()["steps"] == "100 (1 epoch)"


def test_a_delta_that_is_too_large_is_told() -> None:
    assert plan(run_plan(noise_multiplier=2.0, epochs=1, batch_size=100)).warning == ""
    large = plan(run_plan(noise_multiplier=2.0, epochs=1, batch_size=100, delta=0.1))
    assert large.warning.startswith("The delta of 0.1 is above 1 divided by the 10,000 units:")
