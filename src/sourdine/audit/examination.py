"""Everything that answers alone can show of an example: its epsilon, its law, and ties between answers."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from numpy.typing import ArrayLike

from sourdine.audit import textbook
from sourdine.audit.independence import independent
from sourdine.audit.lower_bound import (
    FALSE_ALARM,
    LEAST_SAMPLES,
    MOST_SAMPLES,
    AnswerSplit,
    LowerBound,
    bound_of,
    draw_parts,
)
from sourdine.audit.outcomes import Tally, count_codes, merge, same_laws, tally
from sourdine.audit.representation import Inspection, representation_fault
from sourdine.core import check
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.testing import SeededBits

SAMPLES = 10**6
_CHUNK = 1 << 18  # answers of a textbook's that are drawn at once
_NO_REFERENCE = (
    "The distribution of {} was not checked, since no reference sampler of it is known. "
    "Pass an example of a mechanism with the same distribution as 'honest'."
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How an examination ended.

    `law` is the p-value of the distribution that the mechanism states, on both neighbours together; None
    where no reference sampler is known, which `unchecked` then states. `ties` is the p-value of independent
    answers. `false_alarm` is the chance that an honest mechanism is accused of anything: half of it goes to
    the bound, a quarter to each test. `representation` names what bits, types or layouts of answers show
    beside their values; it is empty for every honest mechanism, whatever is drawn.
    """

    bound: LowerBound
    law: float | None
    ties: float
    false_alarm: float
    representation: str = ""
    unchecked: str = ""

    @property
    def caught_by(self) -> str | None:
        """What showed a fault: "audit", "representation", "independence test", "law test" or nothing."""
        if self.bound.exceeded:
            return "audit"
        if self.representation:
            return "representation"
        if self.ties < self.false_alarm / 4:
            return "independence test"
        return "law test" if self.law is not None and self.law < self.false_alarm / 4 else None


def examine(
    example: Example,
    *,
    honest: Example | None = None,
    samples: int = SAMPLES,
    false_alarm: float = FALSE_ALARM,
    bits: Bits = SYSTEM,
) -> Verdict:
    """Audit an example, compare its law with a textbook's, and look for ties between its answers.

    With an `honest` example, that one's law is the one to compare with.

    >>> from sourdine.mechanisms import Laplace
    >>> examine(next(Laplace.examples()), samples=10_000).caught_by is None
    True
    """
    false_alarm = float(check.inside("an audit", "false_alarm", false_alarm, 0, 1))
    samples = check.integer("an audit", "samples", samples, LEAST_SAMPLES, MOST_SAMPLES)
    inspections = [Inspection((honest or example).mechanism) for _ in range(2)]
    first, second = (each.of(example) for each in inspections)
    parts = draw_parts(first, samples, bits, second)
    bound = bound_of(example, parts, false_alarm=false_alarm / 2)
    law = _law(parts, example, honest, 2 * samples, bits)
    inputs = ((first, example.value), (second, example.neighbour))
    ties = min(1.0, 2 * min(independent(one, value, bits) for one, value in inputs))
    return Verdict(
        bound=bound,
        law=law,
        ties=ties,
        false_alarm=false_alarm,
        representation=representation_fault(*inspections),
        unchecked="" if law is not None else _NO_REFERENCE.format(type(example.mechanism).__name__),
    )


def in_order(tasks: Sequence[Callable[[Bits], Verdict]], seed: int | None = None) -> Iterator[Verdict]:
    """The verdicts of several examinations, on all cores; with a seed, each has bits of its own."""
    sources = [SYSTEM if seed is None else SeededBits((seed << 32) + place) for place in range(len(tasks))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda task, bits: task(bits), tasks, sources)


def _law(
    parts: AnswerSplit, example: Example, honest: Example | None, count: int, bits: Bits
) -> float | None:
    """The p-value of the stated law on both neighbours: a textbook's, or else that of the honest example."""
    stated = honest or example
    inputs = (stated.value, stated.neighbour)
    if textbook.known(stated.mechanism):
        others = [_textbook(stated, each, count, bits) for each in inputs]
    elif honest is not None:
        others = [tally(honest, each, count, bits) for each in inputs]
    else:
        return None
    return same_laws([(parts.whole(side), other) for side, other in enumerate(others)])


def _textbook(example: Example, value: ArrayLike, count: int, bits: Bits) -> Tally:
    sizes = [min(_CHUNK, count - start) for start in range(0, count, _CHUNK)]
    samples = (textbook.draw(example.mechanism, value, size, bits) for size in sizes)
    return merge(*(count_codes(example.code(answers)) for answers in samples))
