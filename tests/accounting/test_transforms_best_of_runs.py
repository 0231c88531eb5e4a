import math

import numpy as np
import pytest

from sourdine.accounting import Renyi
from sourdine.accounting.transforms import best_of_runs
from tests.errors import refusal_of

ORDERS = np.array(Renyi().orders)


def best_law(law: np.ndarray, mean: float) -> np.ndarray:
    """The law of the highest of K outcomes, K geometric: E[F^K] = g F/(1 - (1 - g) F), by differences."""
    below = np.cumsum(law)
    stop = 1 / mean
    return np.diff(stop * below / (1 - (1 - stop) * below), prepend=0.0)


def divergences(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Renyi divergences of all orders, the larger of both directions."""
    logs = [
        np.array(
            [
                np.log(np.sum(a * np.exp((order - 1) * np.log(a / b)))) / (order - 1)
                for order in ORDERS[ORDERS < 100]
            ]
        )
        for a, b in ((p, q), (q, p))
    ]
    return np.maximum(*logs)


def hockey(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return max(np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum())


@pytest.mark.parametrize("mean", [1.0, 3.0, 30.0])
@pytest.mark.parametrize("seed", range(8))
def test_the_true_law_of_the_best_keeps_to_it(mean: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(6)) * 0.9 + 0.1 / 6
    q = p * np.exp(random.uniform(-0.4, 0.4, 6))
    q /= q.sum()
    orders = ORDERS[ORDERS < 100]
    for delta in (1e-3, 1e-6):
        epsilon = best_of_runs(orders, divergences(p, q), mean, delta)
        assert hockey(best_law(p, mean), best_law(q, mean), epsilon) <= delta
    assert hockey(best_law(p, mean), best_law(q, mean), 0.0) > 1e-6  # there is something to bound


def test_the_best_can_cost_nearly_three_times_a_run() -> None:
    """A rare outcome gets likelier while better ones get rarer: a factor of two would be wrong."""
    e, mean = 0.01, 1e6
    p = np.array([0.0, 1e-7, 1e-3])
    q = p * np.exp([0.0, -e, e])
    p[0], q[0] = 1 - p.sum(), 1 - q.sum()
    first, second = best_law(p, mean), best_law(q, mean)
    assert np.log(first[1] / second[1]) > 2.9 * e
    # told apart as well as its chance allows, which a bound at that delta must cover
    delta = float(first[1] - math.exp(2 * e) * second[1]) / 2
    assert best_of_runs(ORDERS[ORDERS < 100], divergences(p, q), mean, delta) > 2 * e


def test_one_run_costs_what_three_would_at_most_and_more_runs_more() -> None:
    curve = ORDERS / 200  # Gaussian noise of ten times the sensitivity
    alone = min(curve + np.log1p(-1 / ORDERS) - np.log(1e-5 * ORDERS) / (ORDERS - 1))
    found = [best_of_runs(ORDERS, curve, mean, 1e-5) for mean in (1, 10, 1000)]
    assert alone < found[0] < found[1] < found[2] < 10 * alone


def test_a_mean_below_one_is_refused() -> None:
    with refusal_of("mean", "best_of_runs"):
        best_of_runs(ORDERS, ORDERS, 0.5, 1e-5)
