import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sourdine.accounting import PLD, Spend, plan_cost
from sourdine.accounting.ledger import ConcentratedBudget, Ledger, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter
from sourdine.learning import solve
from sourdine.learning.least_squares.equations import (
    CONSTANT,
    SHARE,
    NormalEquations,
    Projection,
    UnitRows,
    WholeRows,
)
from sourdine.learning.least_squares.solve import least_noise
from sourdine.testing import SeededBits
from tests.narrow import some

SOURCE = torch.Generator().manual_seed(6)
ANY = st.floats(width=32)


def data(size: int = 3000, width: int = 6, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Classes are the cones around the first axes."""
    rows = torch.randn(size, width, generator=SOURCE)
    return rows, rows[:, :classes].argmax(1)


@settings(max_examples=60)
@given(
    rows=hnp.arrays(np.float32, st.tuples(st.integers(1, 6), st.just(5)), elements=ANY),
    at=st.integers(0, 5),
    label=st.integers(-2, 4),
    projected=st.booleans(),
    norm=st.sampled_from([None, 0.01, 3.0]),
)
def test_a_row_moves_the_sums_by_no_more_than_is_said_and_no_other_row(
    rows: np.ndarray, at: int, label: int, projected: bool, norm: float | None
) -> None:
    equations = NormalEquations(width=4 if projected else 5, classes=3, fineness=6)
    steps = WholeRows(projection=Projection(5, 4) if projected else None, norm=norm)
    at %= len(rows)
    labels = torch.full((len(rows),), label)
    every = equations.sums(torch.from_numpy(rows), labels, steps)
    fewer = np.delete(rows, at, 0)
    without = equations.sums(torch.from_numpy(fewer), labels[1:], steps)
    moved = [int(each) for each in every - without]
    assert sum(each**2 for each in moved) <= equations.distance.amount
    assert len(moved) == equations.distance.coordinates


def test_the_bound_is_reached_by_the_worst_row() -> None:
    equations = NormalEquations(width=2, classes=2, fineness=12)
    sums = equations.sums(torch.tensor([[1.0, 0.0]]), torch.tensor([1]), WholeRows())
    reached = sum(int(each) ** 2 for each in sums) / float(equations.distance.amount)
    assert 0.9 < reached <= 1


def test_sums_are_those_of_exact_arithmetic() -> None:
    rows, targets = data(50, 3)
    targets[0] = 9  # names no class
    equations = NormalEquations(width=3, classes=3, fineness=8)
    found = equations.sums(rows, targets, WholeRows())
    matrix = np.zeros((4, 4), object)
    columns = np.zeros((4, 3), object)
    for row, label in zip(rows.numpy().astype(np.float64), targets.tolist(), strict=True):
        if label == 9:
            continue
        levels = np.rint(row / np.abs(row).max() * 2**14)
        whole = [math.trunc(each / math.sqrt((levels**2).sum()) * SHARE * 256) for each in levels]
        whole.append(math.floor(CONSTANT * 256))
        assert sum(each**2 for each in whole) <= 256**2
        matrix += np.outer(np.array(whole, object), np.array(whole, object))
        columns[:, label] += 256 * np.array(whole, object)
    expected = [*matrix[np.triu_indices(4)], *columns.ravel()]
    assert found.tolist() == expected
    back, by_class = equations.read(found)
    np.testing.assert_allclose(back.numpy(), matrix.astype(float) / 256**2)
    np.testing.assert_allclose(by_class.numpy(), columns.astype(float) / 256**2)


def test_steps_are_the_rows_of_the_model_and_count_nothing_that_is_no_number() -> None:
    rows = torch.randn(20, 40, generator=SOURCE) * torch.logspace(-8, 8, 20)[:, None]
    projection = Projection(40, 7)
    for norm in (None, 2.0):
        wanted = UnitRows(norm)(projection(rows))
        found = WholeRows(projection=projection, norm=norm)(rows, 2.0**20) / 2.0**20
        torch.testing.assert_close(found.float(), wanted, atol=1e-3, rtol=0)
    rows[0, 0], rows[1, 1] = math.inf, math.nan
    assert not WholeRows(projection=projection)(rows, 100)[:2].any()
    assert not UnitRows()(rows)[:2].any()


def test_a_row_has_the_same_steps_whoever_stands_beside() -> None:
    """To the last bit: a matrix product of floats would not promise that."""
    rows = torch.randn(70, 300, generator=SOURCE)
    steps = WholeRows(projection=Projection(300, 50))
    whole = steps(rows, 2.0**12)
    for i in (0, 33, 69):
        assert torch.equal(steps(rows[i : i + 1], 2.0**12)[0], whole[i])


def test_the_projection_keeps_lengths_nearly() -> None:
    rows = torch.randn(200, 2000, generator=SOURCE)
    ratio = Projection(2000, 500)(rows).norm(dim=1) / rows.norm(dim=1)
    assert 0.9 < float(ratio.min()) <= float(ratio.max()) < 1.1
    assert float(ratio.mean()) == pytest.approx(1, abs=0.02)
    assert not torch.equal(Projection(2000, 500).signs, Projection(2000, 500, seed=2).signs)


def test_with_hardly_any_noise_it_is_ordinary_least_squares() -> None:
    rows, targets = data()
    solved = solve((rows, targets), classes=3, epsilon=1000, delta=1e-5, ridge=1e-6, bits=SeededBits(1))
    unit = (rows / rows.norm(dim=1, keepdim=True)).double().numpy()
    design = np.hstack([SHARE * unit, np.full((len(unit), 1), CONSTANT)])
    codes = np.eye(3)[targets.numpy()] - 1 / 3
    exact = design @ np.linalg.lstsq(design, codes, rcond=None)[0]
    np.testing.assert_allclose(solved.model(rows).detach().numpy(), exact, atol=0.02)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_claim_holds_by_another_accountant_and_wastes_little(epsilon: float) -> None:
    mechanism, equations = least_noise(20, 4, epsilon, 1e-5)
    cost = plan_cost([Spend(mechanism=mechanism, distance=equations.distance)], PLD())
    found = PLD().epsilon(cost, 1e-5).upper
    assert 0.98 * epsilon < found <= epsilon * (1 + 1e-3)
    # the analytic Gaussian mechanism, a lower bound on the noise of any such release
    ratio = float(mechanism.sigma) / math.sqrt(equations.distance.amount)
    least = {0.1: 30.0748, 1.0: 3.7304, 8.0: 0.6010}[epsilon]
    assert least < ratio < 1.2 * least


def test_it_is_paid_before_and_certified(tmp_path: Path) -> None:
    terms = Terms(
        budget=ConcentratedBudget(limit=Fraction(1, 10)),
        unit="example",
        neighbours=Neighbours.ADD_REMOVE,
        delta=1e-5,
    )
    with Ledger.create(tmp_path / "l", terms) as ledger:
        pair = data(500)
        solved = solve(pair, classes=3, epsilon=1, delta=1e-5, ledger=ledger, public=pair)
        card = solved.card(tmp_path / "l")
        assert card.certificate is not None
        card.certificate.verify(ledger)
        assert card.certificate.epsilon <= 1.0001
        assert "accuracy on public data" in card.facts
        assert "SEEDED" not in card.text()
        with pytest.raises(BudgetExceeded):
            solve(pair, classes=3, epsilon=3, delta=1e-5, ledger=tmp_path / "l")
        assert ledger.status().blocks == 1
    assert solved.epsilon.upper <= 1
    assert list(solved.words()) == ["equations", "released", "noise", "epsilon"]


def test_it_learns_and_seeded_bits_repeat_it() -> None:
    pair, judged = data(20_000), data(2000)
    solved = [
        solve(pair, classes=3, epsilon=1, delta=1e-5, public=judged, bits=SeededBits(7)) for _ in range(2)
    ]
    assert solved[0].accuracy == some(solved[1].accuracy) > 0.9
    assert not solved[0].secure
    projected = solve(data(20_000, 60), classes=3, epsilon=8, delta=1e-5, most=40, public=data(2000, 60))
    assert projected.width == 40
    assert some(projected.accuracy) > 0.6


def test_values_never_raise() -> None:
    rows = torch.tensor([[math.nan, 1.0], [math.inf, 0], [1e38, -1e38], [0, 0], [1e-45, 0]])
    targets = torch.tensor([0, 1, 1, -5, 99])
    solved = solve((rows, targets), classes=2, epsilon=1, delta=1e-3)
    assert torch.isfinite(solved.model(rows)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": 1}, "The 'classes' of Equations"),
        ({"epsilon": 0}, "The 'epsilon' of solve must be above 0. Got 0."),
        ({"epsilon": 1e-9, "delta": 1e-12}, "The 'epsilon' of solve must leave noise that can be drawn."),
        ({"delta": 0}, "The 'delta' of solve must lie strictly between 0 and 1."),
        ({"norm": -1}, "The 'norm' of UnitRows must be above 0."),
        ({"most": 0}, "The 'most' of solve"),
        ({"ridge": 0}, "The 'ridge' of solve must be above 0."),
        ({"data": (torch.zeros(3, 2), torch.zeros(2).long())}, "There are 3 and 2."),
        ({"data": (torch.zeros(3, 2), torch.zeros(3))}, "must name classes by whole numbers"),
    ],
)
def test_bad_parameters_name_themselves(change: dict[str, Any], message: str) -> None:
    data = (torch.zeros(3, 2), torch.zeros(3).long())
    with pytest.raises(InvalidParameter) as problem:
        solve(**{"data": data, "classes": 2, "epsilon": 1, "delta": 1e-5, **change})
    assert message in str(problem.value)
