"""One estimate from the reports of several periods, in each of which the same devices may report.

A device repeats its noise with its answer, so reports of different periods are not independent, and an
interval from their sum would be too narrow. Each period has an interval of its own, all of which hold
together by the union bound; so does the mean of their ends (docs/guarantees/collector.md).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sourdine.core.errors import InvalidParameter
from sourdine.local.estimate import Counts, Estimate
from sourdine.local.question import Question


def pooled_estimate(question: Question, periods: Sequence[Counts], confidence: float = 0.95) -> Estimate:
    """What the reports of some periods say together: the mean over all reports, whoever sent several.

    The interval holds at its confidence however the periods depend on each other. The variance is the largest
    that they can have: the standard errors add up.

    >>> from sourdine.local import GRR
    >>> from sourdine.testing import SeededBits
    >>> work = Question(name="work", oracle=GRR(epsilon=1, categories=2))
    >>> day = work.tally(work.oracle.pack(work.oracle.sample([0] * 600 + [1] * 400, SeededBits(1))))
    >>> day.reports, pooled_estimate(work, [day, day, day]).reports
    (1000, 3000)
    """
    some = [each for each in periods if each.reports]
    if not some:
        raise InvalidParameter("There are no reports to estimate from. Wait until some have come in.")
    level = 1 - (1 - confidence) / len(some)
    parts = [question.estimate(each, level) for each in some]
    reports = sum(each.reports for each in some)
    weights = [each.reports / reports for each in some]

    def mean(ends: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(sum(weight * each for weight, each in zip(weights, ends, strict=True)))

    if len(some) == 1:
        return replace(parts[0], confidence=confidence)
    return Estimate(
        mean([each.value for each in parts]),
        mean([np.sqrt(each.variance) for each in parts]) ** 2,
        mean([each.lower for each in parts]),
        mean([each.upper for each in parts]),
        reports,
        confidence,
        periods=len(some),
    )
