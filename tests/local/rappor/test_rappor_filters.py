"""Filters that are hashed once report as the oracle does."""

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.rappor import OneTimeRappor, Rappor
from sourdine.local.rappor.oracle import LEAST_SHARE
from sourdine.local.rappor.rappor import BloomOracle, Filters
from sourdine.testing import SeededBits

WORDS = ["a.org", "b.org", "c.org"]


@pytest.mark.parametrize(
    "oracle",
    [
        Rappor(bits=20, hashes=2, cohorts=300, f=0.5, p=0.5, q=0.75),
        OneTimeRappor(bits=64, hashes=3, cohorts=1, f=0.5),
    ],
)
def test_reports_are_those_of_encode(oracle: BloomOracle) -> None:
    codes = np.arange(500) % 3
    rows = Filters.of(oracle, WORDS).reports(codes, SeededBits(1))
    assert np.array_equal(rows, oracle.encode(WORDS, codes, bits=SeededBits(1)))


def test_without_noise_a_report_is_the_filter_of_its_word() -> None:
    oracle = OneTimeRappor(bits=32, hashes=2, cohorts=8, f=LEAST_SHARE)
    codes = np.arange(60) % 3
    rows = Filters.of(oracle, WORDS).reports(codes, SeededBits(2))
    cohorts, bits = oracle.split(rows)
    assert len(set(cohorts.tolist())) == 8
    for code, cohort, row in zip(codes, cohorts, bits, strict=True):
        assert np.array_equal(row, oracle.filter(WORDS[code], int(cohort)))


def test_codes_never_raise_and_words_are_needed() -> None:
    oracle = OneTimeRappor(bits=32, hashes=2, cohorts=8, f=LEAST_SHARE)
    filters = Filters.of(oracle, WORDS)
    first, last = (filters.reports([code], SeededBits(3)) for code in (0, 2))
    assert np.array_equal(filters.reports([-5], SeededBits(3)), first)
    assert np.array_equal(filters.reports([99], SeededBits(3)), last)
    assert filters.reports([], SeededBits(3)).shape == (0, oracle.width)
    with pytest.raises(InvalidParameter, match="'words'"):
        Filters.of(oracle, [])
