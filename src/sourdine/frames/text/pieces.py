"""A file as many small ones that an engine reads side by side, each of whole records, tidied on the way.

An engine that splits a file by itself begins in the middle of it and has to guess whether it is inside
quotes. Here a piece begins after a line feed, so nothing is guessed, and nothing is kept: a piece lives while
a thread of the engine reads it.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from sourdine.frames.text.compression import Contents
from sourdine.frames.text.encoding import as_utf8, line_feeds, quotes, units, width
from sourdine.frames.text.tidy import MOST_BYTES

PROTOCOL = "sourdine"
SIZE = 1 << 24  # bytes of a piece: a few for each thread, so that they are done at the same time
_CHUNK = 1 << 16
_QUOTE = 34


@dataclass(frozen=True)
class TextFile:
    """A file of records that begin at a place, and what makes a block of them plain."""

    contents: Contents
    start: int
    encoding: str
    plain: Callable[[bytes], bytes]
    multiline: bool = False
    size: int = SIZE
    _long: list[tuple[int, int]] = field(default_factory=list, repr=False)
    _parities: list[int] = field(default_factory=list, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return max(1, -(-(self.contents.length - self.start) // self.size))

    def piece(self, number: int) -> bytes:
        """The records that begin in a stretch of the file, plain."""
        low = self._boundary(number)
        nominal = self.start + (number + 1) * self.size
        last = number + 1 >= self.pieces
        high = self.contents.length if last else self._boundary(number + 1)
        if low >= high:
            return b""
        # of a record that goes far beyond the stretch, only that it is too long: up to there it is one record
        # with line breaks in its quotes too, since it has no other
        most = max(nominal, low) + (MOST_BYTES + 1) * width(self.encoding)
        block = self.contents.read(low, min(high, most) - low)
        return self.plain(as_utf8(block, self.encoding))

    def _boundary(self, number: int) -> int:
        """Where the first record begins that does not begin before a stretch."""
        offset = self.start + number * self.size
        if number == 0:
            return offset
        with self._lock:
            for begin, end in self._long:  # a record that spans stretches is gone through once
                if begin <= offset <= end:
                    return end
            end = self._next(offset, self._odd(number))
            if end - offset > self.size:
                self._long.append((offset, end))
        return end

    def _next(self, offset: int, odd: bool) -> int:
        """The place after the first line feed from just before an offset on, outside quotes that are open."""
        wide = width(self.encoding)
        at = offset - wide
        while True:
            chunk = self.contents.read(at, _CHUNK)
            ends = line_feeds(chunk, self.encoding)
            if self.multiline:
                places = np.flatnonzero(units(chunk, self.encoding) == _QUOTE) * wide
                ends = ends[(np.searchsorted(places, ends) + odd) % 2 == 0]
                odd = bool((places.size + odd) % 2)
            if ends.size:
                return at + int(ends[0]) + wide
            if len(chunk) < _CHUNK:
                return self.contents.length
            at += _CHUNK

    def _odd(self, number: int) -> bool:
        """Whether a quote is open just before a stretch; the byte before it may be its line's end."""
        if not self.multiline:
            return False
        if not self._parities:
            counts = (
                quotes(self.contents.read(self.start + i * self.size, self.size), self.encoding)
                for i in range(self.pieces)
            )
            self._parities.extend(accumulate(counts, initial=0))
        offset, wide = self.start + number * self.size, width(self.encoding)
        before = quotes(self.contents.read(offset - wide, wide), self.encoding)
        return (self._parities[number] - before) % 2 == 1
