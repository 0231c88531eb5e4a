"""How far an audit can see: the largest epsilon that so many samples can show."""

import math


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
