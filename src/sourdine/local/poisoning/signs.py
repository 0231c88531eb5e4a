"""Signs that reports were not made by honest devices: what these do too rarely to be believed.

Each test bounds how often honest reports, one a device, would ever look so, whatever the answers behind them
are, and however often one looks while they come in. All tests together raise a false alarm in at most one
survey of a million (docs/guarantees/poisoning.md). None sees an attacker who sends what honest devices send:
`attackers_reach` says what those can do.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sourdine.core.lazy import bdtr, bdtrc, gammaln
from sourdine.local.estimate import Counts
from sourdine.local.frequency.hadamard import HadamardResponse
from sourdine.local.frequency.hashing import OLH
from sourdine.local.frequency.subset import SubsetSelection
from sourdine.local.frequency.supports import CodedOracle
from sourdine.local.frequency.unary import Unary
from sourdine.local.numeric.window import WindowOracle
from sourdine.local.oracle import Bytes, FrequencyOracle, Oracle
from sourdine.local.poisoning.ever import chance_of_fewer, chance_of_more, chance_of_sum
from sourdine.local.rappor.basic import BasicOracle

ALARM = 1e-6
"""How often all tests together may ever call honest reports spoiled."""
_TESTS = 5  # that there are at most, for counts and rows together
_MOST_CODES = 1 << 20  # beyond that, sums are not tested: what is expected takes too long to work out
_MOST_BYTES = 1 << 26  # of rows that are compared with each other
_NONE = 1e-9  # where all reports support as many categories, there is nothing to test

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sign:
    """One test: what was seen, what honest reports give, and at most how often they would ever look so."""

    name: str
    value: float
    expected: str
    chance: float
    meaning: str

    @property
    def alarm(self) -> bool:
        """Whether honest reports look so too rarely to be believed."""
        return self.chance < ALARM / _TESTS

    @property
    def sentence(self) -> str:
        """What to tell people."""
        if not self.alarm:
            return f"{self.name}: {self.value:,.4g}, as honest reports have it ({self.expected})."
        often = "never" if self.chance == 0 else f"less than once in {1 / self.chance:.0e} surveys"
        what = f"{self.name}: {self.value:,.4g}; honest reports have {self.expected}, and this {often}."
        return f"{what} {self.meaning}"


def alarms(signs: Iterable[Sign]) -> list[str]:
    """The sentences of those tests that raise an alarm."""
    return [sign.sentence for sign in signs if sign.alarm]


def signs_of_counts(oracle: Oracle, counts: Counts) -> tuple[Sign, ...]:
    """The tests that need counts alone; those that say nothing of an oracle are left out.

    The counts are of reports by different devices: those of one period, since a device repeats itself.
    """
    if counts.reports < 1:
        return ()
    signs = (_sum(oracle, counts), _commonest(oracle, counts), _outside(oracle, counts))
    return tuple(sign for sign in signs if sign is not None)


def signs_of_periods(oracle: Oracle, periods: Sequence[Counts], in_all: int) -> tuple[Sign, ...]:
    """Of each test the one of the period that looks the worst; `in_all` periods may be looked at in the end.

    >>> from sourdine.local import GRR
    >>> oracle = GRR(epsilon=1, categories=4)
    >>> day = oracle.tally(np.zeros(34, np.int64))
    >>> [[sign.alarm for sign in signs_of_periods(oracle, [day, day], days)] for days in (2, 365)]
    [[True], [False]]
    """
    worst: dict[str, Sign] = {}
    for counts in periods:
        for sign in signs_of_counts(oracle, counts):
            known = worst.setdefault(sign.name, sign)
            worst[sign.name] = min(known, sign, key=lambda each: each.chance)
    return tuple(replace(sign, chance=min(1.0, in_all * sign.chance)) for sign in worst.values())


def _sum(oracle: Oracle, counts: Counts) -> Sign | None:
    """How many categories a report supports on average, by Bernstein's inequality."""
    law = _support_law(oracle)
    if law is None or law.reach < _NONE or not isinstance(oracle, FrequencyOracle):
        return None
    total, n = float(oracle.supports(counts).sum()), counts.reports
    mean, above, below = total / n, total - n * law.most, n * law.least - total
    return Sign(
        "Categories that a report supports on average",
        mean,
        _from_to(law.least, law.most),
        chance_of_sum(above, below, n, law.variance, law.reach),
        "Somebody sends reports that raise many categories at once, or lower them.",
    )


