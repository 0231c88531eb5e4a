from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.audit import examine, find_examples
from sourdine.audit.representation import Inspection, representation_fault
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example, Mechanism
from sourdine.mechanisms import BoundedLaplace, Laplace
from sourdine.testing import SeededBits
from tests.mutants.mutant import Resampled

EIGHTHS = Laplace(scale=Fraction(1), granularity=Fraction(1, 8))
WHOLE = Laplace(scale=Fraction(3))
BOUNDED = BoundedLaplace(scale=2, lower=Fraction(-1, 3), upper=1, cells=10)
ONE = Distance.l1(1, coordinates=1)


def fault(declared: Mechanism, dress: Callable[[NDArray[Any], bool], Any], calls: int = 1) -> str:
    """What is found where answers to the second value, or to both, are dressed."""
    example = Example(
        mechanism=declared, value=0, neighbour=1, distance=ONE, code=lambda _: np.zeros(1, np.int64)
    )
    seen = [Inspection(declared) for _ in range(2)]
    for side, each in enumerate(seen):
        for call in range(calls):
            answers = declared.sample(np.full(400, side), SeededBits(call))
            each.of(example).code(dress(answers, bool(side)))
    return representation_fault(*seen)


@pytest.mark.parametrize("declared", [EIGHTHS, WHOLE, BOUNDED])
def test_honest_answers_have_no_fault(declared: Mechanism) -> None:
    assert fault(declared, lambda answers, second: answers, calls=3) == ""


@pytest.mark.parametrize(
    "dress",
    [
        lambda answers, second: answers + 2.0**-40 * second,
        lambda answers, second: np.nextafter(answers, 9.0) if second else answers,
        lambda answers, second: np.where(answers == 0, -0.0, answers),  # the sign of zero, for both values
        lambda answers, second: np.append(answers[:-1], np.nan),
        lambda answers, second: np.append(answers[:-1], np.inf),
        lambda answers, second: answers.astype(np.float32),
    ],
)
def test_what_no_point_of_the_grid_has_is_seen(dress: Callable[[NDArray[Any], bool], Any]) -> None:
    assert "off the declared grid" in fault(EIGHTHS, dress)


def test_points_of_an_interval_are_compared_bit_by_bit() -> None:
    assert "off the declared grid" in fault(BOUNDED, lambda answers, second: answers + 2.0**-52 * second)
    assert "off the declared grid" in fault(BOUNDED, lambda answers, second: np.round(answers, 12))


@pytest.mark.parametrize(
    "dress",
    [
        lambda answers, second: answers.astype(np.int32) if second else answers,
        lambda answers, second: answers.astype(np.uint64) if second else answers,
        lambda answers, second: answers.astype(">i8") if second else answers,
        lambda answers, second: answers.astype(object) if second else answers,
        lambda answers, second: answers.tolist() if second else answers,
        lambda answers, second: np.ma.masked_array(answers) if second else answers,
        lambda answers, second: answers[:, np.newaxis] if second else answers,
        lambda answers, second: answers[:-1] if second else answers,
        lambda answers, second: np.repeat(answers, 2)[::2] if second else answers,
        lambda answers, second: answers[::-1] if second else answers,
        lambda answers, second: np.broadcast_to(answers, answers.shape) if second else answers,  # read-only
    ],
)
def test_a_type_or_layout_that_depends_on_the_value_is_seen(
    dress: Callable[[NDArray[Any], bool], Any],
) -> None:
    assert fault(WHOLE, dress) != ""


def test_objects_may_not_differ_in_the_types_of_their_items() -> None:
    mixed = lambda answers, second: np.array([bool(second), *answers[1:].tolist()], dtype=object)
    example = Example(
        mechanism=WHOLE, value=0, neighbour=1, distance=ONE, code=lambda _: np.zeros(1, np.int64)
    )
    unknown = Resampled(claimed=WHOLE, sampler=WHOLE.sample)  # states no grid
    seen = [Inspection(unknown) for _ in range(2)]
    for side, each in enumerate(seen):
        items = np.array([True] * 5 if side else [1] * 5, dtype=object)
        each.of(example).code(items)
    assert representation_fault(*seen) == "type, shape or strides depend on the value"
    assert fault(WHOLE, mixed) != ""


def test_every_honest_example_is_represented_alike() -> None:
    """Each example's answers to both values, without any of the tests that need many."""
    for example in find_examples():
        seen = [Inspection(example.mechanism) for _ in range(2)]
        for each, value in zip(seen, (example.value, example.neighbour), strict=True):
            for count in (1, 2, 300):
                each.of(example).outcomes(value, count, SeededBits(count))
        assert representation_fault(*seen) == "", example


def test_a_verdict_names_the_fault_and_an_honest_one_has_none() -> None:
    honest = Example(
        mechanism=EIGHTHS,
        value=0.0,
        neighbour=1.0,
        distance=ONE,
        code=lambda a: np.rint(8 * a).astype(np.int64),
    )
    assert examine(honest, samples=2000, bits=SeededBits(1)).representation == ""
    below = Resampled(
        claimed=EIGHTHS,
        sampler=lambda values, bits: EIGHTHS.sample(values, bits) + 2.0**-30 * (np.asarray(values) > 0),
    )
    broken = Example(
        mechanism=below,
        value=0.0,
        neighbour=1.0,
        distance=ONE,
        code=lambda a: np.rint(8 * a).astype(np.int64),
    )
    verdict = examine(broken, honest=honest, samples=2000, bits=SeededBits(1))
    assert verdict.caught_by == "representation"
    assert verdict.representation.endswith("answers off the declared grid")
