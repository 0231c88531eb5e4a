"""How far the smooth inverse sensitivity mechanism is off, for quantiles of values drawn from a law.

The values lie in a range of length R, and the law's density is at least p within 2 gamma of the quantile. Cut
this neighbourhood into pieces of length u <= gamma / 4: with high probability each holds n u p / 2 values, so
what is 2 u + rho away from the sample's quantile has a gap of at least that (Asi and Duchi 2020 for the
median; Canesse 2022 for deciles).

As corrected, each of m quantiles has epsilon / m; what is within rho of the quantile and within the range is
rho long, not 2 rho; and the law's quantile is away from the sample's, which the published theorems about the
law leave out.

The source's theorems (Canesse 2022), and the functions that forecast errors by them, as published and as
corrected:

| theorem | function |
| --- | --- |
| 2.4.1.3 | histogram_tail |
| 2.4.1.4 and its corollary | histogram_error |
| the least n | least_size |
| 2.4.2.1 | histogram_rate |
| 2.5.0.1 | histogram_on_normal |
| 3.3.1.1 | inverse_tail_of_sample |
| 3.3.1.2 | inverse_tail |
| 3.3.2.1 | inverse_tail_on_uniform |
| 3.3.2.2 | inverse_error |
"""

import math
from dataclasses import dataclass

from sourdine.core import check
from sourdine.tables.quantiles.histogram_bounds import (
    Stated,
    Tail,
)

_MOST = 1 << 52


@dataclass(frozen=True)
class _Case:
    """n, epsilon, and the share of it that one of m quantiles has."""

    size: int
    epsilon: float
    each: float

    @classmethod
    def of(cls, owner: str, size: object, epsilon: object, answers: object) -> "_Case":
        whole = check.positive(owner, "epsilon", epsilon)
        m = check.integer(owner, "answers", answers, 1, _MOST)
        return cls(check.integer(owner, "size", size, 1, _MOST), float(whole), float(whole / m))


@dataclass(frozen=True)
class _Lengths:
    """What the general bounds are about."""

    gamma: float
    u: float
    rho: float
    density: float
    span: float

    @classmethod
    def of(cls, owner: str, **lengths: object) -> "_Lengths":
        instance = cls(**{name: float(check.positive(owner, name, value)) for name, value in lengths.items()})
        if 4 * instance.u > instance.gamma * (1 + 1e-12):
            remedy = "Take a smaller u, or a larger gamma."
            raise check.fail(owner, "u", "be at most gamma / 4", lengths["u"], remedy)
        return instance


def _terms(case: _Case, at: _Lengths) -> tuple[float, float, float]:
    """Too much weight far away at the whole epsilon, a quantile astray, a piece with too few values."""
    n, p = case.size, at.density
    return (
        at.span / (2 * at.rho) * math.exp(-n * p * at.u * case.epsilon / 4),
        4 * math.exp(-n * at.gamma**2 * p**2 / 8),
        2 * at.gamma / at.u * math.exp(-n * p * at.u / 8),
    )


def _corrected(case: _Case, at: _Lengths) -> float:
    _, astray, sparse = _terms(case, at)
    heavy = at.span / at.rho * math.exp(-case.size * at.density * at.u * case.each / 4)
    return min(1.0, heavy + astray + sparse)


def inverse_tail_of_sample(
    size: int,
    epsilon: float,
    *,
    gamma: float,
    u: float,
    rho: float,
    density: float,
    span: float = 1.0,
    answers: int = 9,
) -> Stated[Tail]:
    """How often an answer misses the sample's quantile.

    P(|M - x_(k)| > 2 u + rho) <= R/rho exp(-n p u e / 4) + 4 exp(-n gamma^2 p^2 / 8) + 2 gamma / u
    exp(-n p u / 8), where e = epsilon / m (Canesse 2022, theorem 3.3.1.1, has epsilon and R / (2 rho)).

    >>> tail = inverse_tail_of_sample(10**5, 1, gamma=0.1, u=0.02, rho=0.01, density=1).corrected
    >>> round(tail.distance, 3), tail.probability < 1e-20
    (0.05, True)
    """
    name = "inverse_tail_of_sample"
    case = _Case.of(name, size, epsilon, answers)
    at = _Lengths.of(name, gamma=gamma, u=u, rho=rho, density=density, span=span)
    distance = 2 * at.u + at.rho
    return Stated(Tail(distance, min(1.0, sum(_terms(case, at)))), Tail(distance, _corrected(case, at)))


