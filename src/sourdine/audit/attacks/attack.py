"""What an attack is, and what it found: on a target without protection, and on the same with it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from sourdine.audit import binomial
from sourdine.audit.attacks.own_table import OwnTable
from sourdine.core.random.bits import Bits

BETA = 1e-6  # how rarely chance alone may turn a verdict


class Arm(StrEnum):
    """The series of a chart that mean the same in all attacks."""

    UNPROTECTED = "without protection"
    PROTECTED = "with protection"
    MOST = "the most that protection allows"
    BLIND = "seeing nothing"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How often an attack was right about one target.

    >>> Outcome(target="exact answers", hits=9, tries=10).success
    0.9
    """

    target: str
    hits: int
    tries: int

    @property
    def success(self) -> float:
        """The share of tries in which it was right."""
        return self.hits / self.tries

    @property
    def lower(self) -> float:
        """The probability of being right is below this once in a million runs at most."""
        return binomial.least(self.hits, self.tries, BETA)


class ChartPoint(NamedTuple):
    """One point of a chart; a place in words makes bars, a number makes lines.

    A share that was counted in random trials says in how many, for an interval around it.
    """

    series: str
    place: str | float
    value: float
    tries: int | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Where the probability lies with 95 % confidence; the value itself if nothing random is in it.

        >>> low, high = ChartPoint(Arm.PROTECTED, 1.0, 0.5, 100).interval
        >>> round(low, 3), round(high, 3)
        (0.398, 0.602)
        """
        if self.tries is None:
            return self.value, self.value
        hits = round(self.value * self.tries)
        return binomial.least(hits, self.tries, 0.025), binomial.most(hits, self.tries, 0.025)


@dataclass(frozen=True, kw_only=True)
class AttackChart:
    """The data of a chart under a title that says what it shows; axes name their units."""

    finding: str
    across: str
    up: str
    points: tuple[ChartPoint, ...]
    log: bool = False
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """What an attack found.

    `chance` is the success of somebody who sees nothing, and `limit` the most that the protection allows any
    attack of this kind, by a theorem; `guess` and `why` say both in words.
    """

    name: str
    attacked: str
    goal: str
    unprotected: Outcome
    protected: Outcome
    chance: float
    guess: str
    limit: float
    why: str
    finding: str
    lesson: str
    charts: tuple[AttackChart, ...]
    own: bool = False
    """Whether it is about somebody's own table: then all of it tells about that table, and is not private."""

    @property
    def succeeds(self) -> bool:
        """Whether the target without protection falls: above chance, and above what protection allows."""
        return self.unprotected.lower > max(self.chance, self.limit)

    @property
    def stopped(self) -> bool:
        """Whether nothing that was seen contradicts the limit of the protection."""
        return self.protected.lower <= self.limit


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A demonstration on made-up people, repeatable by its bits; some also attack a table of one's own."""

    name: str
    title: str
    run: Callable[[Bits], AttackResult]
    run_on: Callable[[OwnTable, Bits], AttackResult] | None = None


def percent(share: float) -> str:
    """A share as people read it; certainty and nothing are said only where they are exact.

    >>> [percent(share).split()[0] for share in (0.4567, 0.99996, 1 / 60_000, 1.0)]
    ['45.7', '99.9', '0.0017', '100']
    """
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"
    text = f"{min(100 * share, 99.9):.1f}" if share >= 0.0005 else f"{100 * share:.2g}"
    return f"{text}\N{NO-BREAK SPACE}%"


def own_result(
    own: OwnTable,
    *,
    name: str,
    attacked: str,
    unprotected: Outcome,
    protected: Outcome,
    epsilon: Fraction,
    lesson: str,
) -> AttackResult:
    """What an attack on somebody's own table found, beside a guess by the share alone."""
    limit, goal = own.limit(epsilon), f"right guesses whether '{own.words}'"
    return AttackResult(
        name=name,
        attacked=attacked,
        goal=goal,
        unprotected=unprotected,
        protected=protected,
        chance=own.guess,
        guess="the share alone",
        limit=limit,
        why=f"epsilon {float(epsilon):g}",
        finding=f"{percent(unprotected.success)} right without protection, "
        f"{percent(protected.success)} with it",
        lesson=lesson,
        charts=(
            AttackChart(
                finding="Your own table, without protection and with it",
                across=goal,
                up="target",
                points=(
                    ChartPoint(Arm.UNPROTECTED, unprotected.target, unprotected.success, unprotected.tries),
                    ChartPoint(Arm.PROTECTED, protected.target, protected.success, protected.tries),
                    ChartPoint(Arm.MOST, f"epsilon {float(epsilon):g}, at most", limit),
                    ChartPoint(Arm.BLIND, "the share alone", own.guess),
                ),
            ),
        ),
        own=True,
    )
