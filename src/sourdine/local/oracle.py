"""What an oracle is: a mechanism whose reports a collector can count and read.

On a device `sample` makes a report of a private value. `pack` writes reports as rows of bytes, all of one
width, and `unpack` reads them back or refuses. A collector tallies reports into `Counts`, which add up, and
`estimate` reads them. Reports come in two shapes, and an oracle has one of them: a whole number below
`codes`, or a row of bits.
"""

import hashlib
import json
from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.shuffling.blanket import Favours
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Mechanism
from sourdine.core.random import packed
from sourdine.core.serialization import Json, first_name
from sourdine.local.estimate import Counts, Estimate, shares
from sourdine.mechanisms.randomized_response import Response

Bytes = NDArray[np.uint8]


class Oracle(Mechanism):
    """A local mechanism with reports that can be sent, counted and read.

    The unit is one report of one person, and neighbours have it replaced: whoever sees a report learns at
    most epsilon about the value it was made of.
    """

    takes_words: ClassVar[bool] = False
    """Whether values are words: then counts alone do not tell which there are."""

    @property
    def identity(self) -> str:
        """The SHA-256 of all parameters, in 64 hexadecimal digits.

        Secret noise depends on it, since whoever writes specifications could find two of one fingerprint. So
        it never changes: it hashes the first name, under which devices drew their noise when they began.
        """
        return digest(first_written(self))

    @property
    def fingerprint(self) -> str:
        """What tells this oracle from any with other parameters: the first 16 digits of its identity."""
        return self.identity[:16]

    @property
    @abstractmethod
    def spend(self) -> Spend:
        """What one report costs the person it is about."""

    @property
    def favours(self) -> tuple[Favours, ...]:
        """Of every kind of two values, which share of all reports favours the one, the other and both.

        None where reports do more than favour a value or not: then a shuffle is accounted by epsilon.
        """
        return ()

    @property
    @abstractmethod
    def width(self) -> int:
        """How many bytes a packed report has."""

    @abstractmethod
    def pack(self, reports: NDArray[Any]) -> Bytes:
        """Reports as rows of bytes."""

    @abstractmethod
    def sound(self, rows: Bytes) -> NDArray[np.bool_]:
        """Which rows of bytes are reports that this oracle can have made."""

    @abstractmethod
    def unpack(self, rows: Bytes) -> NDArray[Any]:
        """Reports from rows of bytes; a row that this oracle never writes is refused by its number."""

    @abstractmethod
    def tally(self, reports: NDArray[Any]) -> Counts:
        """The counts of some reports."""

    @abstractmethod
    def estimate(self, counts: Counts, confidence: float = 0.95) -> Estimate:
        """What the counts say of the values behind them."""

    def known(self, counts: Counts) -> Counts:
        """The counts, if they are this oracle's and not empty."""
        if counts.fingerprint != self.fingerprint:
            raise InvalidParameter(
                "These counts are of reports made with other parameters. Read by these they would mean "
                "nothing. Use the specification that the reports were made with."
            )
        if counts.reports < 1:
            raise InvalidParameter("There are no reports to estimate from. Collect some first.")
        if not self.possible(counts):
            raise InvalidParameter(
                "These counts are none that reports can have given: they were damaged or changed. "
                "Make them again from the reports."
            )
        return counts

    def possible(self, counts: Counts) -> bool:
        """Whether some reports could have these counts."""
        return bool((counts.sums >= 0).all())


