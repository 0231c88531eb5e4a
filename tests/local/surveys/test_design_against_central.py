import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.local import CentralComparison, best_survey
from sourdine.testing import SeededBits
from tests.errors import refusal_of


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("people", [1, 100, 10**7])
def test_the_factor_is_half_of_n_exactly(epsilon: Fraction, people: int) -> None:
    both = CentralComparison(epsilon=epsilon, people=people, share=0.2)
    assert both.local / both.central == pytest.approx(people / 2)
    growth = math.exp(epsilon)
    assert both.local == pytest.approx(growth / (people * (growth - 1) ** 2))
    assert both.drawn_local - both.local == pytest.approx(0.16 / people)
    most = 1 + growth / ((growth - 1) ** 2 * 0.16)
    assert both.drawn_local / both.drawn_central <= most * (1 + 1e-12)


def test_both_variances_are_those_of_the_samplers() -> None:
    both = CentralComparison(epsilon=Fraction(1), people=50)
    bits = SeededBits(4)
    noise = both.mechanism.sample(np.zeros(200_000, np.int64), bits) / 50
    assert float(noise.var()) == pytest.approx(both.central, rel=0.03)
    oracle = best_survey(1)
    truth = np.broadcast_to(np.arange(50) < 25, (40_000, 50))
    found = oracle.channel.estimate(oracle.sample(truth, bits).mean(axis=1))
    assert float(found.var()) == pytest.approx(both.local, rel=0.03)


@pytest.mark.parametrize("bad", [{"epsilon": 0}, {"people": 0}, {"share": 1.5}])
def test_bad_parameters_name_themselves(bad: dict[str, float]) -> None:
    with refusal_of(next(iter(bad)), "CentralComparison"):
        CentralComparison(**{"epsilon": 1, "people": 10, **bad})  # type: ignore[arg-type]
