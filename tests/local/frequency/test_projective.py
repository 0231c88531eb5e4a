"""Projective geometry: its sampler by all of its coins, and its variance beside subset selection's."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.core.random import samplers as exact
from sourdine.local import ProjectiveGeometry
from sourdine.testing import SeededBits
from tests import code_laws
from tests.errors import refusal_of


@pytest.mark.parametrize(("order", "coordinates"), [(2, 4), (3, 2), (3, 3), (4, 3), (5, 3), (8, 2), (9, 2)])
def test_each_point_on_and_off_a_hyperplane_comes_from_one_draw(
    monkeypatch: pytest.MonkeyPatch, order: int, coordinates: int
) -> None:
    """With the coins replaced by all they can be, the law is uniform on either side, exactly."""
    points = code_laws.points(order, coordinates)
    oracle = ProjectiveGeometry(epsilon=1, categories=len(points), order=order)
    assert (oracle.codes, oracle.coordinates) == (len(points), coordinates)
    on, off = (order ** (coordinates - 1) - 1) // (order - 1), order ** (coordinates - 1)
    odds = []

    def toss(log_odds: Fraction, factor: Fraction, count: int, bits: object) -> np.ndarray:
        odds.append((log_odds, factor))
        return np.arange(count) < on

    def draws(size: int, count: int, bits: object) -> np.ndarray:
        drawn = np.arange(count) if size == on else np.arange(count) - on
        return drawn % size

    monkeypatch.setattr(exact, "bernoulli_odds", toss)
    monkeypatch.setattr(exact, "uniform", draws)
    for x in range(len(points)):
        codes = oracle.encode(np.full(on + off, x), SeededBits(1)).tolist()
        assert sorted(codes) == list(range(len(points)))
        for i, code in enumerate(codes):
            assert (code_laws.dot(order, coordinates, points[x], points[code]) == 0) == (i < on)
    assert set(odds) == {(1, Fraction(on, off))}


@pytest.mark.parametrize(("order", "coordinates"), [(2, 3), (3, 3), (4, 3), (5, 3), (2, 5)])
def test_two_hyperplanes_share_equally_many_points(order: int, coordinates: int) -> None:
    points = code_laws.points(order, coordinates)
    planes = [{v for v in points if code_laws.dot(order, coordinates, u, v) == 0} for u in points]
    shared = {len(a & b) for a, b in itertools.combinations(planes, 2)}
    assert {len(plane) for plane in planes} == {(order ** (coordinates - 1) - 1) // (order - 1)}
    assert shared == {(order ** (coordinates - 2) - 1) // (order - 1)}


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2, 4])
@pytest.mark.parametrize("categories", [2, 7, 16, 100, 1000, 10_000])
def test_the_variance_is_that_of_subset_selection_among_the_points(epsilon: float, categories: int) -> None:
    oracle = ProjectiveGeometry(epsilon=epsilon, categories=categories)
    points, e = oracle.codes, math.exp(epsilon)
    size = (points - 1) // oracle.order
    p = size * e / (size * e + points - size)
    q = (size - p) / (points - 1)
    for f in (0.0, 0.3, 1.0):
        stated = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2
        assert float(oracle.variance(f, 1)) == pytest.approx(stated)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4])
def test_it_costs_at_most_two_percent_beside_the_best_subsets(epsilon: float) -> None:
    k, e = 1000, math.exp(epsilon)
    best = math.inf
    for size in range(1, k // 2):
        p = size * e / (size * e + k - size)
        q = (size - p) / (k - 1)
        best = min(best, (p * (1 - p) / k + (1 - 1 / k) * q * (1 - q)) / (p - q) ** 2)
    stated = float(ProjectiveGeometry(epsilon=epsilon, categories=k).variance(1 / k, 1))
    assert best * (1 - 1e-9) <= stated < 1.02 * best


def test_few_categories_make_it_k_ary_response() -> None:
    oracle = ProjectiveGeometry(epsilon=2, categories=8)
    assert (oracle.order, oracle.coordinates, oracle.codes) == (7, 2, 8)
    e = math.exp(2)
    assert oracle.channel == pytest.approx((e / (e + 7), 1 / (e + 7)))


@pytest.mark.parametrize("order", [1, 6, 10, 600, -3, 2.5])
def test_orders_of_no_field_are_refused(order: int) -> None:
    with refusal_of("order", "ProjectiveGeometry"):
        ProjectiveGeometry(epsilon=1, categories=10, order=order)


def test_too_many_vectors_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at most 2\\^26 vectors"):
        ProjectiveGeometry(epsilon=1, categories=1 << 20, order=512)
    assert ProjectiveGeometry(epsilon=5, categories=1 << 24).codes >= 1 << 24
