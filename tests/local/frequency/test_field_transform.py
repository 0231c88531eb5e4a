"""Transforms against the matrices that define them."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from sourdine.local.frequency.field import characters, walsh_hadamard


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_walsh_hadamard_is_the_product_with_the_matrix(size: int) -> None:
    counts = np.random.default_rng(size).integers(0, 1 << 40, (3, size))
    assert np.array_equal(walsh_hadamard(counts), counts @ hadamard(size))


def test_the_counts_are_left_alone() -> None:
    counts = np.arange(4)
    walsh_hadamard(counts)
    assert counts.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("prime", "length"), [(3, 1), (3, 4), (5, 2), (7, 1)])
def test_characters_are_a_fourier_transform_over_the_digits(prime: int, length: int) -> None:
    counts = np.random.default_rng(prime).integers(0, 100, prime**length)
    expected = np.fft.fftn(counts.reshape([prime] * length)).reshape(-1)
    assert np.allclose(characters(counts, prime), expected)
