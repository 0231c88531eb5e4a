import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.learning.correlation.factor import BandedFactor, BufferedFactor, Factor, TreeFactor
from sourdine.learning.correlation.optimum import square_root

Floats = NDArray[np.float64]
FACTORS: list[Factor] = [
    BandedFactor(steps=13, coefficients=(1.0,)),
    BandedFactor(steps=13, coefficients=(1.0, 0.5, 0.25)),
    BandedFactor(steps=13, coefficients=(1.0, 0.25, 0.75, 0.5, 0.125)),
    BufferedFactor(steps=13, weights=(0.25,), decays=(0.75,)),
    BufferedFactor(steps=13, weights=(0.25, 0.125, 0.0625), decays=(0.0, 0.5, 0.96875)),
    TreeFactor(steps=1),
    TreeFactor(steps=13),
    TreeFactor(steps=16),
]


def matrix_of(factor: Factor) -> Floats:
    """The matrix by its definition, entry by entry."""
    steps = factor.steps
    if isinstance(factor, TreeFactor):
        rows = []
        for step in range(1, steps + 1):
            width = 1
            while width <= steps and step % width == 0:
                row = np.zeros(steps)
                row[step - width : step] = 1
                rows.append(row)
                width *= 2
        return np.array(rows)
    if isinstance(factor, BandedFactor):
        column = np.zeros(steps)
        column[: len(factor.coefficients)] = factor.coefficients
    else:
        assert isinstance(factor, BufferedFactor)
        pairs = list(zip(factor.weights, factor.decays, strict=True))
        column = np.array([1.0] + [sum(w * d**k for w, d in pairs) for k in range(steps - 1)])
    return np.array([[column[t - j] if j <= t else 0.0 for j in range(steps)] for t in range(steps)])


def heaviest(factor: Factor, every: int) -> float:
    """Over all starts, and over gradients that pull together or against each other."""
    matrix, most = matrix_of(factor), 0.0
    for start in range(min(every, factor.steps)):
        uses = list(range(start, factor.steps, every))
        for signs in range(1 << min(len(uses), 7)):
            unit = np.zeros(factor.steps)
            unit[uses] = [-1.0 if signs >> i & 1 else 1.0 for i in range(len(uses))]
            most = max(most, float(((matrix @ unit) ** 2).sum()))
    return most


@pytest.mark.parametrize("factor", FACTORS, ids=repr)
@pytest.mark.parametrize("every", [1, 2, 3, 4, 5, 13, 20])
def test_what_a_unit_moves_is_never_below_brute_force(factor: Factor, every: int) -> None:
    exact = heaviest(factor, every)
    assert exact <= factor.squared_length(every) <= exact * (1 + 1e-8) + _cut(factor, every)


def _cut(factor: Factor, every: int) -> float:
    """Bands that do not meet count in full, though the last ones end with the run."""
    if isinstance(factor, BandedFactor) and len(factor.coefficients) <= every:
        return float(factor.column @ factor.column)
    return 0.0


@pytest.mark.parametrize("factor", FACTORS, ids=repr)
def test_a_wrong_separation_is_seen(factor: Factor) -> None:
    """A unit that comes twice as often as was paid for moves more than was paid for."""
    if factor.steps > 1:
        assert heaviest(factor, 3) > factor.squared_length(6) * 1.2


@pytest.mark.parametrize("factor", FACTORS, ids=repr)
def test_noise_in_sums_is_that_of_least_squares(factor: Factor) -> None:
    matrix = matrix_of(factor)
    for step in range(1, factor.steps + 1):
        known = [row for row in matrix if not row[step:].any()]
        rows = np.array(known)[:, :step]
        if isinstance(
            factor, TreeFactor
        ):  # read off the nodes below it alone, so compared with its recursion
            expected = sum(float(Fraction(1 << h, (2 << h) - 1)) for h in range(10) if step >> h & 1)
        else:
            weights = np.linalg.solve(rows.T, np.ones(step))
            expected = float(weights @ weights)
        assert factor.variances[step - 1] == pytest.approx(expected, rel=1e-9)


def test_published_errors_of_the_square_root_and_of_trees() -> None:
    """Deviations of sums at one use a unit, from the literature's formulas (docs/guarantees/series.md)."""
    for steps, root, tree in ((52, 2.164, 3.26), (365, 2.782, 4.69), (1000, 3.102, 5.36)):
        factor = BandedFactor(steps=steps, coefficients=tuple(square_root(steps).tolist()))
        assert factor.error(steps) == pytest.approx(root, abs=6e-4)
        assert TreeFactor(steps=steps).error(steps) == pytest.approx(tree, abs=6e-3)


def test_independent_noise_is_that_of_dp_sgd() -> None:
    factor = BandedFactor(steps=100, coefficients=(1.0,))
    assert factor.error(10) == pytest.approx(math.sqrt(101 / 2), rel=1e-8)
    assert factor.stretch(10) == pytest.approx(1.0, abs=1e-8)
    assert factor.copies == 0


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (BandedFactor, {"steps": 3, "coefficients": (1.0, 0.5, 0.5, 0.5)}),
        (BandedFactor, {"steps": 3, "coefficients": (0.5,)}),
        (BandedFactor, {"steps": 3, "coefficients": (1.0, -0.5)}),
        (BandedFactor, {"steps": 3, "coefficients": (1.0, math.nan)}),
        (BufferedFactor, {"steps": 3, "weights": (0.7, 0.7), "decays": (0.5, 0.5)}),
        (BufferedFactor, {"steps": 3, "weights": (0.7,), "decays": (1.0,)}),
        (BufferedFactor, {"steps": 3, "weights": (-0.1,), "decays": (0.5,)}),
        (BufferedFactor, {"steps": 3, "weights": (0.1,), "decays": (0.5, 0.5)}),
        (TreeFactor, {"steps": 0}),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(kind: type[Factor], given: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        kind(**given)  # type: ignore[arg-type]


def test_an_identity_tells_factors_apart() -> None:
    assert len({factor.identity for factor in FACTORS}) == len(FACTORS)
