"""Confidence intervals of numbers that are shown only where their noisy value passes a threshold.

An interval of the usual kind misses too often there: what noise has lifted over a threshold is shown, and
what noise has pushed below it is not (docs/guarantees/row_selection.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.core.lazy import log_ndtr
from sourdine.core.mechanism import Mechanism
from sourdine.mechanisms import Gaussian, Laplace

Floats = NDArray[np.float64]
LogSurvival = Callable[[Floats], Floats]
# A sum of Laplace noises on a grid is taken for one on a line, and Gaussian noise on a grid for a normal
# number, from so many grid steps of noise on: the survival functions differ by a relative 1/(24 s^2), which
# is 1/1,536 at 8 (Euler and Maclaurin, docs/guarantees/row_selection.md).
_LEAST_STEPS = 8
# P[Z >= z] of the sum of k like Laplace noises of scale 1 is e^-z times this polynomial for z >= 0: partial
# fractions of (1 - t^2)^-k, or k - 1 convolutions. Lowest power first, k = 1, 2, 3.
_TAILS = ((1 / 2,), (1 / 2, 1 / 4), (1 / 2, 5 / 16, 1 / 16))
# Each halving makes an interval of at most 2^52 steps half as long: after 100 no float lies between its ends.
_HALVINGS = 100


@dataclass(frozen=True, eq=False)
class LinearNoise:
    """The noise of a weighted sum: the mechanism that drew each part, and the parts' weights, none of them 0.

    `factor` turns the sum into the measure of the answer.
    """

    mechanism: Mechanism
    weights: Floats
    factor: float = 1.0

    def scaled(self, step: float) -> "LinearNoise":
        """Return the noise in another measure."""
        return LinearNoise(self.mechanism, self.weights, self.factor * step)

    @property
    def alike(self) -> bool:
        """Whether all weights have the same size."""
        sizes = np.abs(self.weights)
        return bool((sizes == sizes.max()).all())

    @property
    def grid(self) -> float:
        """The step of the grid that the sum lies on; 0 where the weights have no common one."""
        granularity = getattr(self.mechanism, "granularity", None) or 1
        return float(np.abs(self.weights).max()) * float(granularity) * self.factor if self.alike else 0.0

    @property
    def size(self) -> float:
        """The scale of Laplace noise, or the standard deviation of Gaussian noise, of the sum."""
        if isinstance(self.mechanism, Gaussian):
            return float(self.mechanism.sigma) * float(np.linalg.norm(self.weights)) * self.factor
        assert isinstance(self.mechanism, Laplace)
        return float(self.mechanism.scale) * float(np.abs(self.weights).max()) * self.factor

    @property
    def normal(self) -> bool:
        """Whether the noise is Gaussian."""
        return isinstance(self.mechanism, Gaussian)

    @property
    def known(self) -> bool:
        """Whether its survival function is known closely enough to condition on a selection."""
        if not isinstance(self.mechanism, Gaussian | Laplace):
            return False
        granularity = float(getattr(self.mechanism, "granularity", None) or 1)
        if isinstance(self.mechanism, Gaussian):
            return float(self.mechanism.sigma) >= _LEAST_STEPS * granularity
        if self.weights.size == 1:
            return True
        return (
            self.alike
            and self.weights.size <= len(_TAILS)
            and float(self.mechanism.scale) >= _LEAST_STEPS * granularity
        )

    def log_survival(self) -> LogSurvival:
        """Return the logarithm of P[noise >= z], z a multiple of the grid, as a function of z."""
        if self.normal:
            sigma, half = self.size, self.grid / 2
            # the mass of a grid point is that of the step around it
            return lambda z: np.asarray(log_ndtr(-(z - half) / sigma))
        if self.weights.size == 1:
            # P[Z >= n] = p^n / (1 + p) for n >= 0 with p = e^(-1/s), and by symmetry 1 - p^(1 - n) / (1 + p)
            step, scale = self.grid, self.size
            log_all = math.log1p(math.exp(-step / scale))

            def of_one(z: Floats) -> Floats:
                above = -np.maximum(z, 0.0) / scale - log_all
                below = np.log1p(-np.exp((np.minimum(z, 0.0) - step) / scale - log_all))
                return np.where(z >= 0, above, below)

            return of_one
        half, scale, tail = self.grid / 2, self.size, _TAILS[self.weights.size - 1]

        def of_several(z: Floats) -> Floats:
            far = np.abs(z - half) / scale
            log_tail = np.log(np.polynomial.polynomial.polyval(far, tail)) - far
            return np.where(z >= half, log_tail, np.log1p(-np.exp(log_tail)))

        return of_several


def interval_above(
    values: Floats, threshold: float, noise: LinearNoise, confidence: float, floor: float | None
) -> tuple[Floats, Floats]:
    """Return the ends of intervals of what was shown because its noisy value is at least the threshold.

    Of all true numbers m, those are kept at which neither a value as large nor one as small, among the values
    that are shown, has a probability of (1 - confidence) / 2 or less. The distribution of the noise is
    log-concave, so both tails are monotone in m, cut off or not, and the ends are found by halving. An
    interval is widened to its own value.

    Args:
        values: noisy values, of which those below the threshold are not shown: theirs are intervals of the
            value at the threshold.
        threshold: the least value that is shown.
        noise: the noise of each value.
        confidence: of the interval, given that the value is shown.
        floor: what no true number is below, if that is known. Without it an end may be minus infinity.

    Returns:
        Lower and upper ends.
    """
    step, size, alpha = noise.grid, noise.size, (1 - confidence) / 2
    log_survival, log_alpha = noise.log_survival(), math.log(alpha)
    # The least of the values that can be shown: values lie on the grid, and so does a threshold between two.
    least = math.ceil(threshold / step - 1e-9) * step if step else threshold
    shown = np.maximum(values, least)
    # Above m = x the survival of Laplace noise at the value tends to 1 within 40 scales, and below
    # m = threshold it is a constant share of that at the threshold: no end lies further off. The one of
    # normal noise falls like exp(-(x - t)(t - m) / sigma^2), so that it has an end at every x > t.
    reach = 40 * size + 2 * step
    # It is not looked for beyond 10^5 sigma, where floats tell no two survival functions apart.
    near = np.maximum(shown - least, 1e-5 * size)
    far = reach + (np.minimum(2 * size**2 * math.log(2 / alpha) / near, 1e5 * size) if noise.normal else 0.0)

    def too_large(m: Floats) -> NDArray[np.bool_]:
        """Whether a value as large is too unlikely at m."""
        tail: NDArray[np.bool_] = log_survival(shown - m) - log_survival(least - m) <= log_alpha
        return tail

    def too_small(m: Floats) -> NDArray[np.bool_]:
        """Whether a value as small is too unlikely at m."""
        beyond = log_survival(shown + step - m) - log_survival(least - m)
        tail: NDArray[np.bool_] = -np.expm1(np.minimum(beyond, 0.0)) <= alpha
        return tail

    lowest: Floats = np.asarray(least - far) if floor is None else np.full(shown.shape, floor)
    lowest = np.broadcast_to(lowest, shown.shape)
    lower = _edge(shown, np.minimum(lowest, shown), too_large)
    if floor is None:
        lower = np.where(too_large(lowest), lower, -np.inf)
    upper = _edge(shown, shown + reach, too_small)
    # reals are rounded to a coarse grid before noise is added, which moves them by half a step
    coarse = step / 2 if getattr(noise.mechanism, "granularity", None) is not None else 0.0
    lower, upper = lower - coarse, upper + coarse
    if floor is not None:
        lower = np.maximum(lower, floor)
    return np.minimum(lower, values), np.maximum(upper, values)


def _edge(inside: Floats, outside: Floats, refused: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """Return where a monotone condition begins to hold on the way from one point to another.

    The far point where it does not hold there, and the near one where it holds everywhere.
    """
    near, far = inside.copy(), outside.copy()
    whole = ~refused(far)
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        out = refused(middle)
        near, far = np.where(out, near, middle), np.where(out, middle, far)
    return np.where(whole, outside, far)
