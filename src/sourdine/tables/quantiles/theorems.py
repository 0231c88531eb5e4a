"""How far the histogram method is off, for the deciles of values drawn from a law.

The method asks the sparse vector technique, for each of m quantiles, for the first of k = 1.5 n / log n cut
points with enough values below (ThresholdHistogram, not monotone). With probability 1 - beta all its counts
are good to alpha = 8 log(2 k / beta) / epsilon ranks (Dwork and Roth 2014), so an answer lies
between the order statistics alpha ranks around its own, of which the law is known.

A theorem is stated as it was published and as it can be proven: as published (Canesse 2022), alpha has the
whole epsilon, of which each quantile gets only one m-th.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from sourdine.core import check
from sourdine.core.lazy import betainc, lambertw, ndtr, ndtri

T = TypeVar("T")


@dataclass(frozen=True)
class Stated(Generic[T]):
    """The same statement twice."""

    published: T
    corrected: T


@dataclass(frozen=True)
class Tail:
    """An answer is farther than `distance` from its aim with at most this probability."""

    distance: float
    probability: float


_MOST = 1 << 52
_WINDOW = 0.1  # how far around a decile the published bounds look


@dataclass(frozen=True)
class _Order:
    """An order statistic of n uniform values; below the first lies 0, above the last 1."""

    rank: float
    size: int

    def below(self, x: float) -> float:
        """P(X <= x), the regularised incomplete beta function I_x(rank, n - rank + 1)."""
        if x <= 0 or self.rank > self.size:
            return float(x >= 1)
        if x >= 1 or self.rank <= 0:
            return 1.0
        return float(betainc(self.rank, self.size - self.rank + 1, x))

    def area(self, low: float, high: float) -> float:
        """The integral of P(X <= x) over [low, high] within [0, 1]."""
        return self._up_to(high) - self._up_to(low)

    def _up_to(self, x: float) -> float:
        """By parts: x P(X <= x) less the mean of X where it is at most x."""
        if x <= 0 or self.rank > self.size:
            return 0.0
        if self.rank <= 0:
            return x
        mean = self.rank / (self.size + 1)
        return x * self.below(x) - mean * _Order(self.rank + 1, self.size + 1).below(x)


@dataclass(frozen=True)
class _Case:
    """What all these theorems speak about."""

    size: int
    epsilon: float
    decile: int
    beta: float
    answers: int

    @classmethod
    def of(
        cls, owner: str, size: object, epsilon: object, *, decile: object, beta: object, answers: object
    ) -> "_Case":
        n = check.integer(owner, "size", size, 2, _MOST)
        if beta is None:
            chance = min(1.0, 1 / (math.sqrt(n) * math.log(n)))
        else:
            chance = float(check.inside(owner, "beta", beta, 0, 1))
        return cls(
            n,
            float(check.positive(owner, "epsilon", epsilon)),
            check.integer(owner, "decile", decile, 1, 9),
            chance,
            check.integer(owner, "answers", answers, 1, _MOST),
        )

    @property
    def cuts(self) -> float:
        return 1.5 * self.size / math.log(self.size)

    def around(self, *, rounded: bool = True) -> tuple[_Order, _Order]:
        """The order statistics between which an answer lies, but for the width of a cut; ranks as printed."""
        alpha = 8 * math.log(2 * self.cuts / self.beta) / self.epsilon
        aim = self.decile * self.size / 10
        low, high = aim - alpha, aim + alpha
        if rounded:
            low, high = math.floor(low), math.ceil(high)
        return _Order(low, self.size), _Order(high, self.size)

    def shared(self, cuts: float | None = None) -> tuple[_Order, _Order]:
        """The same for one of m quantiles, with whole cut points and whole ranks, rounded outwards."""
        whole = math.ceil(cuts or self.cuts)
        alpha = 8 * self.answers * math.log(2 * whole / self.beta) / self.epsilon
        aim = Fraction(self.decile * self.size, 10)
        low, high = math.floor(aim - Fraction(alpha)), math.ceil(math.ceil(aim) + Fraction(alpha))
        return _Order(low, self.size), _Order(high, self.size)


def histogram_tail(
    size: int,
    epsilon: float,
    *,
    decile: int,
    gamma: float,
    beta: float | None = None,
    answers: int = 9,
) -> Stated[Tail]:
    """How often the answer for uniform values on [0, 1] misses the law's decile d.

    P(|A - d| > gamma + 1/k) <= 1 - I_{d+gamma}(up) + I_{d-gamma}(low) + beta, with the order statistics at
    ranks i n / 10 -+ alpha (Canesse 2022, theorem 2.4.1.3). Without a beta it is 1 / (sqrt(n) log n).

    >>> histogram_tail(5000, 1, decile=1, gamma=0.04).published.probability < 0.002
    True
    """
    name = "histogram_tail"
    case = _Case.of(name, size, epsilon, decile=decile, beta=beta, answers=answers)
    width = float(check.positive(name, "gamma", gamma))
    d, distance = case.decile / 10, width + 1 / case.cuts
    both = [
        Tail(distance, min(1.0, _missed(low, high, d - width, d + width) + case.beta))
        for low, high in (case.around(), case.shared())
    ]
    return Stated(*both)


def _missed(low: _Order, high: _Order, left: float, right: float) -> float:
    return 1 - high.below(right) + low.below(left)


def histogram_error(
    size: int,
    epsilon: float,
    *,
    decile: int,
    beta: float | None = None,
    answers: int = 9,
    rounded: bool = True,
) -> Stated[float]:
    """The mean distance of the answer for uniform values from the law's decile d, at most.

    E|A - d| <= 1/k + (1 + d) beta + the integrals of 1 - I_{d+t}(up) and I_{d-t}(low) over t up to d, and
    both once more at t = 0.1 (Canesse 2022, theorem 2.4.1.4; without a beta its corollary). The printed
    theorem rounds both ranks outwards; its figure 2 was drawn without, which `rounded=False` gives.

    >>> stated = histogram_error(7980, 1, decile=1)
    >>> round(stated.published, 4), round(stated.corrected, 2)
    (0.0314, 1.0)
    """
    case = _Case.of("histogram_error", size, epsilon, decile=decile, beta=beta, answers=answers)
    d = case.decile / 10
    top = min(1.0, 2 * d)
    both = []
    for low, high in (case.around(rounded=rounded), case.shared()):
        near = (top - d) - high.area(d, top) + low.area(0, d)
        far = _missed(low, high, d - _WINDOW, d + _WINDOW)
        both.append(1 / case.cuts + (1 + d) * case.beta + near + far)
    return Stated(both[0], min(1.0, both[1]))


def least_size(epsilon: float, *, answers: int = 9) -> Stated[int | None]:
    """The least n with 8 log(3 n sqrt n) / epsilon <= n / 10, from which on the bounds say something.

    n = -120/epsilon W(-epsilon / (120 * 3^(2/3))) on the lower branch of Lambert's function (Canesse 2022,
    after corollary 2.4.1.4.1), which needs epsilon <= 120 * 3^(2/3) / e; above, every n will do.

    >>> least_size(1)
    Stated(published=905, corrected=10824)
    """
    whole = float(check.positive("least_size", "epsilon", epsilon))
    m = check.integer("least_size", "answers", answers, 1, _MOST)
    return Stated(_least(whole), _least(whole / m) or 2)


def _least(epsilon: float) -> int | None:
    argument = -epsilon / (120 * 3 ** (2 / 3))
    if argument < -1 / math.e:
        return None
    return math.ceil(-120 / epsilon * float(lambertw(argument, -1).real))


def histogram_rate(size: int, epsilon: float, *, decile: int, answers: int = 9) -> Stated[float]:
    """The same mean distance, by a formula that shows how it falls with n.

    E|A - d| <= 2 sqrt(pi / 2n) + (d + 1) / (sqrt(n) log n) + 2 log n / (3 n) + (24 log n + 16 log 3) / (n e)
    + 2 exp(-2 n (0.1 - (alpha + 1) / n)^2), where e = epsilon / m and the last is 2 if alpha + 1 > n / 10
    (Canesse 2022, theorem 2.4.2.1, has 16 log 3 log n / (n epsilon) in the middle).

    >>> stated = histogram_rate(10**6, 1, decile=5)
    >>> stated.published < stated.corrected < 0.01
    True
    """
    case = _Case.of("histogram_rate", size, epsilon, decile=decile, beta=None, answers=answers)
    n, d, each = case.size, case.decile / 10, case.epsilon / case.answers
    common = 2 * math.sqrt(math.pi / (2 * n)) + (d + 1) / (math.sqrt(n) * math.log(n)) + 1 / case.cuts
    ranks = 8 * math.log(3 * n * math.sqrt(n))
    published = (
        common
        + 16 * math.log(3) * math.log(n) / (n * case.epsilon)
        + 2 * math.exp(-2 * n * (_WINDOW - ranks / case.epsilon / n) ** 2)
    )
    # Hoeffding's bound on each tail; whole ranks lie one farther out, for which the two integrals have room:
    # each is over a half line, and sqrt(pi / 2n) stands for a whole one
    left = max(0.0, _WINDOW - (ranks / each + 1) / n)
    corrected = common + (24 * math.log(n) + 16 * math.log(3)) / (n * each) + 2 * math.exp(-2 * n * left**2)
    return Stated(published, min(1.0, corrected))


def histogram_on_normal(
    size: int,
    epsilon: float,
    *,
    decile: int,
    gamma: float,
    bounds: tuple[float, float],
    cuts: int,
    beta: float | None = None,
    answers: int = 9,
) -> Stated[Tail]:
    """How often the answer for standard normal values, with k cuts of [a, b], misses the law's decile.

    As published (Canesse 2022, theorem 2.5.0.1) P(|A - d| > gamma) <= beta + eta + mu by Chernoff's bounds,
    for gamma in [0, d], which is empty up to the fifth decile. As corrected it is theorem 2.4.1.3 once more,
    which holds for every continuous law F and every decile with I at F(d -+ gamma): P(|A - d| > gamma +
    (b - a)/k) <= 1 - I_{F(d+gamma)}(up) + I_{F(d-gamma)}(low) + beta.

    >>> stated = histogram_on_normal(10**5, 1, decile=6, gamma=0.2, bounds=(-6, 6), cuts=10)
    >>> round(stated.published.distance, 2), round(stated.corrected.distance, 2)
    (0.2, 1.4)
    """
    name = "histogram_on_normal"
    case = _Case.of(name, size, epsilon, decile=decile, beta=beta, answers=answers)
    width = float(check.positive(name, "gamma", gamma))
    k = check.integer(name, "cuts", cuts, 1, _MOST)
    lower, upper = (float(check.rational(name, "bounds", bound)) for bound in bounds)
    if not lower < upper:
        raise check.fail(name, "bounds", "rise", bounds, "Give the lower one first.")
    d = float(ndtri(case.decile / 10))
    low, high = case.shared(k)
    missed = _missed(low, high, float(ndtr(d - width)), float(ndtr(d + width))) + case.beta
    corrected = Tail(width + (upper - lower) / k, min(1.0, missed))
    return Stated(Tail(width, min(1.0, _by_chernoff(case, width, d, k))), corrected)


def _by_chernoff(case: _Case, gamma: float, d: float, cuts: int) -> float:
    """beta + eta + mu as printed, or 1 where nothing is claimed."""
    if gamma > d:
        return 1.0
    n, i, root = case.size, case.decile, math.sqrt(2 * math.pi)
    alpha = 8 * math.log(2 * cuts / case.beta) / case.epsilon
    spare = math.exp(-((abs(d) + gamma) ** 2) / 2) - 2 * alpha * root / (n * gamma)
    mu = 2 * math.exp(min(0.0, -n * gamma / (4 * root) * spare**3))
    left = math.exp(-n * gamma**2 / i**2 * (i / 10 - gamma / (2 * root)) * math.exp(-(d**2)))
    right = math.exp(-5 * gamma**2 * i * n / (16 * math.pi * (i + 5 * gamma / root) ** 2) * math.exp(-(d**2)))
    return case.beta + left + right + mu


# How far the smooth inverse sensitivity mechanism is off, for quantiles of values drawn from a law.
#
# The values lie in a range of length R, and the law's density is at least p within 2 gamma of the quantile.
# Cut this neighbourhood into pieces of length u <= gamma / 4: with high probability each holds n u p / 2
# values, so what is 2 u + rho away from the sample's quantile has a gap of at least that (Asi and Duchi
# 2020 for the median; Canesse 2022 for deciles).
#
# As corrected, each of m quantiles has epsilon / m; what is within rho of the quantile and within the range
# is rho long, not 2 rho; and the law's quantile is away from the sample's, which the published theorems
# about the law leave out.
#
# The source's theorems (Canesse 2022), and the functions that forecast errors by them, as published and as
# corrected:
#
# | theorem | function | | --- | --- | | 2.4.1.3 | histogram_tail | | 2.4.1.4 and its corollary |
# histogram_error | | the least n | least_size | | 2.4.2.1 | histogram_rate | | 2.5.0.1 |
# histogram_on_normal | | 3.3.1.1 | inverse_tail_of_sample | | 3.3.1.2 | inverse_tail | | 3.3.2.1 |
# inverse_tail_on_uniform | | 3.3.2.2 | inverse_error |


@dataclass(frozen=True)
class _InverseBoundsCase:
    """n, epsilon, and the share of it that one of m quantiles has."""

    size: int
    epsilon: float
    each: float

    @classmethod
    def of(cls, owner: str, size: object, epsilon: object, answers: object) -> "_InverseBoundsCase":
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


def _terms(case: _InverseBoundsCase, at: _Lengths) -> tuple[float, float, float]:
    """Too much weight far away at the whole epsilon, a quantile astray, a piece with too few values."""
    n, p = case.size, at.density
    return (
        at.span / (2 * at.rho) * math.exp(-n * p * at.u * case.epsilon / 4),
        4 * math.exp(-n * at.gamma**2 * p**2 / 8),
        2 * at.gamma / at.u * math.exp(-n * p * at.u / 8),
    )


def _corrected(case: _InverseBoundsCase, at: _Lengths) -> float:
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
    case = _InverseBoundsCase.of(name, size, epsilon, answers)
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
    case = _InverseBoundsCase.of("inverse_tail", size, epsilon, answers)
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
    case = _InverseBoundsCase.of(name, size, epsilon, answers)
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
    case = _InverseBoundsCase.of("inverse_error", size, epsilon, answers)
    n, whole, each = case.size, case.epsilon, case.each
    r = float(check.positive("inverse_error", "rho", rho))
    root = math.sqrt(n)
    # twice the integral of the tails over u from 2 / sqrt(n) on, since the distance is 2 u + rho; the pieces
    # are those of [0, 1], so a tail needs no term for a quantile astray, whose mean distance comes last
    spread = math.exp(-root / 4) / root
    published = r + 4 / root + 4 / (n * whole * r) * math.exp(-root * whole / 2) + 16 * spread
    corrected = r + 4.5 / root + 8 / (n * each * r) * math.exp(-root * each / 2) + 32 * spread
    return Stated(published, corrected)
