"""Wrong thresholds for keys that nobody declared: each shows the key of one unit too often."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.mechanisms import PartitionThreshold
from sourdine.mechanisms.sparse_vector import bits_to_integer
from tests.mutants.mutant import Mutant

_DELTA = Fraction(1, 20)  # large, so that it can be seen


def _alone(mechanism: PartitionThreshold) -> Example:
    """One unit that holds all its keys alone."""
    return Example(
        mechanism=mechanism,
        value=[1] * mechanism.keys,
        neighbour=[0] * mechanism.keys,
        distance=Distance.linf(1),
        code=bits_to_integer,
    )


def mutants() -> Iterator[Mutant]:
    one = PartitionThreshold.within(epsilon=1, delta=_DELTA)
    several = PartitionThreshold.within(epsilon=2, delta=_DELTA, keys=4)
    lonely = PartitionThreshold.within(epsilon=Fraction(1, 2), delta=_DELTA)  # the same scale
    smooth = PartitionThreshold.within(rho=Fraction(1, 4), delta=_DELTA, keys=2)
    yield Mutant(
        name="keys, threshold one too low",
        fault="a noisy count one below the threshold shows its key",
        honest=_alone(one),
        sampler=replace(one, threshold=one.threshold - 1).sample,
    )
    yield Mutant(
        name="keys, threshold for one key",
        fault="the threshold is chosen as if a unit held one key, and it holds four",
        honest=_alone(several),
        sampler=replace(several, threshold=lonely.threshold).sample,
    )
    yield Mutant(
        name="keys, Gaussian threshold one too low",
        fault="a noisy count one below the threshold shows its key",
        honest=_alone(smooth),
        sampler=replace(smooth, threshold=smooth.threshold - 1).sample,
    )
    yield Mutant(
        name="keys, noise for one key",
        fault="the noise is chosen as if a unit held one key, and it holds four that others hold, too",
        honest=replace(_alone(several), value=[several.threshold] * 4, neighbour=[several.threshold - 1] * 4),
        sampler=replace(several, scale=several.scale / 4).sample,
    )
    yield Mutant(
        name="keys, counts without noise",
        fault="the counts themselves meet the threshold, as in a rule of so many at least",
        honest=replace(_alone(one), value=[one.threshold], neighbour=[one.threshold - 1]),
        sampler=lambda values, _: values >= one.threshold,
    )
