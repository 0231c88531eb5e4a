"""Which way to the clipped gradients of a matrix is the quickest, by costs that were measured.

A layer that uses a matrix at several places has several ways to norms and a weighted sum: a copy of the
gradient for each example, or norms from products of what it was given (ghost norms) and a sum by one product
over all; a convolution has its copies by cut-out windows, or by examples as groups of channels. The choice
depends on shapes alone, never on data, and changes no result but in last digits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class Route(Enum):
    """A way to the clipped gradients of a matrix."""

    COPIES = "copies"  # a product for each example, then norms and a sum of what is there
    GHOST = "ghost"  # norms by products of places with places, then one product for the sum
    GROUPS = "groups"  # copies by a convolution in which examples are groups of channels


@dataclass(frozen=True)
class MatrixUse:
    """How a layer uses a matrix: for so many examples, in groups of channels, at so many places."""

    examples: int
    groups: int
    places: int
    inputs: int  # of a group
    outputs: int  # of a group
    window: int = 1  # numbers of one channel at a place: if several, they must be cut out first

    @property
    def fits(self) -> bool:
        """Whether copies are at most twice as large as what they are made of, so that memory stays small."""
        return self.inputs * self.outputs <= 2 * self.places * (self.inputs + self.outputs)

    def amounts(self, route: Route) -> Mapping[str, int]:
        """How much of each kind of work a way takes."""
        each, places, inputs, outputs = self.examples * self.groups, self.places, self.inputs, self.outputs
        weights, numbers = each * inputs * outputs, each * places * (inputs + outputs)
        windows = each * places * inputs if self.window > 1 else 0
        if route is Route.GROUPS:
            few, many = inputs // self.window < FEW_CHANNELS, self.groups * inputs * outputs > MANY_WEIGHTS
            return {
                "grouped, few channels" if few else "grouped": weights * places,
                "regrouped" if many else "grouped copies": weights,
            }
        if route is Route.COPIES:
            return {"multiplied": weights * places, "copied": weights, "products": each, "cut": windows}
        if places == 1:
            return {"multiplied": weights, "measured": numbers}
        grams = each * places * places
        return {
            "multiplied": weights * places,
            "multiplied twice as wide": grams * (inputs + outputs),
            "compared": grams,
            "widened": numbers,
            "products": each,
            "cut": windows,
        }

    def seconds(self, route: Route) -> float:
        """What a way takes on the machine that costs were measured on."""
        return 1e-12 * sum(PICOSECONDS[kind] * amount for kind, amount in self.amounts(route).items())


# oneDNN works on several channels of a group at once, and takes long to put many weights in order.
FEW_CHANNELS, MANY_WEIGHTS = 8, 1 << 16
# What a unit of each kind of work takes, in picoseconds: one core of an AMD EPYC with AVX-512, torch 2.13,
# float32. `python -m benchmarks.learning.ways --fit` measures and fits them again, and says where the way
# that is chosen by them was not the quickest. Three were not fitted but set
# by hand: "grouped, few channels", "grouped copies" and "regrouped". Only how they compare counts, not how
# quick a machine is.
PICOSECONDS: dict[str, float] = {
    "multiplied": 25.0,
    "multiplied twice as wide": 28.0,
    "grouped": 30.0,
    "grouped, few channels": 135.0,
    "copied": 620.0,
    "grouped copies": 2000.0,
    "regrouped": 3500.0,
    "measured": 3000.0,
    "compared": 4500.0,
    "widened": 3000.0,
    "cut": 540.0,
    "products": 330_000.0,
}


def quickest(use: MatrixUse, routes: Sequence[Route] = (Route.COPIES, Route.GHOST)) -> Route:
    """The way that takes the least time, of those whose memory is in proportion to what a layer was given.

    >>> quickest(MatrixUse(64, 1, 1, 25088, 512))
    <Route.GHOST: 'ghost'>
    >>> quickest(MatrixUse(16, 1, 128, 256, 1024))
    <Route.COPIES: 'copies'>
    """
    if not use.fits:
        return Route.GHOST
    return min(routes, key=use.seconds)