def inverse_tail(
    size: int,
    epsilon: float,
    *,
    gamma: float,
    u: float,
    rho: float,
    density: float,
    span: float = 1.0,
    answers: int = 9,
) -> Stated[Tail]:
    """How often an answer misses the law's quantile d.

    P(|M - d| > 2 u + rho + gamma / 2) is at most what inverse_tail_of_sample says, whose second term already
    pays for a sample's quantile gamma / 2 away. Canesse 2022, theorem 3.3.1.2, has 2 u + rho and leaves that
    term out, as if the sample's quantile were the law's.

    >>> stated = inverse_tail(10**6, 1, gamma=0.0008, u=0.0002, rho=0.0001, density=1)
    >>> stated.published.probability < 1e-6, stated.corrected.probability
    (True, 1.0)
    """
    case = _Case.of("inverse_tail", size, epsilon, answers)
    at = _Lengths.of("inverse_tail", gamma=gamma, u=u, rho=rho, density=density, span=span)
    heavy, _, sparse = _terms(case, at)
    distance = 2 * at.u + at.rho
    return Stated(
        Tail(distance, min(1.0, heavy + sparse)), Tail(distance + at.gamma / 2, _corrected(case, at))
    )


def inverse_tail_on_uniform(
    size: int, epsilon: float, *, u: float, rho: float, answers: int = 9
) -> Stated[Tail]:
    """How often an answer for uniform values on [0, 1] misses the law's quantile.

    P(|M - d| > 4 u + rho) <= exp(-n u e / 4) / rho + 4 exp(-2 n u^2) + 8 exp(-n u / 8), which is the general
    bound with gamma = 4 u. Outside [0, 1] there is no answer to miss by, so it holds for every quantile.
    Canesse 2022, theorem 3.3.2.1, has P(|M - d| > 2 u + rho) <= exp(-n u epsilon / 4) / (2 rho) +
    4 / u exp(-n u / 8).

    >>> stated = inverse_tail_on_uniform(10**6, 1, u=0.0002, rho=0.0001)
    >>> f"{stated.published.probability:.1e}", stated.corrected.probability
    ('2.8e-07', 1.0)
    """
    name = "inverse_tail_on_uniform"
    case = _Case.of(name, size, epsilon, answers)
    at = _Lengths.of(name, gamma=4 * float(check.positive(name, "u", u)), u=u, rho=rho, density=1, span=1)
    heavy, _, _ = _terms(case, at)
    published = heavy + 4 / at.u * math.exp(-case.size * at.u / 8)
    return Stated(Tail(2 * at.u + at.rho, min(1.0, published)), Tail(4 * at.u + at.rho, _corrected(case, at)))


def inverse_error(size: int, epsilon: float, *, rho: float, answers: int = 9) -> Stated[float]:
    """The mean distance of an answer for uniform values on [0, 1] from the law's quantile, at most.

    E|M - d| <= rho + 4 / sqrt(n) + 8 / (n e rho) exp(-sqrt(n) e / 2) + 32 / sqrt(n) exp(-sqrt(n) / 4)
    + 1 / (2 sqrt(n)), where e = epsilon / m (Canesse 2022, theorem 3.3.2.2, has 4 for 8, 16 for 32, epsilon
    for e, and not the last term, which is the sample's own error).

    >>> stated = inverse_error(10_000, 1, rho=0.01)
    >>> round(stated.published, 4), round(stated.corrected, 4)
    (0.05, 0.0578)
    """
    case = _Case.of("inverse_error", size, epsilon, answers)
    n, whole, each = case.size, case.epsilon, case.each
    r = float(check.positive("inverse_error", "rho", rho))
    root = math.sqrt(n)
    # twice the integral of the tails over u from 2 / sqrt(n) on, since the distance is 2 u + rho; the pieces
    # are those of [0, 1], so a tail needs no term for a quantile astray, whose mean distance comes last
    spread = math.exp(-root / 4) / root
    published = r + 4 / root + 4 / (n * whole * r) * math.exp(-root * whole / 2) + 16 * spread
    corrected = r + 4.5 / root + 8 / (n * each * r) * math.exp(-root * each / 2) + 32 * spread
    return Stated(published, corrected)
