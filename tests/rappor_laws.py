"""The true laws of RAPPOR's variants, by enumeration of every report from the definitions alone."""

import hashlib
import itertools
import math
from collections.abc import Callable
from typing import Any

from sourdine.local import rappor

Law = dict[int, float]


def bloom(word: str, cohort: int, bits: int, hashes: int) -> set[int]:
    """The bits of a word: byte i of MD5(cohort in four bytes, big-endian || word) mod k."""
    digest = hashlib.md5(cohort.to_bytes(4, "big") + word.encode()).digest()
    return {digest[i] % bits for i in range(hashes)}


def bit_law(truth: int, f: float, p: float, q: float) -> tuple[float, float]:
    """How likely a 0 and a 1 are reported, over the three outcomes of the permanent response."""
    one = 0.0
    for permanent, share in ((1, f / 2), (0, f / 2), (truth, 1 - f)):
        one += share * (q if permanent else p)
    return 1 - one, one


def filter_law(truth: set[int], bits: int, f: float, p: float, q: float) -> Law:
    """Every row of bits, packed with the first one highest."""
    laws = [bit_law(int(i in truth), f, p, q) for i in range(bits)]
    spare = -bits % 8
    return {
        sum(bit << (bits - 1 - i) for i, bit in enumerate(row)) << spare: math.prod(
            law[bit] for law, bit in zip(laws, row, strict=True)
        )
        for row in itertools.product((0, 1), repeat=bits)
    }


def with_hashes(m: Any, value: Any) -> Law:
    p, q = (float(m.p), float(m.q)) if isinstance(m, rappor.Rappor) else (0.0, 1.0)
    width = -(-m.bits // 8)
    law: Law = {}
    for cohort in range(m.cohorts):
        rows = filter_law(bloom(str(value), cohort, m.bits, m.hashes), m.bits, float(m.f), p, q)
        law |= {(cohort << 8 * width) + code: mass / m.cohorts for code, mass in rows.items() if mass}
    return law


def basic(m: Any, value: Any) -> Law:
    p, q = (float(m.p), float(m.q)) if isinstance(m, rappor.BasicRappor) else (0.0, 1.0)
    return filter_law({int(value)}, m.categories, float(m.f), p, q)


LAWS: dict[type, Callable[[Any, Any], Law]] = {
    rappor.BasicOneTimeRappor: basic,
    rappor.BasicRappor: basic,
    rappor.OneTimeRappor: with_hashes,
    rappor.Rappor: with_hashes,
}

NOISE: dict[type, str | None] = {
    rappor.BasicOneTimeRappor: "f",
    rappor.BasicRappor: "q",
    rappor.OneTimeRappor: "f",
    rappor.Rappor: "q",
}