@dataclass(frozen=True)
class _SupportLaw:
    """How many categories a report supports: its mean, whatever the answers, its variance and its reach."""

    least: float
    most: float
    variance: float
    reach: float


def _support_law(oracle: Oracle) -> _SupportLaw | None:
    if isinstance(oracle, Unary | BasicOracle):
        (p, q), k = oracle.channel, oracle.categories
        mean = p + (k - 1) * q
        return _SupportLaw(mean, mean, p * (1 - p) + (k - 1) * q * (1 - q), max(mean, k - mean))
    if isinstance(oracle, CodedOracle) and oracle.codes <= _MOST_CODES:
        sizes, decay = oracle.support_sizes(), math.exp(-oracle.epsilon)
        rise = -math.expm1(-oracle.epsilon)  # what a report favoured by the answer weighs more
        ones, firsts, seconds = (
            decay * float(power.sum()) + rise * oracle.supports(Counts("", 0, power)).astype(float)
            for power in (np.ones_like(sizes), sizes, sizes**2)
        )
        means = firsts / ones
        least, most = float(means.min()), float(means.max())
        variance = max(float((seconds / ones - means**2).max()), 0.0)
        return _SupportLaw(least, most, variance, max(most - float(sizes.min()), float(sizes.max()) - least))
    return None


def _commonest(oracle: Oracle, counts: Counts) -> Sign | None:
    """The commonest seed, column, point or code, by the largest probability that it has for any answer."""
    sums = counts.sums
    if isinstance(oracle, HadamardResponse) and oracle.blocks > 1:
        return _commonest_column(oracle, sums.reshape(oracle.blocks, oracle.columns))
    if isinstance(oracle, OLH):
        sums, likely, what = sums.reshape(-1, oracle.groups).sum(axis=1), oracle.groups / oracle.codes, "seed"
    elif isinstance(oracle, CodedOracle):
        shared = sum(favours.each for favours in oracle.favours[:1])
        likely = 1 / (oracle.codes * (math.exp(-oracle.epsilon) - shared * math.expm1(-oracle.epsilon)))
        what = "column" if isinstance(oracle, HadamardResponse) else "point"
    elif isinstance(oracle, WindowOracle):
        likely, what = oracle.sliding.likely, "code"
    else:
        return None
    if len(sums) < 2 or likely >= 1:
        return None
    return _repeat_sign(what, int(sums.max()), counts.reports, likely, len(sums))


def _commonest_column(oracle: HadamardResponse, sums: Ints) -> Sign | None:
    """Of the reports in a block, by the largest probability that one of them is a column."""
    likely = 2 / ((1 + math.exp(-oracle.epsilon)) * oracle.columns)
    if likely >= 1:
        return None
    signs = [
        _repeat_sign("column of a block", int(block.max()), int(block.sum()), likely, oracle.codes)
        for block in sums
    ]
    return min(signs, key=lambda sign: sign.chance)


def _repeat_sign(what: str, most: int, reports: int, likely: float, kinds: int) -> Sign:
    return Sign(
        f"Reports with the commonest {what}",
        most,
        f"up to about {reports * likely:,.4g} of {reports:,}",
        min(1.0, kinds * chance_of_more(most, reports, likely)),
        "Somebody sends the same again and again.",
    )


def _outside(oracle: Oracle, counts: Counts) -> Sign | None:
    """The supports furthest below what a category has that nobody holds, or above one that all hold."""
    if not isinstance(oracle, FrequencyOracle) or (
        isinstance(oracle, HadamardResponse) and oracle.blocks > 1
    ):
        return None
    (p, q), n = oracle.channel, counts.reports
    supports = oracle.supports(counts)
    low, high = int(supports.min()), int(supports.max())
    below, above = chance_of_fewer(low, n, q), chance_of_more(high, n, p)
    count, chance = (low, below) if below < above else (high, above)
    return Sign(
        "Share of a category furthest out",
        float(oracle.channel.estimate(count / n)),
        "shares from 0 to 1, but for noise",
        min(1.0, 2 * oracle.categories * chance),
        "No answers that people can have make this likely: reports were made up to move a category.",
    )