class CodeReports(Oracle):
    """Oracles whose report is a whole number: 0 .. codes - 1."""

    @property
    @abstractmethod
    def codes(self) -> int:
        """How many different reports there are."""

    @property
    def width(self) -> int:
        return max(1, ((self.codes - 1).bit_length() + 7) // 8)

    def pack(self, reports: NDArray[Any]) -> Bytes:
        wide = np.asarray(reports, np.int64).reshape(-1).astype(">u8")
        return wide.view(np.uint8).reshape(-1, 8)[:, 8 - self.width :]

    def sound(self, rows: Bytes) -> NDArray[np.bool_]:
        return np.asarray(self._numbers(rows) < np.uint64(self.codes))

    def unpack(self, rows: Bytes) -> NDArray[Any]:
        refuse(~self.sound(rows))
        return self._numbers(rows).astype(np.int64)

    def _numbers(self, rows: Bytes) -> NDArray[np.unsignedinteger[Any]]:
        if self.width == 1:
            return np.asarray(rows).reshape(-1)
        wide = np.zeros((len(rows), 8), np.uint8)
        wide[:, 8 - self.width :] = rows
        return wide.view(">u8").reshape(-1)

    def tally(self, reports: NDArray[Any]) -> Counts:
        codes = np.asarray(reports).reshape(-1)
        if codes.dtype.kind not in "iu":
            raise InvalidParameter("Reports of this oracle are whole numbers. Pass them as it made them.")
        refuse((codes < 0) | (codes >= self.codes))
        sums = np.bincount(codes.astype(np.int64, copy=False), minlength=self.codes)
        return Counts(self.fingerprint, codes.size, sums.astype(np.int64, copy=False))

    def possible(self, counts: Counts) -> bool:
        shaped = counts.sums.shape == (self.codes,)
        return shaped and super().possible(counts) and int(counts.sums.sum()) == counts.reports


class BitReports(Oracle):
    """Oracles whose report is a row of bits, eight to a byte, the first one highest."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """How many bits a report has."""

    @property
    def width(self) -> int:
        return (self.bits + 7) // 8

    def pack(self, reports: NDArray[Any]) -> Bytes:
        return np.asarray(reports, np.uint8).reshape(-1, self.width)

    def sound(self, rows: Bytes) -> NDArray[np.bool_]:
        """Rows without bits beyond the last."""
        return np.asarray((rows[:, -1] & ~self.last) == 0)

    def unpack(self, rows: Bytes) -> NDArray[Any]:
        refuse(~self.sound(rows))
        return rows

    def tally(self, reports: NDArray[Any]) -> Counts:
        rows = self.unpack(byte_rows(reports, self.width))
        return Counts(self.fingerprint, len(rows), packed.by_column(rows, self.bits))

    @property
    def last(self) -> np.uint8:
        """The bits of a report that its last byte holds."""
        return np.uint8(256 - (1 << (8 * self.width - self.bits)))

    def possible(self, counts: Counts) -> bool:
        shaped = counts.sums.shape == (self.bits,)
        return shaped and super().possible(counts) and int(counts.sums.max()) <= counts.reports


class FrequencyOracle(Oracle, Response):
    """Oracles that tell how frequent each of the categories 0 .. k-1 is among those who reported."""

    epsilon: Fraction
    categories: int

    @property
    def spend(self) -> Spend:
        return Spend(mechanism=self, distance=Distance.hamming())

    @abstractmethod
    def supports(self, counts: Counts) -> NDArray[np.int64]:
        """How many reports speak for each category."""

    def estimate(self, counts: Counts, confidence: float = 0.95) -> Estimate:
        """Unbiased shares of the categories, with the variance of `channel` and intervals that follow it."""
        level = check.confidence(f"{type(self).__name__}.estimate", confidence)
        known = self.known(counts)
        return shares(self.channel, self.supports(known), known.reports, level)


def first_written(oracle: Oracle) -> Json:
    """The description of an oracle by the first name that files had for it."""
    description = oracle.to_json()
    return description | {"mechanism": first_name(str(description["mechanism"]))}


def digest(description: object) -> str:
    """The SHA-256 of plain data, whatever the order of its fields."""
    return hashlib.sha256(json.dumps(description, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def refuse(bad: ArrayLike) -> None:
    """Refuse reports that no device can have made, by the number of the first."""
    wrong = np.flatnonzero(bad)
    if wrong.size:
        raise InvalidParameter(
            f"Report {int(wrong[0]) + 1} is none that this oracle makes. It is damaged, or was made with "
            "other parameters. Nothing was counted: leave it out, or ask for it again."
        )


def byte_rows(reports: NDArray[Any], width: int) -> Bytes:
    """Reports as rows of so many bytes, if that is what they are."""
    rows = np.asarray(reports)
    if rows.dtype != np.uint8 or rows.ndim < 1 or rows.shape[-1] != width:
        raise InvalidParameter(
            f"Reports of this oracle are rows of {width} bytes. Pass them as it made them."
        )
    return rows.reshape(-1, width)


def whole_number(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Packed reports of at most seven bytes, each as one whole number."""
    weights = 256 ** np.arange(rows.shape[-1] - 1, -1, -1, dtype=np.int64)
    return np.asarray(rows.astype(np.int64) @ weights)
