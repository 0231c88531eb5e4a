"""What oracles share whose report has one bit a category."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from numpy.typing import ArrayLike, NDArray

from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.local.counts import Counts
from sourdine.local.oracle import BitReports, Bytes, whole_number
from sourdine.local.telling import Ints, TellingOracle


class BitwiseOracle(BitReports, TellingOracle):
    """Oracles whose report speaks for the categories whose bits are set.

    Only the bits of the two categories have another law when an answer changes.
    """

    @property
    def bits(self) -> int:
        return self.categories

    @abstractmethod
    def encode(self, truth: Ints, bits: Bits) -> Bytes:
        """The reports of categories, all of them within 0 .. k-1."""

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        truth = self.truth(values)
        return self.encode(truth.reshape(-1), bits).reshape(*truth.shape, self.width)

    def supports(self, counts: Counts) -> Ints:
        return counts.sums


def bitwise_examples(five: BitwiseOracle, eleven: BitwiseOracle, three: BitwiseOracle) -> Iterator[Example]:
    """One answer in a byte, one in two bytes, and two answers; of at least so many categories."""
    one, two = Distance.hamming(), Distance.hamming(2)
    yield Example(mechanism=five, value=0, neighbour=3, distance=one, code=whole_number)
    yield Example(mechanism=eleven, value=10, neighbour=2, distance=one, code=whole_number)
    first = lambda rows: whole_number(rows[..., 0])  # of each answer its only byte
    yield Example(mechanism=three, value=[0, 2], neighbour=[1, 0], distance=two, code=first)
