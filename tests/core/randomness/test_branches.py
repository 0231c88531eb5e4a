import numpy as np
import pytest

from sourdine.core import threads
from sourdine.core.random import bits as branches
from sourdine.core.random.bits import SYSTEM, Bits, Branch, in_branches, keystream, room
from sourdine.testing import SeededBits
from tests.statistics import ALARM, fit


def test_a_branch_is_the_stream_of_its_key() -> None:
    branch = Branch(bytes(range(32)), secure=False)
    drawn = np.concatenate([branch.words(3), branch.fill(room(200_000)), branch.words(1)])
    assert np.array_equal(drawn, keystream(bytes(range(32)), 8 * 200_004).view(np.uint64))


def test_branches_are_unlike_each_other_and_as_safe_as_their_source() -> None:
    seeded, again = branches.branches(SeededBits(1), 3), branches.branches(SeededBits(1), 3)
    words = [branch.words(1000) for branch in seeded]
    assert all(np.array_equal(word, branch.words(1000)) for word, branch in zip(words, again, strict=True))
    assert len(np.unique(words)) == 3000
    assert not any(branch.secure for branch in seeded)
    assert all(branch.secure for branch in branches.branches(SYSTEM, 2))


def test_branches_are_uniform() -> None:
    octets = np.concatenate(
        [branch.words(50).view(np.uint8) for branch in branches.branches(SeededBits(2), 200)]
    )
    assert fit(octets.astype(np.int64), dict.fromkeys(range(256), 1 / 256)) > ALARM
    assert fit(octets.astype(np.int64) // 2, dict.fromkeys(range(256), 1 / 256)) < ALARM


@pytest.mark.parametrize("number", [1, 2, 7])
def test_every_block_has_its_own_branch(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "BLOCK", 100)
    monkeypatch.setattr(threads, "processors", lambda: number)
    out = np.zeros(450, np.uint64)

    def draw(part: slice, bits: Bits) -> None:
        out[part] = bits.words(part.stop - part.start)

    in_branches(draw, 450, SeededBits(3))
    sources = branches.branches(SeededBits(3), 5)
    assert np.array_equal(out, np.concatenate([source.words(100) for source in sources])[:450])
