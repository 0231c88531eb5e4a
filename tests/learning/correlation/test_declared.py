from typing import Any

import pytest

from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.learning import BLT, Banded, BinaryTree, LeastNoise, PricedPlan, TrainingPlan, plan
from sourdine.learning.correlation.declared import GradientCorrelation


def planned(correlation: GradientCorrelation, **more: Any) -> PricedPlan:
    stated: dict[str, Any] = {"size": 60_000, "batch_size": 600, "epochs": 6, "delta": 1e-5, "epsilon": 4}
    return plan(TrainingPlan(**stated | {"correlation": correlation} | more))


def deviations(priced: PricedPlan) -> dict[str, float]:
    return {each.correlation: each.deviation for each in priced.compared}


def test_bands_that_are_drawn_from_have_the_noise_of_the_literature() -> None:
    """n = 60,000 in batches of 600, six epochs: bands 16, noise 1.411, 0.60 times the noise of DP-SGD."""
    priced = planned(Banded(bands=16))
    assert (priced.parts, priced.steps, priced.batches.training(1.0).uses) == (16, 600, 38)
    assert priced.noise_multiplier == pytest.approx(1.411, abs=1e-3)
    chosen, other = priced.compared
    assert other.correlation == "DP-SGD"
    assert chosen.deviation / other.deviation == pytest.approx(0.60, abs=5e-3)
    assert "1.67 times as noisy with DP-SGD" in priced.words()["why"]
    assert priced.epsilon.upper <= 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epochs", "batch_size", "ratios"),
    [
        (6, 600, ((4, 0.89), (8, 0.74), (16, 0.60), (32, 0.48))),
        (10, 1000, ((4, 0.96), (4, 0.87), (8, 0.72), (16, 0.58))),
        (5, 300, ((8, 0.77), (16, 0.60), (32, 0.48), (64, 0.39))),
        (10, 300, ((8, 0.85), (16, 0.68), (32, 0.52), (64, 0.41))),
    ],
)
def test_the_planner_finds_the_bands_with_the_least_noise(
    epochs: int, batch_size: int, ratios: tuple[tuple[int, float], ...]
) -> None:
    for epsilon, (parts, ratio) in zip((1, 2, 4, 8), ratios, strict=True):
        priced = planned(LeastNoise(), epochs=epochs, batch_size=batch_size, epsilon=epsilon)
        assert priced.parts == parts
        assert priced.compared[0].deviation / deviations(priced)["DP-SGD"] == pytest.approx(ratio, abs=6e-3)


def test_dp_sgd_is_taken_where_it_is_less_noisy() -> None:
    priced = planned(LeastNoise(), size=600, batch_size=300, epochs=1, epsilon=0.2)
    assert priced.factor is None
    assert priced.compared[0].correlation == "DP-SGD"
    assert str(priced.sampler) == "poisson"


def test_without_sampling_a_unit_comes_once_an_epoch() -> None:
    priced = planned(LeastNoise(sampling=False), epochs=1, batch_size=1000)
    assert (priced.parts, priced.batches.training(1.0).sampling) == (None, None)
    assert priced.spend().count == 1
    assert deviations(priced)["independent in each step"] > 2 * priced.compared[0].deviation
    assert priced.neighbours is Neighbours.ZERO_OUT


def test_what_several_epochs_move_is_paid() -> None:
    """One Gaussian of the whole run and one step for each epoch cost the same, for gradients that add up."""
    once, often = planned(BLT(), epochs=1), planned(BLT(), epochs=6)
    assert often.spend().count == 6
    assert once.factor is not None
    assert often.factor is not None
    assert often.noise_multiplier * often.factor.stretch(
        100
    ) > 2 * once.noise_multiplier * once.factor.stretch(100)


@pytest.mark.parametrize(
    ("correlation", "given", "field"),
    [
        (Banded(bands=101), {}, "bands"),
        (BLT(), {"sampler": "poisson"}, "sampler"),
        (BLT(), {"noise_multiplier": 2}, "noise_multiplier"),
        (Banded(), {"epsilon": None, "noise_multiplier": 2}, "epsilon"),
        (BinaryTree(), {"group": 2}, "group"),
        (BinaryTree(), {"neighbours": "add-remove"}, "neighbours"),
        (BinaryTree(), {"epochs": None, "steps": 10}, "steps"),
        ("banded", {}, "correlation"),
    ],
)
def test_what_is_not_proven_is_refused(correlation: Any, given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidParameter, match=f"'{field}'"):
        planned(correlation, **given)


def test_a_flag_is_a_flag() -> None:
    for kind in (Banded, LeastNoise):
        with pytest.raises(InvalidParameter, match="sampling"):
            kind(sampling=1)  # type: ignore[arg-type]


def test_noise_may_be_stated_for_one_correlation() -> None:
    priced = planned(BinaryTree(), epsilon=None, noise_multiplier=2.0)
    assert priced.compared == ()
    assert "tree" in priced.words()["noise"]
