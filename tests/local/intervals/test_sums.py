"""Tails of sums of steps, against laws convolved step by step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sourdine.local.intervals.sums import Sums, SumStep


def convolved(counts: list[int], steps: tuple[SumStep, ...]) -> np.ndarray:
    """P[sum = -n .. n], one step after the other."""
    out = np.ones(1)
    for count, step in zip(counts, steps, strict=True):
        for _ in range(count):
            out = np.convolve(out, [step.down, 1 - step.up - step.down, step.up])
    return out


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 25), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=3),
    st.integers(-20, 20),
)
def test_tails_are_sums_of_masses(kinds: list[tuple[int, float, float]], most: int) -> None:
    steps = tuple(SumStep(up * (1 - down / 2), down / 2 * (1 - up)) for _, up, down in kinds)
    counts = [count for count, _, _ in kinds]
    masses, n = convolved(counts, steps), sum(counts)
    wanted = float(masses[: max(0, n + most + 1)].sum())
    assert Sums(steps).below(np.array([counts]), np.array([most]))[0] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.48), (0.99, 1e-5), (1.0, 0.0), (0.9, 0.3)])
def test_many_steps_and_both_ends(p: float, q: float) -> None:
    n, m = 4000, np.array([0, 1, 700, 3999, 4000])
    sums = Sums((SumStep(p), SumStep(q)))
    mean, sd = m * p + (n - m) * q, np.sqrt(m * p * (1 - p) + (n - m) * q * (1 - q))
    for z in (-40, -2, 0, 2, 40):
        most = np.clip(np.rint(mean + z * sd), -3, n + 3).astype(np.int64)
        found = sums.below(np.stack([m, n - m], axis=1), most)
        for each, holders, at in zip(found, m, most, strict=True):
            law = np.convolve(
                binom.pmf(np.arange(holders + 1), holders, p),
                binom.pmf(np.arange(n - holders + 1), n - holders, q),
            )
            assert each == pytest.approx(float(law[: max(0, at + 1)].sum()), abs=1e-11)


def test_moments_of_a_step() -> None:
    step = SumStep(0.3, 0.2)
    values, masses = np.array([-1, 0, 1]), np.array([0.2, 0.5, 0.3])
    mean = float(masses @ values)
    wanted = [mean, masses @ (values - mean) ** 2, masses @ (values - mean) ** 3]
    assert Sums((step,)).moments[0] == pytest.approx(wanted)


def test_a_billion_billion_people_are_no_trouble() -> None:
    """Near the normal law, whose skewness is nothing at this size."""
    n, m = 10**15, 10**14
    sums = Sums((SumStep(0.7), SumStep(0.2)))
    mean, sd = m * 0.7 + (n - m) * 0.2, (m * 0.21 + (n - m) * 0.16) ** 0.5
    found = sums.below(np.array([[m, n - m]]), np.array([round(mean + 1.96 * sd)]))
    assert found[0] == pytest.approx(0.9750021, abs=1e-5)
