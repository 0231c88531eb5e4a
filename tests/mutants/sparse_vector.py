"""Wrong sparse-vector variants: most were published as private (Lyu, Su, Li 2017)."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.mechanisms import AboveThreshold, SparseVector
from tests.mutants.mutant import Mutant

_EPSILON = Fraction(2)
_SCALE = 2 / _EPSILON  # of the threshold's noise; half the one of general queries
_HALF = 4  # the first queries stay below, the last ones are above


def _noise(scale: Fraction, values: NDArray[Any], bits: Bits) -> NDArray[np.int64]:
    return exact.laplace(scale, values.size, bits).reshape(values.shape)


def _line(scale: Fraction, values: NDArray[Any], bits: Bits) -> NDArray[np.int64]:
    """One noisy threshold a row."""
    return exact.laplace(scale, len(values), bits)[:, np.newaxis]


def _first(above: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.asarray(np.where(above.any(axis=-1), above.argmax(axis=-1), above.shape[-1]))


def _pattern(answers: NDArray[Any]) -> NDArray[np.int64]:
    """Rows of yes and no as binary numbers."""
    return np.asarray(answers.astype(np.int64) @ (1 << np.arange(answers.shape[-1])))


def _index(value: list[int], neighbour: list[int]) -> Example:
    return Example(
        mechanism=AboveThreshold(epsilon=_EPSILON, queries=len(value), threshold=0),
        value=value,
        neighbour=neighbour,
        distance=Distance.linf(1),
    )


def _vector(answers: int) -> Example:
    """Queries that are pushed apart: the first ones up and the last ones down."""
    return Example(
        mechanism=SparseVector(epsilon=_EPSILON, queries=2 * _HALF, threshold=0, answers=answers),
        value=[-1] * _HALF + [0] * _HALF,
        neighbour=[0] * _HALF + [-1] * _HALF,
        distance=Distance.linf(1),
        code=_pattern,
    )


def mutants() -> Iterator[Mutant]:
    yield Mutant(
        name="threshold, without its noise",
        fault="only the queries carry noise",
        honest=_index([-1] * 8, [0] * 8),
        sampler=lambda values, bits: _first(values + _noise(2 * _SCALE, values, bits) >= 0),
    )
    yield Mutant(
        name="threshold, queries without noise",
        fault="only the threshold carries noise (algorithm 5)",
        honest=_index([0, 1], [1, 0]),
        sampler=lambda values, bits: _first(values >= _line(_SCALE, values, bits)),
    )
    yield Mutant(
        name="threshold, fresh for each query",
        fault="the threshold's noise is drawn again for every query, and paid once",
        honest=_index([-1] * 16, [0] * 16),
        sampler=lambda values, bits: _first(
            values + _noise(2 * _SCALE, values, bits) >= _noise(_SCALE, values, bits)
        ),
    )
    yield Mutant(
        name="threshold, monotone noise",
        fault="queries that move both ways carry the noise for one way",
        honest=_index([-1] * 4 + [0], [0] * 4 + [-1]),
        sampler=lambda values, bits: _first(
            values + _noise(_SCALE, values, bits) >= _line(_SCALE, values, bits)
        ),
    )
    yield Mutant(
        name="threshold, noisy value given",
        fault="the noisy value that reached the threshold is given as well (algorithm 3)",
        honest=_index([-1] * 6 + [0], [0] * 6 + [1]),
        sampler=_with_value,
    )
    yield Mutant(
        name="sparse vector, noise for one answer",
        fault="four answers are given with the query noise for one (algorithm 4)",
        honest=_vector(4),
        sampler=_noise_for_one,
    )
    yield Mutant(
        name="sparse vector, started again",
        fault="each answer above starts a new search with a new threshold, and only one is paid",
        honest=replace(_vector(4), value=[-1, 0] * _HALF, neighbour=[0, -1] * _HALF),
        sampler=_again,
    )
    yield Mutant(
        name="sparse vector, no limit",
        fault="answers above the threshold are never counted (algorithm 6)",
        honest=_vector(1),
        sampler=_no_limit,
    )


def _with_value(values: NDArray[Any], bits: Bits) -> NDArray[np.int64]:
    """The index and the noisy value, packed in one integer; without a value when none is above."""
    noisy = values + _noise(2 * _SCALE, values, bits)
    first = _first(noisy >= _line(_SCALE, values, bits))
    shown = np.take_along_axis(noisy, np.minimum(first, values.shape[-1] - 1)[:, np.newaxis], axis=-1)[:, 0]
    return first + np.where(first < values.shape[-1], 8 * np.clip(shown, -50, 50), 0)


def _noise_for_one(values: NDArray[Any], bits: Bits) -> NDArray[np.bool_]:
    claimed = SparseVector(epsilon=_EPSILON, queries=2 * _HALF, threshold=0, answers=4)
    line = _line(claimed.threshold_scale, values, bits)
    above = values + _noise(claimed.query_scale / claimed.answers, values, bits) >= line
    return above & (np.cumsum(above, axis=-1) <= 4)


def _no_limit(values: NDArray[Any], bits: Bits) -> NDArray[np.bool_]:
    claimed = SparseVector(epsilon=_EPSILON, queries=2 * _HALF, threshold=0, answers=1)
    line = _line(claimed.threshold_scale, values, bits)
    return values + _noise(claimed.query_scale, values, bits) >= line


def _again(values: NDArray[Any], bits: Bits) -> NDArray[np.bool_]:
    lines = _noise(_SCALE, values, bits)
    noisy = values + _noise(2 * _SCALE, values, bits)
    above = np.zeros(values.shape, dtype=np.bool_)
    for i in range(values.shape[-1]):
        used = above.sum(axis=-1)
        above[:, i] = noisy[:, i] >= lines[np.arange(len(values)), used]
    return above & (np.cumsum(above, axis=-1) <= 4)
