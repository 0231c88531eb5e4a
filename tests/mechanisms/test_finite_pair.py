import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sourdine.accounting import Spend
from sourdine.accounting.ledger import Ledger
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import UnsupportedLoss
from sourdine.mechanisms import FinitePair, KaryResponse
from sourdine.testing import SeededBits
from tests.statistics import ALARM, fit

COINS = FinitePair.between({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75})
LEAKY = FinitePair.between([0.5, 0.499, 0.001], [0.499, 0.501, 0])


def test_it_loses_what_randomized_response_loses() -> None:
    """With e^epsilon of 3 the same pair, by the published formula."""
    three = KaryResponse(epsilon=Fraction("1.09861228866810969"), categories=2)
    known, found = (each.loss(Distance.hamming()) for each in (three, COINS))
    epsilons = np.linspace(0, 1.2, 25)
    assert np.allclose(known.profile(epsilons), found.profile(epsilons), atol=1e-14)


def test_several_changed_answers_cost_each() -> None:
    one, two = (LEAKY.loss(Distance.hamming(changed)) for changed in (1, 2))
    assert two.epsilon == 2 * Fraction(one.epsilon)
    assert two.delta == 1 - (1 - one.delta) ** 2
    assert float(two.profile(float(two.epsilon))) == pytest.approx(float(two.delta))
    assert LEAKY.loss(Distance.hamming(1 << 20)).delta == 1


def test_a_wrong_law_is_refused() -> None:
    for value, law in ((1, COINS.first), (0, COINS.second)):
        drawn = COINS.sample(np.full(100_000, value), SeededBits(value))
        assert fit(drawn, {0: float(law[0]), 1: float(law[1])}) > ALARM
        assert fit(drawn, {0: 0.9 * float(law[0]), 1: 1 - 0.9 * float(law[0])}) < ALARM


def test_outcomes_without_a_chance_never_come() -> None:
    pair = FinitePair(
        first=(Fraction(0), Fraction(1), Fraction(0)), second=(Fraction(1), Fraction(0), Fraction(0))
    )
    assert set(pair.sample(np.ones(1000, int), SeededBits(1)).tolist()) == {1}
    assert set(pair.sample(np.zeros(1000, int), SeededBits(1)).tolist()) == {0}


def test_a_ledger_pays_for_it_and_reads_it_back(tmp_path: Path) -> None:
    spend = Spend(mechanism=COINS, distance=Distance.hamming(neighbours=Neighbours.ADD_REMOVE), count=2)
    assert Spend.from_json(json.loads(json.dumps(spend.to_json()))) == spend
    assert spend.to_json()["mechanism"]["mechanism"] == "finite-pair/1"  # type: ignore[index]
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=3)
    assert float(ledger.charge(spend, purpose="a pair").price) == pytest.approx(2.1972, abs=1e-4)
    (entry,) = Ledger.open(tmp_path / "a.ledger").history()
    assert entry.spends == (spend,)


def test_one_that_leaks_needs_a_selection_delta(tmp_path: Path) -> None:
    spend = Spend(mechanism=LEAKY, distance=Distance.hamming(neighbours=Neighbours.ADD_REMOVE))
    with pytest.raises(UnsupportedLoss, match="selection delta"):
        Ledger.create(tmp_path / "a.ledger", epsilon=3).charge(spend, purpose="a pair")
    ledger = Ledger.create(tmp_path / "b.ledger", epsilon=3, selection_delta=0.01)
    assert ledger.charge(spend, purpose="a pair").delta == Fraction(1, 1000)
