"""Random sets are uniform, in the order of their last two elements, and however long they took."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.core.random import packed
from sourdine.core.random.selection import Sets, plan, sets
from sourdine.testing import SeededBits
from tests.statistics import ALARM, fit


def members(drawn: Sets, of: int) -> NDArray[np.uint8]:
    return np.unpackbits(drawn.rows, axis=1)[:, :of]


def codes(drawn: Sets, of: int) -> NDArray[np.int64]:
    """The set, the last and the one before it as one number."""
    return (members(drawn, of) @ (1 << np.arange(of)) * of + drawn.last) * of + drawn.before


def uniform_law(size: int, of: int) -> dict[int, float]:
    every = [
        (sum(1 << element for element in chosen) * of + last) * of + before
        for chosen in itertools.combinations(range(of), size)
        for last, before in itertools.permutations(chosen, 2)
    ]
    return dict.fromkeys(every, 1 / len(every))


@pytest.mark.parametrize(("size", "of"), [(2, 2), (2, 3), (3, 6), (4, 7), (5, 6), (6, 6)])
def test_sets_are_uniform_with_their_last_two(size: int, of: int) -> None:
    drawn = sets(size, of, 100_000, SeededBits(of))
    law = uniform_law(size, of)
    assert fit(codes(drawn, of), law) > ALARM
    heavy = {code: mass * (1.06 if i % 2 else 0.94) for i, (code, mass) in enumerate(law.items())}
    assert fit(codes(drawn, of), heavy) < ALARM


@pytest.mark.parametrize(("size", "of"), [(2, 64), (5, 65), (32, 64), (270, 1000), (19, 1000), (501, 1000)])
def test_sets_have_their_size_and_every_element_alike(size: int, of: int) -> None:
    count = 4000
    drawn = sets(size, of, count, SeededBits(size))
    assert drawn.rows.shape == (count, 8 * -(-of // 64))
    assert set(packed.by_row(drawn.rows).tolist()) == {size}
    plain = members(drawn, of)
    assert set(plain.sum(axis=1).tolist()) == {size}
    assert plain[np.arange(count), drawn.last].all()
    assert plain[np.arange(count), drawn.before].all()
    assert not np.any(drawn.last == drawn.before)
    share, p = plain.mean(axis=0), size / of
    assert np.abs(share - p).max() < 6 * np.sqrt(p * (1 - p) / count)
    pairs = plain[:, :-1] & plain[:, 1:]
    p = size * (size - 1) / (of * (of - 1))
    assert abs(pairs.mean() - p) < 6 * np.sqrt(p / (count * (of - 1)))


@pytest.mark.parametrize(
    ("size", "of", "told"), [(0, 2, (0, 0, 0, 0)), (1, 6, (0, 0, -1, 1)), (80, 300, (1, 2, -6, 15))]
)
def test_the_plan_of_a_single_set_never_changes(size: int, of: int, told: tuple[int, ...]) -> None:
    """Reports that devices repeat for ever hang on it, and browsers draw by it; many may have another."""
    begin = plan(size, of)
    assert (begin.numerator, begin.digits, begin.least, begin.most, begin.length) == (*told, 32)
    first, second = sets(size + 2, of, 1, SeededBits(7)), sets(size + 2, of, 1, SeededBits(7))
    assert np.array_equal(first.rows, second.rows)


class Counted(SeededBits):
    """Bits that count the words they gave."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.given = 0

    def words(self, count: int, /) -> NDArray[np.uint64]:
        self.given += count
        return super().words(count)


@pytest.mark.slow
def test_sets_are_uniform_whatever_the_work_they_took() -> None:
    size, of = 4, 6
    found: dict[int, list[int]] = {}
    bits = Counted(1)
    for _ in range(12_000):
        before = bits.given
        code = int(codes(sets(size, of, 1, bits), of)[0])
        found.setdefault(bits.given - before, []).append(code)
    often = [np.array(each) for each in found.values() if len(each) > 1000]
    assert len(often) > 2
    for each in often:
        assert fit(each, uniform_law(size, of)) > ALARM
