"""Any lower triangular matrix, and the one with the least mean squared error for given questions.

The optimum over all matrices with columns of length 1 solves min tr(M X^-1) with ones on the diagonal of
X = C'C, where M is the sum of the questions' outer products. Its multipliers v are a fixed point of
v = diag((V^1/2 M V^1/2)^1/2) (Denisov et al. 2022), and C is the Cholesky factor of X from below. Nothing
private is in it: floats are allowed, and what is kept are the rounded entries.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sourdine.mechanisms.correlation.matrix import SquareMatrix

_ROUNDS = 40
_NEAR = 1e-3


@dataclass(frozen=True)
class DenseMatrix(SquareMatrix):
    """Its rows one after another, each as far as the diagonal."""

    periods: int
    triangle: tuple[int, ...]

    @cached_property
    def entries(self) -> NDArray[np.int64]:
        entries = np.zeros((self.periods, self.periods), np.int64)
        entries[np.tril_indices(self.periods)] = self.triangle
        return entries


def least_error(questions: NDArray[np.float64], resolution: int) -> DenseMatrix:
    """The matrix for questions, a row each: weights of the periods.

    Each entry is rounded, and no longer negative; the diagonal stays at least 1.
    """
    target = questions.T @ questions
    target += 1e-9 * np.trace(target) / len(target) * np.eye(len(target))
    weights = np.sqrt(np.diag(target))
    for _ in range(_ROUNDS):
        root = _root(target, weights)
        ahead = np.diag(root).copy()
        near = np.max(np.abs(ahead / weights - 1)) < _NEAR
        weights = ahead
        if near:
            break
    gram = _root(target, weights) / np.sqrt(np.outer(weights, weights))
    lengths = np.sqrt(np.diag(gram))
    gram /= np.outer(lengths, lengths)
    lower = np.linalg.cholesky(gram[::-1, ::-1]).T[::-1, ::-1]
    entries = np.maximum(np.rint(lower * resolution), 0).astype(np.int64)
    np.fill_diagonal(entries, np.maximum(np.diag(entries), 1))
    size = len(target)
    return DenseMatrix(size, tuple(entries[np.tril_indices(size)].tolist()))


def _root(target: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(V^1/2 M V^1/2)^1/2."""
    scale = np.sqrt(weights)
    values, vectors = np.linalg.eigh(scale[:, None] * target * scale)
    root: NDArray[np.float64] = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root
