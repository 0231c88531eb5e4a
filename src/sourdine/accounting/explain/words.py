"""Guarantees in words: odds and natural frequencies, which people judge best (Nanayakkara et al. 2023).

Numbers are shortened to the safe side: an upper bound is rounded up, a lower one down.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.explain.explanation import Explanation
from sourdine.core.distance import Neighbours
from sourdine.core.format import plain, shorten_down, shorten_up

_YOU = {
    Neighbours.ADD_REMOVE: "you were in the data",
    Neighbours.REPLACE: "your record is the one they suspect, and not another one they name",
    Neighbours.ZERO_OUT: "your record was used",
}
_IT = {
    Neighbours.ADD_REMOVE: "a given {unit} was in the data",
    Neighbours.REPLACE: "a given {unit} is the one they suspect, and not another one they name",
    Neighbours.ZERO_OUT: "a given {unit} was used",
}
_MOST_OF, _MOST_OF_SMALL = 10**4, 10**12  # what a large or a small share is told of
_EXPONENT = 13.0  # factors above e^13 are not worth their digits
_ROUNDING = 1e-6  # of one case: 0.01 is 1 of 100, whatever floats make of it
_GAP = "\N{NO-BREAK SPACE}"
_LARGE_EPSILON, _LARGE_DELTA = 20, 1e-3  # above these a slip of the pen is likelier than a wish
_HARDLY = 0.99  # an attack as accurate as this is not stopped
_NEAR = 0.6  # an attack less accurate than this is told from a coin by thousandths


@dataclass(frozen=True)
class Frequency:
    """So many of so many."""

    many: int
    of: int

    def __str__(self) -> str:
        return f"{self.many:,} of {self.of:,}"


def at_most(share: float, least_of: int = 100) -> Frequency:
    """A share as a natural frequency that is not below it, of 100 or of a power of ten that shows it.

    >>> str(at_most(0.7632)), str(at_most(0.0155)), str(at_most(0.01)), str(at_most(0.532974, 1000))
    ('77 of 100', '16 of 1,000', '1 of 100', '533 of 1,000')
    """
    of = max(least_of, _of(share))
    return _reduced(max(math.ceil(share * of - _ROUNDING), int(share > 0)), of, least_of)


def at_least(share: float) -> Frequency:
    """A share as a natural frequency that is not above it.

    >>> str(at_least(0.2368))
    '23 of 100'
    """
    of = _of(share)
    return _reduced(math.floor(share * of + _ROUNDING), of, 100)


def suspicion(explanation: Explanation) -> str:
    """What an attacker wants to know."""
    if explanation.unit == "person":
        return _YOU[explanation.neighbours]
    return _IT[explanation.neighbours].format(unit=explanation.unit)


def odds(explanation: Explanation) -> str:
    """How far odds can move."""
    factor = f"e^{shorten_up(explanation.reach, 3)}"
    if explanation.reach < _EXPONENT:
        factor = f"{float(shorten_up(math.exp(explanation.reach), 3)):,g}"
    sentence = (
        f"hatever somebody believed before, the odds that {suspicion(explanation)} are multiplied by at most "
        f"{factor}, or divided by as much."
    )
    return f"In the same cases, w{sentence}" if explanation.chance else f"W{sentence}"


def beliefs(explanation: Explanation, prior: Fraction | float = Fraction(1, 2)) -> str:
    """From one belief to the next."""
    bounds = explanation.posterior(prior)
    before, low, high = at_most(float(prior)), at_least(bounds.lower), at_most(bounds.upper)
    chances = [f"{each.many:,} chances in {each.of:,}" for each in (before, high, low)]
    return say_beliefs(explanation, *chances)


def say_beliefs(explanation: Explanation, before: str, most: str, least: str) -> str:
    """The sentence about beliefs, with any numbers in it."""
    return _except(
        explanation,
        f"somebody who gave it {before} that {suspicion(explanation)} gives it at most {most} afterwards, "
        f"and at least {least}.",
    )


def moved(bounds: Bracket) -> str:
    """How far a belief moves, in the same numbers as in the sentence about it.

    >>> from sourdine.accounting.explain import posterior_bounds
    >>> moved(posterior_bounds(0.5, 1))
    '26 and 74 in 100'
    """
    low, high = at_least(bounds.lower), at_most(bounds.upper)
    if low.of == high.of:
        return f"{low.many:,} and {high.many:,} in {high.of:,}"
    return f"{low.many:,} in {low.of:,} and {high.many:,} in {high.of:,}"


def best_guess(explanation: Explanation) -> Frequency:
    """How often the best attack is right: of 100 as beliefs are told, of 1,000 where it is near a coin."""
    accuracy = explanation.curve.accuracy()
    return at_most(accuracy, 1000 if accuracy < _NEAR else 100)


def guesses(explanation: Explanation) -> str:
    """How often the best attack is right."""
    best = best_guess(explanation)
    return (
        f"The best possible attack, on cases of which half are true, is right in at most {best}; "
        f"a coin is right in {best.of // 2:,}."
    )


def alarms(explanation: Explanation, false_positives: float = 0.01) -> str:
    """How many true cases an attack finds that may raise few false alarms."""
    hits = at_most(float(explanation.curve.true_positives(false_positives)))
    false = at_most(false_positives)
    blind = round(false_positives * hits.of, 9)
    return (
        f"An attack that raises a false alarm in {false} cases finds at most {hits} true ones; "
        f"a blind one finds {blind:,g}."
    )


def about_delta(explanation: Explanation) -> str:
    """What delta is not."""
    epsilon, curve = explanation.epsilon.upper, explanation.curve
    above, far = (plain(float(shorten_up(curve.exceeding(epsilon + more), 2))) for more in (0, 1))
    return (
        f"δ = {plain(explanation.delta)} is not the probability that the loss of an answer exceeds ε. From "
        f"what is known here, that probability may be as large as {above}; but that the loss exceeds ε + 1 "
        f"has a probability of at most {far}."
    )


def hardly(explanation: Explanation) -> str:
    """A warning where a guarantee says next to nothing."""
    return (
        "By itself this guarantee stops hardly anybody: it allows an attack that is nearly always right. "
        "Whether such an attack exists is another question; nothing here excludes it."
        if explanation.curve.accuracy() > _HARDLY
        else ""
    )


def doubts(epsilon: float, delta: float | None = None) -> tuple[str, ...]:
    """What to ask about a budget before it is set down, such as an epsilon of 100; mostly nothing.

    >>> doubts(3, 1e-6)
    ()
    >>> print(doubts(100)[0][:66])
    An epsilon of 100 promises almost nothing: the odds about anybody
    >>> print(doubts(1, 0.1)[0])
    A delta of 0.1 would even allow publishing the whole record of 1 person in 10. Is that intended? Take one
    far below 1 divided by the number of people, such as 1e-6.
    """
    questions = []
    if epsilon > _LARGE_EPSILON:
        questions.append(
            f"An epsilon of {plain(epsilon)} promises almost nothing: the odds about anybody may grow by a "
            f"factor of e^{plain(epsilon)}. Is that intended? Most published releases use 10 or less."
        )
    if delta is not None and delta > _LARGE_DELTA:
        questions.append(
            f"A delta of {plain(delta)} would even allow publishing the whole record of 1 person in "
            f"{plain(round(1 / delta))}. Is that intended? Take one far below 1 divided by the number of "
            "people, such as 1e-6."
        )
    return tuple(questions)


def sentences(explanation: Explanation, prior: Fraction | float = Fraction(1, 2)) -> tuple[str, ...]:
    """The guarantee in a few sentences, the most telling first.

    >>> from sourdine.accounting.explain.explanation import explain_guarantee
    >>> print(sentences(explain_guarantee(1.17))[0])
    Somebody who gave it 50 chances in 100 that you were in the data gives it at most 77 chances in 100
    afterwards, and at least 23 chances in 100.
    """
    texts = [beliefs(explanation, prior), odds(explanation), guesses(explanation), alarms(explanation)]
    if explanation.delta > 0:
        texts.append(about_delta(explanation))
    return tuple(sentence for sentence in (*texts, hardly(explanation)) if sentence)


def percent_up(share: float, digits: int = 4) -> str:
    """A share in per cent, rounded up."""
    return f"{shorten_up(100 * share, digits)}{_GAP}%"


def percent_down(share: float, digits: int = 4) -> str:
    """A share in per cent, rounded down."""
    return f"{shorten_down(100 * share, digits)}{_GAP}%"


def money_up(amount: float) -> str:
    """A sum in hundredths, rounded up.

    >>> money_up(2020.1003)
    '2,020.11'
    """
    return f"{math.ceil(100 * amount - _ROUNDING) / 100:,.2f}"


def _of(share: float) -> int:
    """100, or the power of ten in which a small share, or what a large one lacks, has two digits."""
    rare = min(share, 1 - share)
    if rare <= 0:
        return 100
    of: int = 10 ** max(2, 1 - math.floor(math.log10(rare)))
    return min(of, _MOST_OF if share > 0.5 else _MOST_OF_SMALL)


def _reduced(count: int, of: int, least_of: int) -> Frequency:
    while count % 10 == 0 and of > least_of:
        count, of = count // 10, of // 10
    return Frequency(count, of)


def _except(explanation: Explanation, sentence: str) -> str:
    if explanation.chance == 0:
        return sentence[0].upper() + sentence[1:]
    rare = at_most(explanation.chance)
    return f"In all but {rare} cases at most, {sentence}"
