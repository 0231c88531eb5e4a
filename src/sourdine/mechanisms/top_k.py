"""The best few of several candidates, by the exponential mechanism over and over."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random import selection
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.mechanisms.selection import Selection


@dataclass(frozen=True, kw_only=True)
class TopK(Selection):
    """Chooses `k` indices, best first: each by the exponential mechanism among those that are left.

    Of all that are left, i comes next with probability proportional to e^{epsilon score_i / (2 k
    sensitivity)}; this is also the order of the k highest scores with Gumbel noise (Durfee and Rogers 2019).
    Scores that change by at most t cost epsilon t / sensitivity over all k choices together, with rho =
    that^2 / (8 k) (Cesar, Rogers 2021, by bounded range). When all scores move the same way between
    neighbours (monotone), the 2 falls away at the same cost. Only indices are told, no scores.

    >>> TopK(epsilon=2, sensitivity=1, candidates=9, k=4).loss(Distance.linf(1)).rho
    Fraction(1, 8)
    """

    name: ClassVar[str] = "top-k/1"
    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "k", check.integer("TopK", "k", self.k, 1, self.candidates))

    @classmethod
    def within(
        cls,
        *,
        epsilon: Fraction | float | None = None,
        rho: Fraction | float | None = None,
        sensitivity: Fraction | float = 1,
        candidates: int,
        k: int,
        monotone: bool = False,
    ) -> "TopK":
        """The choice that costs this epsilon, or at most this rho, when scores change by the sensitivity."""
        owner = "TopK.within"
        if (epsilon is None) == (rho is None):
            raise check.fail(owner, "epsilon", "be given, or else 'rho', not both", epsilon)
        sensitive = check.positive(owner, "sensitivity", sensitivity)
        most = _epsilon_within(rho, k) if epsilon is None else check.positive(owner, "epsilon", epsilon)
        return cls(epsilon=most, sensitivity=sensitive, candidates=candidates, k=k, monotone=monotone)

    @property
    def rate(self) -> Fraction:
        """What one unit of score adds to the logarithm of a weight, in each of the k choices."""
        return super().rate / self.k

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """The chosen indices along the last axis, the first choice first."""
        scored = selection.scores("TopK", values, self.candidates)
        rows = scored.reshape(-1, self.candidates)
        names = np.broadcast_to(np.arange(self.candidates), rows.shape)
        chosen = np.empty((len(rows), self.k), dtype=np.int64)
        for rank in range(self.k):
            at = selection.choose(rows, self.rate, bits)[:, np.newaxis]
            chosen[:, rank] = np.take_along_axis(names, at, axis=-1)[:, 0]
            left = np.ones(rows.shape, dtype=np.bool_)
            np.put_along_axis(left, at, False, axis=-1)
            rows, names = rows[left].reshape(len(rows), -1), names[left].reshape(len(rows), -1)
            if rows.shape[-1]:  # where nothing but minus infinity is left, all are equal
                rows[np.isneginf(rows).all(axis=-1)] = 0
        return chosen.reshape(*scored.shape[:-1], self.k)

    def loss(self, distance: Distance) -> PrivacyLoss:
        """Known by epsilon and rho: k choices of bounded range epsilon/k each."""
        epsilon = self._epsilon_at(distance)
        return PrivacyLoss.pure(epsilon, neighbours=distance.neighbours, rho=epsilon**2 / (8 * self.k))

    def error(self, confidence: float = 0.95) -> float:
        """How far each chosen score may lie below the best that was left: for all k choices at once."""
        beta = (1 - check.confidence("TopK.error", confidence)) / self.k
        return self._gap((self.candidates - 1) * (1 - beta) / beta)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(7, 3), sensitivity=Fraction(1), candidates=4, k=2),
            value=[3, 5, 5, 4],
            neighbour=[4, 4, 4, 3],
            distance=Distance.linf(1),
            code=_ranked,
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(9, 4), sensitivity=Fraction(2), candidates=5, k=2, monotone=True),
            value=[4, 4, 6, 6, 6],
            neighbour=[6, 6, 6, 6, 6],
            distance=Distance.linf(2),
            code=_ranked,
        )


def _epsilon_within(rho: Fraction | float | None, k: int) -> Fraction:
    """About the largest epsilon of k choices whose rho, epsilon^2/(8 k), is at most this."""
    exact = 8 * check.integer("TopK.within", "k", k, 1, selection.MOST_CANDIDATES)
    square = exact * check.positive("TopK.within", "rho", rho)
    epsilon = Fraction(float(square) ** 0.5).limit_denominator(10**12)
    while epsilon**2 > square:
        epsilon *= Fraction(10**9 - 1, 10**9)
    return epsilon


def _ranked(answers: NDArray[Any]) -> NDArray[np.int64]:
    """Rows of small indices as one number each, in base 16."""
    return answers @ (16 ** np.arange(answers.shape[-1]))