class RowWatch:
    """Rows of bits as they come in, compared with each other: as many as fit into memory."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle, self._rows, self._left = oracle, list[Bytes](), _MOST_BYTES // max(oracle.width, 1)

    def add(self, rows: Bytes) -> None:
        """Some more rows."""
        if self._left and isinstance(self._oracle, Unary | BasicOracle | SubsetSelection):
            self._rows.append(rows[: self._left].copy())
            self._left -= len(self._rows[-1])

    def signs(self) -> tuple[Sign, ...]:
        """The tests of all rows so far."""
        if not self._rows:
            return ()
        return signs_of_rows(self._oracle, np.concatenate(self._rows))


def signs_of_rows(oracle: Oracle, rows: Bytes) -> tuple[Sign, ...]:
    """The tests that need single reports of bits: equal ones, and those with too many or too few ones."""
    if not len(rows) or not isinstance(oracle, Unary | BasicOracle | SubsetSelection):
        return ()
    signs = [_equal_rows(oracle, rows)]
    if not isinstance(oracle, SubsetSelection):
        signs.append(_weights(oracle, rows))
    return tuple(signs)


def _equal_rows(oracle: Unary | BasicOracle | SubsetSelection, rows: Bytes) -> Sign:
    """How often the commonest row occurs.

    That some r of the first n rows are equal has a probability of at most C(n, r) P^{r-1}, P that of the
    likeliest row for any answer, and once they are, they are for ever: over all r, 1/(r (r - 1)) each adds up
    to 1. With few rows possible, it is at most their number times the chance of one. Two bounds, half each.
    """
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).reshape(-1)
    most, n = int(np.unique(packed, return_counts=True)[1].max()), len(rows)
    log_likely = _log_likeliest_row(oracle)
    subsets = float(gammaln(n + 1) - gammaln(most + 1) - gammaln(n - most + 1))
    spent = math.log(most * (most - 1)) if most > 1 else 0.0
    chance = math.exp(min(0.0, subsets + (most - 1) * log_likely + spent))
    if oracle.categories <= 64:
        chance = min(chance, 2.0**oracle.categories * chance_of_more(most, n, math.exp(log_likely)))
    return Sign(
        "Reports that are equal to the commonest",
        most,
        f"up to about {max(1.0, n * math.exp(log_likely)):,.4g} of {n:,}",
        min(1.0, 2 * chance),
        "Somebody sends the same again and again, or reports were copied.",
    )


def _log_likeliest_row(oracle: Unary | BasicOracle | SubsetSelection) -> float:
    """The logarithm of the largest probability that a row has for any answer."""
    k = oracle.categories
    if isinstance(oracle, SubsetSelection):
        d = oracle.size
        sets = float(gammaln(k) - gammaln(d) - gammaln(k - d + 1))  # with the answer in them
        return math.log(oracle.channel.p) - sets
    p, q = oracle.channel
    return math.log(max(p, 1 - p)) + (k - 1) * math.log(max(q, 1 - q))


def _weights(oracle: Unary | BasicOracle, rows: Bytes) -> Sign:
    """The most and the fewest ones of a row: one of probability p, and k - 1 of probability q.

    The i-th row may be so far out with a probability of 1/(i (i + 1)) of the whole.
    """
    ones = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    (p, q), others, n = oracle.channel, oracle.categories - 1, len(rows)
    most, least = int(ones.max()), int(ones.min())
    heavy = p * _at_least(most - 1, others, q) + (1 - p) * _at_least(most, others, q)
    light = p * _at_most(least - 1, others, q) + (1 - p) * _at_most(least, others, q)
    value, tail = (most, heavy) if heavy < light else (least, light)
    return Sign(
        "Ones of the report furthest out",
        value,
        f"about {p + others * q:.4g}",
        min(1.0, 2 * n * (n + 1) * tail),
        "Somebody sends reports that honest devices hardly ever make.",
    )


def _at_least(count: int, trials: int, share: float) -> float:
    return 1.0 if count <= 0 else 0.0 if count > trials else float(bdtrc(count - 1, trials, share))


def _at_most(count: int, trials: int, share: float) -> float:
    return 0.0 if count < 0 else 1.0 if count >= trials else float(bdtr(count, trials, share))


def _from_to(least: float, most: float) -> str:
    low, high = f"{least:.4g}", f"{most:.4g}"
    return f"{low} on average" if low == high else f"from {low} to {high} on average"
