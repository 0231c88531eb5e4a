"""The best that somebody can do who chooses each charge from the answers before it, by enumeration."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from sourdine.accounting import Spend
from sourdine.core.distance import Distance, Neighbours
from sourdine.mechanisms import FinitePair


class Question(NamedTuple):
    """The chances of each answer with a unit and without it."""

    with_unit: tuple[Fraction, ...]
    without: tuple[Fraction, ...]

    @property
    def spend(self) -> Spend:
        """What a ledger is charged for it."""
        pair = FinitePair(first=self.with_unit, second=self.without)
        return Spend(mechanism=pair, distance=Distance.hamming(neighbours=Neighbours.ADD_REMOVE))

    @property
    def reversed(self) -> "Question":
        """The same where the unit is taken out."""
        return Question(self.without, self.with_unit)


def question(*chances: tuple[str, str]) -> Question:
    """A question from the chances of its answers, as texts."""
    return Question(*(tuple(map(Fraction, side)) for side in zip(*chances, strict=True)))


def most_delta(
    questions: Sequence[Question], accepts: Callable[[tuple[int, ...]], bool], epsilon: float
) -> float:
    """The largest delta at epsilon of anybody who asks while `accepts` takes how often each was asked.

    The next question may depend on all answers so far, and so may the end. In both directions.
    """
    return max(
        _most_delta(tuple(questions), accepts, epsilon),
        _most_delta(tuple(each.reversed for each in questions), accepts, epsilon),
    )


def _most_delta(
    questions: tuple[Question, ...], accepts: Callable[[tuple[int, ...]], bool], epsilon: float
) -> float:
    places = [(asked, answer) for asked, each in enumerate(questions) for answer in range(len(each.without))]
    chance = [float(questions[asked].with_unit[answer]) for asked, answer in places]
    other = [float(questions[asked].without[answer]) for asked, answer in places]
    log_ratio = [
        -math.inf if not q else math.log(q / p) if p else 0.0 for p, q in zip(chance, other, strict=True)
    ]
    accepted = cache(accepts)

    @cache
    def best(answers: tuple[int, ...]) -> float:
        """The most of (P - e^epsilon Q)+ over P, once each answer came so often."""
        ratio = sum(count * log_ratio[place] for place, count in enumerate(answers) if count)
        value = max(0.0, -math.expm1(min(epsilon + ratio, 1.0)))
        asked = [0] * len(questions)
        for place, count in enumerate(answers):
            asked[places[place][0]] += count
        for number in range(len(questions)):
            asked[number] += 1
            if accepted(tuple(asked)):
                going_on = 0.0
                for place, (of, _) in enumerate(places):
                    if of == number and chance[place]:
                        after = list(answers)
                        after[place] += 1
                        going_on += chance[place] * best(tuple(after))
                value = max(value, going_on)
            asked[number] -= 1
        return value

    return best((0,) * len(places))
