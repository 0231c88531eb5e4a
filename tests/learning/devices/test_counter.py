import os

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from scipy.stats import kstest

from sourdine.core.errors import SourdineError
from sourdine.learning.devices import counter
from sourdine.learning.devices.counter import chacha20, check_cipher, counter_gaussian
from sourdine.testing import SeededBits

CPU = torch.device("cpu")


@pytest.mark.parametrize("start", [0, 5, 2**31 - 2, 2**32 - 4])
def test_words_are_those_of_the_cipher(start: int) -> None:
    key, nonce = os.urandom(32), os.urandom(12)
    cipher = algorithms.ChaCha20(key, start.to_bytes(4, "little") + nonce)
    expected = Cipher(cipher, None).encryptor().update(bytes(4 * 64))
    words = chacha20(key, 4, nonce=nonce, start=start, device="cpu")
    assert np.ascontiguousarray(words.numpy()).astype("<i4").tobytes() == expected


def test_a_counter_never_begins_anew_under_a_key() -> None:
    with pytest.raises(ValueError, match="anew"):
        chacha20(bytes(32), 5, start=2**32 - 4, device="cpu")


def test_noise_is_normal_and_a_scale_off_is_seen() -> None:
    noise = counter_gaussian(200_001, CPU, SeededBits(1)).numpy()
    assert noise.dtype == np.float32
    assert kstest(noise, "norm").pvalue > 1e-6
    assert kstest(1.1 * noise, "norm").pvalue < 1e-6
    halves = noise[:100_000], noise[100_001:]
    assert abs(np.corrcoef(*halves)[0, 1]) < 5 / np.sqrt(100_000)  # cosines and sines of the same pairs


def test_chunks_go_on_with_the_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter, "_CHUNK", 4)
    noise = counter_gaussian(4 * 16 * 3 + 7, CPU, SeededBits(2)).numpy()
    assert len(np.unique(noise)) == len(noise)
    again = counter_gaussian(4 * 16 * 3 + 7, CPU, SeededBits(2)).numpy()
    assert np.array_equal(noise, again)
    other = counter_gaussian(4 * 16 * 3 + 7, CPU).numpy()
    assert not np.isin(noise, other).any()


def test_a_device_that_computes_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter, "_rotated", lambda words, by: words << by)
    check_cipher.cache_clear()
    with pytest.raises(SourdineError, match="computes a cipher wrongly"):
        counter_gaussian(3, CPU)
    check_cipher.cache_clear()
