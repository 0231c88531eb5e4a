import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.learning import Memory
from sourdine.learning.memory.model import FIRST, Course, MemoryLine, Stage, highest

LINES = st.builds(MemoryLine, st.integers(-1000, 1000), st.integers(-20, 20))


@given(st.lists(LINES, min_size=1, max_size=12), st.integers(1, 500))
def test_the_highest_lines_are_as_high_as_all(lines: list[MemoryLine], units: int) -> None:
    assert max(line.at(units) for line in highest(lines)) == max(line.at(units) for line in lines)


@given(st.lists(LINES, min_size=1, max_size=12))
def test_none_of_the_highest_lines_is_idle(lines: list[MemoryLine]) -> None:
    kept = highest(lines)
    crossings = [
        Fraction(flat.fixed - steep.fixed) / Fraction(steep.each - flat.each)
        for flat, steep in itertools.pairwise(kept)
    ]
    assert all(crossing > 1 for crossing in crossings)
    assert all(later > earlier for earlier, later in itertools.pairwise(crossings))


def test_a_line_goes_through_the_last_two_points() -> None:
    line = MemoryLine.through((4, 1000), (8, 100), (16, 180))
    assert (line.fixed, line.each) == (20, 10)
    assert line.at(16) == 180
    assert MemoryLine.through((4, 7)) == MemoryLine(7, 0)


def test_a_course_is_exact_where_it_was_measured_and_highest_beyond() -> None:
    course = Course(
        ((4, 100), (8, 300), (16, 400)), (MemoryLine(0, 25), MemoryLine(390, 0), MemoryLine(-400, 40))
    )
    assert [course.at(units) for units in (4, 8, 16)] == [100, 300, 400]
    assert course.at(6) == 200
    assert course.at(12) == 350
    assert course.at(20) == 500
    assert course.at(100) == 3600
    assert course.at(2) == 0


@given(st.integers(0, 5000), st.booleans())
def test_the_largest_batch_fits_and_one_more_does_not(limit: int, parts: bool) -> None:
    alone, more = Course((), (MemoryLine(300, 7),)), Course((), (MemoryLine(400, 7),))
    memory = Memory(live={}, most={Stage.AGAIN: alone, Stage.MORE: more})
    found = memory.largest(limit, parts=parts)
    assert found == max(0, (limit - (400 if parts else 300)) // 7)


def test_stages_are_in_the_order_of_a_step() -> None:
    assert tuple(Stage)[:4] == FIRST


def test_the_largest_batch_ends_somewhere() -> None:
    memory = Memory(live={}, most={Stage.AGAIN: Course((), (MemoryLine(1, 0),))})
    assert memory.largest(1) == 1 << 24
    with pytest.raises(KeyError):
        memory.live[Stage.STEP]
