"""The true laws of mechanisms that choose, compare or answer, by enumeration from their definitions."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Law = dict[int, float]


def exponential(m: Any, value: Any) -> Law:
    rate = float(m.epsilon / m.sensitivity) / (1 if m.monotone else 2)
    weights = [math.exp(rate * (score - max(value))) for score in value]
    return {i: weight / sum(weights) for i, weight in enumerate(weights) if weight > 0}


def permute_and_flip(m: Any, value: Any) -> Law:
    """As its name says: over every order, the first head."""
    rate = float(m.epsilon / m.sensitivity) / (1 if m.monotone else 2)
    heads = [math.exp(rate * (score - max(value))) for score in value]
    law = dict.fromkeys(range(len(heads)), 0.0)
    orders = list(itertools.permutations(law))
    for order in orders:
        left = 1 / len(orders)
        for i in order:
            law[i] += left * heads[i]
            left *= 1 - heads[i]
    return law


def top_k(m: Any, value: Any) -> Law:
    """Every row of k different indices, drawn one after the other from what is left; coded in base 16."""
    rate = float(m.epsilon / m.sensitivity) / (1 if m.monotone else 2) / m.k
    weights = [math.exp(rate * (score - max(value))) for score in value]
    law = {}
    for row in itertools.permutations(range(len(value)), m.k):
        chance, left = 1.0, sum(weights)
        for i in row:
            chance *= weights[i] / left
            left -= weights[i]
        law[sum(i * 16**rank for rank, i in enumerate(row))] = chance
    return law


def key_threshold(m: Any, value: Any) -> Law:
    """Each key on its own, as binary numbers: the noise must make up for what its count lacks."""
    size = np.arange(-400, 401)
    power = 1 if m.noise == "Laplace" else 2
    mass = np.exp(-(np.abs(size / float(m.scale)) ** power) / power)
    shown = [mass[count + size >= m.threshold].sum() / mass.sum() if count else 0.0 for count in value]
    law: Law = {}
    for row in itertools.product((0, 1), repeat=len(value)):
        chance = math.prod(p if yes else 1 - p for p, yes in zip(shown, row, strict=True))
        if chance:
            law[sum(yes << i for i, yes in enumerate(row))] = float(chance)
    return law


def laplace_tail(at: np.ndarray, scale: float) -> np.ndarray:
    """P[noise >= at] for discrete Laplace noise."""
    a = math.exp(-1 / scale)
    upper = np.exp(-np.maximum(at, 0) / scale) / (1 + a)
    return np.where(at > 0, upper, 1 - np.exp((np.minimum(at, 0) - 1) / scale) / (1 + a))


def crossings(
    values: Sequence[int], threshold: int, line: float, query: float, answers: int
) -> dict[tuple[bool, ...], float]:
    """Every row of comparisons with at most that many above, False after the last of them."""
    noise = np.arange(-int(45 * line) - 2, int(45 * line) + 3)
    mass = np.exp(-np.abs(noise) / line)
    above = [laplace_tail(threshold + noise - value, query) for value in values]
    law = {}
    for row in itertools.product((False, True), repeat=len(values)):
        if sum(row) > answers:
            continue
        weight, found = mass / mass.sum(), 0
        for yes, tail in zip(row, above, strict=True):
            if found < answers:
                weight = weight * (tail if yes else 1 - tail)
                found += yes
        law[row] = float(weight.sum())
    return law


def above_threshold(m: Any, value: Any) -> Law:
    epsilon, sensitivity = float(m.epsilon), float(m.sensitivity)
    query = (2 if m.monotone else 4) * sensitivity / epsilon
    rows = crossings(value, m.threshold, 2 * sensitivity / epsilon, query, 1)
    return {row.index(True) if any(row) else len(row): mass for row, mass in rows.items()}


def sparse_vector(m: Any, value: Any) -> Law:
    epsilon, sensitivity = float(m.epsilon), float(m.sensitivity)
    count = m.answers * (1 if m.monotone else 2)
    part = 1 / (1 + round(1024 * count ** (2 / 3)) / 1024)
    line, query = sensitivity / (epsilon * part), count * sensitivity / (epsilon * (1 - part))
    rows = crossings(value, m.threshold, line, query, m.answers)
    return {sum(1 << i for i, yes in enumerate(row) if yes): mass for row, mass in rows.items()}


def kary_response(m: Any, value: Any) -> Law:
    truths, k = np.atleast_1d(value).tolist(), m.categories
    weight = math.exp(m.epsilon)
    law = {}
    for reports in itertools.product(range(k), repeat=len(truths)):
        kept = sum(report == truth for report, truth in zip(reports, truths, strict=True))
        code = sum(report * k**i for i, report in enumerate(reports))
        law[code] = weight**kept / (weight + k - 1) ** len(truths)
    return law


def finite_pair(m: Any, value: Any) -> Law:
    stated = m.first if value else m.second
    return {place: float(chance) for place, chance in enumerate(stated) if chance}


def warner(m: Any, value: Any) -> Law:
    return {value: float(m.truth), 1 - value: 1 - float(m.truth)}


def two_coins(m: Any, value: Any) -> Law:
    tosses = itertools.product((True, False), (0, 1))
    answers = [value if heads else second for heads, second in tosses]
    return {answer: answers.count(answer) / 4 for answer in (0, 1)}
