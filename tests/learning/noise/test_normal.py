import math

import numpy as np
import pytest
import torch
from scipy.special import kolmogorov, ndtr

from sourdine.core import threads
from sourdine.core.random.bits import BLOCK
from sourdine.learning.noise.normal import gaussian, make_noisy_means
from sourdine.testing import ScriptedBits, SeededBits

ALARM = 1e-6


def distance(values: np.ndarray, scale: float = 1.0) -> float:
    """The p-value of the largest distance between the distribution of values and a normal one."""
    held = np.sort(values.astype(np.float64)) / scale
    law, count = ndtr(held), len(held)
    steps = np.arange(count + 1) / count
    largest = max((law - steps[:-1]).max(), (steps[1:] - law).max())
    return float(kolmogorov(math.sqrt(count) * largest))


def drawn(count: int, seed: int) -> np.ndarray:
    return gaussian(torch.Size((count,)), SeededBits(seed)).numpy()


def test_the_law_is_normal_and_one_that_is_off_by_two_percent_is_not() -> None:
    values = drawn(400_000, 1)
    assert distance(values) > ALARM
    assert distance(values, 1.02) < ALARM
    assert distance(values + 0.01) < ALARM


@pytest.mark.slow
def test_the_law_of_many() -> None:
    values = drawn(20_000_000, 2)
    assert distance(values) > ALARM
    assert distance(values, 1.003) < ALARM


def test_moments() -> None:
    values = drawn(1_000_000, 3).astype(np.float64)
    for power, mean, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs((values**power).mean() - mean) < 5 * math.sqrt(spread / len(values))


def test_neighbours_and_halves_of_a_pair_are_independent() -> None:
    # a chunk is cosines first and sines second, so that a pair is half a chunk apart
    values = drawn(200_001, 4).astype(np.float64)
    half = (len(values) + 1) // 2
    for apart in (1, 2, half, half + 1):
        one, other = values[:-apart], values[apart:]
        assert abs((one * other).mean()) < 5 / math.sqrt(len(one))
        assert abs(((one**2 - 1) * (other**2 - 1)).mean()) < 5 * 2 / math.sqrt(len(one))


@pytest.mark.parametrize("word", [0, 2**64 - 1, (2**40 - 1) << 24, 2**24 - 1, 1 << 63])
def test_extreme_words_give_finite_numbers(word: int) -> None:
    pair = gaussian(torch.Size((2,)), ScriptedBits([word])).double()
    assert bool(torch.isfinite(pair).all())
    assert float(pair.norm()) <= math.sqrt(80 * math.log(2)) * (1 + 1e-6)


def test_the_longest_pair_and_the_shortest() -> None:
    longest = gaussian(torch.Size((2,)), ScriptedBits([0])).double().norm()
    assert float(longest) == pytest.approx(math.sqrt(80 * math.log(2)), rel=1e-6)
    short = [
        float(gaussian(torch.Size((2,)), ScriptedBits([k << 24])).double().norm())
        for k in (2**40 - 2, 2**40 - 9)
    ]
    assert short == pytest.approx([math.sqrt(2 * 2.0**-40), math.sqrt(16 * 2.0**-40)], rel=1e-2)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 0), (300_001,)])
def test_shapes(shape: tuple[int, ...]) -> None:
    found = gaussian(torch.Size(shape), SeededBits(1))
    assert (found.shape, found.dtype) == (torch.Size(shape), torch.float32)
    assert len(found.unique()) >= 0.98 * found.numel()


class Counted:
    """Words that are never the same, and how many were asked for."""

    secure = False

    def __init__(self) -> None:
        self.asked = 0

    def words(self, count: int, /) -> np.ndarray:
        self.asked += count
        return SeededBits(self.asked).words(count)


def test_every_word_is_new() -> None:
    bits = Counted()
    gaussian(torch.Size((60_001,)), bits)
    assert bits.asked == 30_001


def test_every_block_of_many_has_a_key_of_its_own() -> None:
    bits = Counted()
    drawn = gaussian(torch.Size((2 * BLOCK + 1,)), bits)
    assert bits.asked == 3 * 4  # words of a key
    assert not bool((drawn[:BLOCK] == drawn[BLOCK : 2 * BLOCK]).float().mean() > 1e-5)
    assert len(drawn.unique()) > 0.95 * len(drawn)


def test_the_system_never_repeats() -> None:
    assert not torch.equal(gaussian(torch.Size((4,))), gaussian(torch.Size((4,))))


def test_noisy_means_are_sums_and_the_same_noise_over_a_count() -> None:
    sums = [torch.arange(6.0).view(2, 3), torch.ones(()), torch.zeros(0), torch.ones(300_001)]
    noise = torch.split(gaussian(torch.Size((300_008,)), SeededBits(5)), [6, 1, 0, 300_001])
    expected = [(total + 2.5 * each.view_as(total)) / 4 for total, each in zip(sums, noise, strict=True)]
    make_noisy_means(sums, 2.5, 4, SeededBits(5))
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(sums, expected, strict=True))


def test_what_a_seed_draws_depends_on_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for processors in (1, 3):
        monkeypatch.setattr(threads, "processors", lambda count=processors: count)
        found.append(gaussian(torch.Size((2 * BLOCK + 77,)), SeededBits(6)))
    assert torch.equal(*found)


def test_lengths_and_directions_are_those_of_the_words() -> None:
    words = SeededBits(7).words(1000)
    length = np.sqrt(-2 * np.log(((words >> np.uint64(24)) + np.uint64(1)).astype(np.float64) * 2.0**-40))
    turn = (words & np.uint64((1 << 24) - 1)).astype(np.float64) * (2 * math.pi * 2.0**-24)
    expected = np.concatenate([length * np.cos(turn), length * np.sin(turn)])
    assert np.abs(drawn(2000, 7) - expected).max() < 5e-6
