"""Lines that carry reports: written and read, and every kind of damage refused by its line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.local.question import line_length, read, written

NAME, OTHER = "0123456789abcdef", "fedcba9876543210"


@given(st.integers(1, 9), st.lists(st.integers(0, 255), max_size=60))
def test_what_is_written_is_read(width: int, numbers: list[int]) -> None:
    rows = np.array(numbers[: len(numbers) // width * width], np.uint8).reshape(-1, width)
    text = written(NAME, rows)
    assert len(text) == len(rows) * line_length(width)
    assert np.array_equal(read(text, NAME, width), rows)
    assert np.array_equal(read(text.replace(b"\n", b"\r\n"), NAME, width), rows)


GOOD = b"0123456789abcdef 01ff\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD + GOOD[:-1], "Line 2 of the reports is cut short"),
        (GOOD + GOOD[:5], "Line 2 of the reports is cut short"),
        (GOOD + GOOD.replace(NAME.encode(), OTHER.encode()), "Line 2 .* another specification"),
        (GOOD * 2 + b"0123456789abcdef 01fg\n", "Line 3 of the reports is damaged"),
        (b"0123456789abcdef 01FF\n", "Line 1 of the reports is damaged"),
        (GOOD + b"0123456789abcdef 01ff \n", "Line 2 of the reports is damaged"),
        (b"no reports at all, only text\n", "Line 1 of the reports is damaged"),
    ],
)
def test_damage_is_named_by_its_line(text: bytes, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        read(text, NAME, 2)
