"""An empirical lower bound on epsilon: how surely one event tells two neighbours apart.

So many samples can show an epsilon of so much and no more, which is told too: how far an audit can see.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sourdine.audit import binomial
from sourdine.audit.outcomes import Integers, Tally, align, merge, tally
from sourdine.core import check
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import SYSTEM, Bits

LEAST_SAMPLES = 1000
MOST_SAMPLES = 10**9
DELTA = 1e-3  # where a mechanism without a pure epsilon is compared with its claim
FALSE_ALARM = 1e-6
_FAR = 4096.0  # no epsilon beyond this is looked for
_SHRUNK = (0.5, 16.0)  # added to counts before they are divided, so that a few hits are no large ratio
_TRIED = 256  # lengths of events, short ones and long ones


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    """What an audit found: epsilon is at least `audited`, with the stated confidence.

    `claimed` is the epsilon the mechanism states at the same delta. `event` is how many codes make up the
    event that tells the neighbours apart. `samples` counts the answers drawn for each neighbour.
    """

    claimed: float
    audited: float
    delta: float
    event: int
    confidence: float
    samples: int

    @property
    def exceeded(self) -> bool:
        """Whether the claim is surely false."""
        return self.audited > self.claimed


class AnswerSplit(NamedTuple):
    """Answers for both neighbours: to order the outcomes by, to choose an event by, and to confirm it."""

    sizes: tuple[int, ...]
    tallies: tuple[tuple[Tally, ...], ...]

    def whole(self, side: int) -> Tally:
        """All the answers for one neighbour, 0 or 1."""
        return merge(*(pair[side] for pair in self.tallies))


class _Counts(NamedTuple):
    """Counts per code for both neighbours, p and q, among the same number of answers each."""

    p: Integers
    q: Integers
    trials: int

    def swapped(self) -> "_Counts":
        return _Counts(self.q, self.p, self.trials)


def bound_epsilon(
    example: Example,
    *,
    samples: int = 10**6,
    delta: float | None = None,
    false_alarm: float = FALSE_ALARM,
    bits: Bits = SYSTEM,
) -> LowerBound:
    """Audit one example: draw answers for both neighbours, choose an event, and bound its two chances.

    An (epsilon, delta)-DP mechanism has P[S] <= e^epsilon Q[S] + delta for every event S, so epsilon is at
    least ln((P[S] - delta)/Q[S]). The event is chosen on the first half of the answers: a quarter orders
    the codes by likelihood ratio, another tells how many of them to take (or which tail). The second half
    bounds both chances by Clopper and Pearson, independently of the choice. Both directions are tried, and
    the chance that any of the four bounds fails is at most `false_alarm`.

    Without a delta, it is that of the claim: 0 for a pure epsilon, and at least 1/1000 where there is none.

    >>> from sourdine.mechanisms import Laplace
    >>> bound_epsilon(next(Laplace.examples()), samples=10_000).exceeded
    False
    """
    return bound_of(example, draw_parts(example, samples, bits), delta=delta, false_alarm=false_alarm)


def draw_parts(example: Example, samples: int, bits: Bits, neighbour: Example | None = None) -> AnswerSplit:
    """Answers for both neighbours, in the three parts that an audit needs.

    Those for the second may be drawn from another example, such as one that keeps a record of answers.
    """
    whole = check.integer("an audit", "samples", samples, LEAST_SAMPLES, MOST_SAMPLES)
    sizes = (whole // 4, whole // 4, whole - 2 * (whole // 4))
    inputs = ((example, example.value), (neighbour or example, example.neighbour))
    return AnswerSplit(sizes, tuple(tuple(tally(one, v, n, bits) for one, v in inputs) for n in sizes))


def bound_of(
    example: Example, parts: AnswerSplit, *, delta: float | None = None, false_alarm: float = FALSE_ALARM
) -> LowerBound:
    """The bound that drawn answers show, as by `bound_epsilon`."""
    return bound_of_loss(
        example.mechanism.loss(example.distance), parts, delta=delta, false_alarm=false_alarm
    )


def bound_of_loss(
    loss: PrivacyLoss, parts: AnswerSplit, *, delta: float | None = None, false_alarm: float = FALSE_ALARM
) -> LowerBound:
    """The same for a loss that is claimed of whatever gave the answers."""
    alarm = float(check.inside("an audit", "false_alarm", false_alarm, 0, 1))
    if delta is None:
        delta = max(float(loss.delta), 0.0 if math.isfinite(loss.epsilon) else DELTA)
    elif delta != 0:
        delta = float(check.inside("an audit", "delta", delta, 0, 1))
    rows = align(*(one for pair in parts.tallies for one in pair))
    order, choose, confirm = (_Counts(rows[2 * i], rows[2 * i + 1], n) for i, n in enumerate(parts.sizes))
    beta = alarm / 4
    directions = (
        _direction(order, choose, confirm, delta, beta),
        _direction(order.swapped(), choose.swapped(), confirm.swapped(), delta, beta),
    )
    audited, event = max(directions)
    return LowerBound(
        claimed=claim(loss, delta),
        audited=audited,
        delta=delta,
        event=event,
        confidence=1 - alarm,
        samples=sum(parts.sizes),
    )


def claim(loss: PrivacyLoss, delta: float) -> float:
    """The least epsilon a loss states at a delta, rounded up; infinite where it states none."""
    if delta < loss.delta:
        return math.inf
    if delta == 0 or loss.profile(_FAR) > delta:
        return float(loss.epsilon)
    low, high = 0.0, 1.0
    while loss.profile(high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if loss.profile(middle) > delta else (low, middle)
    return min(high, float(loss.epsilon))


def _direction(
    order: _Counts, choose: _Counts, confirm: _Counts, delta: float, beta: float
) -> tuple[float, int]:
    """The bound with p on top, and the size of its event."""
    event = _event(order, choose, confirm.trials, delta, beta)
    p = binomial.least(int(confirm.p[event].sum()), confirm.trials, beta)
    q = binomial.most(int(confirm.q[event].sum()), confirm.trials, beta)
    return (math.log((p - delta) / q) if p - delta > q else 0.0), len(event)


def _event(order: _Counts, choose: _Counts, trials: int, delta: float, beta: float) -> NDArray[np.intp]:
    """The best event: the codes of largest ratio, the lowest codes or the highest ones.

    Best is what would be shown if as many of the confirming trials hit, by the bounds that will be taken
    there: a code that comes once in 5,000 answers for one neighbour and never for the other counts. Codes
    that only the confirming part holds have no say in the choice, or its hits would not be binomial; they
    are in an event if they lie in its tail.
    """
    present = np.flatnonzero(order.p + order.q + choose.p + choose.q)
    whole, ascending = len(order.p), np.arange(len(present))
    ratios = [np.argsort((order.q[present] + c) / (order.p[present] + c), kind="stable") for c in _SHRUNK]
    lengths = _lengths(len(present))
    more = trials / choose.trials
    best, score = ascending[:0], -math.inf
    for place, codes in enumerate((ascending, ascending[::-1], *ratios)):
        p, _ = binomial.both(more * np.cumsum(choose.p[present[codes]])[lengths], trials, beta)
        _, q = binomial.both(more * np.cumsum(choose.q[present[codes]])[lengths], trials, beta)
        bounds = np.log(np.maximum(p - delta, 1e-300) / q)
        last = int(np.argmax(bounds))
        if bounds[last] > score:
            event, score = present[codes[: lengths[last] + 1]], float(bounds[last])
            tails = (np.arange(event[-1] + 1), np.arange(event[-1], whole))
            best = tails[place] if place < len(tails) else event
    return best


def _lengths(count: int) -> Integers:
    """Which events are tried, by the place of their last code: all short ones, and of long ones some."""
    if count <= _TRIED:
        return np.arange(count)
    long = np.geomspace(_TRIED, count - 1, _TRIED).astype(np.int64)
    return np.unique(np.concatenate([np.arange(_TRIED), long]))


def farthest(samples: int, alarm: float) -> float:
    """The bound of an audit whose event always happens for one neighbour and never for the other.

    Of m trials that all hit, Clopper and Pearson leave a chance of beta^(1/m) at least, and of m that all
    miss, 1 - beta^(1/m) at most; epsilon is at most the logarithm of their ratio. An audit bounds four
    chances, on half of its samples.

    >>> round(farthest(1000, 1e-6), 2), round(farthest(10**6, 1e-6), 2)
    (3.48, 10.4)
    """
    root = math.log(alarm / 4) / _confirming(samples)
    return root - math.log(-math.expm1(root))


def samples_for(epsilon: float, alarm: float) -> int:
    """How many samples can show an epsilon, rounded up to two digits.

    >>> samples_for(12, 1e-6)
    5000000
    """
    exact = 2 * math.log(4 / alarm) / math.log1p(math.exp(-epsilon)) + 4
    unit: int = 10 ** (math.floor(math.log10(exact)) - 1)
    return math.ceil(exact / unit) * unit


def _confirming(samples: int) -> int:
    """What is left when two quarters have chosen the event."""
    return samples - 2 * (samples // 4)
