"""Gradients as whole numbers: no example passes the grid's bound, whatever floats it brings."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from sourdine.learning import Automatic, Clipping, Flat, PerLayer
from sourdine.learning.gradients.per_example import GradientRows
from sourdine.learning.gradients.whole import _exact_squares, whole_sum
from sourdine.learning.noise.noisy_gradient import GRID_STEPS


@dataclass(frozen=True, kw_only=True)
class Unclipped(Clipping):
    """A clipping that forgot to clip, as a fault of floats might."""

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {name: torch.ones_like(each) for name, each in squares.items()}


def summed(rows: Tensor, clipping: Clipping, counted: Tensor | None = None) -> list[int]:
    found = whole_sum({"weight": GradientRows(rows)}, {"weight": "layer"}, clipping, counted)
    assert found["weight"].dtype == torch.int64
    return [int(each) for each in found["weight"]]


def test_a_length_of_exactly_the_bound_counts_and_one_square_more_does_not() -> None:
    three, four = 3 * GRID_STEPS // 5, 4 * GRID_STEPS // 5
    rest = GRID_STEPS**2 - three**2 - four**2
    edge, more = [], []
    while rest:  # whole squares that fill up what is left
        root = int(rest**0.5)
        edge.append(root)
        rest -= root**2
    edge = [three, four, *edge]
    more = [*edge, 1]
    edge = [*edge, 0]
    assert sum(each**2 for each in edge) == GRID_STEPS**2
    rows = torch.tensor([edge, more], dtype=torch.float64)
    counts = [summed((rows[i : i + 1] / GRID_STEPS).float(), Unclipped()) for i in (0, 1)]
    assert counts[0] == edge
    assert counts[1] == [0] * len(edge)


@pytest.mark.parametrize("clipping", [Flat(norm=0.3), PerLayer(norm=7.0), Automatic(norm=2.0**-40)])
@pytest.mark.parametrize(
    "odd",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        3.4e38,
        1e20,
        1e-45,
        -0.0,
        2.0**-149 * 3,
    ],
)
def test_no_example_passes_the_bound(clipping: Clipping, odd: float) -> None:
    rows = torch.randn(3, 50, generator=torch.Generator().manual_seed(1))
    rows[1, 7] = odd
    rows[2] = odd
    for i in range(3):
        steps = summed(rows[i : i + 1], clipping)
        assert sum(each**2 for each in steps) <= GRID_STEPS**2
        if i and not torch.isfinite(torch.tensor(odd)):
            assert steps == [0] * 50  # adds exactly nothing
    each = [summed(rows, clipping, torch.arange(3) == i) for i in range(3)]  # in one shape: see places
    assert summed(rows, clipping) == [sum(parts) for parts in zip(*each, strict=True)]


def test_hardly_anything_is_lost_by_the_grid() -> None:
    rows = torch.randn(20, 5000, generator=torch.Generator().manual_seed(2))
    steps = torch.tensor(summed(rows, Flat(norm=0.5)), dtype=torch.float64) * 0.5 / GRID_STEPS
    clipped = (rows.double() * 0.5 / rows.double().norm(dim=1, keepdim=True)).sum(0)
    assert float((steps - clipped).norm() / clipped.norm()) < 1e-3


def test_long_vectors_do_not_overflow() -> None:
    """2^22 numbers of 2^20 steps have a square of 2^62; larger ones, one that no integer holds."""
    rows = torch.ones(1, 1 << 22)
    assert float(_exact_squares(rows * (1 << 20))) == 2.0**62
    for scale in (1.0, 1e15):
        found = whole_sum({"a": GradientRows(rows * scale)}, {"a": "a"}, Unclipped())
        assert not bool(found["a"].any())


def test_only_what_is_counted_counts() -> None:
    rows = torch.eye(3) * 0.5
    half = GRID_STEPS // 2
    assert summed(rows, Flat(norm=1.0), torch.tensor([True, False, True])) == [half, 0, half]
    assert summed(rows, Flat(norm=1.0), torch.zeros(3, dtype=torch.bool)) == [0, 0, 0]


def test_layers_of_one_example_are_bounded_together() -> None:
    parts = {"a": GradientRows(torch.full((1, 4), 0.4)), "b": GradientRows(torch.full((1, 4), 0.4))}
    found = whole_sum(parts, {"a": "one", "b": "two"}, Unclipped())
    assert not any(bool(each.any()) for each in found.values())  # 0.8 each, 1.13 together


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e12])
def test_per_layer_clipping_bounds_each_layer_and_all_together(scale: float) -> None:
    generator = torch.Generator().manual_seed(3)
    rows = {name: torch.randn(1, size, generator=generator) * scale for name, size in (("a", 3), ("b", 400))}
    parts = {name: GradientRows(each) for name, each in rows.items()}
    layers = {"a": "one", "b": "two", "c": "absent"}  # a layer that a batch leaves out keeps its share
    steps = whole_sum(parts, layers, PerLayer(norm=2.0))
    squares = {name: sum(int(each) ** 2 for each in steps[name]) for name in rows}
    assert all(3 * square <= GRID_STEPS**2 for square in squares.values())
    assert sum(squares.values()) <= GRID_STEPS**2
    for name, each in rows.items():
        share = min(float(each.norm()), 2 / 3**0.5) / 2
        assert abs(squares[name] ** 0.5 / GRID_STEPS - share) < 1e-4
