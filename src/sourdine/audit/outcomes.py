"""What every empirical check reads: outcomes of each mechanism's examples, counted cell by cell.

An audit cannot see a fault that adds noise, or that biases answers without telling neighbours apart. The
comparison with another sampler of the same distribution can: Pearson's chi-square over both outcomes.
"""

import dataclasses
import difflib
from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from inspect import isabstract
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Norm
from sourdine.core.lazy import bdtr, bdtrc, chdtrc
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random.bits import Bits

Integers = NDArray[np.int64]

_CHUNK = 1 << 16  # outcomes drawn at once, so that examples with long inputs need little memory


class Tally(NamedTuple):
    """How often each code occurred; the codes ascend."""

    codes: Integers
    counts: Integers


def tally(example: Example, value: ArrayLike, count: int, bits: Bits) -> Tally:
    """The counts of `count` independent outcomes for one input."""
    count = check.integer("tally", "count", count, 1, 1 << 40)
    parts = []
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        parts.append(count_codes(example.outcomes(value, size, bits)))
    return merge(*parts)


def count_codes(codes: Integers) -> Tally:
    """The counts of these outcomes."""
    return Tally(*np.unique(codes, return_counts=True))


def merge(*tallies: Tally) -> Tally:
    """The counts of several tallies together."""
    codes, places = np.unique(np.concatenate([one.codes for one in tallies]), return_inverse=True)
    weights = np.concatenate([one.counts for one in tallies])
    # a float64 counts exactly up to 2^53
    return Tally(codes, np.bincount(places.ravel(), weights=weights).astype(np.int64))


def align(*tallies: Tally) -> Integers:
    """One row of counts for each tally, over all the codes that occur in any, in ascending order.

    >>> align(Tally(np.array([1, 4]), np.array([7, 3])), Tally(np.array([4]), np.array([9])))
    array([[7, 3],
           [0, 9]])
    """
    codes = np.unique(np.concatenate([one.codes for one in tallies]))
    rows = np.zeros((len(tallies), len(codes)), dtype=np.int64)
    for row, one in zip(rows, tallies, strict=True):
        row[np.searchsorted(codes, one.codes)] = one.counts
    return rows


_LEAST_CELL = 20  # outcomes of both samples in a cell: about 10 expected of each
_CELLS = (1000, 12)  # at most: many of them see a fault somewhere, and few see a slight one everywhere


def same_law(one: Tally, other: Tally) -> float:
    """The p-value of the hypothesis that two tallies have one law.

    >>> codes = np.arange(2)
    >>> round(same_law(Tally(codes, np.array([520, 480])), Tally(codes, np.array([480, 520]))), 3)
    0.221
    """
    return same_laws([(one, other)])


def same_laws(pairs: Sequence[tuple[Tally, Tally]]) -> float:
    """The p-value of the hypothesis that each of several pairs has one law: what all of them say together.

    Neighbouring codes are merged until a cell holds enough of both samples together, which says nothing
    about their difference. Then the sum of (a sqrt(m/n) - b sqrt(n/m))^2/(a + b), for samples of n and m, is
    chi-square with one degree less than cells (Press et al. 2007, section 14.3), and the sum over pairs with
    the sum of the degrees. Cells are made twice, many and few. And the code that is farthest off is tested by
    itself: what is rare would be lost in a cell. The least of the three p-values counts three times.
    """
    p_values = [_tested(pairs, most) for most in _CELLS]
    alone = min(_farthest(*align(one, other)) for one, other in pairs)
    return min(1.0, (1 + len(_CELLS)) * min(*p_values, len(pairs) * alone))


def _farthest(a: Integers, b: Integers) -> float:
    """The p-value of the code that is farthest off, among so many: given a + b, a is binomial."""
    share = a.sum() / (a.sum() + b.sum())
    below, above = bdtr(a, a + b, share), bdtrc(a - 1, a + b, share)
    return 2 * len(a) * float(np.minimum(below, np.where(a > 0, above, 1.0)).min())


def _tested(pairs: Sequence[tuple[Tally, Tally]], most: int) -> float:
    total, degrees = 0.0, 0
    for one, other in pairs:
        a, b = align(one, other)
        starts = _cells(a + b, most)
        a, b = np.add.reduceat(a, starts), np.add.reduceat(b, starts)
        ratio = float(np.sqrt(b.sum() / a.sum()))
        total += float(np.sum((a * ratio - b / ratio) ** 2 / (a + b)))
        degrees += len(starts) - 1
    return float(chdtrc(degrees, total)) if degrees else 1.0


def _cells(together: Integers, most: int) -> Integers:
    """Where each merged cell starts."""
    sums = np.cumsum(together)
    least = max(_LEAST_CELL, int(sums[-1]) // most)
    starts = [0]
    while True:
        before = int(sums[starts[-1] - 1]) if starts[-1] else 0
        following = int(np.searchsorted(sums, before + least)) + 1
        if following >= len(sums) or sums[-1] - sums[following - 1] < least:
            return np.array(starts)
        starts.append(following)


_ROOMS = ("mechanisms", "tables.quantiles", "local", "local.rappor", "local.words")


def kinds() -> dict[str, type[Mechanism]]:
    """Every mechanism a room exports, by name."""
    mechanisms = {}
    for room in _ROOMS:
        module = import_module(f"sourdine.{room}")
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type) and issubclass(kind, Mechanism) and not isabstract(kind):
                mechanisms[name] = kind
    return dict(sorted(mechanisms.items()))


def find_examples(name: str | None = None) -> list[Example]:
    """The examples of one mechanism, or of all."""
    mechanisms = kinds()
    if name is None:
        return [example for kind in mechanisms.values() for example in kind.examples()]
    chosen = {known.lower(): kind for known, kind in mechanisms.items()}.get(name.lower())
    if chosen is None:
        near = difflib.get_close_matches(name, mechanisms, n=1)
        remedy = f"Did you mean {near[0]}?" if near else ""
        raise check.fail("audit", "name", f"be one of {', '.join(mechanisms)}", name, remedy)
    return list(chosen.examples())


def title(mechanism: Mechanism) -> str:
    """A mechanism with its parameters, as short as it can be said.

    >>> from sourdine.mechanisms import Laplace
    >>> title(Laplace(scale=1.5))
    'Laplace(scale=3/2)'
    """
    fields = dataclasses.fields(mechanism)  # type: ignore[arg-type]
    values = [(field, getattr(mechanism, field.name)) for field in fields]
    shown = [f"{field.name}={_short(value)}" for field, value in values if value != field.default]
    return f"{type(mechanism).__name__}({', '.join(shown)})"


def change(example: Example) -> str:
    """How far apart the neighbours of an example are.

    >>> from sourdine.mechanisms import Gaussian
    >>> [change(example) for example in Gaussian.examples()][::3]
    ['1 in L2', '√2 in L2']
    """
    distance = example.distance
    amount = str(distance.amount)
    if distance.norm is Norm.L2:
        root = float(distance.amount) ** 0.5
        amount = f"{root:g}" if root == round(root, 6) else f"√{distance.amount}"
    return f"{amount} in {distance.norm}"


def _short(value: object) -> str:
    """A parameter in a few characters; a long fraction is rounded, for reading only."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))})"
    text = str(value)
    return f"~{float(value):.6g}" if isinstance(value, Fraction) and len(text) > 12 else text
