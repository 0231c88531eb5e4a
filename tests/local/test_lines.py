"""Lines that carry reports: written and read; a bad one never costs another, and is told by its reason."""

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.local import GRR, OUE, Oracle, SubsetSelection, lines
from sourdine.local.lines import LineFault, batches, line_length, parse, read, written

NAME, OTHER = "0123456789abcdef", "fedcba9876543210"
BYTES = {width: OUE(epsilon=1, categories=8 * width) for width in range(1, 10)}  # any bytes are reports
GOOD = b"0123456789abcdef 01ff\n"
NUMBERED = b"0123456789abcdef 01ff 00000000000000ff\n"


@given(st.integers(1, 9), st.lists(st.integers(0, 255), max_size=60), st.booleans())
def test_what_is_written_is_read(width: int, numbers: list[int], numbered: bool) -> None:
    rows = np.array(numbers[: len(numbers) // width * width], np.uint8).reshape(-1, width)
    names = np.arange(len(rows), dtype=np.uint64) * np.uint64(0x123456789ABCDEF) if numbered else None
    text = written(NAME, rows, names)
    assert len(text) == len(rows) * line_length(width, numbered=numbered)
    for each in (text, text.replace(b"\n", b"\r\n"), b"\n" + text):
        batch = parse(each, NAME, BYTES[width])
        assert np.array_equal(batch.rows, rows)
        assert batch.numbers.tolist() == (np.zeros(len(rows)) if names is None else names).tolist()
        assert not batch.faults
        assert np.array_equal(read(each, NAME, BYTES[width]), rows)


BAD = {
    b"0123456789abcdef 01fg\n": LineFault.DAMAGED,
    b"0123456789abcdef 01FF\n": LineFault.DAMAGED,
    b"0123456789abcdef 01ff \n": LineFault.DAMAGED,
    b"0123456789abcdef 01f\n": LineFault.DAMAGED,
    b"0123456789abcdef\t01ff\n": LineFault.DAMAGED,
    b"0123456789abcdef 01ff 00000000000000f\n": LineFault.DAMAGED,
    b"0123456789abcdef 01ff 00000000000000fg\n": LineFault.DAMAGED,
    b"0123456789abcdeg 01ff\n": LineFault.DAMAGED,
    b"no reports at all, only text\n": LineFault.DAMAGED,
    b"\xff\xfe\x00\n": LineFault.DAMAGED,
    b"fedcba9876543210 01ff\n": LineFault.ANOTHER,
    b"fedcba9876543210 01ff 00000000000000ff\n": LineFault.ANOTHER,
    b"fedcba9876543210 01fg\n": LineFault.ANOTHER,
    b"fedcba9876543210 of any length\n": LineFault.ANOTHER,
}


@given(st.lists(st.sampled_from([GOOD, NUMBERED, GOOD[:-1] + b"\r\n", b"\n", *BAD]), max_size=12))
def test_a_bad_line_never_costs_another(some: list[bytes]) -> None:
    """Against a reader of one line at a time."""
    line = re.compile(rb"0123456789abcdef [0-9a-f]{4}( [0-9a-f]{16})?")
    other = re.compile(rb"(?!0123456789abcdef)[0-9a-f]{16} .*")
    good = 0
    wrong: dict[LineFault, list[int]] = {LineFault.DAMAGED: [], LineFault.ANOTHER: []}
    for place, each in enumerate(some, 1):
        content = each.removesuffix(b"\n").removesuffix(b"\r")
        if line.fullmatch(content):
            good += 1
        elif content:
            wrong[LineFault.ANOTHER if other.fullmatch(content) else LineFault.DAMAGED].append(place)
    batch = parse(b"".join(some), NAME, BYTES[2])
    assert batch.rows.tolist() == good * [[1, 255]]
    assert {fault: places.tolist() for fault, places in batch.faults.items()} == {
        fault: places for fault, places in wrong.items() if places
    }


@given(st.binary(max_size=200))
def test_nothing_that_is_sent_raises(text: bytes) -> None:
    assert len(parse(text, NAME, BYTES[1]).rows) <= len(text) // 20


def test_a_line_without_its_end_is_damaged() -> None:
    for text in (GOOD + GOOD[:-1], GOOD + GOOD[:5]):
        batch = parse(text, NAME, BYTES[2])
        assert len(batch.rows) == 1
        assert batch.faults[LineFault.DAMAGED].tolist() == [2]


@pytest.mark.parametrize(
    ("oracle", "row", "good"),
    [
        (GRR(epsilon=1, categories=3), "02", True),
        (GRR(epsilon=1, categories=3), "03", False),
        (OUE(epsilon=1, categories=5), "f8", True),
        (OUE(epsilon=1, categories=5), "fc", False),
        (SubsetSelection(epsilon=1, categories=8, size=2), "81", True),
        (SubsetSelection(epsilon=1, categories=8, size=2), "80", False),
    ],
)
def test_what_no_device_makes_is_set_apart(oracle: Oracle, row: str, good: bool) -> None:
    batch = parse(f"{NAME} {row}\n".encode(), NAME, oracle)
    assert len(batch.rows) == good
    assert set(batch.faults) == (set() if good else {LineFault.IMPOSSIBLE})


def test_large_files_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PIECE", 50)
    text = GOOD * 5 + b"no line\n" + NUMBERED * 3 + b"x" * 300 + b"\n" + GOOD * 2 + GOOD[:7]
    parts = list(batches(io.BytesIO(text), NAME, BYTES[2]))
    assert len(parts) > 3
    assert sum(len(part.rows) for part in parts) == 10
    places = [place for part in parts for place in part.faults.get(LineFault.DAMAGED, [])]
    assert places[0] == 6
    assert len(places) >= 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD + GOOD[:-1], "Line 2 of the reports is damaged or cut short"),
        (GOOD + GOOD.replace(NAME.encode(), OTHER.encode()), "Line 2 .* another specification"),
        (GOOD * 2 + b"0123456789abcdef 01fg\n", "Line 3 of the reports is damaged"),
        (b"no reports at all, only text\n", "Line 1 of the reports is damaged"),
    ],
)
def test_who_needs_every_line_is_told_the_first_bad_one(text: bytes, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        read(text, NAME, BYTES[2])
