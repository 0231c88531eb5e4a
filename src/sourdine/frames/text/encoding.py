"""Any encoding as UTF-8: what cannot be decoded belongs to its record alone."""

import codecs

import numpy as np
from numpy.typing import NDArray

_LF, _CR, _QUOTE = 10, 13, 34
_NOT_TEXT = b"\xff"


def is_wide(encoding: str) -> bool:
    """Whether a letter has two bytes or more."""
    return encoding.startswith("utf-16")


def units(block: bytes | memoryview, encoding: str) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """The code units of a block; of a last one that is cut in two, nothing."""
    if not is_wide(encoding):
        return np.frombuffer(block, np.uint8)
    order = "<u2" if encoding == "utf-16-le" else ">u2"
    return np.frombuffer(block, order, len(block) // 2)


def width(encoding: str) -> int:
    """The bytes of a code unit."""
    return 2 if is_wide(encoding) else 1


def line_feeds(block: bytes, encoding: str) -> NDArray[np.int64]:
    """Where lines end, in bytes after the start of the block."""
    return np.flatnonzero(units(block, encoding) == _LF) * width(encoding)


def carriage_returns(block: bytes, encoding: str) -> NDArray[np.int64]:
    """Where carriage returns stand, in bytes after the start of the block."""
    return np.flatnonzero(units(block, encoding) == _CR) * width(encoding)


def quotes(block: bytes, encoding: str) -> int:
    """How many quotes there are."""
    if not is_wide(encoding):
        return block.count(b'"')
    return int(np.count_nonzero(units(block, encoding) == _QUOTE))


def as_utf8(block: bytes, encoding: str) -> bytes:
    """A block of text as UTF-8; bytes that cannot be decoded become bytes that are no UTF-8.

    >>> as_utf8(b"caf\\xe9\\n", "latin-1"), as_utf8(b"a\\n\\x81,b\\n", "cp1252")
    (b'caf\\xc3\\xa9\\n', b'a\\n\\x81,b\\n')
    """
    if encoding == "utf-8" or (not is_wide(encoding) and block.isascii()):
        return block
    if not is_wide(encoding):
        return block.decode(encoding, "surrogateescape").encode("utf-8", "surrogateescape")
    cut = len(block) % 2  # half a letter at the end of a file
    text = block[: len(block) - cut].decode(encoding, "surrogatepass")
    return text.encode("utf-8", "surrogatepass") + _NOT_TEXT * cut


def marked(start: bytes, encoding: str) -> tuple[str | None, int]:
    """The encoding that a mark at a file's start settles, and the bytes of that mark.

    None where the order of bytes is neither declared nor marked.
    """
    if encoding == "utf-8":
        return encoding, len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
    for mark, order in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if start.startswith(mark) and encoding in ("utf-16", order):
            return order, len(mark)
    return (None if encoding == "utf-16" else encoding), 0
