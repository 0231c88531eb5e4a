"""A privacy loss moved to a few points, once so that it surely costs more and once so that it costs less.

The profile delta(x), with x = e^epsilon, is convex. Between neighbouring points a chord lies above it and a
tangent below it.

*Above*: chords, in `core.composed`.

*Below*: each bin reaches from one middle of two points to the next, and is first merged into one atom,
which loses information. With the excess e = p - x q, an atom above its point (e > 0) is replaced by mass at
its point and a little negative mass at the point below, one below its point by mass at its point and a
little negative mass at the point above, such that p and q are kept. Either way its part of delta falls, or
stays, everywhere. The masses of all bins together must not be negative: where a neighbour has too little to
lend, an atom is rounded down to a point instead. So the sum is a law with a lower profile
(docs/guarantees/pld.md).

Every mass is pushed to the safe side by more than floats can err.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sourdine.core.composed import difference
from sourdine.core.distributions import Floats, LossDistribution, Pair

_END = 8  # how many points from an end of the law its outermost atom may lie
_GRID = np.linspace(0.0, 1.0, 65)
_TURNS = 30  # how often shares are cut before everything is rounded
SHIFT = 1e-13  # the points of `below` stand this much lower than they say, so that rounding cannot raise one


def below(law: LossDistribution, losses: Floats) -> Floats:
    """Masses at these losses less SHIFT, of a law whose profile is nowhere above."""
    p, q, slack_p, slack_q = _bins(law, _edges(law, losses))
    x = np.exp(losses - SHIFT)
    p, q = np.maximum(p - slack_p, 0), q + slack_q
    return _settle(p, q, x) * x


def bin_around(law: LossDistribution, loss: float, width: float) -> tuple[float, float]:
    """The masses under P and Q of the bin of this width around a loss."""
    p, q, _, _ = _bins(law, np.array([loss - width / 2, loss + width / 2]))
    return float(p[0]), float(q[0])


def _edges(law: LossDistribution, losses: Floats) -> Floats:
    """The middles between points, but for the ends of the law: there the outermost atom lies on a point.

    A law may begin or end where it is dense, and there is nobody to borrow from beyond its end.
    """
    edges = np.concatenate([[-np.inf], (losses[1:] + losses[:-1]) / 2, [np.inf]])
    head, tail = losses[:_END], losses[-_END:]
    atoms = _log_ratio(law.cumulative(head))
    reach = np.flatnonzero((atoms[1:] >= head[:-1]) & (head[:-1] > law.lowest))
    if len(reach):
        j = int(reach[0])
        edge = _cut(lambda at: _log_ratio(law.cumulative(at)) <= losses[j], losses[j + 1], losses[j])
        edges[: j + 1], edges[j + 1] = -np.inf, edge
    atoms = _log_ratio(law.survival(tail))
    reach = np.flatnonzero((atoms[:-1] <= tail[1:]) & (tail[1:] < law.highest))
    if len(reach):
        j = len(losses) - len(tail) + int(reach[-1]) + 1
        edge = _cut(lambda at: _log_ratio(law.survival(at)) >= losses[j], losses[j - 1], losses[j])
        edges[j], edges[j + 1 :] = edge, np.inf
    return edges


def _log_ratio(masses: Pair) -> Floats:
    return np.where(masses.p > 0, np.log(np.maximum(masses.p, 1e-300) / np.maximum(masses.q, 1e-300)), np.nan)


def _cut(good: Callable[[Floats], NDArray[np.bool_]], start: float, end: float) -> float:
    """The place nearest to the start where it is good, between a start and an end."""
    for _ in range(3):
        grid = start + (end - start) * _GRID
        grid[-1] = end
        k = int(np.argmax(good(grid)))
        start, end = grid[max(k - 1, 0)], grid[k]
    return float(end)


def _settle(p: Floats, q: Floats, x: Floats) -> Floats:
    """Masses under Q of atoms (p, q) settled on the points x, none of them negative.

    Of an atom whose lender has too little, only a part is settled by a loan; the rest is rounded down, to the
    highest point that is neither above the atom nor above its own: the outermost bin may hold a much lower
    atom than its point says.
    """
    here = np.arange(len(x))
    gap = np.diff(x)
    high = p > x * q
    side = np.where(high, -1, 1)
    loan = np.abs(p - x * q) / np.concatenate([gap[:1], gap, gap[-1:]])[here + (side + 1) // 2]
    lender = np.clip(here + side, 0, len(x) - 1)
    part = (lender != here) * 1.0
    down = np.minimum(np.searchsorted(x, p / np.maximum(q, 1e-300), side="right") - 1, here)
    rounded = np.where(down < 0, 0.0, p / x[down])  # below all points it counts for nothing
    for turn in range(_TURNS):
        own = part * (q + loan) + np.bincount(np.maximum(down, 0), (1 - part) * rounded, minlength=len(x))
        loans = np.bincount(lender, part * loan, minlength=len(x))
        short = loans > own
        if not short.any():
            return own - loans  # type: ignore[no-any-return]
        cut = np.where(short, own / np.where(short, loans, 1.0) * (1 - 1e-9), 1.0)
        part *= np.where(loan > 0, cut[lender] if turn < _TURNS - 2 else ~short[lender], 1.0)
    return np.bincount(np.maximum(down, 0), rounded, minlength=len(x)).astype(np.float64)


def _bins(law: LossDistribution, edges: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Masses under P and Q of (edge, next edge], and how far floats may err in them."""
    over, under = law.both(edges)
    p, slack_p = difference(over.p, under.p)
    q, slack_q = difference(over.q, under.q)
    return p, q, slack_p, slack_q
