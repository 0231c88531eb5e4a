from pathlib import Path

import numpy as np
import pytest

from sourdine.accounting import Bracket, Spend
from sourdine.accounting.explain import explain_guarantee
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.release import Release
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import Geometric

COUNT = Spend(mechanism=Geometric(scale=10), distance=Distance.l1(1))


def test_a_bracket_is_shown_rounded_outwards() -> None:
    assert str(Bracket(0.61089, 0.61144)) == "0.6108 to 0.6115"
    assert "0.6108 to 0.6115" in Bracket(0.61089, 0.61144)._repr_html_()
    assert repr(Bracket(0.5, 1.0)) == "Bracket(lower=0.5, upper=1.0)"


def test_a_ledger_shows_its_last_charges(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1)
    with pytest.raises(InvalidParameter, match="no charge yet"):
        ledger.chart()
    for number in range(1, 8):  # the last five are told
        ledger.charge(COUNT, purpose=f"purpose {number}")
    told = str(ledger)
    assert "epsilon 0.7 of 1 spent" in told
    assert [f"purpose {number}" in told for number in range(1, 8)] == [False, False] + [True] * 5
    assert ledger.chart().title == "70 % of the budget is spent, in 7 charges"


def test_values_of_any_kind_are_shown() -> None:
    def release(values: object, intervals: object = None) -> Release:
        return Release(values=values, intervals=intervals, spends=(), receipt=None)

    numbers = np.arange(30.0)
    assert "10 more values." in str(release(numbers, (numbers - 1, numbers + 1)))
    assert "lower" not in str(release(numbers))
    assert "&lt;b&gt;" in release("<b>")._repr_html_()
    assert len(str(release("a" * 1000))) < 400
    assert "Not paid from a ledger." in str(release(1))


def test_an_explanation_is_shown_in_sentences() -> None:
    told = str(explain_guarantee(1.0, 1e-6, unit="person"))
    assert told.startswith("ε = 1, δ = 1e-6 for one person")
    assert "\n- " in told
