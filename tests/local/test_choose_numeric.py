"""The chosen oracle has the least worst variance, and the sentence says so."""

import pytest

from sourdine.local import Duchi, Hybrid, Piecewise, SquareWave, choose_numeric
from tests.errors import refusal_of


@pytest.mark.parametrize(("epsilon", "kind"), [(0.1, Duchi), (0.6, Duchi), (0.7, Hybrid), (5, Hybrid)])
def test_the_mean_goes_to_the_least_worst_variance(epsilon: float, kind: type) -> None:
    oracle, why = choose_numeric(epsilon, lower=-10, upper=10)
    assert type(oracle) is kind
    variances = [
        each(epsilon=epsilon, lower=-10, upper=10).worst_variance for each in (Duchi, Hybrid, Piecewise)
    ]
    assert isinstance(oracle, Duchi | Hybrid)
    assert oracle.worst_variance == min(variances)
    assert f"{min(variances) / 100:.3g}/n" in why
    assert why.startswith(kind.__name__)


def test_the_distribution_goes_to_the_square_wave() -> None:
    oracle, why = choose_numeric(1, lower=0, upper=1, distribution=True)
    assert oracle == SquareWave(epsilon=1, lower=0, upper=1)
    assert "distributions" in why


def test_bad_parameters_are_refused() -> None:
    with refusal_of("epsilon", "Duchi"):
        choose_numeric(0, lower=0, upper=1)
    with refusal_of("upper", "Duchi"):
        choose_numeric(1, lower=0, upper=0)
    with refusal_of("distribution", "choose_numeric"):
        choose_numeric(1, lower=0, upper=1, distribution="yes")  # type: ignore[arg-type]
