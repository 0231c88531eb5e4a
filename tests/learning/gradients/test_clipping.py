import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Automatic, Clipping, Flat, PerLayer

lengths = st.floats(min_value=0, max_value=2**60, width=32)
norms = st.floats(min_value=2**-40, max_value=2**40)


def weighed(clipping: Clipping, layers: list[list[float]]) -> list[float]:
    """What is left of the norm of each example, over the norm that is allowed."""
    squares = {str(i): torch.tensor(each, dtype=torch.float32).square() for i, each in enumerate(layers)}
    weights = clipping.weights(squares)
    total = torch.zeros(len(layers[0]), dtype=torch.float64)
    for name, each in squares.items():
        total += weights[name].double().square() * each.double()
    return [float(each) for each in total.sqrt() / clipping.norm]


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(lengths, min_size=n, max_size=n), min_size=1, max_size=6)
    ),
    norms,
    st.sampled_from([Flat, PerLayer, Automatic]),
)
def test_nothing_is_longer_than_the_norm(
    layers: list[list[float]], norm: float, kind: type[Clipping]
) -> None:
    assert all(each <= 1 for each in weighed(kind(norm=norm), layers))


def test_short_gradients_are_left_alone() -> None:
    squares = {"a": torch.tensor([0.0, 0.04]), "b": torch.tensor([0.0, 0.05])}
    assert Flat(norm=0.5).weights(squares)["a"].tolist() == [1.0, 1.0]
    assert PerLayer(norm=0.5).weights(squares)["b"].tolist() == [1.0, 1.0]


def test_what_each_kind_does_to_long_ones() -> None:
    squares = {"a": torch.tensor([9.0]), "b": torch.tensor([16.0])}
    assert Flat(norm=2.0).weights(squares)["a"].item() == pytest.approx(2 / 5, rel=1e-5)
    each = PerLayer(norm=2.0).weights(squares)
    assert each["a"].item() == pytest.approx(math.sqrt(2) / 3, rel=1e-5)
    assert each["b"].item() == pytest.approx(math.sqrt(2) / 4, rel=1e-5)
    scaled = Automatic(norm=2.0, stability=1.0).weights(squares)
    assert scaled["b"].item() == pytest.approx(2 / 6, rel=1e-5)


@pytest.mark.parametrize("kind", [Flat, PerLayer, Automatic])
@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_what_is_not_finite_weighs_nothing_in_any_layer(kind: type[Clipping], bad: float) -> None:
    squares = {"a": torch.tensor([1.0, bad]), "b": torch.tensor([1.0, 1.0])}
    found: list[Tensor] = list(kind().weights(squares).values())
    assert all(each[1] == 0 and each[0] > 0 for each in found)


@pytest.mark.parametrize("norm", [0, -1, math.inf, math.nan, 2**41, 2**-41, "1", True])
@pytest.mark.parametrize("kind", [Flat, PerLayer, Automatic])
def test_bad_norms_are_refused(kind: type[Clipping], norm: object) -> None:
    with pytest.raises(InvalidParameter, match=f"'norm' of {kind.__name__}"):
        kind(norm=norm)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0.0, -1.0, 1e-13, 1e-60, math.inf])  # float32 takes 1e-60 for 0
def test_a_bad_stability_is_refused(bad: float) -> None:
    with pytest.raises(InvalidParameter, match="'stability' of Automatic"):
        Automatic(stability=bad)
