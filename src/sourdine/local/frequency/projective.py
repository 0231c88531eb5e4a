"""Categories and reports as points of a projective space: the variance of subset selection in a few bits."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sourdine.accounting.shuffling.blanket import Favours
from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.local.estimate import Counts
from sourdine.local.frequency.field import MOST_ORDER, ORDERS, prime_of, vectors
from sourdine.local.frequency.supports import CodedOracle, Ints
from sourdine.mechanisms.randomized_response import Channel

MOST_VECTORS = 1 << 26


@dataclass(frozen=True, kw_only=True)
class ProjectiveGeometry(CodedOracle):
    """Reports a point of a projective space, those on the category's hyperplane e^epsilon times as often.

    A changed answer costs epsilon (Feldman, Nelson, Nguyen, Talwar 2022). Categories are points u of the
    space of t coordinates over the field of g = `order` elements, reports are points v, and v lies on the
    hyperplane of u where <u, v> = 0. Any two hyperplanes share equally many points, so the variance is that
    of subset selection among the (g^t - 1)/(g - 1) points there are. Unless given (0), g is the prime power
    of least variance at a frequency of 1/k, near e^epsilon + 1.

    >>> oracle = ProjectiveGeometry(epsilon=1, categories=1000)
    >>> oracle.order, oracle.coordinates, oracle.codes, oracle.width
    (4, 6, 1365, 2)
    """

    name: ClassVar[str] = "projective-geometry/1"
    epsilon: Fraction
    categories: int
    order: int = 0

    def __post_init__(self) -> None:
        self.check_declared()
        owner = "ProjectiveGeometry"
        order = check.integer(owner, "order", self.order, 0, MOST_ORDER) or self._best()
        if prime_of(order) is None or order ** _coordinates(order, self.categories) > MOST_VECTORS:
            must = f"be a power of a prime that leaves at most {check.power(MOST_VECTORS)} vectors"
            raise check.fail(owner, "order", must, order, "Leave it out for the best.")
        object.__setattr__(self, "order", order)

    def _best(self) -> int:
        sizes = {order: _coordinates(order, self.categories) for order in ORDERS}
        spread = {
            order: float(_channel(self.epsilon, order, t).variance(1 / self.categories, 1))
            for order, t in sizes.items()
            if order**t <= MOST_VECTORS
        }
        return min(spread, key=spread.__getitem__)

    @property
    def coordinates(self) -> int:
        """How many coordinates a point has."""
        return _coordinates(self.order, self.categories)

    @property
    def codes(self) -> int:
        return _points(self.order, self.coordinates)

    @property
    def channel(self) -> Channel:
        return _channel(self.epsilon, self.order, self.coordinates)

    @property
    def revealing(self) -> float:
        """Of the points of a hyperplane, those that another one does not share."""
        g, t = self.order, self.coordinates
        unshared: int = g ** (t - 2)
        return self.channel.p * unshared / _points(g, t - 1)

    @property
    def favours(self) -> tuple[Favours, ...]:
        """The first three categories are points of a line: what two hyperplanes share, the third has too."""
        points, plane, shared = (_points(self.order, self.coordinates - less) for less in range(3))
        alone = (plane - shared) / points
        third = alone if self.categories > 2 else 0.0
        return (Favours(each=plane / points, alone=alone, both=shared / points, third=third),)

    @property
    def touching(self) -> Fraction:
        """The points on a hyperplane to each point off it, of those that a draw chooses among."""
        rest = self.coordinates - 1
        return Fraction(_points(self.order, rest), self.order**rest)

    def encode(self, truth: Ints, bits: Bits) -> Ints:
        """Draw all coordinates but one, and solve <u, v> = 0, or = 1 off the hyperplane, for that one.

        The coordinate solved for is the first of u that is not 0: it is 1, and those before it are 0, so they
        do not count. On the hyperplane the others are a point of one dimension less, off it any vector.
        """
        g, rest, field = self.order, self.coordinates - 1, vectors(self.order, 1).field
        on, off = _points(g, rest), g**rest
        touching = exact.bernoulli_odds(self.epsilon, self.touching, truth.size, bits)
        inside = _vector(g, rest, exact.uniform(on, truth.size, bits))
        drawn = np.where(touching, inside, exact.uniform(off, truth.size, bits))
        point = _vector(g, rest + 1, truth)
        place = _leading(g, rest + 1, point)
        high = drawn // place
        low = drawn - high * place
        product = vectors(g, rest).dot(low, point - place)
        solved = field.add((~touching).astype(np.int64), field.minus[product])
        return _number(g, rest + 1, (high * g + solved) * place + low)

    def supports(self, counts: Counts) -> Ints:
        """How many reports lie on the hyperplane of each category."""
        g, t = self.order, self.coordinates
        spread = np.zeros(g**t, np.int64)
        spread[_vector(g, t, np.arange(self.codes))] = counts.sums
        return vectors(g, t).on_hyperplanes(spread, _vector(g, t, np.arange(self.categories)))

    def support_sizes(self) -> Ints:
        g, t = self.order, self.coordinates
        every = np.zeros(g**t, np.int64)
        every[_vector(g, t, np.arange(self.categories))] = 1
        return vectors(g, t).on_hyperplanes(every, _vector(g, t, np.arange(self.codes)))

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(4, 3), categories=20, order=4),
            value=0,
            neighbour=19,
            distance=Distance.hamming(),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(1, 2), categories=12, order=3),
            value=5,
            neighbour=4,
            distance=Distance.hamming(),
        )


def _points(order: int, coordinates: int) -> int:
    """How many points a projective space has: vectors other than 0, up to a factor."""
    count: int = (order**coordinates - 1) // (order - 1)
    return count


def _coordinates(order: int, categories: int) -> int:
    """The least t, from 2 on, that gives every category a point."""
    return next(t for t in range(2, 65) if _points(order, t) >= categories)


def _channel(epsilon: Fraction, order: int, coordinates: int) -> Channel:
    """By the points there are, those of a hyperplane, and those that two hyperplanes share."""
    points, plane, shared = (_points(order, coordinates - less) for less in range(3))
    decay = math.exp(-epsilon)
    total = plane + (points - plane) * decay
    return Channel(plane / total, (shared + (plane - shared) * decay) / total)


def _places(order: int, coordinates: int) -> Ints:
    return order ** np.arange(coordinates, dtype=np.int64)


def _leading(order: int, coordinates: int, vector: Ints) -> Ints:
    """The place value of the first coordinate that is not 0."""
    places = _places(order, coordinates)
    return places[np.searchsorted(places, vector, side="right") - 1]


def _vector(order: int, coordinates: int, numbers: Ints) -> Ints:
    """The vector of a point's number: points are counted by their vectors whose first coordinate is 1."""
    places = _places(order, coordinates)
    starts = (places - 1) // (order - 1)
    block = np.searchsorted(starts, numbers, side="right") - 1
    return numbers + (places - starts)[block]


def _number(order: int, coordinates: int, vector: Ints) -> Ints:
    """The number of the point that a vector lies on."""
    place = _leading(order, coordinates, vector)
    space = vectors(order, coordinates)
    point = space.scaled(space.field.inverse[vector // place], vector)
    return point - place + (place - 1) // (order - 1)
