import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from mpmath import mp, mpf

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter
from sourdine.local.cleaner import Cleaner, Method
from sourdine.local.cleaner.cells import KeyCells
from sourdine.local.cleaner.numbers import LaplaceNoise, NumberCells, StaircaseNoise
from sourdine.mechanisms import BoundedLaplace, BoundedStaircase
from sourdine.testing import SeededBits
from tests.local.cleaner.people import INSIDE


def weights(mechanism: BoundedLaplace | BoundedStaircase, x: int) -> list[mpf]:
    """P(y | x), from the definition of each law."""
    raw = []
    for y in range(mechanism.cells + 1):
        away = abs(y - x)
        if isinstance(mechanism, BoundedLaplace):
            raw.append(mp.exp(-mpf(away) * mechanism.scale.denominator / mechanism.scale.numerator))
        else:
            steps = 0 if away < mechanism.inner else (away - mechanism.inner) // mechanism.period + 1
            raw.append(mp.exp(-steps * mpf(mechanism.drop.numerator) / mechanism.drop.denominator))
    total = mp.fsum(raw)
    return [each / total for each in raw]


def law(cells: NumberCells, x: int) -> list[mpf]:
    """The chances of every cleaned cell, missing last, of place x or of a missing cell (-1)."""
    assert isinstance(cells.noise, LaplaceNoise | StaircaseNoise)
    values = weights(cells.noise.mechanism, cells.last // 2 if x < 0 else x)
    if cells.coin is None:
        return values
    odds = mp.exp(mpf(cells.coin.epsilon.numerator) / cells.coin.epsilon.denominator)
    hidden = (odds if x < 0 else 1) / (1 + odds)
    return [*((1 - hidden) * each for each in values), hidden]


@pytest.mark.parametrize("method", INSIDE)
@pytest.mark.parametrize("missing", ["drop", 4])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_no_two_cells_are_told_apart_by_more_than_epsilon(
    method: Method, missing: object, epsilon: Fraction
) -> None:
    column = {"type": "integer", "lower": 1, "upper": 9, "missing": missing}
    (cells,) = Cleaner({"x": column}, each=epsilon, method=method).cells
    assert isinstance(cells, NumberCells)
    inputs = range(-1 if cells.keeps_missing else 0, cells.last + 1)
    with mp.workdps(40):
        laws = [law(cells, x) for x in inputs]
        worst = max(mp.log(a / b) for p in laws for q in laws for a, b in zip(p, q, strict=True))
        bound = mpf(epsilon.numerator) / epsilon.denominator
        assert worst <= bound * (1 + mpf(10) ** -30)
        if missing != "drop":
            assert worst >= bound * (1 - mpf(10) ** -6)


@pytest.mark.parametrize("method", INSIDE)
@pytest.mark.parametrize("upper", [2, 3, 9, 14])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(2, 3)])
def test_a_cell_that_may_be_missing_costs_its_worst_ratio(
    method: Method, upper: int, epsilon: Fraction, share: Fraction
) -> None:
    column = {"type": "integer", "lower": 1, "upper": upper}
    cleaner = Cleaner({"x": column}, each=epsilon, method=method, share=share)
    (cells,) = cleaner.cells
    assert isinstance(cells, NumberCells)
    with mp.workdps(40):
        laws = [law(cells, x) for x in range(-1, cells.last + 1)]
        worst = max(mp.log(a / b) for p in laws for q in laws for a, b in zip(p, q, strict=True))
        price = mpf(cells.price.numerator) / cells.price.denominator
        assert worst <= price + mpf(10) ** -30
        if method is Method.LAPLACE:
            assert price <= worst + mpf(10) ** -8
    charged = sum(Fraction(spend.one_loss().epsilon) for spend in cells.charges)
    assert charged <= cells.price == cleaner.total <= epsilon
    assert method is not Method.LAPLACE or charged == cells.price


def test_the_price_is_charged_and_old_descriptions_are_read(tmp_path: Path) -> None:
    cleaner = Cleaner({"x": {"type": "integer", "lower": 0, "upper": 100}}, each=1, rows=2)
    assert float(cleaner.total) == pytest.approx(1.5885, abs=0.02)
    told = cleaner.to_json()
    assert Cleaner.from_json(told).total == Cleaner.from_json(told | {"epsilon": "2"}).total == cleaner.total
    with pytest.raises(InvalidParameter):
        Cleaner.from_json(told | {"epsilon": "1"})
    pure = Ledger.create(tmp_path / "a.ledger", epsilon=3, neighbours="replace")
    made = cleaner.clean(pl.DataFrame({"x": [3, 4]}), ledger=pure)
    assert made.receipt is not None
    assert made.receipt.price == cleaner.total
    assert pure.history()[0].spends == made.spends
    concentrated = Ledger.create(tmp_path / "b.ledger", rho=3, delta=1e-6, neighbours="replace")
    paid = cleaner.clean(pl.DataFrame({"x": [3, 4]}), ledger=concentrated)
    apart = [replace(spend, count=2) for spend in cleaner.cells[0].spends]
    assert paid.receipt is not None
    assert paid.receipt.price == min(concentrated.price(*cleaner.spends), concentrated.price(*apart))


@pytest.mark.parametrize("method", INSIDE)
def test_cells_are_drawn_from_that_law(method: Method) -> None:
    column = {"type": "integer", "lower": 1, "upper": 9}
    (cells,) = Cleaner({"x": column}, each=2, method=method).cells
    assert isinstance(cells, NumberCells)
    n = 60_000
    for x in (-1, 0, 5):
        drawn = cells.sample(np.full(n, x), SeededBits(x + 2))
        counts = np.bincount(np.where(drawn.mask, 9, drawn.filled(0) - 1), minlength=10)
        chances = np.array([float(each) for each in law(cells, x)])
        square = ((counts - n * chances) ** 2 / (n * chances)).sum()
        assert square < 45  # of 9 degrees of freedom: once in a million


def test_unbiased_cells_are_right_on_average() -> None:
    column = {"type": "integer", "lower": 10, "upper": 130, "missing": 40}
    (cells,) = Cleaner({"x": column}, each=1, method=Method.UNBIASED).cells
    n = 100_000
    for truth in (10, 37, 130):
        drawn = cells.sample(np.full(n, truth - 10), SeededBits(truth))
        assert drawn.dtype == np.float64
        values = drawn.compressed()
        assert abs(values.mean() - truth) < 5 * values.std() / math.sqrt(n)
        assert 60**2 * 3 < values.var() < 60**2 * 4.3
        assert values.min() < 10
        assert values.max() > 130


def test_a_missing_key_is_a_key_like_others() -> None:
    (cells,) = Cleaner({"x": {"type": "category", "keys": ["a", "b"]}}, each=1).cells
    assert isinstance(cells, KeyCells)
    assert cells.mechanism.categories == 3
    n = 60_000
    p = math.e / (math.e + 2)
    for x, place in ((-1, 2), (0, 0)):
        drawn = cells.sample(np.full(n, x), SeededBits(3))
        counts = np.bincount(np.where(drawn.mask, 2, drawn.filled(0)), minlength=3)
        assert abs(counts[place] / n - p) < 5 * math.sqrt(p * (1 - p) / n)


def test_a_real_without_a_grid_gets_one() -> None:
    (cells,) = Cleaner({"x": {"type": "real", "lower": -1.0, "upper": 2.0}}, each=1).cells
    assert isinstance(cells, NumberCells)
    assert 1 << 15 <= cells.last <= 1 << 17
