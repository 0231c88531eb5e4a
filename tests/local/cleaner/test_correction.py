import numpy as np
import pandas as pd
import pytest

from sourdine.local.cleaner import Cleaner, Method
from sourdine.local.cleaner.correction import correction_of, pulled
from sourdine.mechanisms import BoundedLaplace, BoundedStaircase
from sourdine.testing import SeededBits
from tests.local.cleaner.people import INSIDE

KINDS: dict[Method, type[BoundedLaplace] | type[BoundedStaircase]] = {
    Method.LAPLACE: BoundedLaplace,
    Method.STAIRCASE: BoundedStaircase,
}


def chances_of(mechanism: BoundedLaplace | BoundedStaircase, x: int) -> np.ndarray:
    """P(y | x) in floats."""
    away = np.abs(np.arange(mechanism.cells + 1) - x)
    if isinstance(mechanism, BoundedLaplace):
        raw = np.exp(-away / float(mechanism.scale))
    else:
        steps = np.where(away < mechanism.inner, 0, (away - mechanism.inner) // mechanism.period + 1)
        raw = np.exp(-float(mechanism.drop) * steps)
    return np.asarray(raw / raw.sum())


@pytest.mark.parametrize("method", INSIDE)
@pytest.mark.parametrize("cells", [5, 120, 5000])
def test_the_pull_towards_the_middle_is_known(method: Method, cells: int) -> None:
    mechanism = KINDS[method].calibrated(epsilon=1, lower=0, upper=cells, cells=cells)
    chances = chances_of(mechanism, 0)
    mean = float(chances @ np.arange(cells + 1)) / cells
    assert pulled(mechanism) == pytest.approx(mean, abs=1e-4)


@pytest.mark.parametrize("method", INSIDE)
@pytest.mark.parametrize("cells", [7, 300])
def test_scores_have_no_more_bias_than_they_say(method: Method, cells: int) -> None:
    mechanism = KINDS[method].calibrated(epsilon=2, lower=0, upper=cells, cells=cells)
    found = correction_of(mechanism, 10_000)
    scores = found.of(np.arange(cells + 1, dtype=np.float64))
    biases = []
    for x in range(cells + 1):
        chances = chances_of(mechanism, x)
        biases.append(abs(float(chances @ scores) - x))
    assert max(biases) <= found.bias
    assert found.bias <= 1.2 * max(biases) + 1e-9


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("missing", ["drop", 40])
def test_corrected_means_are_right_and_cleaned_means_are_not(method: Method, missing: object) -> None:
    truth = np.concatenate([np.full(60_000, 20.0), np.full(40_000, 35.0)])
    table = pd.DataFrame({"x": np.where(np.arange(100_000) % 5 == 0, np.nan, truth)})
    column = {"type": "integer", "lower": 0, "upper": 120, "missing": missing}
    mean = 26.0 if missing == "drop" else 28.8
    cleaned = Cleaner({"x": column}, each=3, method=method).clean(table, bits=SeededBits(5))
    made = cleaned.estimates()["x"]
    assert made.lower[0] <= mean <= made.upper[0]
    assert made.value[0] == pytest.approx(mean, abs=6)
    assert made.upper[0] - made.lower[0] < 25
    pulled_by = float(cleaned.columns["x"].mean()) - mean
    assert pulled_by > 6 if method in INSIDE else missing == "drop" or abs(pulled_by) < 2


def test_shares_are_rid_of_the_noise() -> None:
    table = pd.DataFrame({"x": ["a"] * 12_000 + ["b"] * 6_000 + [None] * 2_000})
    column = {"type": "category", "keys": ["a", "b", "c"]}
    made = Cleaner({"x": column}, each=1).clean(table, bits=SeededBits(6)).estimates()["x"]
    for found, low, high, truth in zip(made.value, made.lower, made.upper, (0.6, 0.3, 0, 0.1), strict=True):
        assert found == pytest.approx(truth, abs=0.03)
        assert low <= truth <= high


def test_where_all_is_lost_in_noise_the_whole_range_is_said() -> None:
    column = {"type": "integer", "lower": 0, "upper": 120}
    for rows in (0, 1, 3):
        table = pd.DataFrame({"x": np.full(rows, np.nan)})
        made = Cleaner({"x": column}, each=0.01).clean(table, bits=SeededBits(1)).estimates()["x"]
        assert made.lower[0] <= 0
        assert made.upper[0] >= 120


@pytest.mark.slow
@pytest.mark.parametrize("method", Method)
def test_intervals_of_means_cover(method: Method) -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(30, 9, 5_000).clip(0, 120).round().astype(np.int64)
    places = np.where(rng.random(5_000) < 0.2, -1, truth)
    mean = float(places[places >= 0].mean())
    (cells,) = Cleaner({"x": {"type": "integer", "lower": 0, "upper": 120}}, each=4, method=method).cells
    bits = SeededBits(8)
    held = 0
    for _ in range(400):
        made = cells.estimate(cells.sample(places, bits), 0.95)
        held += made.lower[0] <= mean <= made.upper[0]
    assert held >= 0.92 * 400  # of 0.95: less than once in a hundred by chance, and the seed is fixed


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_intervals_from_few_cells_are_not_too_narrow(method: Method, n: int) -> None:
    """A single cell shows no spread at all, and its interval once was a point."""
    column = {"type": "integer", "lower": 0, "upper": 100, "missing": 0}
    (cells,) = Cleaner({"x": column}, each=1, method=method).cells
    drawn = cells.sample(np.zeros(300 * n, np.int64), SeededBits(11)).reshape(300, n)
    made = [cells.estimate(drawn[row], 0.95) for row in range(300)]
    held = sum(bool(each.lower[0] <= 0 <= each.upper[0]) for each in made)
    assert held >= 0.9 * 300  # with no less than the variance of the noise; as low as none without
