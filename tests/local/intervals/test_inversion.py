"""Intervals that hold: exact coverage whatever the number of people, from laws that are summed here."""

import numpy as np
import pytest
from scipy.stats import binom

from sourdine.local import GRR, OUE, HadamardResponse
from sourdine.local.estimate import shares
from sourdine.local.intervals.inversion import least, people_behind, rounded
from sourdine.mechanisms import Channel
from tests import contract

BLOCKS = {HadamardResponse}  # whose votes have a law of their own, below
KINDS = [kind for kind in contract.oracles() if kind not in BLOCKS]


def law(channel: Channel, m: int, n: int) -> np.ndarray:
    """P[S = 0 .. n] of Bin(m, p) + Bin(n - m, q)."""
    first = binom.pmf(np.arange(m + 1), m, channel.p)
    return np.convolve(first, binom.pmf(np.arange(n - m + 1), n - m, channel.q))


def covered(channel: Channel, n: int, people: list[int], confidence: float = 0.95) -> float:
    """How often the interval of shares holds the true one, at the worst of some numbers of people."""
    found = shares(channel, np.arange(n + 1), n, confidence)
    return min(
        float(law(channel, m, n)[(found.lower <= m / n) & (m / n <= found.upper)].sum()) for m in people
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("categories", [2, 20, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0, 12.0])
def test_thirty_reports_are_enough(kind: type, categories: int, epsilon: float) -> None:
    channel = kind(epsilon=epsilon, categories=categories).channel
    assert covered(channel, 30, list(range(31))) >= 0.95 - 1e-9


def test_the_published_failures_are_mended() -> None:
    """Score intervals held .80 of the time with 22 of 300 at epsilon 8, and .82 of 10,000 at epsilon 12."""
    at_8 = GRR(epsilon=8, categories=20).channel
    assert covered(at_8, 300, [*range(0, 301, 3), 22]) >= 0.95 - 1e-9
    at_12 = GRR(epsilon=12, categories=20).channel
    assert covered(at_12, 10_000, [0, 1, 10, 100, 300, 500, 1000, 1500, 2000]) >= 0.95 - 1e-9


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.99, 0.9999])
def test_other_confidences(confidence: float) -> None:
    channel = OUE(epsilon=2, categories=5).channel
    assert covered(channel, 60, list(range(61)), confidence) >= confidence - 1e-9


@pytest.mark.parametrize(
    ("p", "q", "n"), [(0.75, 0.25, 40), (0.99, 0.001, 60), (1.0, 0.5, 25), (1.0, 0.0, 9)]
)
def test_the_limits_are_those_of_their_definition(p: float, q: float, n: int) -> None:
    tails = np.array([law(Channel(p, q), m, n) for m in range(n + 1)])
    above, below = tails[:, ::-1].cumsum(axis=1)[:, ::-1], tails.cumsum(axis=1)
    found = people_behind(p, q, np.arange(n + 1), n, 0.9)
    for s in range(n + 1):
        lower, upper = np.flatnonzero(above[:, s] > 0.05), np.flatnonzero(below[:, s] > 0.05)
        assert found.unlikely[s] == (not lower.size or not upper.size)
        assert found.lower[s] == (lower[0] if lower.size else n)
        assert found.upper[s] == (upper[-1] if upper.size else 0)


def test_an_unlikely_count_is_told_and_has_the_nearest_share() -> None:
    found = shares(Channel(0.75, 0.25), np.array([0, 25, 100]), 100, 0.95)
    assert found.unlikely is not None
    assert found.unlikely.tolist() == [True, False, True]
    assert (found.lower[0], found.upper[0]) == (0, 0)
    assert (found.lower[2], found.upper[2]) == (1, 1)
    assert found.lower[1] == 0 < found.upper[1] < 0.3


def test_many_different_counts_are_rounded_outwards_by_little() -> None:
    rng = np.arange(20_000)
    n = 10**9
    seen = n // 4 + 7 * rng
    down, up = rounded(seen, n * 3 / 16)
    assert ((down <= seen) & (seen <= up)).all()
    assert (up - down).max() <= (n * 3 / 16) ** 0.5 / 64
    many, few = people_behind(0.75, 0.25, seen, n, 0.95), people_behind(0.75, 0.25, seen[::5000], n, 0.95)
    assert (many.lower[::5000] <= few.lower).all()
    assert (many.upper[::5000] >= few.upper).all()
    wide = (many.upper - many.lower)[::5000] / (few.upper - few.lower)
    assert wide.max() < 1.02


def test_the_search_finds_the_first_that_is_accepted() -> None:
    rows = np.arange(40)
    most, first = np.full(40, 1000), rows**2 - 30  # from before the beginning to after the end
    wanted = np.clip(first, 0, 1001)
    for guess in (0, 17, 1000):
        found = least(lambda at, m: m >= first[at], np.full(40, guess), most)
        assert found.tolist() == np.minimum(wanted, 1001).tolist()


