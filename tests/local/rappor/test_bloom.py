"""Bits of words: the definition, and what Google's Python client makes of them."""

import hashlib
import hmac

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.local.rappor import Rappor
from sourdine.local.rappor.bloom import as_word, packed_filters, position_table, positions


@given(st.text(), st.integers(0, 2**16 - 1), st.integers(2, 256), st.integers(1, 16))
def test_positions_are_bytes_of_the_digest(word: str, cohort: int, bits: int, hashes: int) -> None:
    raw = word.encode("utf-8", "surrogatepass")
    digest = hashlib.md5(bytes([0, 0, cohort >> 8, cohort & 255]) + raw).digest()
    assert positions(as_word(word), cohort, bits, hashes) == [digest[i] % bits for i in range(hashes)]


def test_googles_golden_report_comes_out() -> None:
    """Its own test encodes 'abc' in cohort 0 with the secret 'secret' and fixed draws, and expects 64493.

    There the permanent response to the filter is read off an HMAC of it, one byte a bit: the lowest bit is a
    fair coin, and the others say whether it counts (below 128 f).
    """
    k, f = 16, 0.5
    bloom = sum(1 << bit for bit in set(positions(b"abc", 0, k, 2)))
    digest = hmac.new(b"secret", bloom.to_bytes(4, "big"), hashlib.sha256).digest()
    coin = sum((digest[i] & 1) << i for i in range(k))
    counts = sum((digest[i] >> 1 < 128 * f) << i for i in range(k))
    permanent = (bloom & ~counts) | (coin & counts)
    draws = [0.0, 0.6, 0.0]
    p, q = (sum((draws[i % 3] < share) << i for i in range(k)) for share in (0.5, 0.75))
    assert (p & ~permanent) | (q & permanent) == 64493


def test_filters_are_packed_with_the_first_bit_highest() -> None:
    table = np.array([[[0, 9]], [[3, 3]]])
    assert packed_filters(table, 10).tolist() == [[[0b10000000, 0b01000000]], [[0b00010000, 0]]]


def test_a_table_has_every_word_in_every_cohort() -> None:
    table = position_table([b"a", b"b"], 32, 3, 5)
    assert table.shape == (2, 5, 3)
    assert table[1, 4].tolist() == positions(b"b", 4, 32, 3)


@pytest.mark.parametrize("value", ["naïve", "", "a,b", "\ud800", b"raw", 68, None])
def test_any_value_has_a_filter(value: object) -> None:
    oracle = Rappor(bits=64, hashes=4, cohorts=2, f=0.5, p=0.5, q=0.75)
    row = oracle.filter(value, 1)
    assert 1 <= np.unpackbits(row).sum() <= 4
