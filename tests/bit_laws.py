"""The true laws of oracles whose report has one bit a category, by enumeration from their definitions.

A report is coded by its bytes, the first category in the highest bit of the first byte; several reports by
the bytes of all of them.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

Law = dict[int, float]
Bits = tuple[int, ...]


def code(report: Bits) -> int:
    """The report as a number, with zeros up to whole bytes."""
    return int("".join(map(str, report)) + "0" * (-len(report) % 8), 2)


def unary(p: float, q: float, categories: int, truth: int) -> dict[Bits, float]:
    """Independent bits, the true one set with probability p and any other with q."""
    chances = [p if category == truth else q for category in range(categories)]
    return {
        report: math.prod(chance if bit else 1 - chance for bit, chance in zip(report, chances, strict=True))
        for report in itertools.product((0, 1), repeat=categories)
    }


def subset(epsilon: float, size: int, categories: int, truth: int) -> dict[Bits, float]:
    """Every set of that size, e^epsilon times as often if it holds the truth."""
    weights = {
        tuple(int(category in chosen) for category in range(categories)): (
            math.exp(epsilon) if truth in chosen else 1.0
        )
        for chosen in itertools.combinations(range(categories), size)
    }
    return {report: weight / sum(weights.values()) for report, weight in weights.items()}


def together(value: Any, width: int, law: Callable[[int], dict[Bits, float]]) -> Law:
    """Independent reports of one value or of several."""
    truths: Sequence[int] = value if isinstance(value, Sequence) else [value]
    out = {}
    for reports in itertools.product(*(law(truth).items() for truth in truths)):
        key = 0
        for report, _ in reports:
            key = key << 8 * width | code(report)
        out[key] = math.prod(mass for _, mass in reports)
    return out


def symmetric_unary(m: Any, value: Any) -> Law:
    p = math.exp(m.epsilon / 2) / (math.exp(m.epsilon / 2) + 1)
    return together(value, -(-m.categories // 8), lambda truth: unary(p, 1 - p, m.categories, truth))


def optimal_unary(m: Any, value: Any) -> Law:
    q = 1 / (math.exp(m.epsilon) + 1)
    return together(value, -(-m.categories // 8), lambda truth: unary(0.5, q, m.categories, truth))


def subset_selection(m: Any, value: Any) -> Law:
    return together(
        value, -(-m.categories // 8), lambda truth: subset(float(m.epsilon), m.size, m.categories, truth)
    )
