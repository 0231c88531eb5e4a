"""What batches that were really shuffled come to: the epsilon of one report in the smallest of them.

It is claimed only where each device sends one report ever. A report that is sent again in another batch, as
under a memo, is the same one, and its epsilons do not add up as those of fresh noise do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sourdine.collector.announcement import Announcement
from sourdine.core.format import shorten_up
from sourdine.local.question import Question
from sourdine.local.rappor.oracle import RapporOracle
from sourdine.local.shuffle import amplified_epsilon

KIND = "batch-"
"""How events of batches begin; their number of reports follows."""
DISHONEST = Fraction(1, 100)
"""The share of reports that may be made up: those hide nobody."""


@dataclass(frozen=True)
class BatchClaim:
    """How many batches came, of how many reports the smallest is, and what that makes of epsilon.

    `epsilon` is None where nothing is claimed beyond that of a single report.
    """

    count: int
    smallest: int
    delta: float
    epsilon: float | None

    @property
    def sentence(self) -> str:
        """The claim, in words for whoever is asked."""
        came = f"{self.count:,} {'batch' if self.count == 1 else 'batches'} came from the shuffler"
        if self.epsilon is None:
            return (
                f"{came}. Devices may report more than once, or there is no such theorem for this way of "
                "reporting: nothing is claimed beyond the ε of a report."
                if self.count
                else "No batch has come from the shuffler yet."
            )
        return (
            f"{came}, the smallest of {self.smallest:,} reports. Whoever sees only what it let through "
            f"learns at most ε = {shorten_up(self.epsilon)} about one answer, at δ = {self.delta:g}, if the "
            f"shuffler keeps to its rule and at most {100 * float(DISHONEST):g} % of reports are made up. "
            "Against the shuffler itself it is the ε of a report."
        )

    def to_json(self) -> dict[str, object]:
        """The same for machines."""
        return {
            "batches": self.count,
            "smallest": self.smallest,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "dishonest": float(DISHONEST),
        }


def claim_of_batches(
    announcement: Announcement, events: Mapping[tuple[int, str], int], number: int
) -> BatchClaim:
    """The batches of a question, as its events tell."""
    sizes = {
        int(kind.removeprefix(KIND)): count
        for (each, kind), count in events.items()
        if each == number and kind.startswith(KIND)
    }
    smallest, count = min(sizes, default=0), sum(sizes.values())
    delta = float(announcement.delta)
    claimed = (
        count > 0 and announcement.is_once and not isinstance(announcement.question.oracle, RapporOracle)
    )
    epsilon = _amplified(announcement.question, honest(smallest), delta) if claimed else None
    return BatchClaim(count, smallest, delta, epsilon)


def honest(reports: int) -> int:
    """Of so many reports, how many are taken for honest, the one in question among them."""
    return max(1, reports - -(-reports * DISHONEST.numerator // DISHONEST.denominator))


@lru_cache(maxsize=256)
def _amplified(question: Question, reports: int, delta: float) -> float:
    return amplified_epsilon(question.oracle, reports, delta)
