import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from sourdine.accounting import Renyi, Sampler, Training, cost_of_steps, cost_of_training, dpsgd_epsilon
from sourdine.accounting.dpsgd import cost as cost_module
from sourdine.accounting.dpsgd.cost import loss_of_training
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from tests.errors import refusal_of

RUN = Training(size=60_000, batch_size=64, noise_multiplier=1.0, epochs=15)


def mironov(rate: float, noise: float, steps: int, delta: float, order: int) -> float:
    """The conversion of 2017 at a whole order, by the binomial sum in big numbers."""
    with mpmath.workdps(40):
        q = mpmath.mpf(rate)
        total = mpmath.fsum(
            mpmath.binomial(order, k)
            * (1 - q) ** (order - k)
            * q**k
            * mpmath.exp((k * k - k) / (2 * noise**2))
            for k in range(order + 1)
        )
        return float((steps * mpmath.log(total) + mpmath.log(1 / mpmath.mpf(delta))) / (order - 1))


def gaussian(mu: float, delta: float) -> float:
    """epsilon of one Gaussian mechanism, by its closed form."""
    return float(
        brentq(lambda e: ndtr(mu / 2 - e / mu) - math.exp(e) * ndtr(-mu / 2 - e / mu) - delta, 0, 500)
    )


def test_the_printed_run() -> None:
    cost = cost_of_training(RUN, 1e-5)
    assert cost.steps == 14_070
    assert cost.sampling_rate == 64 / 60_000
    assert cost.source.order == 13
    assert cost.source.epsilon == pytest.approx(mironov(cost.sampling_rate, 1.0, 14_070, 1e-5, 13), rel=1e-9)
    assert f"{cost.source.epsilon:.2f}" == "1.17"
    assert cost.epsilon.lower < 0.61115
    assert cost.epsilon.upper > 0.61105
    assert cost.epsilon.width < 1e-3
    assert cost.epsilon.upper < cost.renyi.epsilon < cost.source.epsilon
    assert cost.neighbours is Neighbours.ADD_REMOVE
    assert cost.why == ""


def test_by_rate_and_steps_it_is_the_same() -> None:
    here, there = cost_of_training(RUN, 1e-5), cost_of_steps(1.0, 64 / 60_000, 14_070, 1e-5)
    assert (here.epsilon, here.renyi, here.source) == (there.epsilon, there.renyi, there.source)
    assert here.epsilon == dpsgd_epsilon(1.0, 64 / 60_000, 14_070, 1e-5)


def test_orders_replace_those_of_both_renyi_numbers() -> None:
    cost = cost_of_training(RUN, 1e-5, orders=(4.0, 8.0))
    assert cost.renyi.order == cost.source.order == 8
    assert cost.source.epsilon == pytest.approx(mironov(cost.sampling_rate, 1.0, 14_070, 1e-5, 8), rel=1e-9)


def test_shuffled_epochs_pay_for_one_whole_step_each() -> None:
    cost = cost_of_training(replace(RUN, sampler=Sampler.SHUFFLE), 1e-5)
    truth = gaussian(math.sqrt(15), 1e-5)
    assert truth <= cost.epsilon.upper < truth + 1e-3
    assert 2.92 < cost.epsilon.lower < 2.93  # what an attack proves, not the lower end of the bound
    assert cost.neighbours is Neighbours.ZERO_OUT
    assert "without sampling" in cost.why


def test_fixed_size_batches_move_twice_as_far() -> None:
    whole = Training(size=64, batch_size=64, noise_multiplier=1.5, epochs=4, sampler=Sampler.FIXED)
    cost = cost_of_training(whole, 1e-5)
    assert gaussian(2 / 1.5 * math.sqrt(4), 1e-5) in cost.epsilon
    assert cost.neighbours is Neighbours.REPLACE
    sampled = cost_of_training(replace(RUN, sampler=Sampler.FIXED), 1e-5)
    assert sampled.epsilon.upper > 5 * cost_of_training(RUN, 1e-5).epsilon.upper
    assert sampled.epsilon.upper < sampled.renyi.epsilon
    assert "2C" in sampled.why


