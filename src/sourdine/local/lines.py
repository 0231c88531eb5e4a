"""Lines that carry reports: '<fingerprint> <report in hexadecimal>', and perhaps ' <number>' of the report.

Files of one question may be cut, joined and sent line by line; every line tells what it belongs to. The
number, of 16 digits, is what a collector gave the report when it stored it: by it a report that lies in two
files is counted once. A line that is not in order never stops the others: it is set apart, by its reason.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.local.oracle import Bytes, Oracle

Places = NDArray[np.int64]
Numbers = NDArray[np.uint64]
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_VALUES = np.full(256, 255, np.uint8)
_VALUES[_DIGITS] = np.arange(16)
_BAD = 256
_SPACE, _END, _RETURN = 32, 10, 13
_NAME, _NUMBER = 16, 16  # digits of a fingerprint, and of a report's number
_PIECE = 1 << 22  # bytes read at once


def _pairs() -> NDArray[np.uint16]:
    """The byte that two digits stand for, by the two as they lie in memory; 256 if they are none."""
    values = np.full(1 << 16, _BAD, np.uint16)
    both = np.stack(np.meshgrid(_DIGITS, _DIGITS, indexing="ij"), axis=-1).reshape(-1, 2)
    values[np.ascontiguousarray(both).view(np.uint16).reshape(-1)] = np.arange(256)
    return values


_PAIRS = _pairs()


class LineFault(StrEnum):
    """Why a line is not counted."""

    DAMAGED = "damaged"
    ANOTHER = "another-question"
    IMPOSSIBLE = "impossible"  # whole, but nothing that the oracle makes
    REPEATED = "repeated"  # its report was counted already


@dataclass(frozen=True, eq=False)
class ReportBatch:
    """The reports of some lines, the numbers of those that have one (0 else), and lines set apart."""

    rows: Bytes
    numbers: Numbers
    lines: int
    faults: dict[LineFault, Places] = field(default_factory=dict)
    """By their reason, the lines that are not counted; the first is 1."""


def line_length(width: int, *, numbered: bool = False) -> int:
    """The bytes of a line that holds a report of so many bytes, with its end."""
    return _NAME + 1 + 2 * width + 1 + (1 + _NUMBER if numbered else 0)


def written(fingerprint: str, rows: Bytes, numbers: Numbers | None = None) -> bytes:
    """The lines of packed reports, with their numbers if there are any.

    >>> written("00112233aabbccdd", np.array([[1, 255]], np.uint8))
    b'00112233aabbccdd 01ff\\n'
    """
    head = np.frombuffer(f"{fingerprint} ".encode(), np.uint8)
    length = line_length(rows.shape[1], numbered=numbers is not None)
    lines = np.empty((len(rows), length), np.uint8)
    lines[:, : len(head)] = head
    _spell(lines[:, len(head) : len(head) + 2 * rows.shape[1]], rows)
    if numbers is not None:
        lines[:, -2 - _NUMBER] = _SPACE
        _spell(lines[:, -1 - _NUMBER : -1], numbers.astype(">u8").view(np.uint8).reshape(-1, 8))
    lines[:, -1] = _END
    return lines.tobytes()


def _spell(digits: Bytes, rows: Bytes) -> None:
    digits[:, 0::2] = _DIGITS[rows >> 4]
    digits[:, 1::2] = _DIGITS[rows & 15]


def parse(text: bytes, fingerprint: str, oracle: Oracle) -> ReportBatch:
    """The reports in some lines, and the lines that are none.

    >>> from sourdine.local import GRR
    >>> batch = parse(b"00112233aabbccdd 01\\nnonsense\\n", "00112233aabbccdd", GRR(epsilon=1, categories=3))
    >>> batch.rows.tolist(), batch.faults
    ([[1]], {<LineFault.DAMAGED: 'damaged'>: array([2])})
    """
    width = oracle.width
    for numbered in (False, True):
        length = line_length(width, numbered=numbered)
        if text and len(text) % length == 0:
            codes, rows, numbers = _regular(np.frombuffer(text, np.uint8), length, fingerprint, width)
            if not codes.any():
                return _batch(oracle, rows, numbers, np.arange(1, len(rows) + 1), codes)
    return _irregular(np.frombuffer(text, np.uint8), fingerprint, oracle)


_ORDER = (None, LineFault.DAMAGED, LineFault.ANOTHER, LineFault.IMPOSSIBLE)


def _regular(
    text: Bytes, length: int, fingerprint: str, width: int
) -> tuple[NDArray[np.uint8], Bytes, Numbers]:
    """Lines of one length, each with its end: what is wrong with each, their rows and their numbers."""
    count, numbered = len(text) // length, length > line_length(width)
    head = np.frombuffer(fingerprint.encode(), np.uint64)
    after = _NAME + 1 + 2 * width
    named = (_field(text, 0, length, "u8") == head[0]) & (_field(text, 8, length, "u8") == head[1])
    whole = (_field(text, length - 1, length, "u1") == _END) & (_field(text, _NAME, length, "u1") == _SPACE)
    rows = np.empty((count, width), np.uint8)
    for k in range(width):
        whole &= _digits(text, _NAME + 1 + 2 * k, length, rows[:, k])
    numbers = np.zeros(count, np.uint64)
    if numbered:
        spelled = np.empty((count, 8), np.uint8)
        whole &= _field(text, after, length, "u1") == _SPACE
        for k in range(8):
            whole &= _digits(text, after + 1 + 2 * k, length, spelled[:, k])
        numbers = spelled.view(">u8").reshape(-1).astype(np.uint64)
    codes = np.zeros(count, np.uint8)
    if not named.all():
        codes[~named] = 2
        lines = text.reshape(count, length)
        codes[~named & ((_VALUES[lines[:, :_NAME]] > 15).any(axis=1) | (lines[:, _NAME] != _SPACE))] = 1
    codes[named & ~whole] = 1
    return codes, rows, numbers


def _field(text: Bytes, place: int, length: int, kind: str) -> NDArray[np.generic]:
    """The same bytes of every line, as numbers; they need not be aligned."""
    each = np.dtype({"names": ["it"], "formats": [kind], "offsets": [place], "itemsize": length})
    return text.view(each)["it"]


def _digits(text: Bytes, place: int, length: int, into: Bytes) -> NDArray[np.bool_]:
    """The bytes that two digits of every line stand for, and whether they are digits."""
    values = _PAIRS[_field(text, place, length, "u2")]
    into[:] = values
    return np.asarray(values < _BAD)


def _irregular(text: Bytes, fingerprint: str, oracle: Oracle) -> ReportBatch:
    """Lines of any lengths: those of a length that reports have are read together, the rest is damaged."""
    ends = np.flatnonzero(text == _END)
    if len(text) and (not len(ends) or ends[-1] != len(text) - 1):
        ends = np.append(ends, len(text))  # a line without its end is damaged: what is missing is not known
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    cut = ends == len(text)
    lengths = ends - starts
    returned = (lengths > 0) & ~cut
    returned[returned] = text[ends[returned] - 1] == _RETURN
    lengths = lengths - returned
    places = np.where(lengths > 0, np.arange(1, len(ends) + 1), 0)  # blank lines are no lines
    codes = np.ones(len(ends), np.uint8)
    codes[_of_another(text, starts, lengths, fingerprint)] = 2
    rows = np.zeros((len(ends), oracle.width), np.uint8)
    numbers = np.zeros(len(ends), np.uint64)
    for numbered in (False, True):
        length = line_length(oracle.width, numbered=numbered)
        some = np.flatnonzero((lengths == length - 1) & ~cut)
        if some.size:
            lines = np.empty((some.size, length), np.uint8)
            lines[:, :-1] = text[starts[some][:, None] + np.arange(length - 1)]
            lines[:, -1] = _END
            codes[some], rows[some], numbers[some] = _regular(
                lines.reshape(-1), length, fingerprint, oracle.width
            )
    filled = places > 0
    return _batch(oracle, rows[filled], numbers[filled], places[filled], codes[filled])


def _of_another(text: Bytes, starts: Places, lengths: Places, fingerprint: str) -> Places:
    """Which lines begin with the fingerprint of another question, whose reports may have another length."""
    some = np.flatnonzero(lengths > _NAME)
    heads = text[starts[some][:, None] + np.arange(_NAME + 1)]
    named = (_VALUES[heads[:, :_NAME]] < 16).all(axis=1) & (heads[:, _NAME] == _SPACE)
    other = (heads[:, :_NAME] != np.frombuffer(fingerprint.encode(), np.uint8)).any(axis=1)
    return np.asarray(some[named & other])


def _batch(
    oracle: Oracle, rows: Bytes, numbers: Numbers, places: Places, codes: NDArray[np.uint8]
) -> ReportBatch:
    good = codes == 0
    sound = oracle.sound(rows)
    if good.all() and sound.all():
        return ReportBatch(rows, numbers, len(rows))
    codes = np.where(good & ~sound, 3, codes)
    faults = {
        fault: places[codes == code]
        for code, fault in enumerate(_ORDER)
        if fault is not None and (codes == code).any()
    }
    whole = codes == 0
    return ReportBatch(rows[whole], numbers[whole], len(rows), faults)


def batches(file: BinaryIO, fingerprint: str, oracle: Oracle) -> Iterator[ReportBatch]:
    """The reports of a file, some megabytes at a time, whatever its size."""
    rest, before = b"", 0
    lengths = [line_length(oracle.width, numbered=numbered) for numbered in (False, True)]
    both = math.lcm(*lengths)  # a piece of whole lines need not be copied
    size = _PIECE // both * both or _PIECE
    while True:
        piece = file.read(size)
        text = rest + piece
        stop = text.rfind(b"\n") + 1 if piece and len(text) < 4 * _PIECE else len(text)
        rest, text = text[stop:], text[:stop]
        if text:
            batch = parse(text, fingerprint, oracle)
            faults = {fault: places + before for fault, places in batch.faults.items()}
            yield ReportBatch(batch.rows, batch.numbers, batch.lines, faults)
            regular = not batch.faults and batch.lines * lengths[bool(batch.numbers.any())] == len(text)
            before += batch.lines if regular else text.count(b"\n")
        if not piece:
            return


def read(text: bytes, fingerprint: str, oracle: Oracle) -> Bytes:
    """The packed reports of some lines, if every line is in order; the first that is not is refused.

    >>> from sourdine.local import GRR
    >>> read(b"00112233aabbccdd 01\\n", "00112233aabbccdd", GRR(epsilon=1, categories=3)).tolist()
    [[1]]
    """
    batch = parse(text, fingerprint, oracle)
    if batch.faults:
        place, fault = min((int(places[0]), fault) for fault, places in batch.faults.items())
        raise InvalidParameter(f"Line {place} of the reports {_WORDS[fault]}")
    return batch.rows


_WORDS = {
    LineFault.DAMAGED: "is damaged or cut short. Nothing was counted. Get the file again, or take the line "
    "out.",
    LineFault.ANOTHER: "was made for another specification. Nothing was counted. Use the specification that "
    "it names, or take the line out.",
    LineFault.IMPOSSIBLE: "is none that this oracle makes. It is damaged, or was made with other parameters. "
    "Nothing was counted. Take the line out, or ask for the report again.",
}
