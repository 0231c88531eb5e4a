"""Checks of the noise of a run: its scale, its law, and that none of it was used twice."""

import math
from itertools import combinations, pairwise

import numpy as np
from scipy.special import gammainc

from sourdine.audit.training.checks import (
    POWER,
    Check,
    either,
    farthest,
    least_scale,
    normal_at,
    of_normal,
    of_square,
)
from sourdine.audit.training.trace import LAGS, Trace

_LAYERS = 12  # up to so many layers are compared each with each, more of them each with the next
_ROWS = 256  # steps that are compared at once with all before
_SCALES = 4  # ways to look at the scale
_EXPECTED = 100  # numbers in a cell at least, for chi-square to hold


def scale_check(trace: Trace, alarm: float) -> Check:
    """Squares of the noise are chi-square, over all, in each layer, and from step to step.

    With independent standard normal noise, the squares of n numbers add up to a chi-square number with n
    degrees of freedom. The steps' p-values would be uniform: as normal numbers, their squares add up too, and
    they know nothing of the sizes of the batches.
    """
    squares, sizes = np.array(trace.squares), np.array(list(trace.layers.values()))
    steps = len(squares)
    layers = [
        of_square(float(each), steps * size)
        for each, size in zip(squares.sum(0), sizes.tolist(), strict=True)
    ]
    by_step = normal_at(gammainc(float(sizes.sum()) / 2, squares.sum(1) / 2))
    total = of_square(float(squares.sum()), steps * float(sizes.sum()))
    even = of_square(float((by_step**2).sum()), steps)
    chance = either(total, either(*layers), even, _with_sizes(by_step, trace.sizes))
    ratio = math.sqrt(float(squares.sum()) / (steps * float(sizes.sum())))
    worst = int(np.argmin(layers))
    words = f"{ratio:.4f} of the claimed deviation"
    if layers[worst] < alarm / _SCALES / len(layers) and len(layers) > 1:
        name, at = list(trace.layers)[worst], squares.sum(0)[worst] / (steps * sizes[worst])
        words += f", {math.sqrt(at):.4f} in '{name}'"
    whole, least = (
        least_scale(steps * float(sizes.sum()), alarm / _SCALES),
        least_scale(steps * float(sizes.min()), alarm / _SCALES / len(sizes)),
    )
    return Check(
        name="noise scale",
        finding=words,
        chance=chance,
        alarm=alarm,
        smallest=f"noise below {whole:.3f} times the claim, or below {least:.3f} in the smallest layer alone",
    )


def _with_sizes(by_step: np.ndarray, sizes: list[int]) -> float:
    """Whether steps with larger batches have more noise, or less: the normal numbers along the sizes."""
    apart = np.array(sizes, float) - np.mean(sizes)
    length = float(np.sqrt((apart**2).sum()))
    return of_normal(float((by_step * apart).sum()) / length) if length > 0 else 1.0


def law_check(trace: Trace, alarm: float) -> Check:
    """How often the noise falls into cells of equal chance, and how far it goes along the sums below it.

    Noise knows nothing of the sum that it is added to, so its part along that sum is standard normal.
    """
    expected = trace.cells.sum() / len(trace.cells)
    value = float(((trace.cells - expected) ** 2 / expected).sum())
    law = of_square(value, len(trace.cells) - 1) if expected >= _EXPECTED else 1.0
    beside = np.array(trace.beside) if trace.beside else np.zeros(0)
    along = (
        either(
            of_normal(float(beside.sum()) / math.sqrt(len(beside))),
            of_square(float((beside**2).sum()), len(beside)),
        )
        if len(beside)
        else 1.0
    )
    return Check(
        name="noise law",
        finding=f"chi-square {value:.1f} in {len(trace.cells)} cells of equal chance",
        chance=either(law, along),
        alarm=alarm,
    )


def reuse_check(trace: Trace, alarm: float) -> Check:
    """Noise of two steps, of two layers, or of coordinates apart, is uncorrelated.

    For independent standard normal vectors x and y, <x, y>/|y| is standard normal, whatever y is.
    """
    noises = np.array(trace.samples)
    steps, size = noises.shape
    lengths = np.sqrt((noises.astype(float) ** 2).sum(1))
    chances, worst = [], 0.0
    if steps > 1:
        for start in range(1, steps, _ROWS):
            rows = slice(start, min(start + _ROWS, steps))
            between = np.abs(noises[rows] @ noises[: rows.stop].T / lengths[: rows.stop])
            earlier = np.arange(rows.stop) < np.arange(rows.start, rows.stop)[:, None]
            worst = max(worst, float(np.nan_to_num(between[earlier], nan=math.inf).max()))
        chances.append(of_normal(worst, steps * (steps - 1) // 2))
    within = []
    for lag in LAGS:
        if 2 * lag <= size:
            blocks = noises[:, : size // (2 * lag) * 2 * lag].reshape(steps, -1, 2, lag)
            within.append(_along(blocks[:, :, 0], blocks[:, :, 1]))
    parts = [noises[:, each] for each in trace.parts.values()]
    for one, other in combinations(parts, 2) if len(parts) <= _LAYERS else pairwise(parts):
        few = min(one.shape[1], other.shape[1])
        within.append(_along(one[:, :few], other[:, :few]))
    within.append(float(np.array(trace.sums).sum()) / math.sqrt(steps * sum(trace.layers.values())))
    chances.append(either(*(of_normal(each) for each in within)))
    smallest = (
        farthest(alarm / 2, max(1, steps * (steps - 1) // 2)) + farthest(2 * (1 - POWER))
    ) / math.sqrt(size)
    return Check(
        name="noise reuse",
        finding=f"two steps are correlated by {worst / math.sqrt(size):.3f} at most"
        if steps > 1
        else "one step",
        chance=either(*chances),
        alarm=alarm,
        smallest=f"noise of two steps that is correlated by {min(1.0, smallest):.2g}" if steps > 1 else "",
    )


def _along(one: np.ndarray, other: np.ndarray) -> float:
    length = math.sqrt(float((other.astype(float) ** 2).sum()))
    return float((one * other).astype(float).sum()) / length if length > 0 else math.inf
