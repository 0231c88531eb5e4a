"""Where to look at a law that may live on any scale."""

import math

import numpy as np

from sourdine.core.laws import Floats, Law


def points(law: Law, top: float, count: int) -> Floats:
    """Losses up to a top: dense where the mass lies, and near the top, where high orders look; 0 is one."""
    low = law.lowest
    if not math.isfinite(low):
        steps = np.geomspace(1e-9, 1e9, 400)
        low = -float(steps[int(np.argmax(law.cumulative(-steps).p <= 1e-18))])
    low = min(low, top - 1e-9)
    spread = _spread(law, low, top)
    ends = np.arcsinh(np.array([low, top]) / spread)
    middle = spread * np.sinh(np.linspace(ends[0], ends[1], count))
    near = top - np.geomspace(1e-9, 1.0, count) * (top - low)
    losses = np.unique(np.concatenate([[low, top], [0.0] * (low < 0 < top), middle, near]))
    losses = losses[(losses >= low) & (losses <= top)]
    gaps = np.diff(losses) > 1e-13 * (top - low)
    gaps[losses[:-1] == 0] = True
    gaps[-1] = True  # the top stays, however near the last point is: a law may have an atom there
    kept: Floats = losses[np.concatenate([[True], gaps])]
    return kept


def _spread(law: Law, low: float, top: float) -> float:
    """About how far from 0 half of the mass lies."""
    sizes = np.geomspace(1e-12, 1.0, 400) * max(abs(low), abs(top))
    outside = law.survival(sizes).p + law.cumulative(-sizes).p
    return float(sizes[int(np.argmax(outside <= 0.5))])
