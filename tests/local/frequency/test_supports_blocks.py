"""Many reports are made in blocks, by several threads: by the same law, and the same for the same bits."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.core import threads
from sourdine.local import (
    GRR,
    OLH,
    OUE,
    SUE,
    FrequencyOracle,
    HadamardResponse,
    ProjectiveGeometry,
    SubsetSelection,
)
from sourdine.local.frequency import supports
from sourdine.local.oracle import whole_number
from sourdine.mechanisms import randomized_response
from sourdine.testing import SeededBits
from tests.laws import law_of
from tests.statistics import ALARM, fit

ORACLES: list[FrequencyOracle] = [
    GRR(epsilon=Fraction(4, 3), categories=5),
    GRR(epsilon=Fraction(4, 3), categories=16),
    GRR(epsilon=Fraction(4, 3), categories=17),
    GRR(epsilon=Fraction(1, 2), categories=300),
    SUE(epsilon=Fraction(4, 3), categories=5),
    SUE(epsilon=Fraction(4, 3), categories=8),
    OUE(epsilon=Fraction(3, 4), categories=11),
    SubsetSelection(epsilon=Fraction(4, 3), categories=7),
    SubsetSelection(epsilon=Fraction(4, 3), categories=8, size=1),
    SubsetSelection(epsilon=Fraction(3, 4), categories=11, size=3),
    SubsetSelection(epsilon=Fraction(4, 3), categories=16, size=2),
    SubsetSelection(epsilon=Fraction(4, 3), categories=18, size=2),
    OLH(epsilon=Fraction(4, 3), categories=7),
    HadamardResponse(epsilon=Fraction(4, 3), categories=6),
    ProjectiveGeometry(epsilon=Fraction(4, 3), categories=20),
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supports, "_ROWS", 500)
    monkeypatch.setattr(supports, "_CHUNK", 500)
    monkeypatch.setattr(randomized_response, "_BLOCK", 500)


def numbers(oracle: FrequencyOracle, values: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    reports = oracle.sample(values, SeededBits(seed))
    return whole_number(reports) if reports.ndim > 1 else reports


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_reports_are_the_same_with_any_number_of_threads(
    oracle: FrequencyOracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(1700) % oracle.categories
    found = []
    for number in (1, 3):
        monkeypatch.setattr(threads, "processors", lambda number=number: number)
        found.append(numbers(oracle, values, 1))
    assert np.array_equal(found[0], found[1])
    assert len({found[0][start : start + 500].tobytes() for start in (0, 500, 1000)}) == 3


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_reports_in_blocks_follow_the_law(oracle: FrequencyOracle) -> None:
    value = oracle.categories - 1
    reports = numbers(oracle, np.full(40_000, value), 2)
    assert fit(reports, law_of(oracle, value)) > ALARM
    off = replace(oracle, epsilon=oracle.epsilon * Fraction(5, 4))  # type: ignore[type-var]
    if oracle.categories < 100:  # with more, the law is too flat for so few reports
        assert fit(reports, law_of(off, value)) < ALARM


@pytest.mark.parametrize(("categories", "size"), [(2, 1), (8, 4), (9, 4), (16, 4), (16, 8)])
@pytest.mark.parametrize("truth", [0, 1, -1])
def test_sets_from_a_table_follow_the_law_whatever_the_truth(categories: int, size: int, truth: int) -> None:
    """By whether the truth is in, and by the sets themselves, all alike on either side of it."""
    oracle = SubsetSelection(epsilon=Fraction(1), categories=categories, size=size)
    values = np.full(60_000, truth % categories)
    bits = np.unpackbits(oracle.sample(values, SeededBits(5)), axis=1)[:, :categories].astype(np.int64)
    assert set(bits.sum(axis=1).tolist()) == {size}
    held = bits[:, truth % categories]
    e = math.e * size / (categories - size)
    assert fit(held, {0: 1 / (1 + e), 1: e / (1 + e)}) > ALARM
    assert fit(held, {0: 1 / (1 + 1.1 * e), 1: 1.1 * e / (1 + 1.1 * e)}) < ALARM
    for told in (0, 1):
        others = np.delete(bits[held == told], truth % categories, axis=1)
        code = others @ (1 << np.arange(categories - 1))
        every = [sum(1 << c for c in each) for each in combinations(range(categories - 1), size - told)]
        assert fit(code, dict.fromkeys(every, 1 / len(every))) > ALARM


@pytest.mark.parametrize("people", [40_000, 39_999])
def test_reports_drawn_in_pairs_are_independent(people: int) -> None:
    oracle = GRR(epsilon=Fraction(1), categories=4)
    truth = np.arange(people) % 4
    turns = ((oracle.sample(truth, SeededBits(6)) - truth) % 4)[: people // 2 * 2].reshape(-1, 2)
    one = {turn: mass / (math.e + 3) for turn, mass in enumerate((math.e, 1, 1, 1))}
    both = {4 * first + second: one[first] * one[second] for first, second in product(range(4), repeat=2)}
    codes = turns @ np.array([4, 1])
    assert fit(codes, both) > ALARM
    assert fit(np.where(codes % 5 == 0, 0, codes), both) < ALARM
