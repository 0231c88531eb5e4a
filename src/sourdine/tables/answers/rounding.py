"""Values and intervals to as many digits as the interval's width is worth, its ends outwards.

Decimal rounding is Python's, which is exact: most numbers are rounded in arrays, where that gives the same,
and the few for which floats may decide otherwise are rounded one by one.
"""

import math

import numpy as np
from numpy.typing import NDArray

from sourdine.core.threads import in_blocks

Floats = NDArray[np.float64]
_DIGITS = 2  # digits beside the first of a width
_POWERS, _LARGEST = 15, 2.0**40  # in steps of an exact power of ten, floats are off by less than 2^-12 here
_UNSURE = 2.0**-10  # of a step: whatever lies so near a tie is rounded by itself


def rounded_rows(value: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """Each value and interval, to three digits of the interval's width."""
    ends = value.astype(float), low.astype(float), high.astype(float)
    in_blocks(lambda block: _round_block(*(each[block] for each in ends)), value.size)
    return ends


def _round_block(value: Floats, low: Floats, high: Floats) -> None:
    """The same in their place, for as many as a processor keeps at hand."""
    with np.errstate(invalid="ignore", over="ignore"):
        wide = high - low
        bounded = (wide > 0) & np.isfinite(wide)
        logs = np.log10(np.where(bounded, wide, 1.0))
        digits = _DIGITS - np.floor(logs)
        # near a power of ten its logarithm may fall on either side; of one that is exact it is exact
        near = np.rint(logs)
        clear = (np.abs(logs - near) > _UNSURE) | ((near >= 0) & (wide == 10.0**near) & (logs == near))
        sure = bounded & clear & (np.abs(digits) <= _POWERS)
        up, power = digits >= 0, 10.0 ** np.abs(np.where(sure, digits, 0.0))
        nearest = []
        for each in (value, low, high):
            steps = np.where(up, each * power, each / power)
            nearest.append(np.rint(steps))
            sure &= (np.abs(steps) < _LARGEST) & (np.abs(np.abs(steps - nearest[-1]) - 0.5) > _UNSURE)

        def back(steps: Floats) -> Floats:
            return np.where(up, steps / power, steps * power) + 0.0  # not -0.0

        below, above = back(nearest[1]), back(nearest[2])
        quick = (
            back(nearest[0]),
            np.where(below <= low, below, np.minimum(low, back(nearest[1] - 1))),
            np.where(above >= high, above, np.maximum(high, back(nearest[2] + 1))),
        )
    ends = value, low, high
    for place in np.flatnonzero(bounded & ~sure).tolist():
        row = rounded_row(float(value[place]), float(low[place]), float(high[place]))
        for each, number in zip(ends, row, strict=True):
            each[place] = number
    for each, fast in zip(ends, quick, strict=True):
        each[sure] = fast[sure]


def rounded_row(value: float, low: float, high: float) -> tuple[float, float, float]:
    """One value and its interval, by Python's own rounding."""
    if not (high > low and math.isfinite(high - low)):
        return value, low, high
    digits = _DIGITS - math.floor(math.log10(high - low))
    unit = 10.0**-digits
    below, above = round(low, digits), round(high, digits)
    return (
        round(value, digits) + 0.0,  # not -0.0
        # where a float has no more digits than these, a step may not be seen, and the end stays as it is
        (below if below <= low else min(low, round(below - unit, digits))) + 0.0,
        (above if above >= high else max(high, round(above + unit, digits))) + 0.0,
    )
