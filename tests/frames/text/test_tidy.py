"""Every record is judged by its own bytes, and what an engine sees of it is plain."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.frames.csv.normalize import MOST_BYTES, UNREADABLE, fields, tidy, tidy_json

LETTERS = [b"a", b"yes", b",", b";", b'"', b'""', b"\r", b" ", b"\0", b"\\", b"'", b"\x0b", b"\x1c"]
BYTES = [b"\xef\xbb\xbf", b"\xc3\xa9", b"\xff", b"\xed\xa0\x80", b"\x85", b"\xe2\x80\xa8"]
PARTS = st.sampled_from([*LETTERS, *BYTES])
RECORDS = st.lists(st.lists(PARTS, max_size=8).map(b"".join), min_size=1, max_size=6)


def lines(records: list[bytes]) -> bytes:
    return b"".join(record + b"\n" for record in records)


@given(RECORDS, RECORDS)
def test_a_block_is_tidied_record_by_record(before: list[bytes], after: list[bytes]) -> None:
    """What is made of two blocks is what is made of each, but for marks that only a file begins with."""
    after = [b"x", *after]
    assert tidy(lines(before + after), ",") == tidy(lines(before), ",") + tidy(lines(after), ",")


@given(RECORDS)
def test_what_comes_out_is_strict(records: list[bytes]) -> None:
    """One record a line for every reader: no open quote, no carriage return outside quotes, valid UTF-8."""
    text = tidy(lines(records), ",").decode()
    parts = text.split("\n")
    assert parts.pop() == ""
    assert len(parts) == len(records)
    for part in parts:
        assert not part.startswith("\ufeff") or part is not parts[0]
        held = list(csv.reader(io.StringIO(part, newline=""), strict=True))
        assert len(held) <= 1
        bare = "".join(part.split('"')[::2])
        assert "\r" not in bare


@given(RECORDS)
def test_tidying_twice_changes_nothing(records: list[bytes]) -> None:
    once = tidy(lines(records), ",")
    assert tidy(once, ",") == once or b"\r" in once  # quoted carriage returns are written anew, alike
    assert tidy(tidy(once, ","), ",") == tidy(once, ",")


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])), min_size=2))
def test_what_a_csv_writer_wrote_is_read_back(cells: list[str]) -> None:
    cells = [cell.rstrip("\r") for cell in cells]
    held = io.StringIO(newline="")
    csv.writer(held, lineterminator="\n").writerow(cells)
    record = tidy(held.getvalue().encode(), ",").decode().removesuffix("\n")
    assert fields(record, ",") == cells


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ("a,b", ["a", "b"]),
        ('"a,b",c', ["a,b", "c"]),
        ('"a ""b""",c', ['a "b"', "c"]),
        ('5" wide,3" high', ['5" wide', '3" high']),
        ('"a"b,c', ["ab", "c"]),
        ('a"b,"c', None),
        ('"a,b', None),
        ("", [""]),
        (",", ["", ""]),
    ],
)
def test_fields_of_a_record(record: str, found: list[str] | None) -> None:
    assert fields(record, ",") == found


def test_one_record_of_many_carriage_returns_is_one_record() -> None:
    assert tidy(b"yes\n" + b"\r".join([b"yes"] * 5000) + b"\nno\n", ",").count(b"\n") == 3
    assert tidy(b"a\r\r\nb\r\n", ",") == b'"a\r"\nb\n'


def test_an_open_quote_swallows_nothing() -> None:
    assert tidy(b'a,1\n"b,2\nc,3\n', ",") == b"a,1\n" + UNREADABLE + b"\nc,3\n"


def test_a_field_that_is_no_text_is_missing_and_its_record_is_not() -> None:
    assert tidy(b"a,\xff,3\n", ",") == b'"a","","3"\n'


def test_a_record_that_is_too_long_is_unreadable() -> None:
    long = b"z" * (MOST_BYTES + 1)
    assert tidy(b"a,1\n" + long + b"\nb,2\n", ",") == b"a,1\n" + UNREADABLE + b"\nb,2\n"
    assert tidy(b"z" * MOST_BYTES + b"\n", ",") == b"z" * MOST_BYTES + b"\n"
    assert tidy_json(b"{}\n" + long + b'\n{"a": 1}\n') == b'{}\n{}\n{"a": 1}\n'


def test_a_record_that_grows_too_long_by_its_quotes_is_unreadable() -> None:
    """An engine would leave out a line of more than two mebibytes."""
    for record in (b"x\r" + b'"' * (MOST_BYTES - 4), b"\xff" + b"," * (MOST_BYTES - 1)):
        assert tidy(b"a,1\n" + record + b"\nb,2\n", ",") == b"a,1\n" + UNREADABLE + b"\nb,2\n"


def test_empty_lines_are_taken_out_where_a_column_stands_alone() -> None:
    assert tidy(b"\na\n\r\n\nb\n", ",", alone=True) == b"a\nb\n"
    assert tidy(b"\na\n", ",") == b"\na\n"
    assert tidy(b"", ",") == b""


def test_with_multiline_a_record_ends_where_its_quotes_are_closed() -> None:
    text = b'"a\r\nb",1\r\n"c\n""d""",2\r\n'
    assert tidy(text, ",", multiline=True) == b'"a\r\nb","1"\n"c\n""d""",2\n'
