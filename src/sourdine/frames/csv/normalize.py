"""Blocks of physical lines, made so plain that any reader of CSV finds one record in each line.

A record is a line ended by a line feed, and one carriage return before it belongs to the line's end. What an
engine makes of anything else depends on it: DuckDB ends a record at a carriage return too, and an open
quote goes on into the next record. So nothing else reaches it. A record that is not plain is written anew:
with quotes round its fields, those that cannot be decoded being missing; or, if its quotes are not balanced,
as a record in which everything is missing. Each is judged by its own bytes alone.
"""

import codecs
import re
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 1 << 20  # of a record; a longer one is unreadable, so that blocks stay small
UNREADABLE = b'""'  # a record whose first field is empty and whose others are not there: all are missing
NO_OBJECT = b"{}"  # the same in JSON
_LF, _CR, _QUOTE = 10, 13, 34
_MARK = codecs.BOM_UTF8
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8, as Python decodes them
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"')

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]


def tidy(block: bytes, delimiter: str, *, multiline: bool = False, alone: bool = False) -> bytes:
    """The same records, one a line, of valid UTF-8, with quotes as RFC 4180 has them and no other breaks.

    The block holds whole records. Where a column stands `alone`, an engine would count empty lines, so they
    are taken out.

    >>> tidy(b'a,1\\r\\nb\\rc,"2"\\n"d,3\\n', ",")
    b'a,1\\n"b\\rc","2"\\n""\\n'
    """
    block = _ended(block, multiline)
    if not multiline and _is_plain(block, delimiter, alone):
        return block
    octets = np.frombuffer(block, np.uint8)
    quotes = np.flatnonzero(octets == _QUOTE)
    ends = _ends(octets, quotes, multiline)
    starts = _starts(ends)
    odd = _odd_quotes(octets, quotes, starts, ends, delimiter)
    odd |= ends - starts > MOST_BYTES
    odd[np.searchsorted(ends, np.flatnonzero(octets == _CR))] = True
    odd[_undecodable(block, ends)] = True
    odd[:1] |= block.startswith(_MARK)  # an engine would take it for the mark of a file
    if alone:
        odd |= starts == ends
    return b"".join(_written_anew(block, starts, ends, odd, delimiter))


def tidy_json(block: bytes) -> bytes:
    """Lines of JSON as they are, but for those that are no UTF-8 or too long: these hold nothing.

    An engine reads a line that is no object as a record in which everything is missing.

    >>> tidy_json(b'{"age": 3}\\r\\n\\xff\\n')
    b'{"age": 3}\\n{}\\n'
    """
    block = _ended(block, False)
    if _is_short(block) and _decodes(block) and not block.startswith(_MARK):
        return block
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LF)
    starts = _starts(ends)
    odd = ends - starts > MOST_BYTES
    odd[_undecodable(block, ends)] = True
    odd[:1] |= block.startswith(_MARK)
    return b"".join(_replaced(block, starts, ends, odd, lambda record: NO_OBJECT + b"\n"))


def _ended(block: bytes, multiline: bool) -> bytes:
    """A block whose lines end in line feeds alone, the last one too."""
    if block and not block.endswith(b"\n"):
        block += b"\n"
    if b"\r" not in block:
        return block
    octets = np.frombuffer(block, np.uint8)
    if not multiline:
        mask = octets != _CR
        returns = np.flatnonzero(~mask)
        mask[returns[octets[returns + 1] != _LF]] = True
    else:  # inside quotes a carriage return before a line feed belongs to the field
        ends = _ends(octets, np.flatnonzero(octets == _QUOTE), multiline)
        mask = np.ones(octets.size, bool)
        mask[ends[(ends > 0) & (octets[ends - 1] == _CR)] - 1] = False
    return bytes(octets[mask].tobytes())


def _is_plain(block: bytes, delimiter: str, alone: bool) -> bool:
    """Whether every record of a block is plain, by searches that run nearly at the speed of memory."""
    if b"\r" in block or block.startswith(_MARK):
        return False
    if alone and (block.startswith(b"\n") or b"\n\n" in block):
        return False
    return _is_short(block) and _decodes(block) and (b'"' not in block or _is_strict(block, delimiter))


def _is_strict(block: bytes, delimiter: str) -> bool:
    """Whether the quotes of every record are as RFC 4180 has them: `_odd_quotes`, for all at once.

    Where no line ends inside quotes, every second quote of the block is every second of its record.
    """
    octets = np.frombuffer(block, np.uint8)
    quotes = np.flatnonzero(octets == _QUOTE)
    if quotes.size % 2 or (np.searchsorted(quotes, np.flatnonzero(octets == _LF)) % 2).any():
        return False
    before, after = octets[quotes[::2] - 1], octets[quotes[1::2] + 1]
    if quotes[0] == 0:
        before[0] = _LF
    may = np.zeros(256, bool)
    may[[_LF, _QUOTE, ord(delimiter)]] = True
    return bool(may[before].all() and may[after].all())


def _decodes(block: bytes) -> bool:
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            return False
    return True


def _is_short(block: bytes) -> bool:
    """Whether no record is too long: one would leave a window of half its length without a line's end."""
    half = MOST_BYTES // 2
    return all(block.find(b"\n", at, at + half) >= 0 for at in range(0, len(block) - half, half))


