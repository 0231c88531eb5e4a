"""The laws of correlated noise: matrices by their definitions in fractions, noises convolved one by one."""

from fractions import Fraction
from math import comb, isqrt
from typing import Any

import numpy as np

from sourdine.mechanisms import CorrelatedGaussian, NoiseCorrelation

Law = dict[int, float]


def matrix_of(m: Any) -> list[list[int]]:
    """All rows of a small correlation matrix, in the order in which they are released."""
    n = m.periods
    if m.correlation is NoiseCorrelation.INDEPENDENT:
        return [[int(i == j) for j in range(n)] for i in range(n)]
    if m.correlation is NoiseCorrelation.DENSE:
        flat = list(m.triangle)
        return [[flat[i * (i + 1) // 2 + j] if j <= i else 0 for j in range(n)] for i in range(n)]
    if m.correlation is NoiseCorrelation.TREE:
        ends = [(end, m.fan**h) for end in range(1, n + 1) for h in range(20) if end % m.fan**h == 0]
        return [[int(end - width < j <= end) for j in range(1, n + 1)] for end, width in ends]
    assert m.exponent == Fraction(1, 2)
    root = [Fraction(comb(2 * k, k), 4**k) for k in range(n)]
    return [[_entry(m, root, i, j) if j <= i else 0 for j in range(n)] for i in range(n)]


def _entry(m: Any, root: list[Fraction], i: int, j: int) -> int:
    square = sum(each**2 for each in root[: m.periods - j])
    length = Fraction(1)
    if m.correlation is NoiseCorrelation.LEVEL:
        length = Fraction(isqrt(int(square * 10**40)), 10**20)
    return int((m.resolution * root[i - j] / length + Fraction(1, 2)) // 1)


def direction_of(m: Any) -> list[int]:
    """What a unit moves of each row that counts as early and as often as it may."""
    places = [i * m.separation for i in range(m.times)]
    return [sum(row[j] for j in places if j < m.periods) for row in matrix_of(m)]


def correlated(m: Any, value: Any) -> Law:
    rows, direction = matrix_of(m), direction_of(m)
    start = sum(
        d * sum(c * x for c, x in zip(row, value, strict=True))
        for d, row in zip(direction, rows, strict=True)
    )
    if isinstance(m, CorrelatedGaussian):
        reach = int(9 * float(m.sigma)) + 2
        weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * float(m.sigma) ** 2))
    else:
        reach = int(40 * float(m.scale)) + 2
        weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(m.scale))
    law, shift = np.ones(1), 0
    for d in direction:
        if d == 0:
            continue
        spread = np.zeros(2 * reach * d + 1)
        spread[::d] = weights / weights.sum()
        law, shift = np.convolve(law, spread), shift + reach * d
    return {code: mass for code, mass in enumerate(law.tolist(), start - shift) if mass > 0}
