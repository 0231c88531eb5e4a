"""What is charged is what is there, also where somebody changed what is frozen."""

from fractions import Fraction
from pathlib import Path

from sourdine.accounting import Spend
from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.distance import Distance, Neighbours
from sourdine.mechanisms import Laplace
from tests.errors import refusal_of


def test_a_mechanism_that_was_changed_is_charged_as_it_is(tmp_path: Path) -> None:
    terms = Terms(budget=PureBudget(limit=Fraction(10)), unit="person", neighbours=Neighbours.ADD_REMOVE)
    mechanism = Laplace(scale=100)
    spend = Spend(mechanism=mechanism, distance=Distance.l1(1))
    with Ledger.create(tmp_path / "ledger", terms) as ledger:
        assert ledger.charge(spend, purpose="first").price == Fraction(1, 100)
        object.__setattr__(mechanism, "scale", Fraction(1))
        assert ledger.charge(spend, purpose="first").price == 1
        assert ledger.price(spend) == 1
        object.__setattr__(mechanism, "scale", Fraction(100 + (1 << 61) - 1))  # its hash is that of 100
        with refusal_of("scale", "Laplace"):
            ledger.charge(spend, purpose="first")
        assert ledger.status().spent == Fraction(101, 100)
