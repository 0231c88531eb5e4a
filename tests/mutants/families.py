"""Two faults that any mechanism may have: answers used twice in a call, and an epsilon above what is paid."""

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.audit.outcomes import kinds
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random.bits import Bits
from tests.mutants.mutant import Mutant

_SHARPER = Fraction(11, 10)


def mutants() -> Iterator[Mutant]:
    for name, kind in kinds().items():
        example, *others = kind.examples()
        if example.draw is not None:  # where one answer takes long, and its randomness is drawn for many
            continue
        last = others[-1] if others else example  # of some, the first has one answer nearly always
        yield Mutant(
            name=f"{name}, answers used twice",
            fault="the second half of a call repeats the randomness of the first",
            honest=last,
            sampler=partial(_twice, last.mechanism),
        )
        if (sharp := _sharper(example)) is not None:
            yield Mutant(
                name=f"{name}, a tenth too sharp",
                fault="answers are drawn for an epsilon a tenth above the one that is paid",
                honest=example,
                sampler=sharp.sample,
            )


def _twice(mechanism: Mechanism, values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    """All rows hold the same value, so that the same randomness gives the same answer."""
    half = (len(values) + 1) // 2
    first = mechanism.sample(values[:half], bits)
    return np.concatenate([first, first])[: len(values)]


def _sharper(example: Example) -> Mechanism | None:
    """The mechanism at a larger epsilon, if that is what it is declared by."""
    fields = {field.name for field in dataclasses.fields(example.mechanism)}  # type: ignore[arg-type]
    if "epsilon" not in fields:
        return None
    epsilon = example.mechanism.epsilon  # type: ignore[attr-defined]
    return dataclasses.replace(example.mechanism, epsilon=epsilon * _SHARPER)  # type: ignore[type-var]
