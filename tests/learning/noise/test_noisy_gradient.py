import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from sourdine.accounting import PLD, Poisson, Spend, cost_of_steps, plan_cost
from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.core.distance import Distance, Neighbours
from sourdine.learning import NoisyGradient


def test_profile_is_that_of_two_normal_laws() -> None:
    loss = NoisyGradient(sigma=3).loss(Distance.l2(2))
    mu = 2 / 3
    for epsilon in (0.1, 0.5, 1.5):
        expected = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert float(loss.profile(epsilon)) == pytest.approx(expected, rel=1e-9)


def test_price_of_sampled_steps_is_the_accounting_of_training() -> None:
    spend = Spend(
        mechanism=NoisyGradient(sigma=Fraction(11, 5)),
        distance=Distance.l2(2),
        count=500,
        sampling=Poisson(sampling_rate=Fraction(1, 100)),
    )
    found = PLD().epsilon(plan_cost([spend], PLD()), 1e-5)
    expected = cost_of_steps(1.1, 0.01, 500, 1e-5).epsilon
    assert found.upper == pytest.approx(expected.upper, abs=2e-3)
    assert found.lower == pytest.approx(expected.lower, abs=2e-3)


def test_what_is_not_finite_adds_nothing() -> None:
    sampled = NoisyGradient(sigma=Fraction(1, 1000)).sample([np.nan, np.inf, -np.inf, 2.0])
    assert np.all(np.abs(sampled - [0, 0, 0, 2]) < 0.01)


def test_a_ledger_with_training_is_read_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "training.ledger"
    terms = Terms(
        budget=RenyiBudget(limit=5, order=8), unit="person", neighbours=Neighbours.ADD_REMOVE, delta=1e-5
    )
    spend = Spend(
        mechanism=NoisyGradient(sigma=1),
        distance=Distance.l2(1),
        count=10,
        sampling=Poisson(sampling_rate=Fraction(1, 100)),
    )
    with Ledger.create(path, terms) as ledger:
        ledger.charge(spend, purpose="train")
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from sourdine.accounting.ledger import Ledger\n"
        f"print(Ledger.open({json.dumps(str(path))}).history()[0].spends[0].mechanism.sigma)\n"
        "import sourdine.learning\n"
        "try:\n    sourdine.learning.fit\nexcept Exception as problem:\n    print(problem)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, second = told.stdout.splitlines()
    assert first == "1"
    assert "pip install" in second
    assert "torch" in second
