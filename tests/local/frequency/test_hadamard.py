"""Hadamard response: its sampler by all of its coins, its blocks and the variance they lead to."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.random import samplers as exact
from sourdine.core.random.tables import WeightTerms
from sourdine.local import HadamardResponse
from sourdine.local.frequency import hadamard as module
from sourdine.testing import SeededBits
from tests import code_laws
from tests.errors import refusal_of


@pytest.mark.parametrize(("categories", "blocks"), [(3, 1), (7, 1), (8, 1), (6, 2), (7, 3), (5, 5)])
def test_each_column_comes_from_equally_many_draws(
    monkeypatch: pytest.MonkeyPatch, categories: int, blocks: int
) -> None:
    """With the coins replaced by all they can be, each way is uniform on its columns, exactly."""
    oracle = HadamardResponse(epsilon=1, categories=categories, blocks=blocks)
    grid = list(
        itertools.product(range(3 if blocks > 1 else 2), range(oracle.columns), range(max(1, blocks - 1)))
    )
    way, column, away = (np.array(axis) for axis in zip(*grid, strict=True))
    weights = []

    class Everything:
        def sample(self, count: int, bits: object) -> np.ndarray:
            return way

    def table(terms: WeightTerms) -> Everything:
        weights.append((terms.factors, terms.exponents))
        return Everything()

    drawn = iter([])  # type: ignore[var-annotated]
    monkeypatch.setattr(module, "table", table)
    monkeypatch.setattr(exact, "uniform", lambda size, count, bits: next(drawn).copy())
    for x in range(categories):
        drawn = iter([column, away])
        codes = oracle.encode(np.full(len(grid), x), SeededBits(1))
        law = code_laws.hadamard_response(oracle, x)
        favoured = {code for code, mass in law.items() if mass > 1.5 * min(law.values())}
        own = {code for code in law if code // oracle.columns == x % blocks}
        for choice, there in enumerate([favoured, own - favoured, set(law) - own][: way.max() + 1]):
            found, times = np.unique(codes[way == choice], return_counts=True)
            assert set(found.tolist()) == there
            assert len(set(times.tolist())) == 1
    expected = ((1, 1, 2 * (blocks - 1)), (1, 0, 0)) if blocks > 1 else ((1, 1), (1, 0))
    assert set(weights) == {expected}


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, Fraction(27, 20), 2, 3, 4])
def test_the_number_of_blocks_is_the_best_of_all(epsilon: Fraction) -> None:
    e = math.exp(epsilon)
    spread = {blocks: (e + 2 * blocks - 1) ** 2 / (blocks * (e - 1) ** 2) for blocks in range(1, 101)}
    oracle = HadamardResponse(epsilon=epsilon, categories=100)
    assert oracle.blocks == min(spread, key=spread.__getitem__)
    assert float(oracle.variance(0.01, 1)) == pytest.approx(spread[oracle.blocks] - 0.01)


@pytest.mark.parametrize("epsilon", [0.5, 1])
def test_one_block_is_one_bit_hadamard(epsilon: float) -> None:
    oracle = HadamardResponse(epsilon=epsilon, categories=1000)
    ratio = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    assert (oracle.blocks, oracle.columns) == (1, 1024)
    assert 10 * oracle.variance(0.0, 10) == pytest.approx(ratio**2)
    assert 10 * oracle.variance(0.2, 10) == pytest.approx(ratio**2 - 0.2)


def test_a_full_block_is_noisier_than_an_empty_one() -> None:
    oracle = HadamardResponse(epsilon=3, categories=100)
    codes = oracle.sample(np.full(20_000, 7), SeededBits(1))
    found = oracle.estimate(oracle.tally(codes))
    own = np.arange(100) % oracle.blocks == 7 % oracle.blocks
    full, empty = (float(oracle.variance(0.0, 20_000, mass=mass)) for mass in (1.0, 0.0))
    rest = np.arange(100) != 7
    assert found.variance[own & rest] == pytest.approx(full, rel=0.05)
    assert found.variance[~own] == pytest.approx(empty, rel=0.2)
    assert full > 4 * empty
    assert found.value[7] == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(("epsilon", "blocks"), [(1, 1), (3, 9)])
def test_the_forecast_error_holds_for_all_people_in_one_block(epsilon: int, blocks: int) -> None:
    oracle = HadamardResponse(epsilon=epsilon, categories=90, blocks=blocks)
    values = np.full(2000, 0)
    errors = []
    for seed in range(60):
        found = oracle.estimate(oracle.tally(oracle.sample(values, SeededBits(seed))))
        errors.append(abs(found.value[blocks]))  # nobody has it, and everybody shares its block
    bound = oracle.error(0.95, 2000)
    assert np.mean(np.array(errors) <= bound) >= 0.95
    assert bound < 6 * float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize("blocks", [-1, 11, 2.5])
def test_blocks_beyond_the_categories_are_refused(blocks: int) -> None:
    with refusal_of("blocks", "HadamardResponse"):
        HadamardResponse(epsilon=1, categories=10, blocks=blocks)
