import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sourdine.accounting import Spend, odometer_epsilon
from sourdine.accounting.explain import explain_ledger
from sourdine.accounting.ledger import Ledger, OdometerBudget
from sourdine.accounting.odometer import ROUGHLY
from sourdine.cli import app
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.mechanisms import FinitePair, Gaussian


@pytest.mark.parametrize("rho", [1e-9, 0.003, 0.5, 70.0])
@pytest.mark.parametrize("delta", [0.1, 1e-6])
def test_it_is_the_least_line_of_fixed_orders(rho: float, delta: float) -> None:
    surprise = math.log(len(ROUGHLY) / delta)
    orders = [1 + math.sqrt(surprise / at) for at in ROUGHLY]
    least = min(order * rho + surprise / (order - 1) for order in orders)
    assert odometer_epsilon(rho, delta) == pytest.approx(least, rel=1e-9)
    assert odometer_epsilon(rho, delta) >= rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert odometer_epsilon(0, delta) == 0


def test_it_is_never_passed_more_often_than_delta() -> None:
    """Gaussian answers, whose losses are normal, N(rho, 2 rho), at all times of 3,000 walks at once.

    What a limit fixed beforehand would allow is passed far more often if one may look at all times.
    """
    dice, delta, walks = np.random.default_rng(5), 0.05, 3000
    each = np.geomspace(1e-5, 1.0, 400)
    spent = np.cumsum(each)
    losses = np.cumsum(each + np.sqrt(2 * each) * dice.standard_normal((walks, len(each))), axis=1)
    bounds = np.array([odometer_epsilon(float(rho), delta) for rho in spent])
    fixed = spent + np.sqrt(2 * spent) * 1.6449  # passed with probability 0.05 at one time
    assert (losses > bounds).any(axis=1).mean() <= delta
    assert (losses > fixed).any(axis=1).mean() > 3 * delta


def test_a_ledger_without_a_limit(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", unlimited=True, delta=1e-6)
    assert ledger.terms.budget == OdometerBudget()
    spend = Spend(mechanism=Gaussian(sigma=Fraction(1)), distance=Distance.l2(1), count=100)
    for _ in range(3):
        ledger.charge(spend, purpose="a hundred counts")
    status = Ledger.open(tmp_path / "a.ledger").status()
    assert status.spent == 150
    assert status.epsilon == odometer_epsilon(150, 1e-6)
    assert status.epsilon_limit == math.inf
    assert len(ledger.history()) == 3
    assert explain_ledger(ledger).epsilon.upper == pytest.approx(status.epsilon)
    leaky = Spend(
        mechanism=FinitePair.between([0.999, 0.001], [1, 0]),
        distance=Distance.hamming(neighbours=Neighbours.ADD_REMOVE),
    )
    with pytest.raises(UnsupportedLoss):
        ledger.charge(leaky, purpose="refused")
    assert "any amount" in ledger.charge(spend, purpose="shown")._repr_html_()


@pytest.mark.parametrize(
    "given",
    [
        {"unlimited": True},
        {"unlimited": True, "delta": 1e-6, "rho": 1},
        {"unlimited": True, "delta": 1e-6, "selection_delta": 1e-7},
        {"unlimited": 1, "delta": 1e-6},
    ],
)
def test_no_limit_is_no_budget(tmp_path: Path, given: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        Ledger.create(tmp_path / "a.ledger", **given)  # type: ignore[arg-type]
    assert not (tmp_path / "a.ledger").exists()


def test_the_command_says_so(tmp_path: Path) -> None:
    made = CliRunner().invoke(
        app, ["ledger", "create", str(tmp_path / "a.ledger"), "--unlimited", "--delta", "1e-6"]
    )
    assert made.exit_code == 0, made.output
    assert "Budget       rho no limit: what is lost is counted" in made.stdout
    assert "Left         any amount" in made.stdout
    told = CliRunner().invoke(app, ["ledger", "status", str(tmp_path / "a.ledger"), "--json"])
    assert json.loads(told.stdout)["epsilon_limit"] is None
