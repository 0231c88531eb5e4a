import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.tables.quantiles.joint import (
    Chains,
    FloatSums,
    LogSums,
    Stretches,
    draw_chains,
    log_running_sum,
    log_sum,
    sliding,
)
from sourdine.testing import SeededBits
from tests.statistics import ALARM, fit

RATE = 0.37
FOLDS = 200.0  # below which chains may be left out
BY_LOGS = 1e6  # more than floats have


@dataclass(frozen=True)
class Stretch:
    """The ranks that one output may have, from `first` on, and how many places each leaves for it."""

    first: int
    sizes: np.ndarray

    @property
    def last(self) -> int:
        return self.first + len(self.sizes)


@dataclass(frozen=True)
class Chain:
    """One group: stretches of ranks for m outputs, and the steps wanted before, between and after them."""

    stretches: Sequence[Stretch]
    steps: Sequence[Fraction]
    total: int
    rate: float

    def forward(self) -> list[np.ndarray]:
        tables = LogSums.of(side_by_side([self])).tables
        return [rows[:, 0, : len(each.sizes)] for rows, each in zip(tables, self.stretches, strict=True)]

    def draw(self, count: int, bits: SeededBits, folds: float = FOLDS) -> np.ndarray:
        return draw_chains(side_by_side([self]), np.zeros(count, np.int64), folds, bits)


def side_by_side(groups: Sequence[Chain]) -> Chains:
    """Groups with as many outputs and one rate, in arrays."""
    unit = math.lcm(*(step.denominator for group in groups for step in group.steps))
    length = np.array([[len(each.sizes) for each in group.stretches] for group in groups])
    edges = np.full((*length.shape, length.max() + 1), 99)
    for g, group in enumerate(groups):
        for j, each in enumerate(group.stretches):
            edges[g, j, : len(each.sizes) + 1] = [-1, *(np.cumsum(each.sizes) - 1)]
    first = np.array([[each.first for each in group.stretches] for group in groups])
    exact = [[int(step * unit) for step in group.steps] for group in groups]
    large = any(step * unit >= 1 << 52 for group in groups for step in group.steps)
    steps = np.array(exact, object if large else np.int64)
    total = np.array([group.total for group in groups])
    return Chains(Stretches(first, length, edges), steps, unit, total, groups[0].rate)


def multisets(size: int, count: int) -> int:
    return math.comb(size + count - 1, count)


def weights(chain: Chain) -> dict[tuple[int, ...], float]:
    """Every chain of ranks with the number of its places times e^{-rate gap}, from the definition."""
    sizes = [
        dict(zip(range(each.first, each.last), each.sizes.tolist(), strict=True)) for each in chain.stretches
    ]
    found = {}
    for ranks in itertools.product(*sizes):
        if any(a > b for a, b in itertools.pairwise(ranks)):
            continue
        at = [0, *ranks, chain.total]
        off = sum(abs(b - a - s) for (a, b), s in zip(itertools.pairwise(at), chain.steps, strict=True))
        begins = [j for j in range(len(ranks)) if j == 0 or ranks[j] != ranks[j - 1]]
        counts = [b - a for a, b in itertools.pairwise([*begins, len(ranks)])]
        ways = math.prod(multisets(sizes[j][ranks[j]], r) for j, r in zip(begins, counts, strict=True))
        if ways:
            found[ranks] = ways * math.exp(-chain.rate * off)
    return found