def sums_and_totals(oracle: HadamardResponse, counts: tuple[int, int, int]) -> np.ndarray:
    """P[votes for = i, votes against = j], person by person."""
    e, blocks, n = float(np.exp(float(oracle.epsilon))), oracle.blocks, sum(counts)
    whole = e + 2 * blocks - 1
    kinds = ((e / whole, 1 / whole), ((e + 1) / 2 / whole,) * 2, (1 / whole, 1 / whole))
    out = np.zeros((n + 1, n + 1))
    out[0, 0] = 1
    for count, (up, down) in zip(counts, kinds, strict=True):
        for _ in range(count):
            moved = (1 - up - down) * out
            moved[1:] += up * out[:-1]
            moved[:, 1:] += down * out[:, :-1]
            out = moved
    return out


@pytest.mark.parametrize(
    ("epsilon", "categories", "blocks", "n"),
    [
        (1.6, 20, 0, 30),
        (3.0, 100, 0, 30),
        (8.0, 20, 10, 40),
        (2.0, 9, 5, 30),
        (12.0, 4, 2, 30),
        (4.0, 6, 0, 30),
    ],
)
def test_votes_in_blocks_hold_whoever_else_is_in_the_block(
    epsilon: float, categories: int, blocks: int, n: int
) -> None:
    """By the exact law of votes for and against, for many numbers of people in the block."""
    oracle = HadamardResponse(epsilon=epsilon, categories=categories, blocks=blocks)
    i, j = np.indices((n + 1, n + 1))
    possible = i + j <= n
    i, j = i[possible], j[possible]
    for alone in sorted({False, True} & set(oracle._alone.tolist())):
        found = oracle._votes.people(i - j, i + j, np.full(len(i), alone), n, 0.95)
        for m in (0, 1, 3, n // 3, n // 2, n - 1, n):
            for beside in (0,) if alone else {0, min(1, n - m), (n - m) // 4, (n - m) // 2, n - m}:
                masses = sums_and_totals(oracle, (m, beside, n - m - beside))[possible]
                held = masses[(found.lower <= m) & (m <= found.upper)].sum()
                assert held >= 0.95 - 1e-9


@pytest.mark.parametrize("epsilon", [1.4, 1.6, 1.75, 1.9, 2.05, 3.0, 6.0, 9.0])
def test_sums_of_votes_are_log_concave_by_the_best_number_of_blocks(epsilon: float) -> None:
    """Fifteen people are as many as it takes, and any larger sum that is tried is so too."""
    oracle = HadamardResponse(epsilon=epsilon, categories=10**6)
    assert oracle.blocks > 1
    assert oracle._votes.log_concave(15)
    for counts in ((3, 40, 2), (20, 1, 0), (0, 17, 0), (5, 5, 60)):
        law = np.ones(1)
        for count, step in zip(counts, oracle._votes.steps, strict=True):
            for _ in range(count):
                law = np.convolve(law, [step.down, 1 - step.up - step.down, step.up])
        seen = law[law > 1e-200]
        assert (seen[1:-1] ** 2 >= seen[:-2] * seen[2:] * (1 - 1e-12)).all()


def test_votes_that_keep_their_parity_are_not_log_concave() -> None:
    votes = HadamardResponse(epsilon=8, categories=20, blocks=10)._votes
    assert not votes.log_concave(10**6)


def test_a_block_of_ones_own_no_longer_fails() -> None:
    """Score intervals held 30 of 300 people .70 of the time: 1,000 blocks at epsilon 12."""
    oracle = HadamardResponse(epsilon=12, categories=1000)
    assert oracle.blocks == 1000
    n, m = 300, 30
    masses = np.ones(1)
    for step in [oracle._votes.steps[0]] * m + [oracle._votes.steps[2]] * (n - m):
        masses = np.convolve(masses, [step.down, 1 - step.up - step.down, step.up])
    signs = np.arange(-n, n + 1)
    found = oracle._votes.people(signs, np.abs(signs), np.ones(len(signs), np.bool_), n, 0.95)
    assert masses[(found.lower <= m) & (m <= found.upper)].sum() >= 0.95 - 1e-9


def test_estimates_carry_these_intervals() -> None:
    oracle = GRR(epsilon=2, categories=4)
    counts = oracle.tally(np.repeat(np.arange(4), [70, 20, 6, 4]))
    found = oracle.estimate(counts, 0.9)
    exact = people_behind(*oracle.channel, counts.sums, 100, 0.9)
    assert found.lower.tolist() == (exact.lower / 100).tolist()
    assert found.upper.tolist() == (exact.upper / 100).tolist()
    assert ((found.lower >= 0) & (found.upper <= 1)).all()
