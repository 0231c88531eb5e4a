"""Only what can be read back is charged."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sourdine.accounting import Poisson, Spend
from sourdine.accounting.ledger import Ledger
from sourdine.core import serialization as registry
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter, LedgerError, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Mechanism
from sourdine.mechanisms import Gaussian, Geometric, Laplace
from tests.accounting.ledger.files import rewrite
from tests.campaigns.ledger.crash import new_ledger


class Cheap(Geometric):
    """Noise of epsilon 1000 that says it costs a thousandth."""

    def loss(self, distance: Distance) -> PrivacyLoss:
        return PrivacyLoss.pure(Fraction(1, 1000))


class Disguised(Cheap):
    """The same, which calls itself a Geometric and equal to one."""

    def to_json(self) -> dict[str, object]:
        return {"mechanism": "mechanisms.Geometric", "scale": str(self.scale)}

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@dataclass(frozen=True, kw_only=True)
class Mine(Laplace):
    """One more field, which no line could hold."""

    table: object = None


class Rare(Poisson):
    """A sampling that says it hides everything."""

    def apply(self, loss: PrivacyLoss) -> PrivacyLoss:
        return PrivacyLoss.pure(Fraction(1, 1000))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return new_ledger(tmp_path / "a.ledger", Fraction(1))


@pytest.mark.parametrize(
    "mechanism",
    [
        Cheap(scale=Fraction(1, 1000)),
        Disguised(scale=Fraction(1, 1000)),
        Mine(scale=Fraction(2)),
        Mine(scale=Fraction(2), table=[1]),
    ],
)
def test_a_mechanism_that_cannot_be_read_back_is_refused(ledger: Ledger, mechanism: Mechanism) -> None:
    spend = Spend(mechanism=mechanism, distance=Distance.l1(1))
    honest = Spend(mechanism=Geometric(scale=Fraction(1000)), distance=Distance.l1(1))
    for spends in ((spend,), (honest, spend)):
        for act in (ledger.price, ledger.delta, ledger.forecast):
            with pytest.raises(InvalidParameter, match=r"no name that a file could|not be read back"):
                act(*spends)
        with pytest.raises(InvalidParameter, match=type(mechanism).__name__):
            ledger.charge(*spends, purpose="p")
    assert ledger.status().blocks == 0
    ledger.charge(honest, purpose="p")
    assert len(ledger.history()) == 1


def test_a_sampling_that_cannot_be_read_back_is_refused(ledger: Ledger) -> None:
    spend = Spend(
        mechanism=Geometric(scale=Fraction(1, 9)),
        distance=Distance.l1(1),
        sampling=Rare(sampling_rate=Fraction(1, 2)),
    )
    with pytest.raises(InvalidParameter, match="Rare has no name"):
        ledger.charge(spend, purpose="p")
    assert ledger.status().blocks == 0


def test_what_is_priced_is_what_was_read_back(ledger: Ledger) -> None:
    """Even a loss that is put on one object changes nothing."""
    mechanism = Geometric(scale=Fraction(2))
    object.__setattr__(mechanism, "loss", lambda distance: PrivacyLoss.pure(Fraction(1, 1000)))
    receipt = ledger.charge(Spend(mechanism=mechanism, distance=Distance.l1(1)), purpose="p")
    assert receipt.price == Fraction(1, 2)


def test_a_block_that_costs_too_much_is_refused_each_time(ledger: Ledger) -> None:
    """What was described once is remembered, and still priced."""
    spend = Spend(mechanism=Gaussian(sigma=2), distance=Distance.l2(1))
    for _ in range(2):
        with pytest.raises(UnsupportedLoss, match="no finite epsilon"):
            ledger.charge(spend, purpose="p")


def test_one_line_is_confirmed_without_replaying_the_others(tmp_path: Path) -> None:
    path = tmp_path / "b.ledger"
    spend = Spend(mechanism=Geometric(scale=Fraction(1000)), distance=Distance.l1(1))
    with new_ledger(path, Fraction(1)) as ledger:
        assert ledger.confirm(1) is None
        for _ in range(4):
            ledger.charge(spend, purpose="p")
    entries = ledger.history()
    assert ledger.confirm(2) == entries[1]
    assert ledger.confirm(5) is None
    assert ledger.confirm(0) is None
    line = ledger._store.line(4)
    assert line is not None
    rewrite(path, 4, content=line.content.replace('"1/1000"', '"1/2000"'))
    with pytest.raises(LedgerError, match=r"Line 4 .* does not replay"):
        Ledger.open(path).confirm(4)
    assert Ledger.open(path).confirm(2) == entries[1]


def test_a_count_of_numpy_is_a_count(ledger: Ledger) -> None:
    spend = Spend(mechanism=Geometric(scale=Fraction(1000)), distance=Distance.l1(1), count=np.int64(3))  # type: ignore[arg-type]
    assert ledger.charge(spend, purpose="p").price == Fraction(3, 1000)
    assert ledger.history()[0].spends == (spend,)


def test_a_name_that_is_registered_anew_goes_on(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a cell of a notebook is run again: the class is another one, and its name the same."""
    monkeypatch.setattr(registry, "_registered", {})
    for _ in range(2):

        @registry.register("acme.example/mine/1")
        @dataclass(frozen=True, kw_only=True)
        class Again(Laplace):
            """The same noise."""

        spend = Spend(mechanism=Again(scale=Fraction(1000)), distance=Distance.l1(1))
        ledger.charge(spend, purpose="p")
    assert [entry.foreign for entry in ledger.history()] == [("acme.example/mine/1",)] * 2
