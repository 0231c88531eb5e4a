import os

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sourdine.core.random.bits import SYSTEM, coins, keystream, sixteens
from sourdine.testing import ScriptedBits, SeededBits

pytestmark = pytest.mark.system_randomness


def test_the_keystream_is_aes_in_counter_mode() -> None:
    key = bytes(range(32))
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    blocks = b"".join(cipher.update(block.to_bytes(16, "big")) for block in range(7, 10))
    assert keystream(key, 40, counter=7).tobytes() == blocks[:40]


@pytest.mark.parametrize("count", [0, 1, 64, 65, 1000, 300_000])
def test_system_words_are_fresh_and_of_the_right_number(count: int) -> None:
    first, second = SYSTEM.words(count), SYSTEM.words(count)
    assert first.dtype == np.uint64
    assert first.shape == (count,)
    assert count == 0 or not np.array_equal(first, second)
    assert len(np.unique(first)) == count


def test_every_bit_of_a_word_is_fair() -> None:
    words = SYSTEM.words(200_000)
    ones = np.array([int((words >> np.uint64(bit) & np.uint64(1)).sum()) for bit in range(64)])
    assert np.all(np.abs(ones - 100_000) < 6 * np.sqrt(50_000))


def test_small_views_use_every_bit_once() -> None:
    assert list(sixteens(ScriptedBits([0x0004000300020001]), 3)) == [1, 2, 3]
    assert coins(ScriptedBits([0]), 64).sum() == 0
    assert coins(ScriptedBits([2**64 - 1]), 64).sum() == 64


def test_noise_after_a_fork_is_not_shared() -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, SYSTEM.words(100).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reader, 800), dtype=np.uint64)
    assert len(np.intersect1d(theirs, SYSTEM.words(100))) == 0


def test_seeded_words_repeat_and_do_not_depend_on_how_they_are_asked_for() -> None:
    assert np.array_equal(SeededBits(5).words(10), SeededBits(5).words(10))
    assert not np.array_equal(SeededBits(5).words(10), SeededBits(6).words(10))
    assert not SeededBits(5).secure
    assert SYSTEM.secure


def test_seeded_words_are_one_stream_however_they_are_asked_for() -> None:
    """By whole blocks: a request for an odd number of words leaves the last word of its block out."""
    bits, seen = SeededBits(5), 0
    whole = SeededBits(5).words(6000)
    for count in (1, 2, 3, 0, 500, 7, 511, 512, 513, 4, 1000, 1, 600):
        assert np.array_equal(bits.words(count), whole[seen : seen + count])
        seen += count + count % 2


def test_words_of_the_system_may_be_changed() -> None:
    assert all(SYSTEM.words(count).flags.writeable for count in (1, 3, 5000))  # else torch warns