def log_total(chain: Chain) -> float:
    last = chain.stretches[-1]
    ranks = np.arange(last.first, last.last)
    after = -chain.rate * np.abs(float(chain.total - chain.steps[-1]) - ranks)
    return float(np.logaddexp.reduce((chain.forward()[-1] + after).ravel()))


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Sizes are those of one grid, each output looking at a window of it; some segments hold nothing."""
    total = draw(st.integers(0, 7))
    m = draw(st.integers(1, 3))
    sizes = np.array(draw(st.lists(st.integers(0, 5), min_size=total + 1, max_size=total + 1)))
    sizes[draw(st.integers(0, total))] += 1
    levels = sorted(draw(st.lists(st.integers(1, 19), min_size=m, max_size=m, unique=True)))
    edges = [Fraction(0), *(Fraction(level, 20) for level in levels), Fraction(1)]
    ends = [sorted(draw(st.tuples(st.integers(0, total), st.integers(0, total)))) for _ in range(m)]
    lows, highs = sorted(low for low, _ in ends), sorted(high for _, high in ends)
    stretches = [Stretch(low, sizes[low : high + 1]) for low, high in zip(lows, highs, strict=True)]
    steps = [(b - a) * total for a, b in itertools.pairwise(edges)]
    return Chain(stretches, steps, total, draw(st.floats(0.01, 5)))


@settings(max_examples=100)
@given(chains())
def test_totals_are_those_of_all_chains(chain: Chain) -> None:
    total = sum(weights(chain).values())
    if total:
        assert log_total(chain) == pytest.approx(math.log(total), abs=1e-12)
    else:
        assert log_total(chain) == -math.inf


@settings(max_examples=60)
@given(chains(), st.sampled_from([FOLDS, BY_LOGS]))
def test_every_drawn_chain_is_one_that_weighs_something(chain: Chain, folds: float) -> None:
    held = weights(chain)
    if held:
        drawn = {tuple(row) for row in chain.draw(200, SeededBits(0), folds).tolist()}
        assert drawn <= held.keys()


@settings(max_examples=200)
@given(st.lists(chains(), min_size=1, max_size=4))
def test_floats_are_the_same_sums(groups: list[Chain]) -> None:
    """In parts of all places; and a group is only trusted if it has chains."""
    alike = [
        Chain(group.stretches, group.steps, group.total, RATE)
        for group in groups
        if len(group.stretches) == len(groups[0].stretches)
    ]
    held = side_by_side(alike)
    floats, logs = FloatSums.of(held, FOLDS), LogSums.of(held)
    for number, group in enumerate(alike):
        assert floats.trusted[number] <= bool(weights(group))
        if floats.trusted[number]:
            for j, (one, other) in enumerate(zip(floats.sums, logs.sums, strict=True)):
                exact = np.exp(other[number]) * floats.part ** (j + 1)
                np.testing.assert_allclose(one[number], exact, rtol=1e-13)


@pytest.mark.parametrize("spread", [0, 20])
def test_floats_agree_with_logarithms_over_wide_windows(spread: int) -> None:
    """As deciles of 1,000 values have them, evenly spread or heaped, each output down to e^-250."""
    rng = np.random.default_rng(spread)
    groups = []
    for n in (900, 1000, 1003, 1003, 1500):
        sizes = (np.exp(rng.normal(0, spread / 4, n + 1)) * 1e6).astype(np.int64) + 1
        sizes[rng.random(n + 1) < spread / 100] = 0
        aims = [n * level // 10 for level in range(1, 10)]
        ends = [(max(aim - 480, 0), min(aim + 480, n)) for aim in aims]
        stretches = [Stretch(low, sizes[low : high + 1]) for low, high in ends]
        groups.append(Chain(stretches, [Fraction(n, 10)] * 10, n, 0.28))
    held = side_by_side(groups)
    floats, logs = FloatSums.of(held, 265.0), LogSums.of(held)
    assert floats.trusted.all()
    for j, (one, other) in enumerate(zip(floats.sums, logs.sums, strict=True)):
        seen = one > 0
        assert np.all(other[~seen] < -400)
        np.testing.assert_allclose(
            np.log(one[seen]), other[seen] + (j + 1) * math.log(floats.part), rtol=0, atol=1e-10
        )


def test_what_floats_cannot_hold_is_not_trusted_to_them() -> None:
    """A heap far from where most outputs should be, or a rate that takes them out of range."""
    assert FloatSums.of(side_by_side([example()]), FOLDS).trusted.all()
    assert not FloatSums.of(side_by_side([example(400.0)]), FOLDS).trusted.any()
    assert not FloatSums.of(side_by_side([example()]), BY_LOGS).trusted.any()
    far = Chain([Stretch(0, np.array([1] + [0] * 900))] * 2, [Fraction(300)] * 3, 900, 0.5)
    assert not FloatSums.of(side_by_side([far, far]), 300.0).trusted.any()
    assert np.all(far.draw(3, SeededBits(0), 300.0) == 0)


@given(st.lists(chains(), min_size=2, max_size=4))
def test_groups_side_by_side_do_not_feel_each_other(groups: list[Chain]) -> None:
    alike = [
        Chain(group.stretches, group.steps, group.total, RATE)
        for group in groups
        if len(group.stretches) == len(groups[0].stretches)
    ]
    together = LogSums.of(side_by_side(alike)).tables
    for number, group in enumerate(alike):
        for rows, alone, each in zip(together, group.forward(), group.stretches, strict=True):
            np.testing.assert_allclose(rows[:, number, : len(each.sizes)], alone, rtol=1e-13)
            assert np.all(rows[:, number, len(each.sizes) :] == -np.inf)


def test_a_chain_is_drawn_from_its_own_group() -> None:
    groups = [example(), Chain([Stretch(3, np.array([1]))] * 3, example().steps, 6, RATE)]
    owner = np.tile([0, 1], 20_000)
    drawn = draw_chains(side_by_side(groups), owner, FOLDS, SeededBits(4))
    assert np.all(drawn[1::2] == 3)
    held = weights(groups[0])
    law = {a * 100 + b * 10 + c: w / sum(held.values()) for (a, b, c), w in held.items()}
    assert fit(drawn[::2] @ np.array([100, 10, 1]), law) > ALARM


def example(rate: float = RATE) -> Chain:
    sizes = np.array([2, 0, 3, 1, 4, 0, 2])
    steps = [Fraction(6, 5), Fraction(9, 5), Fraction(1), Fraction(2)]
    stretches = [Stretch(0, sizes[:5]), Stretch(2, sizes[2:6]), Stretch(2, sizes[2:])]
    return Chain(stretches, steps, 6, rate)


@pytest.mark.parametrize("folds", [FOLDS, BY_LOGS])
def test_draws_follow_the_law_and_not_one_ten_percent_off(folds: float) -> None:
    drawn = example().draw(200_000, SeededBits(3), folds) @ np.array([100, 10, 1])

    def law(chain: Chain) -> dict[int, float]:
        held = weights(chain)
        return {a * 100 + b * 10 + c: w / sum(held.values()) for (a, b, c), w in held.items()}

    assert set(drawn.tolist()) <= law(example()).keys()
    assert fit(drawn, law(example())) > ALARM
    assert fit(drawn, law(example(RATE * 1.1))) < ALARM


def test_many_values_below_the_stretches_change_nothing() -> None:
    """Ranks near 10^15 are as good as small ones: floats only see what is near."""
    near, much = example(), 10**15
    stretches = [Stretch(each.first + much * (j + 1), each.sizes) for j, each in enumerate(near.stretches)]
    apart = [Stretch(each.first + 50 * (j + 1), each.sizes) for j, each in enumerate(near.stretches)]
    steps = [step + much for step in near.steps[:3]]
    far = Chain(stretches, [*steps, near.steps[3]], near.total + 3 * much, RATE)
    close = Chain(apart, [step + 50 for step in near.steps[:3]] + [near.steps[3]], near.total + 150, RATE)
    for a, b in zip(far.forward(), close.forward(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_errors_stay_far_below_what_is_paid_for_them() -> None:
    """Against 50 digits, over long stretches and sums of hundreds of e-folds."""
    mpmath.mp.dps = 50
    rng = np.random.default_rng(0)
    n, rate = 400, 1.9
    sizes = rng.integers(0, 1 << 40, n + 1)
    steps = [Fraction(n, 3)] * 3
    chain = Chain([Stretch(0, sizes), Stretch(0, sizes)], steps, n, rate)
    third = mpmath.mpf(n) / 3
    drop = [mpmath.exp(-mpmath.mpf(rate) * abs(i - third)) for i in range(n + 1)]
    total = mpmath.mpf(0)
    for i in range(n + 1):
        both = int(sizes[i]) * (int(sizes[i]) + 1) // 2 * drop[i] * drop[0] * drop[n - i]
        apart = mpmath.fsum(int(sizes[k]) * drop[k] * drop[i - k] for k in range(i))
        total += both + int(sizes[i]) * apart * drop[n - i]
    assert abs(log_total(chain) - float(mpmath.log(total))) < 1e-11


def test_sliding_sums_are_those_of_each_range() -> None:
    """Ranges of one length whose ends rise by one, cut off by either end of the items, or beyond them."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        size, length = int(rng.integers(1, 40)), int(rng.integers(0, 50))
        logs = rng.normal(0, 30, size)
        logs[rng.random(size) < 0.2] = -np.inf
        first = int(rng.integers(-60, 50)) + np.arange(int(rng.integers(0, 90)))
        (found,) = sliding(logs[None], first[None], first[None] + length)
        for value, low in zip(found, first, strict=True):
            held = logs[max(low, 0) : max(low + length, 0)]
            true = np.logaddexp.reduce(held) if held.size else -np.inf
            np.testing.assert_allclose(value, true, rtol=1e-13)


@pytest.mark.parametrize("spread", [1.0, 300.0, 5000.0])
def test_sums_of_logarithms_lose_nothing(spread: float) -> None:
    """However far apart terms are, and where there are none."""
    rng = np.random.default_rng(int(spread))
    logs = rng.normal(0, spread, (40, 150))
    logs[rng.random(logs.shape) < 0.1] = -np.inf
    logs[0], logs[1, :100], logs[2] = -np.inf, -np.inf, np.arange(150) * 40.0
    np.testing.assert_allclose(log_running_sum(logs), np.logaddexp.accumulate(logs, axis=1), rtol=1e-13)
    np.testing.assert_allclose(log_sum(logs), np.logaddexp.reduce(logs, axis=0), rtol=1e-13)
