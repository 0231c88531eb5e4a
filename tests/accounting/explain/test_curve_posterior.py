from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import exp, mp, mpf

from sourdine.accounting.explain import EPSILONS, PRIORS, posterior_bounds, posterior_table
from sourdine.core.errors import InvalidParameter

# the source's table of greatest beliefs, in per cent, as printed
PRINTED = """
1,01 1,05 1,10 1,22 1,64 2,67 6,95 16,87
2,02 2,10 2,21 2,43 3,26 5,26 13,10 29,07
5,05 5,24 5,50 6,04 7,98 12,52 28,00 51,39
10,09 10,46 10,94 11,95 15,48 23,20 45,09 69,06
25,19 25,95 26,92 28,93 35,47 47,54 71,12 87,00
50,25 51,25 52,50 54,98 62,25 73,11 88,08 95,26
75,19 75,93 76,83 78,56 83,18 89,08 95,68 98,37
90,09 90,44 90,86 91,66 93,69 96,07 98,52 99,45
95,05 95,23 95,45 95,87 96,91 98,10 99,29 99,74
98,02 98,10 98,19 98,36 98,78 99,25 99,72 99,90
99,01 99,05 99,09 99,18 99,39 99,63 99,86 99,95
"""


def test_the_table_equals_the_source_to_the_printed_digit() -> None:
    printed = [line.split() for line in PRINTED.strip().splitlines()]
    ours = [[f"{100 * bounds.upper:.2f}".replace(".", ",") for bounds in row] for row in posterior_table()]
    assert ours == printed
    assert (len(PRIORS), len(EPSILONS)) == (11, 8)


def test_the_figures_of_the_seed_run() -> None:
    assert round(100 * posterior_bounds(0.5, 1.17).upper, 1) == 76.3
    assert round(100 * posterior_bounds(0.5, 0.611).upper, 1) == 64.8


@given(st.floats(1e-6, 1 - 1e-6), st.floats(0, 30))
def test_both_bounds_are_what_bayes_says_of_randomized_response(prior: float, epsilon: float) -> None:
    with mp.workdps(40):
        p, likely, unlikely = mpf(prior), exp(mpf(epsilon)), mpf(1)
        after_yes = p * likely / (p * likely + (1 - p) * unlikely)
        after_no = p * unlikely / (p * unlikely + (1 - p) * likely)
    bounds = posterior_bounds(prior, epsilon)
    assert bounds.upper == pytest.approx(float(after_yes), rel=1e-13)
    assert bounds.lower == pytest.approx(float(after_no), rel=1e-13)


@given(st.fractions(0, 1), st.floats(0, 800))
def test_doubt_and_belief_are_mirrored(prior: Fraction, epsilon: float) -> None:
    bounds, mirrored = posterior_bounds(prior, epsilon), posterior_bounds(1 - prior, epsilon)
    assert bounds.lower == pytest.approx(1 - mirrored.upper, abs=1e-15)
    assert bounds.lower <= float(prior) * (1 + 1e-15)
    assert bounds.upper >= float(prior) * (1 - 1e-15)


def test_certainty_stays_and_nothing_is_learnt_at_zero() -> None:
    assert posterior_bounds(0, 5).upper == 0
    assert posterior_bounds(1, 5).lower == 1
    assert posterior_bounds(0.3, 0) == posterior_bounds(0.3, Fraction(0))
    assert posterior_bounds(0.5, float("inf")).upper == 1


@pytest.mark.parametrize(("prior", "epsilon"), [(1.1, 1), (-0.1, 1), (0.5, -1), (0.5, float("nan"))])
def test_bad_parameters_name_themselves(prior: float, epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match=r"'(prior|epsilon)' of posterior_bounds"):
        posterior_bounds(prior, epsilon)
