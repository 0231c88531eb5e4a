"""The source's experiment: 100 strings with frequencies proportional to e^(-i/20), 100 absent candidates."""

import numpy as np
import pytest

from sourdine.local.rappor import Rappor
from sourdine.local.rappor.decode import Candidates, Decoding, Evidence, decode_by_least_squares
from sourdine.testing import SeededBits

ORACLE = Rappor(bits=128, hashes=2, cohorts=16, f=0.5, p=0.5, q=0.75)
WORDS = [f"v{i}" for i in range(1, 201)]
SHARES = np.exp(-np.arange(100) / 20) / np.exp(-np.arange(100) / 20).sum()


def run(seed: int, reports: int) -> Decoding:
    bits = SeededBits(seed)
    cuts = np.floor(np.cumsum(SHARES) * 2.0**53).astype(np.uint64)
    codes = np.minimum(np.searchsorted(cuts, bits.words(reports) >> np.uint64(11), side="right"), 99)
    rows = ORACLE.encode(WORDS, codes, bits=bits)
    return decode_by_least_squares(Evidence.of(ORACLE, ORACLE.tally(rows)), Candidates.of(ORACLE, WORDS))


def test_a_tenth_of_the_reports_finds_the_most_frequent() -> None:
    decoding = run(0, 100_000)
    assert decoding.detected[:4].all()
    assert decoding.detected[100:].sum() <= 2


@pytest.mark.slow
def test_a_million_reports_find_what_they_should() -> None:
    found = np.array([run(seed, 1_000_000).detected for seed in range(20)])
    assert found[:, :100].sum(axis=1).mean() >= 42
    assert found[:, 100:].sum(axis=1).mean() <= 1.5
    assert found[:, :100][:, SHARES > 0.01].sum(axis=1).mean() >= 31.5
    assert (SHARES > 0.01).sum() == 32
    assert found[:, :100][:, SHARES > 0.015].all()
