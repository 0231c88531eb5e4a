"""Lines in a chain: each carries a fingerprint of its content and of the line before."""

import hashlib
from collections.abc import Callable
from json.encoder import encode_basestring_ascii as quoted
from typing import NamedTuple

Row = tuple[int, str, str, str]


class LedgerLine(NamedTuple):
    """One entry: its number from 1, its content as JSON, the total after it, and its fingerprint."""

    number: int
    content: str
    total: str
    fingerprint: str


class Mark(NamedTuple):
    """How far a ledger has come: the number and the fingerprint of its newest line."""

    number: int
    fingerprint: str


START = Mark(0, "")
Build = Callable[[LedgerLine | None], tuple[str, str]]
"""From the last line to the content and total of the next, or an error that refuses it."""


def sound(row: tuple[object, ...]) -> bool:
    """Whether a row has the types of a line; damage may give it others.

    >>> sound((1, "{}", "1/2", "")), sound((1, None, "1/2", ""))
    (True, False)
    """
    return [type(value) for value in row] == [int, str, str, str]


def fingerprint(before: str, content: str) -> str:
    """The mark of a line: SHA-256 over the mark before and the content, as a JSON list of two texts."""
    return hashlib.sha256(f"[{quoted(before)}, {quoted(content)}]".encode()).hexdigest()


def next_line(before: Mark, content: str, total: str) -> LedgerLine:
    """The line after a mark.

    >>> next_line(START, "{}", "1/2").number
    1
    """
    return LedgerLine(
        before.number + 1, content, total, fingerprint(before.fingerprint, f"{content}\n{total}")
    )


def follows(line: LedgerLine, before: Mark) -> bool:
    """Whether a line is the one after a mark, as it was written.

    >>> line = next_line(START, "{}", "1/2")
    >>> follows(line, START), follows(line._replace(total="1/3"), START)
    (True, False)
    """
    return line == next_line(before, line.content, line.total)


def mark_of(line: LedgerLine | None) -> Mark:
    """How far a ledger has come whose newest line this is.

    >>> mark_of(None)
    Mark(number=0, fingerprint='')
    """
    return START if line is None else Mark(line.number, line.fingerprint)
