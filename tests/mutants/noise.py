"""Noise of the wrong size or the wrong shape."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import floor

import numpy as np

from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import coins
from sourdine.learning import NoisyGradient
from sourdine.mechanisms import Gaussian, Geometric, Laplace
from tests.mutants.mutant import Mutant

_SCALE = Fraction(5, 2)
_SIGMA = Fraction(10, 3)
_LAPLACE = Example(mechanism=Laplace(scale=_SCALE), value=0, neighbour=1, distance=Distance.l1(1))
_GEOMETRIC = Example(mechanism=Geometric(scale=_SCALE), value=4, neighbour=5, distance=Distance.l1(1))
_GAUSSIAN = Example(
    mechanism=Gaussian(sigma=_SIGMA), value=0, neighbour=2, distance=Distance.l2(2, coordinates=1)
)
_GRADIENT_SIGMA = Fraction(4, 3)
_GRADIENT = replace(next(NoisyGradient.examples()), mechanism=NoisyGradient(sigma=_GRADIENT_SIGMA))


def mutants() -> Iterator[Mutant]:
    yield Mutant(
        name="Laplace, half scale",
        fault="the noise has half the scale that the claim needs",
        honest=_LAPLACE,
        sampler=lambda values, bits: values + exact.laplace(_SCALE / 2, len(values), bits),
    )
    yield Mutant(
        name="Laplace, scale 1 % small",
        fault="the noise has 99 % of the scale that the claim needs",
        honest=_LAPLACE,
        sampler=lambda values, bits: values + exact.laplace(_SCALE * 99 / 100, len(values), bits),
    )
    yield Mutant(
        name="Gaussian, sigma 5 % small",
        fault="the noise has 95 % of the deviation that the claim needs",
        honest=_GAUSSIAN,
        sampler=lambda values, bits: values + exact.gaussian((_SIGMA * 95 / 100) ** 2, len(values), bits),
    )
    yield Mutant(
        name="Gaussian, half sigma",
        fault="the noise has half the deviation that the claim needs",
        honest=_GAUSSIAN,
        sampler=lambda values, bits: values + exact.gaussian(_SIGMA**2 / 4, len(values), bits),
    )
    yield Mutant(
        name="Geometric, half scale",
        fault="the noise has half the scale that the claim needs",
        honest=_GEOMETRIC,
        sampler=lambda values, bits: values + exact.laplace(_SCALE / 2, len(values), bits),
    )
    yield Mutant(
        name="Gaussian, sigma for variance",
        fault="sigma stands where its square belongs",
        honest=_GAUSSIAN,
        sampler=lambda values, bits: values + exact.gaussian(_SIGMA, len(values), bits),
    )
    yield Mutant(
        name="Laplace, scale rounded down",
        fault="numerator // denominator stands for the rational scale",
        honest=_LAPLACE,
        sampler=lambda values, bits: values + exact.laplace(Fraction(floor(_SCALE)), len(values), bits),
    )
    yield Mutant(
        name="Laplace, scale rounded up",
        fault="a biased rational adds noise, which no audit can see",
        honest=_LAPLACE,
        sampler=lambda values, bits: values + exact.laplace(_SCALE + Fraction(1, 10), len(values), bits),
    )
    yield Mutant(
        name="Geometric, one side",
        fault="the noise is never negative",
        honest=_GEOMETRIC,
        sampler=lambda values, bits: values + exact.geometric(_SCALE, len(values), bits),
    )
    yield Mutant(
        name="Laplace, unsigned",
        fault="the absolute value of the noise is added",
        honest=_LAPLACE,
        sampler=lambda values, bits: values + np.abs(exact.laplace(_SCALE, len(values), bits)),
    )
    yield Mutant(
        name="Laplace, zero twice",
        fault="a sign times a size draws 0 from both signs",
        honest=_LAPLACE,
        sampler=lambda values, bits: (
            values + np.where(coins(bits, len(values)), 1, -1) * exact.geometric(_SCALE, len(values), bits)
        ),
    )
    yield Mutant(
        name="Laplace, tails cut",
        fault="noise beyond three scales is clipped",
        honest=_LAPLACE,
        sampler=lambda values, bits: (
            values + np.clip(exact.laplace(_SCALE, len(values), bits), -floor(3 * _SCALE), floor(3 * _SCALE))
        ),
    )
    yield Mutant(
        name="Gaussian, tails cut",
        fault="noise beyond three sigma is clipped",
        honest=_GAUSSIAN,
        sampler=lambda values, bits: (
            values
            + np.clip(exact.gaussian(_SIGMA**2, len(values), bits), -floor(3 * _SIGMA), floor(3 * _SIGMA))
        ),
    )
    yield Mutant(
        name="Laplace, uniform instead",
        fault="uniform noise of a larger spread stands for Laplace noise",
        honest=_LAPLACE,
        sampler=lambda values, bits: values + exact.uniform(21, len(values), bits) - 10,
    )
    yield Mutant(
        name="Laplace, scale from the data",
        fault="the scale follows the true value",
        honest=Example(mechanism=Laplace(scale=_SCALE), value=2, neighbour=1, distance=Distance.l1(1)),
        sampler=lambda values, bits: values + exact.laplace(_SCALE * int(values.max()), len(values), bits),
    )
    yield Mutant(
        name="Gradients, sigma 10 % small",
        fault="a step of training adds 90 % of the deviation that the claim needs",
        honest=_GRADIENT,
        # exact noise on a fine grid: mutants are audited where torch is not installed too
        sampler=Gaussian(sigma=_GRADIENT_SIGMA * 9 / 10, granularity=Fraction(1, 1024)).sample,
    )
