import math

import pytest

from sourdine.accounting import Sampler, Training, dpsgd_epsilon, noise_for
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from tests.accounting.profiles import gaussian_delta
from tests.errors import refusal_of


def test_steps_round_the_batches_of_an_epoch_up() -> None:
    run = Training(size=60000, batch_size=64, noise_multiplier=1.0, epochs=15)
    assert run.steps == 14070
    assert run.sampling_rate == 64 / 60000
    assert Training(size=60000, batch_size=60000, noise_multiplier=1.0, epochs=3).steps == 3


@pytest.mark.parametrize(
    ("delta", "rate", "steps", "noise"),
    [(1e-5, 64 / 60000, 14070, 0.5933), (1e-8, 4096 / 1e6, 100_000, 2.4641)],
)
def test_noise_for_epsilon_three(delta: float, rate: float, steps: int, noise: float) -> None:
    found = noise_for(3.0, delta, rate, steps)
    assert found == pytest.approx(noise, abs=1e-4)
    assert dpsgd_epsilon(found, rate, steps, delta, width=1e-4).upper <= 3.0 + 1e-4
    assert dpsgd_epsilon(found * 0.999, rate, steps, delta, width=1e-4).lower > 3.0


def test_without_sampling_the_noise_is_that_of_the_plain_gaussian() -> None:
    """Balle and Wang 2018: one release at (1, 1e-5) needs sigma 3.7304 or so."""
    noise = noise_for(1.0, 1e-5, 1.0, 1)

    def phi(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    delta = phi(-noise + 0.5 / noise) - math.e * phi(-noise - 0.5 / noise)
    assert delta <= 1e-5
    assert delta == pytest.approx(1e-5, rel=2e-3)


@pytest.mark.parametrize(
    "bad",
    [
        {"size": 0},
        {"batch_size": 0},
        {"batch_size": 101},
        {"noise_multiplier": 0.0},
        {"noise_multiplier": -1.0},
        {"noise_multiplier": math.nan},
        {"epochs": 0},
        {"epochs": 1.5},
        {"sampler": "poisson"},
    ],
)
def test_bad_runs_name_what_is_wrong(bad: dict[str, object]) -> None:
    good = {"size": 100, "batch_size": 10, "noise_multiplier": 1.0, "epochs": 1, "sampler": Sampler.POISSON}
    with refusal_of(next(iter(bad)), "Training"):
        Training(**(good | bad))  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, math.nan])
def test_a_rate_is_a_share(rate: float) -> None:
    with pytest.raises(InvalidParameter, match="rate"):
        dpsgd_epsilon(1.0, rate, 10, 1e-5)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps"),
    [(1e-3, 1e-5, 0.9999, 7), (1e-3, 1e-15, 1.0, 1), (1e-6, 1e-5, 1.0, 1), (20.0, 1e-5, 1.0, 10**4)],
)
def test_noise_for_extreme_budgets(epsilon: float, delta: float, rate: float, steps: int) -> None:
    noise = noise_for(epsilon, delta, rate, steps)
    for factor, fits in ((1.002, True), (0.998, False)):  # floats leave that much open
        mu = math.sqrt(steps) / (factor * noise)  # at a rate of 0.9999, almost the plain Gaussian
        assert (gaussian_delta(mu, epsilon) <= delta) is fits


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps"),
    [(1e5, 1e-5, 1.0, 1), (2.0**20, 1e-5, 1.0, 1), (1.0, 1e-5, 1e-6, 1), (1.0, 0.5, 0.1, 1)],
)
def test_where_hardly_any_noise_is_needed_it_is_one_sixteenth(
    epsilon: float, delta: float, rate: float, steps: int
) -> None:
    assert noise_for(epsilon, delta, rate, steps) == 1 / 16
    assert dpsgd_epsilon(1 / 16, rate, steps, delta).upper <= epsilon


@pytest.mark.parametrize(("epsilon", "delta", "steps"), [(1e-6, 1e-12, 1), (1.0, 1e-5, 2**60)])
def test_where_no_noise_is_enough_one_sentence_says_so(epsilon: float, delta: float, steps: int) -> None:
    with pytest.raises(InvalidParameter, match=r"within reach of a noise up to 2\^20\. Got .* Take a larger"):
        noise_for(epsilon, delta, 1.0, steps)


def test_steps_are_counted() -> None:
    with refusal_of("steps", "noise_for"):
        noise_for(1.0, 1e-5, 0.1, 0)


def test_the_words_of_the_caller_stand_in_errors() -> None:
    with refusal_of("sampling_rate", "dpsgd_epsilon"):
        dpsgd_epsilon(1.0, 64, 100, 1e-5)
    with refusal_of("noise_multiplier", "dpsgd_epsilon"):
        dpsgd_epsilon(0.0, 0.1, 100, 1e-5)
    with pytest.raises(
        InvalidParameter, match=r"zero-out or add-remove for truncated .* Leave it out, or draw"
    ):
        Training(
            size=100,
            batch_size=10,
            noise_multiplier=1.0,
            epochs=1,
            sampler=Sampler.TRUNCATED,
            neighbours=Neighbours.REPLACE,
        )
