"""The true laws of oracles whose report is a code, by enumeration from their definitions.

Fields are built here by another way than in the package: polynomials modulo one that is written down.
"""

import itertools
import math
from functools import cache
from typing import Any

Law = dict[int, float]
MODULI = {4: (2, (1, 1, 1)), 8: (2, (1, 1, 0, 1)), 9: (3, (2, 2, 1))}
"""The prime and the coefficients of x^r + ... + 1, lowest first, of the fields that are no residues."""


@cache
def product(g: int, a: int, b: int) -> int:
    """The product of two elements, by long multiplication and division of polynomials."""
    if g not in MODULI:
        return a * b % g
    p, modulus = MODULI[g]
    r = len(modulus) - 1
    total = [0] * (2 * r - 1)
    for i, j in itertools.product(range(r), repeat=2):
        total[i + j] += (a // p**i % p) * (b // p**j % p)
    for top in range(2 * r - 2, r - 1, -1):
        for i, coefficient in enumerate(modulus):
            total[top - r + i] -= total[top] * coefficient if i < r else 0
    return sum(total[i] % p * p**i for i in range(r))


def total(g: int, elements: list[int]) -> int:
    """The sum of elements."""
    p = MODULI[g][0] if g in MODULI else g
    places = [p**i for i in range(round(math.log(g, p)))]
    return sum(sum(each // place % p for each in elements) % p * place for place in places)


def coordinates(g: int, length: int, number: int) -> list[int]:
    return [number // g**i % g for i in range(length)]


def dot(g: int, length: int, a: int, b: int) -> int:
    pairs = zip(coordinates(g, length, a), coordinates(g, length, b), strict=True)
    return total(g, [product(g, *pair) for pair in pairs])


def proportional(weights: dict[int, float]) -> Law:
    return {code: weight / sum(weights.values()) for code, weight in weights.items()}


def local_hashing(m: Any, value: Any) -> Law:
    """Every seed alike; its true group e^epsilon times as often as another."""
    g, digits = m.groups, next(d for d in itertools.count(1) if m.groups**d >= m.categories)
    weights = {}
    least = 0 if m.trivial else 1
    for seed, group in itertools.product(range(least, g**digits), range(g)):
        hit = dot(g, digits, seed, value) == group
        weights[(seed - least) * g + group] = math.exp(m.epsilon) if hit else 1.0
    return proportional(weights)


def points(g: int, length: int) -> list[int]:
    """The vectors whose first coordinate other than 0 is 1, in order."""
    return [v for v in range(1, g**length) if [c for c in coordinates(g, length, v) if c][-1] == 1]


def projective_geometry(m: Any, value: Any) -> Law:
    g = m.order
    length = next(t for t in itertools.count(2) if len(points(g, t)) >= m.categories)
    there = points(g, length)
    hits = [dot(g, length, there[value], point) == 0 for point in there]
    return proportional({i: math.exp(m.epsilon) if hit else 1.0 for i, hit in enumerate(hits)})


def hadamard_response(m: Any, value: Any) -> Law:
    """Signs of the Sylvester matrix, by the recursion that defines it."""
    rows = -(-m.categories // m.blocks)
    signs = [[1]]
    while len(signs) <= rows:
        signs = [row + row for row in signs] + [row + [-sign for sign in row] for row in signs]
    own, row, size = value % m.blocks, 1 + value // m.blocks, len(signs)
    least = 1 if m.blocks == 1 and not m.trivial else 0
    return proportional(
        {
            block * size + column - least: math.exp(m.epsilon)
            if block == own and signs[row][column] > 0
            else 1.0
            for block, column in itertools.product(range(m.blocks), range(least, size))
        }
    )