def test_only_poisson_is_what_the_source_assumes() -> None:
    run = Training(size=600, batch_size=60, noise_multiplier=2.0, epochs=1)
    numbers = {cost_of_training(replace(run, sampler=kind), 1e-5).source for kind in Sampler}
    assert len(numbers) == 1


def test_the_assumptions_are_told() -> None:
    told = " ".join(cost_of_training(RUN, 1e-5).assumptions)
    for word in (
        "Poisson",
        "unit",
        "add-remove",
        "clipped",
        "see every noisy sum",
        "delta is 1e-5",
        "public",
    ):
        assert word in told
    assert "below 1/60,000, as it should" in told
    assert "not below 1/60,000" in " ".join(cost_of_training(RUN, 1e-3).assumptions)


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan])
def test_a_wrong_delta_is_one_sentence(delta: float) -> None:
    for cost in (lambda: cost_of_training(RUN, delta), lambda: cost_of_steps(1.0, 0.01, 10, delta)):
        with refusal_of("delta", "training"):
            cost()


def test_beyond_all_hope_the_quick_bound_is_enough() -> None:
    cost = cost_of_training(replace(RUN, noise_multiplier=0.1, epochs=1000), 1e-5)
    assert cost.epsilon.upper == cost.renyi.epsilon > 1000


def test_a_rate_above_one_is_one_sentence() -> None:
    with pytest.raises(InvalidParameter, match="rate"):
        cost_of_steps(1.0, 1.5, 10, 1e-5)


@pytest.mark.parametrize("order", [1.2, 3.0])
def test_renyi_moments_of_fixed_size_batches_count_all_of_the_law(order: float) -> None:
    """Against masses on a fine grid: the law has an atom at 0, which a coarse one may lose."""
    loss, _ = loss_of_training(replace(RUN, sampler=Sampler.FIXED))
    half = np.geomspace(1e-9, 20, 200_000)
    grid = np.concatenate([-half[::-1], half])
    below, above = loss.remove.cumulative(grid).p, loss.remove.survival(grid).p
    masses = np.where(grid[:-1] < 0, np.diff(below), -np.diff(above))
    moment = math.log1p(float(np.sum(masses * np.expm1((order - 1) * (grid[1:] + grid[:-1]) / 2))))
    accountant = Renyi(orders=(order,))
    found = float(accountant.curve(accountant.lift(loss))[0]) * (order - 1)
    assert moment * (1 - 1e-5) <= found < moment * 1.01


@pytest.mark.parametrize("sampler", list(Sampler))
@pytest.mark.parametrize("noise", [2.0**-20, 1e-3])
def test_hardly_any_noise_costs_too_much_and_not_all_memory(sampler: Sampler, noise: float) -> None:
    """One unit alone moves the sum by 1/noise: a quadrature of that would take terabytes."""
    found = cost_of_training(
        Training(size=1000, batch_size=10, noise_multiplier=noise, epochs=2, sampler=sampler), 1e-5
    )
    assert found.epsilon.upper > 1 / (2 * noise**2)
    assert found.epsilon.lower < 1000  # nobody showed more


def test_much_noise_on_truncated_batches_is_priced() -> None:
    """The tilt of the bound is far too steep for the law that is known from below."""
    run = Training(size=6000, batch_size=3000, noise_multiplier=1000, epochs=15, sampler=Sampler.TRUNCATED)
    found = cost_of_training(run, 1e-5).epsilon
    plain = cost_of_training(replace(run, sampler=Sampler.POISSON, max_batch_size=None), 1e-5).epsilon
    assert plain.lower <= found.upper < 0.0065


def test_methods_that_contradict_each_other_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_module, "_renyi", lambda *_: cost_module.AtOrder(0.0, 2.0))
    with pytest.raises(ArithmeticError, match="one of them is wrong"):
        cost_of_training(RUN, 1e-5)
