"""Attacks on a table of one's own."""

import numpy as np
import pyarrow as pa
import pytest

from sourdine.accounting.explain import posterior_bounds
from sourdine.audit.attacks import ATTACKS, differencing, reconstruction
from sourdine.audit.attacks.own_table import OwnTable
from sourdine.core.errors import InvalidParameter
from sourdine.testing import SeededBits

PEOPLE = OwnTable(
    known=np.arange(48) // 2 * (np.arange(48) % 4 > 0), secret=np.arange(48) % 3 == 0, words="ill = yes"
)


def test_a_table_as_an_attacker_sees_it() -> None:
    table = pa.table(
        {"age": [31, 54, 31, 70], "sex": ["f", "m", "f", "m"], "ill": ["flu", "flu", "no", "no"]}
    )
    own = OwnTable.read(table, secret="ill = flu", known=["age", "sex"])
    assert sorted(own.secret.tolist()) == [False, False, True, True]
    assert len(own.single_out()) == 2
    assert own.guess == 0.5
    assert OwnTable.read(table, secret="ill=flu").single_out().size == 0


@pytest.mark.parametrize(
    ("secret", "told"), [("ill", "What is the secret"), ("ill = plague", "No record has")]
)
def test_a_secret_that_is_none(secret: str, told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        OwnTable.read(pa.table({"ill": ["flu", "no"]}), secret=secret)


def test_limits_are_for_the_share_that_is_known() -> None:
    assert PEOPLE.guess == pytest.approx(2 / 3)
    assert PEOPLE.limit(1) == pytest.approx(posterior_bounds(2 / 3, 1).upper)


def test_who_is_alone_falls_to_two_counts() -> None:
    found = differencing.run_on(PEOPLE, SeededBits(1))
    assert found.own
    assert found.unprotected.success == 1.0
    assert found.stopped
    everybody = OwnTable(known=np.zeros(48, np.int64), secret=PEOPLE.secret, words=PEOPLE.words)
    with pytest.raises(InvalidParameter, match="singled out"):
        differencing.run_on(everybody, SeededBits(1))


def test_a_column_is_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconstruction, "PEOPLE", 32)
    monkeypatch.setattr(reconstruction, "ROUNDED", 2)
    monkeypatch.setattr(reconstruction, "REDRAWN", 2)
    found = reconstruction.run_on(PEOPLE, SeededBits(1))
    assert found.own
    assert found.unprotected.success > 0.9
    assert found.stopped
    assert found.unprotected.tries == 32


def test_which_attacks_take_a_table() -> None:
    assert [name for name, each in ATTACKS.items() if each.run_on] == ["differencing", "reconstruction"]
