"""The privacy blanket: shuffled reports of which each favours some inputs, and hides among those that do not.

Under an input a report is e^epsilon times as likely if it favours the input as if not, and otherwise all
inputs treat it alike. So a known share of all reports is drawn from one law, whatever the inputs are: the
blanket (Balle, Bell, Gascon, Nissim 2019). Proofs and how sums are bounded: docs/guarantees/blanket.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sourdine.accounting.accountant import Bracket, with_margin
from sourdine.accounting.shuffling.clones import MARGIN, MOST_EPSILON, declared, log_binomial
from sourdine.core import check
from sourdine.core.distributions import Floats
from sourdine.core.lazy import betainc

_ROUNDING = 1e-9  # of shares that are given as floats
_LEAST_EPSILON = 1e-12  # below, floats do not tell a report from one that says nothing
_CELLS = 400  # ranges of the number of reports that tell
_WHOLE = 128  # numbers of the others up to which every one is looked at
_MANY = 40_000  # pairs from which on they are thinned out
_NODES = 1.0  # deviations from one node of the others to the next
_REACH = 9.0
_BEYOND = 1e-30  # the mass that the ranges leave out, at most
_TINY = 1e-40  # weights that are left out, and counted apart
_CLOSE = 1e-5  # how near to each other the ends of a search are, relative


@dataclass(frozen=True, kw_only=True)
class Favours:
    """Which share of all reports, by the law they share, favours an input.

    `each` is that share, `alone` the share that favours one of two inputs and not the other, and `both` the
    share that favours both. `third` is the share that favours the one and neither the other nor some third
    input, if there is one: only the lower end of a bracket needs it.

    >>> Favours(each=1/4, alone=1/4, both=0, third=1/4).blanket(math.log(3))
    0.6666666666666666
    """

    each: float
    alone: float
    both: float
    third: float = 0.0

    def __post_init__(self) -> None:
        for name in ("each", "alone", "both", "third"):
            share = float(check.between("Favours", name, getattr(self, name), Fraction(0), Fraction(1)))
            object.__setattr__(self, name, share)
        if self.alone <= 0 or self.third > self.alone * (1 + _ROUNDING):
            raise check.fail("Favours", "alone", "be above 0, and not below 'third'", self.alone)
        if abs(self.alone + self.both - self.each) > _ROUNDING * self.each:
            raise check.fail("Favours", "each", "be 'alone' and 'both' together", self.each)
        if 2 * self.alone + self.both > 1 + _ROUNDING:
            raise check.fail("Favours", "alone", "leave, twice and with 'both', at most 1", self.alone)

    def blanket(self, epsilon: float) -> float:
        """How often a report is drawn from the law that they share: 1/(1 + (e^epsilon - 1) each)."""
        local = float(check.between("Favours", "epsilon", epsilon, Fraction(0), Fraction(700)))
        return 1 / (1 + math.expm1(local) * self.each)


def blanket_model(favours: Favours, epsilon: float, reports: int, delta: float) -> Bracket:
    """The epsilon of so many shuffled reports for one replaced input, between proven bounds.

    The upper end is the claim, by the privacy blanket. The lower one is the exact epsilon of one pair of
    neighbouring crowds: everybody else holds one of the two inputs, or a third one.

    >>> bracket = blanket_model(Favours(each=1/4, alone=1/4, both=0, third=1/4), 1.0, 1000, 1e-6)
    >>> round(bracket.lower, 2), round(bracket.upper, 2)
    (0.12, 0.12)
    """
    local, count, delta = declared("blanket_model", epsilon, reports, delta)
    if not _LEAST_EPSILON <= local <= MOST_EPSILON or delta == 0:
        return Bracket(0.0, local)
    most = Upper.of(favours, local, count)
    upper = _crossing(most.delta, local, delta)[1]
    least = 0.0
    for crowd in _crowds(favours, local, count):
        least = max(least, _crossing(crowd.delta, upper, delta)[0])
    return Bracket(min(least, upper), min(local, with_margin(upper)))


@dataclass(frozen=True, eq=False)
class Upper:
    """At least the blanket's delta: how many reports tell and how much the others weigh, with weights.

    Of n reports in all, C favour one of the two inputs alone, half of them each on average, and the rest
    weigh T. Each weight bounds the probability of its pair, times C over the C of the pair.
    """

    epsilon: float
    reports: int
    telling: Floats
    weighing: Floats
    weights: Floats
    left_out: float

    @classmethod
    def of(cls, favours: Favours, epsilon: float, reports: int) -> "Upper":
        share, odds = favours.blanket(epsilon), math.exp(epsilon)
        tell = min(1.0, 2 * share * favours.alone)
        first, last, mass = _ranges(reports, tell)
        others = (reports - last)[:, None]
        rest, both = 1 - 2 * favours.alone, favours.both
        blank = share * rest / (1 - tell)
        blanks = _nodes(others, blank)
        heavies = _nodes(blanks[1:-1] if len(blanks) > 2 else blanks, both / rest) if both else np.zeros(1)
        by_heavy = _weights(blanks[:, None], both / rest, heavies) if both else np.ones((len(blanks), 1))
        weights = mass[:, None, None] * _weights(others, blank, blanks)[:, :, None] * by_heavy
        weighing = blanks[:, None] + (odds - 1) * heavies
        total, merged = _merged(weights.reshape(len(first), -1), weighing.reshape(-1))
        telling, weigh = np.broadcast_arrays(first[:, None], merged * (first / last)[:, None])
        counted = total > _TINY
        left_out = (2 * _BEYOND + total.size * _TINY) * odds * reports
        return cls(epsilon, reports, telling[counted], weigh[counted], total[counted], left_out)

    def delta(self, epsilon: float) -> float:
        gain = math.expm1(self.epsilon) * (1 + math.exp(epsilon))
        down = math.expm1(self.epsilon + epsilon)
        start = (self.telling * down + math.expm1(epsilon) * self.weighing) / gain
        each = _excess(self.telling, 0.5, start, 1)
        total = gain * float(self.weights @ each) + self.left_out
        return total / self.reports * (1 + MARGIN)


@dataclass(frozen=True, eq=False)
class Crowd:
    """Exactly the delta of one pair of neighbouring crowds, or a little less.

    Of C reports that tell, each is for the first input with probability `first`. The first crowd is likelier
    than e^epsilon times the second by the mean of (up A + down (C - A) + same (n - C))/n, where positive.
    """

    reports: int
    tell: float
    first: float
    likely: tuple[float, float, float]  # a report for the first, for the second, any other: how many times
    unlikely: tuple[float, float, float]  # as likely, less 1, under either input as under what others hold

    def delta(self, epsilon: float) -> float:
        grown, fall, n = math.exp(epsilon), math.expm1(epsilon), self.reports
        up, down, same = (a - grown * b - fall for a, b in zip(self.likely, self.unlikely, strict=True))
        if up <= down:
            return 0.0
        spread = math.sqrt(n * self.tell * (1 - self.tell))
        low = max(1, math.floor(n * self.tell - _REACH * spread))
        high = min(n, math.ceil(n * self.tell + _REACH * spread))
        telling = np.arange(low, high + 1, dtype=float)
        start = -(telling * down + (n - telling) * same) / (up - down)
        each = _excess(telling, self.first, start, -1)
        masses = np.exp(log_binomial(telling, n, self.tell)) if self.tell < 1 else np.ones(1)
        return (up - down) * float(masses @ each) / n * (1 - MARGIN)


def _crowds(favours: Favours, epsilon: float, reports: int) -> list[Crowd]:
    """Everybody else holds the second input, or a third one."""
    share, odds = favours.blanket(epsilon), math.exp(epsilon)
    if reports > 1 << 26:  # enough to see that the bound is not far off
        return []
    gain, one = math.expm1(epsilon), share * favours.alone
    tell = one * (1 + odds)
    tell = tell if tell < 1 - 1e-12 else 1.0
    crowds = [Crowd(reports, tell, 1 / (1 + odds), (gain, math.expm1(-epsilon), 0.0), (0.0, 0.0, 0.0))]
    if favours.third > 0:
        one = share * favours.third
        same = -one * gain / (1 - 2 * one)
        crowds.append(Crowd(reports, 2 * one, 0.5, (gain, 0.0, same), (0.0, gain, same)))
    return crowds


def _excess(count: Floats, share: float, start: Floats, side: int) -> Floats:
    """E[(A - start)+] for A binomial(count, share) and start at or above its mean; at least or at most.

    With b the mass of binomial(count - 1, share) at the first whole number above the start, less one:
    count share (1 - share) b - (start - count share) P[A > start]. Both terms are of one size.
    """
    at = np.floor(start) + 1
    inside = at <= count
    at = np.clip(at, 0, count)
    before = np.where(
        at >= 1, np.exp(log_binomial(np.maximum(at - 1, 0), np.maximum(count - 1, 0), share)), 0.0
    )
    tail = np.where(at >= 1, betainc(np.maximum(at, 1), np.maximum(count - at + 1, 1e-300), share), 1.0)
    above = start - count * share
    mean = count * share * (1 - share) * before
    excess = mean * (1 + side * MARGIN) - above * tail * (1 - side * MARGIN * np.sign(above))
    return np.asarray(np.where(inside, np.maximum(excess, 0.0), 0.0))


def _ranges(reports: int, tell: float) -> tuple[Floats, Floats, Floats]:
    """Ranges of C by their first and last number, and the mass of each times C over its first.

    By Jensen's inequality a larger C counts as its range's first, times C over that.
    """
    mean = reports * tell
    reach = 12 * math.sqrt(mean * (1 - tell)) + 100  # by Bernstein's inequality
    low, high = max(1, math.floor(mean - reach)), min(reports, math.ceil(mean + reach))
    numbers = np.arange(low, high + 1, dtype=float)
    masses = numbers * np.exp(log_binomial(numbers, reports, tell)) * (1 + MARGIN)
    counted = masses > _BEYOND / (2 * reports)
    numbers, masses = numbers[counted], masses[counted]
    starts = np.arange(0, len(numbers), max(1, -(-len(numbers) // _CELLS)))
    first = numbers[starts]
    last = np.append(numbers[starts[1:] - 1], numbers[-1])
    return first, last, np.add.reduceat(masses, starts) / first


def _merged(weights: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The same by rows on fewer values, some deviations apart: each weight moves to its two neighbours."""
    if weights.size <= _MANY:
        return weights, np.broadcast_to(values, weights.shape)
    masses = weights.sum(axis=0)
    mean = float(masses @ values) / float(masses.sum())
    spread = math.sqrt(float(masses @ (values - mean) ** 2) / float(masses.sum()))
    low, high = float(values.min()), float(values.max())
    inner = np.arange(mean - _REACH * spread, mean + _REACH * spread, _NODES / 2 * spread)
    nodes = np.unique(np.concatenate([[low], np.clip(inner, low, high), [high]]))
    at = np.clip(np.searchsorted(nodes, values, side="right") - 1, 0, len(nodes) - 2)
    upper = np.clip((values - nodes[at]) / (nodes[at + 1] - nodes[at]), 0.0, 1.0)
    moved = np.zeros((values.size, len(nodes)))
    moved[np.arange(values.size), at] = 1 - upper
    moved[np.arange(values.size), at + 1] += upper
    total = weights @ moved * (1 + MARGIN)
    return total, np.broadcast_to(nodes, total.shape)


