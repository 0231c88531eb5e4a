"""Margins are kept: cells agree with them exactly, so that none is worse than measured alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sourdine.tables.consistent import Axes, Crossed, disjoint, kept_to, moved_to

Floats = NDArray[np.float64]
CELLS = (0, 1, 2)
SINGLES = (CELLS, (), (0,), (1,), (2,))
PAIRS = (*SINGLES, (0, 1), (0, 2), (1, 2))


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_what_is_moved_has_the_sums(seed: int, zeros: float) -> None:
    """However many zeros there are, and whatever the sums are, if they have one total."""
    random = np.random.default_rng(seed)
    table = random.exponential(1, (2, 3, 4, 2)) * (random.random((2, 3, 4, 2)) >= zeros)
    total = random.integers(0, 50, 2)
    aims: dict[Axes, Floats] = {
        axes: np.stack([random.multinomial(each, np.ones(size) / size) for each in total]).astype(float)
        for axes, size in (((0,), 3), ((1,), 4), ((2,), 2))
    }
    found = moved_to(table, {(): total.astype(float), **aims})
    assert (found >= 0).all()
    for axes, aim in aims.items():
        gone = tuple(each for each in (1, 2, 3) if each != axes[0] + 1)
        np.testing.assert_allclose(found.sum(axis=gone), aim, atol=1e-9)


def test_what_has_its_sums_is_not_moved() -> None:
    table = np.random.default_rng(0).exponential(1, (1, 3, 4))
    sums: dict[Axes, Floats] = {(0,): table.sum(axis=2), (1,): table.sum(axis=1)}
    np.testing.assert_allclose(moved_to(table, sums), table, atol=1e-12)


@given(st.integers(0, 2**32))
def test_records_are_moved_until_sums_are_kept(seed: int) -> None:
    """As few as that takes: each move mends the sums of one axis in two places."""
    random = np.random.default_rng(seed)
    table = random.exponential(2, (3, 4, 2))
    cells = np.floor(table + random.random(table.shape)).astype(np.int64)
    total = int(random.integers(0, 80))
    aims: dict[Axes, Floats] = {
        (axis,): random.multinomial(total, np.ones(size) / size).astype(float)
        for axis, size in enumerate(table.shape)
    }
    found = kept_to(cells, table, aims)
    assert (found >= 0).all()
    for (axis,), aim in aims.items():
        gone = tuple(each for each in range(3) if each != axis)
        np.testing.assert_array_equal(found.sum(axis=gone), aim)
    off = [
        np.abs(cells.sum(axis=tuple(e for e in range(3) if e != a)) - aim).sum() for (a,), aim in aims.items()
    ]
    assert np.abs(found - cells).sum() <= sum(off)
    assert np.array_equal(kept_to(found, table, aims), found)


def test_the_smallest_margins_without_a_common_column_are_kept() -> None:
    assert disjoint(PAIRS[1:]) == [(0,), (1,), (2,)]
    assert disjoint([(), (0, 1), (2,)]) == [(2,), (0, 1)]
    assert disjoint([(), (0, 1), (0, 2)]) == [(0, 1)]
    assert disjoint([()]) == [()]


def errors(held: Crossed, total: int, noise: float, skew: float, rounds: int) -> tuple[Floats, Floats]:
    """Mean squares of what margins are off: of those that add up, and of those measured alone.

    Alone, they are rounded and no less than 0, too. The total is one number and its best estimate, so that
    the theorem of Gauss and Markov is about it; a few rounds tell little of it.
    """
    random = np.random.default_rng(5)
    ours, alone = np.zeros(len(held.margins)), np.zeros(len(held.margins))
    for _ in range(rounds):
        shares = [random.dirichlet(np.full(size, skew)) for size in held.shape]
        cells = random.multinomial(total, np.einsum("i,j,k->ijk", *shares).ravel())
        exact = held.exact(cells[None]).astype(float)
        noisy = exact + np.rint(random.laplace(0, noise, exact.shape))
        found = held.whole(noisy).astype(float)
        for margin, parts in enumerate(zip(*map(held._split, (exact, found, noisy)), strict=True)):
            true, value, raw = parts
            ours[margin] += np.mean((value - true) ** 2)
            alone[margin] += np.mean((np.maximum(raw, 0) - true) ** 2)
    return ours / rounds, alone / rounds


@pytest.mark.parametrize("margins", [SINGLES, PAIRS])
@pytest.mark.parametrize(("total", "noise"), [(300, 40.0), (300, 4.0)])
def test_margins_are_as_good_as_alone(margins: tuple[tuple[int, ...], ...], total: int, noise: float) -> None:
    ours, alone = errors(Crossed((9, 8, 7), margins), total, noise, 0.3, 20)
    assert np.all(ours[2:] < alone[2:])


@pytest.mark.slow
@pytest.mark.parametrize("margins", [SINGLES, PAIRS])
@pytest.mark.parametrize("skew", [1.0, 0.1])
@pytest.mark.parametrize(("total", "noise"), [(1000, 4.0), (1000, 40.0), (1000, 400.0), (10**6, 400.0)])
def test_margins_of_many_cells_are_as_good_as_alone(
    margins: tuple[tuple[int, ...], ...], skew: float, total: int, noise: float
) -> None:
    """They were up to 4 times worse at 40^3 cells, where cells could not be made to agree with them."""
    ours, alone = errors(Crossed((40, 40, 40), margins), total, noise, skew, 12)
    assert np.all(ours[2:] < alone[2:])


def test_single_margins_are_the_nearest_whole_parts_of_the_total() -> None:
    """They do not feel the cells, however much noise those have."""
    random = np.random.default_rng(3)
    held = Crossed((6, 7, 8), SINGLES)
    exact = held.exact(random.poisson(0.3, (2, held.cells))).astype(float)
    noisy = exact + np.rint(random.laplace(0, 30, exact.shape))
    _, total, *singles = held._split(held.whole(noisy).astype(float))
    _, best_total, *best = held._split(held.best(noisy))
    np.testing.assert_array_equal(total, np.rint(np.maximum(best_total, 0)))
    for own, near in zip(singles, best, strict=True):
        np.testing.assert_array_equal(own.sum(axis=1), total)
        for found, value in zip(own, near, strict=True):
            level = (value - found)[found > 0]  # all that are left have lost as much, but for rounding
            assert np.ptp(level) <= 2
            assert np.all(value[found == 0] <= level.max() + 1)
