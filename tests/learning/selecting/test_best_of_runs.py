"""A mechanism that tells the best of several runs can be written down, read back and paid for."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from sourdine.accounting import Spend
from sourdine.accounting.ledger import Ledger
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.learning import BestOfRuns
from sourdine.mechanisms import Laplace

ONE = Distance.hamming(neighbours=Neighbours.ADD_REMOVE)
RUN = Spend(mechanism=Laplace(scale=20), distance=Distance.l1(1), count=2)


def test_it_goes_through_json_and_a_ledger(tmp_path: Path) -> None:
    best = BestOfRuns.of([[RUN], [RUN, RUN]], Fraction(7, 2))
    spend = Spend(mechanism=best, distance=ONE)
    assert Spend.from_json(json.loads(json.dumps(spend.to_json()))) == spend
    assert best.loss(ONE).epsilon == Fraction(3, 5)  # three of the worst setting, 4/20
    with Ledger.create(tmp_path / "one.ledger", epsilon=1) as ledger:
        ledger.charge(spend, purpose="choose")
        assert ledger.status().spent == Fraction(3, 5)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="one setting at least"):
        BestOfRuns.of([], 3)
    other = Spend(mechanism=Laplace(scale=20), distance=Distance.l1(1, neighbours=Neighbours.REPLACE))
    with pytest.raises(InvalidParameter, match="same neighbours"):
        BestOfRuns.of([[RUN], [other]], 3)
    with pytest.raises(UnsupportedLoss, match="add-remove"):
        BestOfRuns.of([[RUN], [RUN]], 3).loss(Distance.hamming(neighbours=Neighbours.REPLACE))
    with pytest.raises(InvalidParameter, match="select_best"):
        BestOfRuns.of([[RUN], [RUN]], 3).sample([0])
