"""Masks come from secret bits, all of the generator's state, and the caller's generator goes on as it was."""

import random

import numpy as np
import torch

from sourdine.learning.masks import reseed, unforeseen
from sourdine.testing import SeededBits


def test_the_generator_has_the_whole_state_of_the_bits() -> None:
    with torch.random.fork_rng():
        reseed(SeededBits(1))
        drawn = (torch.rand(2000) * 2**24).long().tolist()
    state = SeededBits(1).words(313)[1:].view(np.uint32).tolist()
    reference = random.Random()  # the same generator, of another author
    reference.setstate((3, (*state, 624), None))
    assert drawn == [reference.getrandbits(32) & 0xFFFFFF for _ in range(2000)]


def test_starts_that_agree_in_the_first_word_differ() -> None:
    """A seed of 32 bits, or of 64, could be tried; here the other words count as well."""

    class Alike:
        secure = False

        def __init__(self, last: int) -> None:
            self.last = last

        def words(self, count: int, /) -> np.ndarray:
            words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            words[-1] = self.last
            return words

    with torch.random.fork_rng():
        reseed(Alike(1))
        first = torch.rand(2000)
        reseed(Alike(2))
        assert not torch.equal(first, torch.rand(2000))


def test_the_callers_generator_goes_on() -> None:
    torch.manual_seed(5)
    torch.randn(3)
    before = torch.get_rng_state()
    with unforeseen(SeededBits(2)):
        inside = torch.rand(4)
        torch.randn(3)
    assert torch.equal(torch.get_rng_state(), before)
    with unforeseen(SeededBits(2)):
        assert torch.equal(torch.rand(4), inside)
    with unforeseen(SeededBits(3)):
        assert not torch.equal(torch.rand(4), inside)
