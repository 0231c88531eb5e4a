"""Finite fields against polynomial arithmetic written out, and sums over hyperplanes against brute force."""

import itertools

import numpy as np
import pytest

from sourdine.local.frequency.field import ORDERS, Field, prime_of, vectors
from tests import code_laws


def test_the_orders_are_the_prime_powers() -> None:
    primes = [p for p in range(2, 513) if all(p % d for d in range(2, p))]
    powers = sorted(p**r for p in primes for r in range(1, 10) if p**r <= 512)
    assert list(ORDERS) == powers
    assert [prime_of(order) for order in (1, 6, 12, 512, 343)] == [None, None, None, 2, 7]


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7, 8, 9, 11, 16, 25, 27])
def test_the_tables_are_those_of_a_field(order: int) -> None:
    field = Field(order)
    everything = np.arange(order)
    a, b, c = np.meshgrid(everything, everything, everything)
    for table, neutral in ((field.plus, 0), (field.times, 1)):
        assert np.array_equal(table, table.T)
        assert np.array_equal(table[neutral], everything)
        assert np.array_equal(table[table[a, b], c], table[a, table[b, c]])
    assert np.array_equal(field.times[a, field.plus[b, c]], field.plus[field.times[a, b], field.times[a, c]])
    assert not field.plus[everything, field.minus].any()
    assert (field.times[everything[1:], field.inverse[1:]] == 1).all()


@pytest.mark.parametrize("order", [2, 3, 4, 5, 8, 9])
def test_products_are_those_of_polynomials(order: int) -> None:
    """The moduli of the laws are those that the rule of the package leads to, so devices may use either."""
    field = Field(order)
    for a, b in itertools.product(range(order), repeat=2):
        assert field.times[a, b] == code_laws.product(order, a, b)
        assert field.plus[a, b] == code_laws.total(order, [a, b])


@pytest.mark.parametrize("order", [2, 3, 4, 53, 243, 256, 361, 512])
def test_large_fields_have_a_generator_and_no_divisors_of_zero(order: int) -> None:
    field = Field(order)
    assert (field.times[1:, 1:] > 0).all()
    assert len(set(field.times[3 % order, 1:].tolist())) in (1, order - 1)


@pytest.mark.parametrize(
    ("order", "length"), [(2, 1), (2, 23), (3, 8), (4, 6), (5, 2), (8, 5), (9, 4), (512, 2)]
)
def test_dots_and_multiples_go_coordinate_by_coordinate(order: int, length: int) -> None:
    space = vectors(order, length)
    places = [order**i for i in range(length)]
    drawn = np.random.default_rng(length).integers(0, order, (2, length, 50))
    a, b = (sum(digit * place for digit, place in zip(each, places, strict=True)) for each in drawn)
    total = np.zeros(50, np.int64)
    for x, y in zip(*drawn, strict=True):
        total = space.field.plus[total, space.field.times[x, y]]
    assert np.array_equal(space.dot(a, b), total)
    factor = drawn[1][0]
    parts = [space.field.times[factor, digit] * place for digit, place in zip(drawn[0], places, strict=True)]
    assert np.array_equal(space.scaled(factor, a), sum(parts))


@pytest.mark.parametrize(
    ("order", "length"), [(2, 5), (3, 4), (4, 3), (5, 3), (7, 2), (8, 2), (9, 2), (27, 1), (25, 2)]
)
def test_sums_over_hyperplanes(order: int, length: int) -> None:
    space = vectors(order, length)
    counts = np.random.default_rng(order).integers(0, 1 << 30, order**length)
    everything = np.arange(order**length)
    brute = [counts[space.dot(np.full_like(everything, x), everything) == 0].sum() for x in everything]
    assert space.on_hyperplanes(counts, everything).tolist() == brute
