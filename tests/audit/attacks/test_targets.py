from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sourdine.accounting import Spend
from sourdine.audit.attacks.targets import UNIT, answer, fresh_ledger, most_right, relation
from sourdine.core.distance import Distance
from sourdine.core.errors import BudgetExceeded
from sourdine.mechanisms import Laplace
from sourdine.tables import Table
from sourdine.testing import SeededBits


def test_a_table_of_arrays_keeps_texts_and_numbers() -> None:
    held = relation({"age": np.array([3, 4]), "home": np.array(["a", "é"])})
    assert held.fetchall() == [(3, "a"), (4, "é")]


def test_the_ledger_refuses_what_is_beyond_its_budget_and_leaves_nothing() -> None:
    spend = Spend(mechanism=Laplace(scale=Fraction(2)), distance=Distance.l1(1))
    with fresh_ledger(Fraction(1)) as ledger:
        place = ledger.path
        ledger.charge(spend, spend, purpose="a test", secure=False)
        with pytest.raises(BudgetExceeded):
            ledger.charge(spend, purpose="a test", secure=False)
    assert isinstance(place, Path)
    assert not place.exists()


def test_answers_have_the_noise_of_the_plan() -> None:
    table = Table(relation({"ill": np.array([True])}), unit=UNIT, columns={"ill": {"type": "flag"}})
    ill = [{"column": "ill", "keys": [True]}]
    queries = [{"name": "rare", "ask": ["count"], "where": ill, "weight": w} for w in (1, 3)]
    queries[1] |= {"name": "often"}
    plan = table.plan(*queries, epsilon=1, quality=False)
    drawn = answer(plan, np.tile([[100], [200]], 20_000), SeededBits(1))
    assert drawn.mean(axis=1) == pytest.approx([100, 200], abs=0.3)
    # scales 4 and 4/3, and the variance of discrete Laplace noise
    for row, scale in zip(drawn, (4.0, 4 / 3), strict=True):
        q = np.exp(-1 / scale)
        assert row.var() == pytest.approx(2 * q / (1 - q) ** 2, rel=0.1)


def test_the_most_that_a_guess_can_be_right() -> None:
    assert most_right(0.0) == 0.5
    assert most_right(Fraction(2)) == pytest.approx(np.exp(2) / (1 + np.exp(2)))
