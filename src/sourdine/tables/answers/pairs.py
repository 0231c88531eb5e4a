"""Two columns at once: covariance, correlation and a regression line, off noisy sums of products.

Values x and y are measured as shares of their widths, by products of Bernstein polynomials, of which every
moment up to the degrees is a weighted sum. All of it is post-processing.

Intervals invert tests that are linear in the noises, as Fieller's does for a ratio. Around any point (a, b)

    T = sum (x - a)(y - b) = n cov + n (mean x - a)(mean y - b)

so at the true covariance c, T - c n is a sum of noises but for the product of two small errors, those of the
means. That product is bounded by the intervals of the means, and each interval is widened by it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sourdine.tables.answers.estimate import Floats, GroupEstimate, Noisy, Numbers, edge

_TESTS = 65  # ratios at which reaches are computed; between two of them they are interpolated
_BLOCK = 1 << 13  # groups at once


@dataclass(frozen=True, kw_only=True)
class NoisyPairs(Numbers):
    """Noisy sums of B_i(x) B_j(y), i up to `degrees[0]` and quickest j up to `degrees[1]`; each is 1 or 2.

    `widths` are those of x and y in steps.
    """

    noisy: Noisy
    degrees: tuple[int, int]
    widths: tuple[int, int]

    @property
    def reach(self) -> int:
        """What all of them are together for one record."""
        return int(self.widths[0] ** self.degrees[0] * self.widths[1] ** self.degrees[1])

    @property
    def steepest(self) -> int:
        """No line is steeper, in widths of y for one of x.

        Its slope is a mean of slopes between two records, which are a step or more apart in x and at most a
        width in y.
        """
        return self.widths[0]

    def turned(self) -> "NoisyPairs":
        """The same with x and y exchanged."""
        first, second = self.degrees
        numbers = self.noisy.numbers.reshape(-1, first + 1, second + 1).transpose(0, 2, 1)
        return NoisyPairs(
            noisy=replace(self.noisy, numbers=numbers.reshape(-1, (first + 1) * (second + 1))),
            degrees=(second, first),
            widths=(self.widths[1], self.widths[0]),
        )

    def weights(self, p: int, q: int) -> Floats:
        """The weights of the sum of x^p y^q."""
        both = np.outer(_coefficients(self.degrees[0], p), _coefficients(self.degrees[1], q))
        weights: Floats = both.ravel() / float(self.reach)
        return weights

    def count(self) -> GroupEstimate:
        return self.noisy.linear(self.weights(0, 0))

    def covariance(self) -> GroupEstimate:
        """The covariance, as a share of both widths: between -1/4 and 1/4."""
        return _in_blocks(self, NoisyPairs._covariance)

    def correlation(self) -> GroupEstimate:
        """The correlation, between -1 and 1; of degrees 2 and 2."""
        return _in_blocks(self, NoisyPairs._correlation)

    def slope(self) -> GroupEstimate:
        """How many widths of y go with one width of x, by least squares; of degrees 2 and 1."""
        return _in_blocks(self, NoisyPairs._slope)

    def line_at(self, place: float) -> GroupEstimate:
        """Where the line stands at a place of x in widths, above the lower bound of y, in widths."""
        return _in_blocks(self, lambda part: part._line_at(place))

    def _sum(self, p: int, q: int) -> Floats:
        total: Floats = self.noisy.numbers @ self.weights(p, q)
        return total

    @property
    def _means(self) -> tuple[GroupEstimate, GroupEstimate]:
        ones = self.weights(0, 0)
        return self.noisy.ratio(self.weights(1, 0), ones), self.noisy.ratio(self.weights(0, 1), ones)

    def _central(self, x: Floats, y: Floats, p: int, q: int) -> Floats:
        """The weights of the sum of (x - a)^p (y - b)^q, a column for each group."""
        along_x = [_coefficients(self.degrees[0], k)[:, None] for k in range(p + 1)]
        along_y = [_coefficients(self.degrees[1], k)[:, None] for k in range(q + 1)]
        both = _power(along_x, x)[:, None, :] * _power(along_y, y)[None, :, :]
        return both.reshape(-1, x.size) / float(self.reach)

    def _dot(self, weights: Floats) -> Floats:
        total: Floats = np.einsum("gk,kg->g", self.noisy.numbers, weights)
        return total

    def _ratio(self, top: Floats, bottom: Floats, least: float, most: float, slack: "Slack") -> GroupEstimate:
        """A ratio between two bounds of sums with weights for each group; nothing is known where all fits.

        `slack` is what a true ratio may be off beyond the noises, in the unit of the top.
        """
        over, under = self._dot(top), self._dot(bottom)
        # ratios are tried on a scale that is fine near 0 where the bounds are far apart
        scale = np.linspace(np.arcsinh(least), np.arcsinh(most), _TESTS)
        tests = np.sinh(scale)
        reaches = np.stack([self.noisy.reach(top - share * bottom) for share in tests], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.clip(np.nan_to_num(np.where(under > 0, over / under, 0.0)), least, most)
        rows = np.arange(over.size)

        def outside(share: Floats) -> NDArray[np.bool_]:
            left = np.clip(np.searchsorted(tests, share, side="right") - 1, 0, _TESTS - 2)
            part = np.clip((share - tests[left]) / (tests[left + 1] - tests[left]), 0, 1)
            # a reach is convex in the ratio, so what lies on a line between two is never too small
            reach = (1 - part) * reaches[rows, left] + part * reaches[rows, left + 1]
            far: NDArray[np.bool_] = np.abs(over - share * under) > reach + slack(share)
            return far

        ends = [edge(value, np.full_like(value, end), outside) for end in (least, most)]
        # where the bottom could be 0, ratios on both sides of infinity fit, and the set is no interval
        unsure = (under <= self.noisy.reach(bottom)) | outside(value)
        return GroupEstimate(value, np.where(unsure, least, ends[0]), np.where(unsure, most, ends[1]))

    def _covariance(self) -> GroupEstimate:
        x, y = self._means
        count = np.maximum(self._sum(0, 0), 1.0)
        product = count * _half(x) * _half(y)
        top = self._central(x.value, y.value, 1, 1)
        bottom = np.broadcast_to(self.weights(0, 0)[:, None], top.shape)
        return self._ratio(top, bottom, -0.25, 0.25, lambda share: product)

    def _slope(self) -> GroupEstimate:
        """At the true slope s, T - s V is noise, V being the sum of (x - a)^2, but for products of errors."""
        x, y = self._means
        count, near_x, near_y = np.maximum(self._sum(0, 0), 1.0), _half(x), _half(y)
        top, bottom = self._central(x.value, y.value, 1, 1), self._central(x.value, y.value, 2, 0)
        return self._ratio(
            top,
            bottom,
            -self.steepest,
            self.steepest,
            lambda slope: count * near_x * (near_y + np.abs(slope) * near_x),
        )

    def _line_at(self, place: float) -> GroupEstimate:
        """The mean of y, and the slope times how far the place is from the mean of x.

        Its error is one sum of noises at the true line: that of y less the line, of which the count and the
        distance from the mean tell the weights. Where the slope is unknown, so is this, but at the mean.
        """
        x, y = self._means
        slope = self._slope()
        count = np.maximum(self._sum(0, 0), 1.0)
        spread = np.maximum(self._dot(self._central(x.value, y.value, 2, 0)), 1e-12)
        far = place - x.value
        # residuals y - b - s (x - a), weighted by 1/n and by (place - a)(x - a)/V
        flat = self._central(x.value, y.value, 0, 1) - slope.value * self._central(x.value, y.value, 1, 0)
        tilt = self._central(x.value, y.value, 1, 1) - slope.value * self._central(x.value, y.value, 2, 0)
        reach = self.noisy.reach(flat / count + tilt * far / spread)
        value = y.value + slope.value * far
        known = slope.lower > -self.steepest
        # what the first order leaves out: errors of the slope times those of the mean of x and of the count
        loose = _half(slope) * _half(x) + np.abs(far) * (_half(slope) - _narrow(self, tilt, spread))
        wide = np.where(
            known, reach + np.maximum(loose, 0.0), 1 + self.steepest * np.maximum(np.abs(far), 1.0)
        )
        return GroupEstimate(value, value - wide, value + wide)

    def _correlation(self) -> GroupEstimate:
        """To first order an error moves it by [ab - r (a² + b²) / 2] / n, a and b being standardised.

        It is widened by the second order of the errors of both variances, and where one of these is lost in
        noise nothing is known.
        """
        x, y = self._means
        count = np.maximum(self._sum(0, 0), 1.0)
        both = self._central(x.value, y.value, 1, 1)
        of_x, of_y = self._central(x.value, y.value, 2, 0), self._central(x.value, y.value, 0, 2)
        square_x, square_y = np.maximum(self._dot(of_x), 1e-12), np.maximum(self._dot(of_y), 1e-12)
        root = np.sqrt(square_x * square_y)
        value = np.clip(self._dot(both) / root, -1, 1)
        reach = self.noisy.reach(both / root - value / 2 * (of_x / square_x + of_y / square_y))
        off_x = (self.noisy.reach(of_x) + count * _half(x) ** 2) / square_x
        off_y = (self.noisy.reach(of_y) + count * _half(y) ** 2) / square_y
        off_both = self.noisy.reach(both) / root
        second = (
            count * _half(x) * _half(y) / root
            + np.abs(value) * (count * _half(x) ** 2 / square_x + count * _half(y) ** 2 / square_y) / 2
            + np.abs(value) * (3 / 8 * (off_x**2 + off_y**2) + off_x * off_y / 4)
            + off_both * (off_x + off_y) / 2
        )
        blind = (off_x > 0.5) | (off_y > 0.5)
        lower = np.where(blind, -1.0, np.clip(value - reach - second, -1, 1))
        upper = np.where(blind, 1.0, np.clip(value + reach + second, -1, 1))
        return GroupEstimate(value, lower, upper)


Slack = Callable[[Floats], Floats]


def _narrow(pairs: NoisyPairs, tilt: Floats, spread: Floats) -> Floats:
    """Half the interval of the slope to first order."""
    return pairs.noisy.reach(tilt / spread)


def _half(each: GroupEstimate) -> Floats:
    """The longer side of an interval, from its value."""
    return np.maximum(each.upper - each.value, each.value - each.lower)


def _coefficients(degree: int, power: int) -> Floats:
    """x^power in the Bernstein basis, each polynomial with its binomial factor: C(i, p) / C(d, p)."""
    i = np.arange(degree + 1, dtype=float)
    if power == 0:
        return np.ones(degree + 1)
    return i / degree if power == 1 else i * (i - 1) / (degree * (degree - 1))


def _power(parts: list[Floats], middle: Floats) -> Floats:
    """(x - a)^p for p = 0, 1, 2 from the coefficients of 1, x and x², a column for each group."""
    if len(parts) == 1:
        return np.broadcast_to(parts[0], (parts[0].shape[0], middle.size))
    if len(parts) == 2:
        return parts[1] - middle * parts[0]
    return parts[2] - 2 * middle * parts[1] + middle**2 * parts[0]


def _in_blocks(pairs: NoisyPairs, read: Callable[[NoisyPairs], GroupEstimate]) -> GroupEstimate:
    """The same for some groups at a time: reaches are many numbers for each."""
    numbers = pairs.noisy.numbers
    blocks = []
    for start in range(0, max(1, numbers.shape[0]), _BLOCK):
        noisy = replace(pairs.noisy, numbers=numbers[start : start + _BLOCK])
        blocks.append(read(replace(pairs, noisy=noisy)))
    return GroupEstimate(
        *(np.concatenate([getattr(each, end) for each in blocks]) for end in ("value", "lower", "upper"))
    )
