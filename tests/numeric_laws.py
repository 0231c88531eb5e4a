"""The true laws of numeric oracles' codes, from their definitions, without the code under test."""

import math
from fractions import Fraction
from typing import Any

Law = dict[int, float]


def place(m: Any, value: float, cells: int) -> Fraction:
    """The nearest of cells + 1 points, as a share of the range."""
    inside = min(max(Fraction(value), m.lower), m.upper)
    return Fraction(math.floor((inside - m.lower) / (m.upper - m.lower) * cells + Fraction(1, 2)), cells)


def window(epsilon: Fraction, cells: int, width: int, start: int) -> Law:
    weights = [math.exp(epsilon) if start <= y < start + width else 1.0 for y in range(cells + width)]
    return {y: weight / sum(weights) for y, weight in enumerate(weights)}


def mixed(*parts: tuple[float, Law]) -> Law:
    codes = {code for _, law in parts for code in law}
    return {code: sum(share * law.get(code, 0.0) for share, law in parts) for code in codes}


def ends(epsilon: Fraction, at: Fraction) -> Law:
    """The upper end with probability `at`, then kept with e^epsilon/(e^epsilon + 1)."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + 1)
    high = float(at) * keep + (1 - float(at)) * (1 - keep)
    return {0: 1 - high, 1: high}


def duchi(m: Any, value: float) -> Law:
    return ends(m.epsilon, place(m, value, m.cells))


def square_wave(m: Any, value: float) -> Law:
    return window(m.epsilon, m.cells, m.window, int(place(m, value, m.cells) * m.cells))


def piecewise(m: Any, value: float) -> Law:
    """Placed to the thousandth of a cell or so, then rounded at random to one of the cells' ends."""
    at = place(m, value, 1024 * m.cells) * m.cells
    low = math.floor(at)
    return mixed(
        (float(1 - at + low), window(m.epsilon, m.cells, m.window, low)),
        (float(at - low), window(m.epsilon, m.cells, m.window, low + 1) if at > low else {}),
    )


def hybrid(m: Any, value: float) -> Law:
    last = m.cells + m.window
    bit = ends(m.epsilon, place(m, value, 1024 * m.cells))
    return mixed(
        (float(m.share), piecewise(m, value)),
        (float(1 - m.share), {last + end: mass for end, mass in bit.items()}),
    )


def around(m: Any, value: float, exponents: list[float]) -> Law:
    at = int(place(m, value, m.cells) * m.cells)
    weights = [math.exp(exponents[abs(y - at)]) for y in range(m.cells + 1)]
    return {y: weight / sum(weights) for y, weight in enumerate(weights)}


def bounded_laplace(m: Any, value: float) -> Law:
    return around(m, value, [-float(m.epsilon) * k / m.cells for k in range(m.cells + 1)])


def bounded_staircase(m: Any, value: float) -> Law:
    """Two levels, as far apart as the worst ratio over all inputs and answers allows, by bisection."""

    def steps(drop: float) -> list[float]:
        return [0.0 if k < m.inner else -drop for k in range(m.cells + 1)]

    def worst(drop: float) -> float:
        rows = [
            around(m, float(m.lower + (m.upper - m.lower) * x / m.cells), steps(drop))
            for x in range(m.cells + 1)
        ]
        return max(math.log(max(row[y] for row in rows) / min(row[y] for row in rows)) for y in rows[0])

    low, high = 0.0, float(m.epsilon)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if worst(middle) <= float(m.epsilon) else (low, middle)
    return around(m, value, steps(low))