def _starts(ends: Places) -> Places:
    return np.concatenate([np.zeros(min(1, ends.size), np.int64), ends[:-1] + 1])


def _ends(octets: Bytes, quotes: Places, multiline: bool) -> Places:
    """Where records end; with `multiline`, only where as many quotes were closed as opened."""
    ends = np.flatnonzero(octets == _LF)
    if not multiline:
        return ends
    ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    # what a quote leaves open to the end of the block is one record
    whole = not octets.size or (ends.size and ends[-1] == octets.size - 1)
    return ends if whole else np.append(ends, octets.size - 1)


def _odd_quotes(octets: Bytes, quotes: Places, starts: Places, ends: Places, delimiter: str) -> Mask:
    """Records whose quotes are not as RFC 4180 has them.

    Of the quotes of a record, counted from 0, an even one opens a field, so it stands after a delimiter or at
    the record's start, or it is the second of a pair inside; an odd one closes it, so it stands before a
    delimiter or at the end, or it is the first of a pair. By induction over the quotes that makes each field
    well-formed, wherever the record stands.
    """
    odd = np.zeros(ends.size, bool)
    if not quotes.size:
        return odd
    record = np.searchsorted(ends, quotes)
    first = np.searchsorted(quotes, starts)
    opens = (np.arange(quotes.size) - first[record]) % 2 == 0
    before = octets[np.maximum(quotes - 1, 0)]
    after = octets[np.minimum(quotes + 1, octets.size - 1)]
    opening = (quotes == starts[record]) | (before == ord(delimiter)) | (before == _QUOTE)
    closing = (quotes + 1 == ends[record]) | (after == ord(delimiter)) | (after == _QUOTE)
    odd[record[~np.where(opens, opening, closing)]] = True
    odd[np.diff(np.append(first, quotes.size)) % 2 == 1] = True
    return odd


def _undecodable(block: bytes, ends: Places) -> list[int]:
    """Records that are not valid UTF-8."""
    places: list[int] = []
    at, whole = 0, memoryview(block)
    while not block.isascii():
        try:
            codecs.utf_8_decode(whole[at:], "strict", True)
        except UnicodeDecodeError as problem:
            places.append(int(np.searchsorted(ends, at + problem.start)))
            at = int(ends[places[-1]]) + 1
        else:
            break
    return places


def _written_anew(block: bytes, starts: Places, ends: Places, odd: Mask, delimiter: str) -> Iterator[bytes]:
    return _replaced(block, starts, ends, odd, lambda record: _anew(record, delimiter))


def _replaced(
    block: bytes, starts: Places, ends: Places, odd: Mask, anew: Callable[[bytes], bytes]
) -> Iterator[bytes]:
    """The records in their order: runs of plain ones as they are, the others as they are written anew."""
    done = 0
    for start, end in zip(starts[odd].tolist(), ends[odd].tolist(), strict=True):
        yield block[done:start]
        yield anew(block[start:end])
        done = end + 1
    yield block[done:]


def _anew(record: bytes, delimiter: str) -> bytes:
    """A record with quotes round its fields; or one that is all missing, if it cannot be read.

    A field that is no text is missing. Any text in its place could be that of another field: of two units,
    say, that would then count as one.
    """
    if not record:
        return b""
    cells = None
    if len(record) <= MOST_BYTES:
        cells = fields(record.decode("utf-8", "surrogateescape"), delimiter)
    if cells is None:
        return UNREADABLE + b"\n"
    known = (each if _is_text(each) else "" for each in cells)
    quoted = ('"' + each.replace('"', '""') + '"' for each in known)
    line = delimiter.join(quoted).encode()
    return (line if len(line) <= MOST_BYTES else UNREADABLE) + b"\n"  # quotes may double its length


def _is_text(field: str) -> bool:
    return field.isascii() or not _ESCAPED.search(field)


def fields(record: str, delimiter: str) -> list[str] | None:
    """The fields of one record; None where its quotes are not balanced.

    A quote inside a field that does not begin with one is a letter, and what follows a closing quote belongs
    to the field.

    >>> fields('a;"b; c";5 "or" 6', ";")
    ['a', 'b; c', '5 "or" 6']
    """
    if record.count('"') % 2:
        return None
    cells: list[str] = []
    at = 0
    while True:
        quoted, after = "", at
        if record.startswith('"', at):
            match = _QUOTED.match(record, at)
            if match is None:
                return None
            quoted, after = match[1].replace('""', '"'), match.end()
        end = record.find(delimiter, after)
        end = len(record) if end < 0 else end
        cells.append(quoted + record[after:end])
        if end == len(record):
            return cells
        at = end + 1


# Any encoding as UTF-8: what cannot be decoded belongs to its record alone.


_ENCODING_LF, _ENCODING_CR, _ENCODING_QUOTE = 10, 13, 34
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
    return np.flatnonzero(units(block, encoding) == _ENCODING_LF) * width(encoding)


def carriage_returns(block: bytes, encoding: str) -> NDArray[np.int64]:
    """Where carriage returns stand, in bytes after the start of the block."""
    return np.flatnonzero(units(block, encoding) == _ENCODING_CR) * width(encoding)


def quotes(block: bytes, encoding: str) -> int:
    """How many quotes there are."""
    if not is_wide(encoding):
        return block.count(b'"')
    return int(np.count_nonzero(units(block, encoding) == _ENCODING_QUOTE))


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
