"""Tests draw from seeds of their own; see conftest.py beside this folder."""

import os
import zlib

import numpy as np
import pytest

from sourdine.core.random.bits import SYSTEM
from sourdine.testing import SeededBits


def test_the_systems_words_come_from_the_name_of_the_test(request: pytest.FixtureRequest) -> None:
    expected = SeededBits(zlib.crc32(request.node.nodeid.encode()))
    for count in (1, 1000):
        assert np.array_equal(SYSTEM.words(count), expected.words(count))


def test_a_forked_process_draws_its_own() -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, SYSTEM.words(100).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reader, 800), dtype=np.uint64)
    assert len(np.intersect1d(theirs, SYSTEM.words(100))) == 0


@pytest.mark.system_randomness
def test_entropy_is_there_for_who_asks(request: pytest.FixtureRequest) -> None:
    assert SYSTEM.words(1) != SeededBits(zlib.crc32(request.node.nodeid.encode())).words(1)