def _nodes(trials: Floats, share: float) -> Floats:
    """Whole numbers between which a binomial's mass is moved outwards, from 0 to the most there are."""
    most = float(trials.max())
    means = trials * share
    spread = math.sqrt(most * share * (1 - share))
    low, high = float(means.min()) - _REACH * spread, float(means.max()) + _REACH * spread
    inner = np.arange(low, high, 1.0 if high - low <= _WHOLE else max(1.0, _NODES * spread))
    ends = [[0.0], np.clip(np.floor(inner), 0, most), [most]]
    return np.asarray(np.unique(np.concatenate(ends)))


def _weights(trials: Floats, share: float, nodes: Floats) -> Floats:
    """E[hat(X)] for X binomial(trials, share) and each node's hat, along the last axis.

    A convex function is at most what is linear between its values at the nodes, and that has these weights.
    They are second differences of E[(X - node)+], or of E[(node - X)+] where that is the smaller one.
    """
    counts, places = np.broadcast_arrays(trials, nodes)
    if share <= 0 or len(nodes) == 1:
        return np.asarray((places == 0).astype(float))
    mean = counts * share
    over, under = _excess(counts, share, places, 1), _excess(counts, 1 - share, counts - places, 1)
    over, under = (
        np.where(places < mean, under + mean - places, over),
        np.where(places < mean, under, over + places - mean),
    )
    ends, widths = np.ones_like(mean[..., :1]), np.diff(nodes)
    rising, falling = np.diff(under, axis=-1) / widths, np.diff(over, axis=-1) / widths
    left = np.diff(np.concatenate([0 * ends, rising, ends], axis=-1), axis=-1)
    right = np.diff(np.concatenate([-ends, falling, 0 * ends], axis=-1), axis=-1)
    return np.maximum(np.where(places < mean, left, right), 0.0) * (1 + MARGIN)


def _crossing(profile: Callable[[float], float], most: float, delta: float) -> tuple[float, float]:
    """Two epsilons near each other, the profile being above delta at the first and not at the second.

    By the logarithm of the profile, which is nearly straight, and by halves where that is slow.
    """
    low, high = 0.0, most
    at_low = profile(0.0)
    if at_low <= delta:
        return 0.0, 0.0
    at_high = profile(most)
    if at_high > delta:
        return most, most
    for turn in range(200):
        if high - low <= _CLOSE * high:
            break
        share = 0.5
        if turn % 3 and at_high > 0:
            share = min(max(math.log(at_low / delta) / math.log(at_low / at_high), 1e-3), 1 - 1e-3)
        middle = low + share * (high - low)
        value = profile(middle)
        if value <= delta:
            high, at_high = middle, value
        else:
            low, at_low = middle, value
    return low, high
