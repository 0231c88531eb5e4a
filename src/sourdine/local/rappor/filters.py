"""Filters of many words, hashed once, for reports by the million."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from sourdine.core.errors import InvalidParameter
from sourdine.core.randomness import exact
from sourdine.core.randomness.bits import SYSTEM, Bits
from sourdine.local.rappor.bloom import as_word, packed_filters, position_table
from sourdine.local.rappor.rappor import BloomOracle
from sourdine.local.rappor.responses import Rows


@dataclass(frozen=True, eq=False)
class Filters:
    """The packed filters of words, one a word and cohort.

    `BloomOracle.encode` hashes its words whenever it is called; this hashes them once for many calls.

    >>> from sourdine.local.rappor import Rappor
    >>> oracle = Rappor(bits=16, hashes=2, cohorts=4, f=0.5, p=0.5, q=0.75)
    >>> Filters.of(oracle, ["yes", "no"]).reports([0, 0, 1]).shape
    (3, 3)
    """

    oracle: BloomOracle
    packed: Rows

    @classmethod
    def of(cls, oracle: BloomOracle, words: Sequence[str | bytes]) -> Self:
        """The filters of some words."""
        if not words:
            raise InvalidParameter("The 'words' of Filters must not be empty. Pass those that people have.")
        table = position_table([as_word(word) for word in words], oracle.bits, oracle.hashes, oracle.cohorts)
        return cls(oracle, packed_filters(table, oracle.bits).reshape(-1, oracle.width - oracle.head))

    def reports(self, codes: ArrayLike, bits: Bits = SYSTEM) -> Rows:
        """A packed report of a new device, in a cohort that is drawn, for each place in the list of words."""
        cohorts = self.oracle.cohorts
        last = len(self.packed) // cohorts - 1
        places = np.clip(np.asarray(codes, np.int64).reshape(-1), 0, last)
        drawn = exact.uniform(cohorts, places.size, bits)
        filters = self.packed[places * cohorts + drawn]
        return self.oracle.with_cohorts(self.oracle.respond(filters, bits), drawn)
