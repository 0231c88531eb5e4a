"""Reports as text: one line each, '<fingerprint> <report in hexadecimal>', all lines of one length.

Files of one question may be cut, joined and sent line by line; every line tells what it belongs to.
"""

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.local.oracle import Bytes

_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_VALUES = np.full(256, 255, np.uint8)
_VALUES[_DIGITS] = np.arange(16)
_SPACE, _END = 32, 10


_NAME = 16  # letters of a fingerprint


def line_length(width: int) -> int:
    """The bytes of a line that holds a report of so many bytes."""
    return _NAME + 1 + 2 * width + 1


def written(fingerprint: str, rows: Bytes) -> bytes:
    """The lines of packed reports.

    >>> written("00112233aabbccdd", np.array([[1, 255]], np.uint8))
    b'00112233aabbccdd 01ff\\n'
    """
    head = np.frombuffer(f"{fingerprint} ".encode(), np.uint8)
    lines = np.empty((len(rows), len(head) + 2 * rows.shape[1] + 1), np.uint8)
    lines[:, : len(head)] = head
    lines[:, len(head) : -1 : 2] = _DIGITS[rows >> 4]
    lines[:, len(head) + 1 : -1 : 2] = _DIGITS[rows & 15]
    lines[:, -1] = _END
    return lines.tobytes()


def read(text: bytes, fingerprint: str, width: int) -> Bytes:
    """The packed reports of some lines; the first line that is not one of this question is refused.

    >>> read(b'00112233aabbccdd 01ff\\n', "00112233aabbccdd", 2)
    array([[  1, 255]], dtype=uint8)
    """
    text = text.replace(b"\r\n", b"\n")
    length = line_length(width)
    whole = len(text) // length
    lines = np.frombuffer(text, np.uint8, whole * length).reshape(whole, length)
    head = np.frombuffer(f"{fingerprint} ".encode(), np.uint8)
    named = (lines[:, : len(head)] == head).all(axis=1)
    digits = _VALUES[lines[:, len(head) : -1]]
    good = named & (digits < 16).all(axis=1) & (lines[:, -1] == _END)
    if not good.all():
        raise _refusal(lines, named, int(np.argmin(good)), len(head))
    if len(text) % length:
        raise InvalidParameter(
            f"Line {whole + 1} of the reports is cut short. Nothing was counted, so that none is counted "
            "twice. Get the file again, or take the last line off."
        )
    return (16 * digits[:, 0::2] + digits[:, 1::2]).astype(np.uint8, copy=False)


def _refusal(lines: NDArray[np.uint8], named: NDArray[np.bool_], i: int, head: int) -> InvalidParameter:
    """Whether a line belongs to another question or is damaged."""
    other = _VALUES[lines[i, : head - 1]].max() < 16 and lines[i, head - 1] == _SPACE
    if not named[i] and other:
        return InvalidParameter(
            f"Line {i + 1} of the reports was made for another specification. Nothing was counted. "
            "Use the specification that it names, or take the line out."
        )
    return InvalidParameter(
        f"Line {i + 1} of the reports is damaged. Nothing was counted. Get the file again, or take it out."
    )
