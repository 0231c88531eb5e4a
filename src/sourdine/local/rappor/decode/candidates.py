"""The words that are looked for, and the bits each of them sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sourdine.core.errors import InvalidParameter
from sourdine.local.rappor.bloom import as_word, position_table
from sourdine.local.rappor.rappor import BloomOracle


@dataclass(frozen=True, eq=False)
class Candidates:
    """Words with their positions, an array of words x cohorts x hashes of bits below `bits`.

    Only words on the list can be found. Those that nobody has do no harm, but for power.

    >>> from sourdine.local.rappor import Rappor
    >>> oracle = Rappor(bits=16, hashes=2, cohorts=1, f=0.5, p=0.5, q=0.75)
    >>> Candidates.of(oracle, ["abc"]).positions.tolist()
    [[[6, 13]]]
    """

    words: tuple[str, ...]
    positions: NDArray[np.int64]
    bits: int

    def __post_init__(self) -> None:
        if not self.words:
            raise InvalidParameter("There are no candidates. List the words to look for.")
        if len(set(self.words)) != len(self.words):
            seen: set[str] = set()
            twice = next(word for word in self.words if word in seen or seen.add(word))  # type: ignore[func-returns-value]
            raise InvalidParameter(f"The candidate '{twice}' is listed twice. List every word once.")

    @classmethod
    def of(cls, oracle: BloomOracle, words: Sequence[str]) -> "Candidates":
        """Words hashed as the devices hash them."""
        table = position_table([as_word(word) for word in words], oracle.bits, oracle.hashes, oracle.cohorts)
        return cls(tuple(words), table, oracle.bits)

    def choose(self, words: Sequence[str]) -> "Candidates":
        """Some of them; a word that is not among them is refused."""
        numbers = {word: i for i, word in enumerate(self.words)}
        if missing := [word for word in words if word not in numbers]:
            raise InvalidParameter(
                f"The candidate '{missing[0]}' is not in the map. Its bits are unknown, so it cannot be "
                "looked for. Add it to the map."
            )
        return Candidates(tuple(words), self.positions[[numbers[word] for word in words]], self.bits)

    def fits(self, oracle: BloomOracle) -> None:
        """Refuse candidates that were hashed for other parameters."""
        shape = (len(self.words), oracle.cohorts, oracle.hashes)
        if self.positions.shape != shape or self.bits != oracle.bits:
            raise InvalidParameter(
                "The candidates were hashed for other parameters: another number of bits, hashes or cohorts. "
                "Hash them anew for the parameters that the reports were made with."
            )

    def hashed_by(self, oracle: BloomOracle) -> bool:
        """Whether these are the positions that Google's Python client and this package give."""
        self.fits(oracle)
        return bool(np.array_equal(self.positions, Candidates.of(oracle, self.words).positions))

    @cached_property
    def design(self) -> Any:
        """The sparse matrix of cohort-bits by words: 1 where the word sets the bit."""
        count, cohorts, hashes = self.positions.shape
        rows = (np.arange(cohorts)[None, :, None] * self.bits + self.positions).ravel()
        columns = np.repeat(np.arange(count), cohorts * hashes)
        pairs = np.unique(rows * count + columns)  # two hashes may set the same bit
        ones = (np.ones(len(pairs)), (pairs // count, pairs % count))
        return csr_array(ones, shape=(cohorts * self.bits, count))
