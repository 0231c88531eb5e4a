import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from sourdine.learning.gradients.per_example import (
    GradientRows,
    Lookup,
    Outer,
    PerExample,
    products,
    together,
)

EXAMPLES = 6


def rows() -> tuple[PerExample, Tensor]:
    given = torch.randn(EXAMPLES, 4, 5)
    return GradientRows(given), given


def outer(groups: int, places: int) -> tuple[PerExample, Tensor]:
    a, g = torch.randn(EXAMPLES, groups, places, 5), torch.randn(EXAMPLES, groups, places, 4 // groups)
    return Outer(a, g, torch.Size((4, 5))), torch.einsum("egpo,egpi->egoi", g, a).reshape(EXAMPLES, 4, 5)


def lookup(without: int | None = None) -> tuple[PerExample, Tensor]:
    indices, g = torch.randint(0, 4, (EXAMPLES, 2, 3)), torch.randn(EXAMPLES, 2, 3, 5)
    chosen = one_hot(indices, 4).float()
    if without is not None:
        chosen[..., without] = 0
    return Lookup(indices, g, 4, without), torch.einsum("eabr,eabi->eri", chosen, g)


def kinds() -> list[tuple[PerExample, Tensor]]:
    torch.manual_seed(1)
    return [rows(), outer(1, 1), outer(1, 7), outer(2, 1), outer(2, 3), lookup(), lookup(2)]


@pytest.mark.parametrize("kind", range(7))
def test_norms_and_sums(kind: int) -> None:
    part, given = kinds()[kind]
    weights = torch.rand(EXAMPLES, dtype=torch.float64)
    assert torch.allclose(part.whole(), given, atol=1e-5)
    assert torch.allclose(part.squares(), given.square().sum((1, 2)), rtol=1e-5)
    assert torch.allclose(
        part.weighted(weights), torch.einsum("e,eij->ij", weights.float(), given), atol=1e-5
    )


@pytest.mark.parametrize("kind", range(7))
def test_people_with_several_examples(kind: int) -> None:
    part, given = kinds()[kind]
    expected = given.reshape(EXAMPLES // 2, 2, 4, 5).sum(1)
    assert torch.allclose(part.merged(2).whole(), expected, atol=1e-5)
    assert torch.allclose(part.merged(2).squares(), expected.square().sum((1, 2)), rtol=1e-4)


@pytest.mark.parametrize("kind", range(7))
def test_examples_that_are_left_out_are_exactly_zero(kind: int) -> None:
    part, given = kinds()[kind]
    left_out = torch.tensor([False, True, False, False, True, False])
    spoilt = part.without(left_out)
    assert not bool(spoilt.whole()[left_out].any())
    assert torch.allclose(spoilt.whole()[~left_out], given[~left_out], atol=1e-5)


def test_infinite_factors_of_a_left_out_example_vanish() -> None:
    left_out = torch.tensor([False, True])
    bad = torch.tensor([1.0, math.inf])[:, None, None, None]
    for part in (
        GradientRows(torch.ones(2, 4, 5) * bad[..., 0]),
        Outer(torch.ones(2, 1, 3, 5) * bad, torch.zeros(2, 1, 3, 4), torch.Size((4, 5))),
        Outer(torch.ones(2, 1, 1, 5), torch.ones(2, 1, 1, 4) * bad, torch.Size((4, 5))),
        Lookup(torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 3, 5) * bad[..., 0], 4),
    ):
        assert not bool(torch.isfinite(part.squares()).all())
        weights = torch.tensor([1.0, 0.0])
        assert not bool(torch.isfinite(part.weighted(weights)).all())
        assert bool(torch.isfinite(part.without(left_out).weighted(weights)).all())


@pytest.mark.parametrize("first", range(7))
@pytest.mark.parametrize("second", range(7))
def test_several_uses_of_a_parameter_have_cross_terms(first: int, second: int) -> None:
    one, other = kinds()[first], kinds()[second]
    both, expected = together([one[0], other[0], one[0]]), 2 * one[1] + other[1]
    assert torch.allclose(both.squares(), expected.square().sum((1, 2)), rtol=1e-4)
    assert torch.allclose(both.weighted(torch.ones(EXAMPLES)), expected.sum(0), atol=1e-4)


def test_a_table_and_a_matrix_stay_products() -> None:
    assert isinstance(together([outer(1, 3)[0], lookup()[0]]), Outer)
    assert isinstance(together([lookup()[0], lookup()[0]]), GradientRows)


def test_small_gradients_are_made_and_large_ones_are_not() -> None:
    a, g = torch.randn(2, 1, 9, 5), torch.randn(2, 1, 9, 4)
    assert isinstance(products(a, g, torch.Size((4, 5))), GradientRows)
    assert isinstance(products(a[:, :, :1], g[:, :, :1], torch.Size((4, 5))), Outer)


def test_long_rows_are_measured_to_float32() -> None:
    # a plain running sum of so many equal numbers is off by a percent
    part = GradientRows(torch.full((1, 3_000_001), 0.1))
    exact = 3_000_001 * float(torch.tensor(0.1)) ** 2
    assert float(part.squares()) == pytest.approx(exact, rel=2e-6)


def test_a_norm_is_not_hidden_by_terms_that_cancel() -> None:
    a = torch.randn(1, 1, 8, 50) * 1e4
    both = torch.cat([a, a], dim=2)
    g = torch.randn(1, 1, 8, 60) * 1e4
    part = Outer(both, torch.cat([g, -g], dim=2), torch.Size((60, 50)))
    left = part.weighted(torch.ones(1)).double().square().sum()
    assert float(part.squares()) >= float(left)
    assert float(part.squares()) > 0


@pytest.mark.parametrize("small", [1e-23, 1e-30, 1e-19])
def test_a_norm_is_not_hidden_by_a_factor_whose_square_is_too_small(small: float) -> None:
    a, g = torch.zeros(1, 1, 1, 9), torch.zeros(1, 1, 1, 8)
    a[..., 2], g[..., 5] = small, 1e19
    part = Outer(a, g, torch.Size((8, 9)))
    left = part.weighted(torch.ones(1)).double().norm()
    assert float(part.squares().double().sqrt()) >= float(left) * (1 - 2e-6)


def test_examples_without_a_gradient_count_next_to_nothing() -> None:
    part = Outer(torch.zeros(2, 1, 1, 9), torch.ones(2, 1, 1, 8), torch.Size((8, 9)))
    assert float(part.squares().max()) < 2.0**-100
