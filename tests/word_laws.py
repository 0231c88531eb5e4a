"""The true law of what a report on words tells of two words: its level, and which of them it speaks for."""

import math
from typing import Any

Law = dict[int, float]


def supports(m: Any, value: Any) -> Law:
    """By the definition: random vectors make the groups of two prefixes independent, if neither is a
    multiple of the other, which the examples are chosen for.
    """
    (example,) = (each for each in type(m).examples() if _same(each.mechanism, m))
    own_first = str(value) == str(example.value)
    g, p = m.groups, 1 / (1 + (m.groups - 1) * math.exp(-float(m.epsilon)))
    law: Law = {}
    for level in range(m.depth):
        own, other = p * (1 - 1 / g), (1 - p) / (g - 1) * (1 - 1 / g)
        both = p / g
        neither = 1 - own - other - both
        for code, mass in (
            (0, neither),
            (2 if own_first else 1, own),
            (1 if own_first else 2, other),
            (3, both),
        ):
            law[4 * level + code] = mass / m.depth
    return law


def _same(one: Any, other: Any) -> bool:
    """The same but for an epsilon that a test has put off."""
    return bool((one.letters, one.groups) == (other.letters, other.groups))
