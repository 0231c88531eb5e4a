"""The true laws of quantile methods on small grids, for the contract."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.tables.quantiles import brute

Law = dict[int, float]
FINE = 20  # bits below a place
GOLDEN = 648_055  # the part of the i-th value is a multiple of this


def coded(m: Any, law: Mapping[tuple[int, ...], float]) -> Law:
    """Tuples in rising order, read as digits in base `places`."""
    found: Law = {}
    for answers, mass in law.items():
        code = 0
        for answer in sorted(answers):
            code = code * m.places + answer
        found[code] = found.get(code, 0.0) + mass
    return found


def apart(laws: Sequence[Sequence[float]]) -> dict[tuple[int, ...], float]:
    """Answers that are drawn each by itself."""
    return {
        answers: math.prod(law[answer] for law, answer in zip(laws, answers, strict=True))
        for answers in itertools.product(*(range(len(law)) for law in laws))
    }


def inverse(m: Any, value: Any) -> Law:
    share, held = m.epsilon / len(m.levels), tuple(sorted(value))
    laws = [brute.inverse(held, q, m.neighbours, m.places, m.radius, share) for q in m.levels]
    return coded(m, apart(laws))


def recursive(m: Any, value: Any) -> Law:
    """Given the parts of two bits that set values apart, place by fine place."""
    held = tuple(sorted((v << 2) + (i + 1) * GOLDEN % 4 for i, v in enumerate(value)))
    fine = brute.recursive(held, m.levels, m.neighbours, m.places << 2, m.radius << 2, m.epsilon)
    law: dict[tuple[int, ...], float] = {}
    for answers, mass in fine.items():
        key = tuple(answer >> 2 for answer in answers)
        law[key] = law.get(key, 0.0) + mass
    return coded(m, law)


def threshold(m: Any, value: Any) -> Law:
    cuts = [1 + i * m.places // m.cuts for i in range(m.cuts)]
    laws = []
    for level in m.levels:
        masses = brute.first_crossing(
            tuple(sorted(value)), level, m.neighbours, cuts, m.epsilon / len(m.levels), m.monotone
        )
        law = [0.0] * m.places
        for place, mass in zip([*(cut - 1 for cut in cuts), m.places - 1], masses, strict=True):
            law[place] += mass
        laws.append(law)
    return coded(m, apart(laws))


def naive(m: Any, value: Any) -> Law:
    scale, last = len(m.levels) * (m.places - 1) / float(m.epsilon), m.places - 1
    noise = np.arange(-int(45 * scale) - 2, int(45 * scale) + 3)
    mass = np.exp(-np.abs(noise) / scale)
    laws = []
    for level in m.levels:
        true = sorted(value)[max(math.ceil(level * len(value)), 1) - 1]
        clamped = np.clip(true + noise, 0, last)
        laws.append(np.bincount(clamped, weights=mass / mass.sum(), minlength=m.places).tolist())
    return coded(m, apart(laws))


def joint(m: Any, value: Any) -> Law:
    """Given the parts that set values apart: by the pieces that values leave, each with its size."""
    fine = sorted((v << FINE) + (i + 1) * GOLDEN % (1 << FINE) for i, v in enumerate(value))
    edges = sorted({0, *(at << FINE for at in range(m.places + 1)), *(place + 1 for place in fine)})
    pieces = [(low, high - low, sum(v < low for v in fine)) for low, high in itertools.pairwise(edges)]
    moved = 2 if m.neighbours is brute.REPLACE else 2 * (1 - min(shares(m.levels)))
    rate, n = float(m.epsilon / (2 * moved)), len(fine)
    wanted = [float(share * n) for share in shares(m.levels)]
    law: dict[tuple[int, ...], float] = {}
    for chosen in itertools.combinations_with_replacement(range(len(pieces)), len(m.levels)):
        ranks = [0, *(pieces[i][2] for i in chosen), n]
        gap = sum(abs(b - a - s) for (a, b), s in zip(itertools.pairwise(ranks), wanted, strict=True))
        ways = 1
        for i in set(chosen):  # a multiset of the places of one piece
            many = chosen.count(i)
            ways *= math.comb(pieces[i][1] + many - 1, many)
        key = tuple(pieces[i][0] >> FINE for i in chosen)
        law[key] = law.get(key, 0.0) + ways * math.exp(-rate * gap)
    total = sum(law.values())
    return coded(m, {key: weight / total for key, weight in law.items()})


def shares(levels: Sequence[Any]) -> list[Any]:
    """What lies between one level and the next."""
    return [b - a for a, b in itertools.pairwise([0, *levels, 1])]
