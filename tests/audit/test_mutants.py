from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from numpy.typing import NDArray

from sourdine.audit import find_examples
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.mechanisms import Laplace
from sourdine.testing import SeededBits
from tests.mutants import Mutant, all_mutants

ALL = [pytest.param(mutant, id=mutant.name) for mutant in all_mutants()]
KNOWN = {repr((each.mechanism, each.value)) for each in find_examples()}  # the tests of textbooks have them
HONEST = {
    key: pytest.param(mutant, id=mutant.name)
    for mutant in all_mutants()
    if (key := repr((mutant.honest.mechanism, mutant.honest.value))) not in KNOWN
}.values()
ALARM = 1e-6 / len(ALL)
SAMPLES = (20_000, 250_000, 10**6)  # few show most faults; some take a million answers


def quick(mutants: Iterable[ParameterSet]) -> list[ParameterSet]:
    """The first of each kind of mechanism is quick, and the others are slow."""
    seen: set[type[Mechanism]] = set()
    listed = []
    for each in mutants:
        kind = type(each.values[0].honest.mechanism)  # type: ignore[union-attr]
        listed.append(
            pytest.param(*each.values, id=each.id, marks=[pytest.mark.slow] if kind in seen else [])
        )
        seen.add(kind)
    return listed


def named(name: str) -> Mutant:
    return next(mutant for mutant in all_mutants() if mutant.name == name)


def test_there_are_enough_and_each_is_named_and_explained() -> None:
    names = [mutant.name for mutant in all_mutants()]
    assert len(names) >= 100
    assert len(set(names)) == len(names)
    assert all(mutant.fault for mutant in all_mutants())


@pytest.mark.parametrize("mutant", quick(ALL))
def test_every_mutant_is_caught(mutant: Mutant) -> None:
    for samples in SAMPLES:
        verdict = mutant.examine(samples=samples, false_alarm=ALARM / len(SAMPLES), bits=SeededBits(1))
        if verdict.caught_by is not None:
            return
    pytest.fail(str(verdict))


@pytest.mark.parametrize("mutant", quick(HONEST))
def test_no_honest_sampler_is_accused(mutant: Mutant) -> None:
    honest = replace(mutant, sampler=mutant.honest.mechanism.sample)
    verdict = honest.examine(samples=20_000, false_alarm=1e-3, bits=SeededBits(2))
    assert verdict.caught_by is None, verdict


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("Laplace, a bit below the grid", "representation"),
        ("Laplace, the sign of zero", "representation"),
        ("Laplace, another type for the neighbour", "representation"),
        ("Laplace, other strides for the neighbour", "representation"),
        ("Laplace, twice at a distance of 700", "independence test"),
        ("Gaussian, the end like the start", "independence test"),
        ("Laplace, one noise at the end", "independence test"),
        ("Laplace, any earlier noise again", "independence test"),
    ],
)
def test_what_the_law_does_not_show_is_caught_by_few_answers(name: str, by: str) -> None:
    verdict = named(name).examine(samples=2000, false_alarm=ALARM, bits=SeededBits(1))
    assert verdict.caught_by == by, verdict


@pytest.mark.slow
def test_a_forced_sign_needs_as_many_answers_as_the_page_says() -> None:
    """A sign forced once in 50: about 270,000 answers by the formula for 1 of 10,000, a 40,000th of those."""
    scale, often = Fraction(3), Fraction(1, 50)
    honest = Example(mechanism=Laplace(scale=scale), value=0, neighbour=1, distance=Distance.l1(1))

    def forced(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
        noise = Laplace(scale=scale).sample(np.zeros(len(values), np.int64), bits)
        return np.asarray(values + np.where(exact.bernoulli(often, len(values), bits), np.abs(noise), noise))

    mutant = Mutant(name="forced", fault="a sign", honest=honest, sampler=forced)
    needed = 2 * 6.2**2 * 0.25 / (0.418 / 50) ** 2
    few, enough = (mutant.examine(samples=int(share * needed / 2), bits=SeededBits(1)) for share in (0.1, 2))
    assert few.caught_by is None
    assert enough.caught_by == "law test"


def test_a_fault_that_adds_noise_is_left_to_the_law_test() -> None:
    mutant = named("Laplace, scale rounded up")
    verdict = mutant.examine(samples=400_000, bits=SeededBits(1))
    assert not verdict.bound.exceeded
    assert verdict.caught_by == "law test"


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("Laplace, half scale", 0.8),  # d / (scale/2)
        ("Laplace, zero twice", 0.4 + 0.6931),  # the peak is twice as high
        ("Laplace, float noise cut", 2 / 3 + 0.6931),
        ("Warner, too much truth", 1.9459),  # ln 7
        ("k-ary, odds of two categories", 1 + 1.0986),  # epsilon + ln(k - 1)
        ("k-ary, lie by modulo", 1 + 0.2877),  # a lie 3/4 as likely as it should be
        ("Staircase, steep", 2.0),
        # by summing over the threshold; 3 with endless queries
        pytest.param("threshold, monotone noise", 2.9107, marks=pytest.mark.slow),
    ],
)
def test_known_losses_are_found_and_not_overstated(name: str, truth: float) -> None:
    bound = named(name).examine(samples=400_000, bits=SeededBits(3)).bound
    assert 0.9 * truth < bound.audited < truth


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ALL)
def test_every_mutant_is_caught_with_any_bits(mutant: Mutant) -> None:
    verdict = mutant.examine(samples=10**6, false_alarm=ALARM, bits=SYSTEM)
    assert verdict.caught_by is not None, verdict
