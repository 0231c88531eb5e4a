"""Bounded Laplace and staircase as oracles: the samplers of the mechanisms, read without their bias."""

import dataclasses

import numpy as np
import pytest

from sourdine.local import BoundedLaplaceOracle, BoundedStaircaseOracle
from sourdine.testing import SeededBits
from tests.errors import refusal_of

KINDS = (BoundedLaplaceOracle, BoundedStaircaseOracle)


@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_the_answers_of_the_mechanism(
    kind: type[BoundedLaplaceOracle | BoundedStaircaseOracle],
) -> None:
    oracle = kind(epsilon=2, lower=-3, upper=5, cells=29)
    values = np.linspace(-4, 6, 1000)
    answers = oracle.mechanism.sample(values, SeededBits(3))
    codes = oracle.sample(values, SeededBits(3))
    assert answers == pytest.approx(-3 + codes * 8 / 29)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bias_that_is_left_is_stated_and_falls(
    kind: type[BoundedLaplaceOracle | BoundedStaircaseOracle],
) -> None:
    oracle = kind(epsilon=1, lower=-1, upper=1, cells=44)
    places = np.linspace(-1, 1, 45)
    raw = np.abs(oracle.channel @ places - places).max()
    assert raw > 0.5  # the answers themselves are drawn to the middle
    biases = []
    for reports in (10**3, 10**5, 10**7):
        decoding = oracle.decoding(reports)
        mean = oracle.channel @ decoding.codes
        assert np.abs(mean - places).max() == pytest.approx(decoding.bias)
        spread = oracle.channel @ decoding.codes**2 - mean**2
        assert spread.max() == pytest.approx(decoding.variance)
        assert decoding.bias < 2 * np.sqrt(decoding.variance / reports)
        biases.append(decoding.bias)
    assert biases == sorted(biases, reverse=True)
    assert biases[-1] < 0.002


@pytest.mark.parametrize(("cells", "inner"), [(128, 22), (44, 8), (14, 3), (10, 1), (15, 1)])
def test_steps_divide_the_places(cells: int, inner: int) -> None:
    oracle = BoundedStaircaseOracle(epsilon=1, lower=0, upper=1, cells=cells)
    assert oracle.inner == inner
    assert (cells + 1) % (2 * inner - 1) == 0


def test_other_steps_cannot_be_read_without_bias() -> None:
    good, bad = (BoundedStaircaseOracle(epsilon=1, lower=-1, upper=1, cells=44, inner=i) for i in (8, 17))
    assert np.linalg.cond(good.channel) < 1e4
    assert np.linalg.cond(bad.channel) > 1e12
    assert good.decoding(10**9).bias < 1e-4
    assert bad.decoding(10**9).bias > 0.1
    assert dataclasses.replace(bad, inner=None) == good
    with refusal_of("inner", "BoundedStaircaseOracle"):
        dataclasses.replace(good, inner=0)


def test_a_third_of_the_places_has_a_variance_that_no_grid_changes() -> None:
    worst = [
        BoundedStaircaseOracle(epsilon=1, lower=-1, upper=1, cells=cells).decoding(10**9).variance
        for cells in (44, 128, 224)
    ]
    assert worst == pytest.approx([16.5] * 3, rel=0.03)
    rising = [
        BoundedLaplaceOracle(epsilon=1, lower=-1, upper=1, cells=cells).decoding(10**9).variance
        for cells in (44, 128, 224)
    ]
    assert rising[2] > 1.5 * rising[1] > 2.25 * rising[0]
