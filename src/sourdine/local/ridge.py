"""Numbers to read reports as, so that their mean is nearly that of the true places.

Noise inside a range has a mean that is no straight line in the true place, so no factor mends it. Scores of
the codes may do so exactly, but their variance then grows with the places without limit.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Scores(NamedTuple):
    """A score for each code, and at each true place the bias of a report's score and its variance."""

    codes: Floats
    bias: Floats
    variance: Floats


def ridge_scores(channel: Floats, places: Floats, ridges: Sequence[float], reports: int) -> Iterator[Scores]:
    """For each ridge r the scores of least squared bias + r variance / reports, over all places alike.

    `channel` has the law of the codes, a row for each place.
    """
    flat = channel.mean(axis=0)
    square, target = channel.T @ channel / len(channel), channel.T @ places / len(channel)
    for ridge in ridges:
        codes = np.asarray(np.linalg.solve(square + np.diag(flat * ridge / reports), target), np.float64)
        mean = channel @ codes
        yield Scores(codes, mean - places, channel @ codes**2 - mean**2)
