"""What oracles share whose reports are one bit a category, or a number that favours some categories."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.distance import Distance
from sourdine.core.distributions import AtomLaw
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import SYSTEM, Bits, Branch, in_branches
from sourdine.local.estimate import Counts
from sourdine.local.oracle import BitReports, Bytes, CodeReports, FrequencyOracle, whole_number
from sourdine.mechanisms.randomized_response import (
    LEAST_EPSILON,
    MOST_CATEGORIES,
    MOST_EPSILON,
    response_loss,
)

Ints = NDArray[np.int64]


class TellingOracle(FrequencyOracle):
    """Oracles under which each report has one of two probabilities, e^epsilon apart."""

    def check_declared(self) -> None:
        """Bring epsilon and the number of categories into their exact form."""
        owner = type(self).__name__
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON))
        object.__setattr__(self, "epsilon", epsilon)
        categories = check.integer(owner, "categories", self.categories, 2, MOST_CATEGORIES)
        object.__setattr__(self, "categories", categories)

    @property
    @abstractmethod
    def revealing(self) -> float:
        """How often, at most, a report favours the true category and not another that it is told from."""

    def truth(self, values: ArrayLike) -> Ints:
        """Values as categories, all of them within 0 .. k-1."""
        return grid.places(type(self).__name__, values, self.categories - 1)

    def loss(self, distance: Distance) -> PrivacyLoss:
        """One changed answer: +epsilon where the report favours it alone, -epsilon the other way, else 0."""
        self.require(distance)
        epsilon, up = float(self.epsilon), self.revealing
        down = up * math.exp(-epsilon)
        same = max(0.0, 1 - up - down)  # floats may round it to less than nothing
        law = AtomLaw([epsilon, 0.0, -epsilon], [up, same, down], [down, same, up])
        changed = math.floor(distance.amount)
        return response_loss(distance, changed, changed * self.epsilon, law)


_ROWS = 1 << 17  # reports made together: many, since every step is done for all of them


class BitwiseOracle(BitReports, TellingOracle):
    """Oracles whose report speaks for the categories whose bits are set.

    Only the bits of the two categories have another law when an answer changes.
    """

    memory: ClassVar[int] = 1 << 21
    """How many bytes of reports are made together, so that they stay in the cache."""

    @property
    def bits(self) -> int:
        return self.categories

    @abstractmethod
    def encode(self, truth: Ints, bits: Bits) -> Bytes:
        """The reports of categories, all of them within 0 .. k-1."""

    def fill(self, reports: Bytes, truth: Ints, branch: Branch) -> None:
        """The same for one block of many, in rows that are there already."""
        reports[:] = self.encode(truth, branch)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        truth = self.truth(values)
        flat, block = truth.reshape(-1), max(1, min(_ROWS, self.memory // self.width))
        if flat.size <= block:
            return self.encode(flat, bits).reshape(*truth.shape, self.width)
        reports = np.empty((flat.size, self.width), np.uint8)
        in_branches(lambda part, own: self.fill(reports[part], flat[part], own), flat.size, bits, block)
        return reports.reshape(*truth.shape, self.width)

    def supports(self, counts: Counts) -> Ints:
        return counts.sums


def bitwise_examples(five: BitwiseOracle, eleven: BitwiseOracle, three: BitwiseOracle) -> Iterator[Example]:
    """One answer in a byte, one in two bytes, and two answers; of at least so many categories."""
    one, two = Distance.hamming(), Distance.hamming(2)
    yield Example(mechanism=five, value=0, neighbour=3, distance=one, code=whole_number)
    yield Example(mechanism=eleven, value=10, neighbour=2, distance=one, code=whole_number)
    first = lambda rows: whole_number(rows[..., 0])  # of each answer its only byte
    yield Example(mechanism=three, value=[0, 2], neighbour=[1, 0], distance=two, code=first)


_CHUNK = 1 << 16  # values handled at once, so that the arrays stay in the cache


class CodedOracle(CodeReports, TellingOracle):
    """Oracles whose report is a number, e^epsilon times as likely from the categories that it favours."""

    @abstractmethod
    def encode(self, truth: Ints, bits: Bits) -> Ints:
        """The reports of categories, all of them within 0 .. k-1."""

    @abstractmethod
    def support_sizes(self) -> Ints:
        """How many categories each report favours."""

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        truth = self.truth(values)
        flat = truth.reshape(-1)
        if flat.size <= _CHUNK:
            return self.encode(flat, bits).reshape(truth.shape)
        reports = np.empty(flat.size, np.int64)

        def report(part: slice, branch: Branch) -> None:
            reports[part] = self.encode(flat[part], branch)

        in_branches(report, flat.size, bits, _CHUNK)
        return reports.reshape(truth.shape)
