"""A ledger in pairs of epsilon and delta, which composes each charge as a whole."""

import math
import re
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import BasicBudget, Ledger, Terms
from sourdine.accounting.release import Release
from sourdine.accounting.spend import DisjointPart, Spend
from sourdine.accounting.subsampling.samplers import Poisson
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError, SourdineError, UnsupportedLoss
from sourdine.mechanisms import Gaussian, Laplace, PartitionThreshold, RoundedGaussian
from tests.accounting.ledger.adversary import most_delta, question
from tests.accounting.ledger.files import rewrite
from tests.errors import refusal_of

DELTA = 1e-5
RUN = Spend(  # 200 steps of DP-SGD at rate 1/50, noise solved for (3, 1e-5)
    mechanism=RoundedGaussian(sigma=Fraction("825.6")),
    distance=Distance.l2(1000, coordinates=1),
    count=200,
    sampling=Poisson(sampling_rate=Fraction(1, 50)),
)
NOISE = Spend(mechanism=Gaussian(sigma=10), distance=Distance.l2(1))
LAPLACE = Spend(mechanism=Laplace(scale=20), distance=Distance.l1(1))
KEYS = Spend(
    mechanism=PartitionThreshold.within(rho=Fraction(1, 100), delta=3e-7, keys=2), distance=Distance.linf(1)
)


# Rounding a price up to six digits and a share of 1e-4 are small beside what is left open here.
MENU = (
    question(("0.97", "0.98"), ("0.02", "0.01"), ("0.01", "0.01")),
    question(("0.55", "0.45"), ("0.445", "0.55"), ("0.005", "0")),
    question(("0.7", "0.3"), ("0.3", "0.7")),
)


def basic(path: Path, epsilon: float = 3, delta: float = DELTA, **others: object) -> Ledger:
    return Ledger.create(path / "basic.ledger", epsilon=epsilon, delta=delta, composition="basic", **others)  # type: ignore[arg-type]


def gaussian_delta(mu: float, epsilon: float) -> float:
    """delta of one Gaussian release, by its closed form in 30 digits (Balle and Wang 2018)."""
    with mpmath.workdps(30):
        return float(
            mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        )


def test_a_training_takes_the_whole_ledger_and_nothing_more_fits(tmp_path: Path) -> None:
    ledger = basic(tmp_path)
    assert ledger.charge(RUN, purpose="the one training").left < Fraction(1, 100)
    for more in (RUN, NOISE, LAPLACE):
        with pytest.raises(BudgetExceeded, match="Nothing was spent"):
            ledger.charge(more, purpose="more")
    status = Ledger.open(tmp_path / "basic.ledger").status()
    assert (status.currency, status.epsilon_limit, status.delta) == ("epsilon", 3, DELTA)
    assert 2.99 < status.epsilon == float(status.spent) <= 3
    assert [entry.price for entry in ledger.history()] == [status.spent]


def test_a_price_is_the_least_share_of_epsilon_and_delta(tmp_path: Path) -> None:
    ledger = basic(tmp_path)
    for count in (1, 4, 30):
        noise = RoundedGaussian(sigma=3000)
        moved = Distance.l2(100, coordinates=1)
        price = float(ledger.price(Spend(mechanism=noise, distance=moved, count=count)))
        mu = math.sqrt(count) / 30
        assert gaussian_delta(mu, price) <= DELTA * price / 3
        assert gaussian_delta(mu, price * 0.9995) > DELTA * price * 0.9995 / 3


def test_pure_prices_are_exact(tmp_path: Path) -> None:
    ledger = basic(tmp_path, epsilon=1)
    assert ledger.price(LAPLACE) == Fraction(1, 20)
    for _ in range(20):
        receipt = ledger.charge(LAPLACE, purpose="a count")
    assert receipt.left == 0


def test_a_price_is_found_where_no_epsilon_is_finite_below_it(tmp_path: Path) -> None:
    price = basic(tmp_path, epsilon=4, delta=0.04).price(MENU[1].spend)
    # With chance 0.005 an answer tells all; the others are at most log(0.55/0.45) apart.
    assert Fraction(1, 2) <= price < Fraction(51, 100)


def test_a_block_is_composed_and_blocks_are_added(tmp_path: Path) -> None:
    ledger = basic(tmp_path)
    together = ledger.price(*[NOISE] * 8)
    assert together < 8 * ledger.price(NOISE) / 2
    women, men = (
        Spend(mechanism=Gaussian(sigma=10), distance=Distance.l2(1), part=DisjointPart("sex", key))
        for key in "fm"
    )
    assert float(ledger.price(women, men)) == pytest.approx(float(ledger.price(NOISE)), rel=2e-3)


def test_keys_count_in_the_delta_or_in_a_selection_delta(tmp_path: Path) -> None:
    own = KEYS.one_loss().delta
    price = basic(tmp_path, delta=1e-6).price(KEYS)
    assert price >= 3 * own / Fraction(1e-6)
    kept = Ledger.create(
        tmp_path / "kept.ledger", epsilon=3, delta=2e-6, selection_delta=1e-6, composition="basic"
    )
    assert kept.price(KEYS) < price * Fraction(9, 10)
    assert (kept.charge(KEYS, purpose="towns").delta, len(kept.history())) == (own, 1)


@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": 3},
        {"epsilon": 3, "delta": 1e-5},
        {"rho": 0.1, "delta": 1e-5, "unit": "patient"},
        {"mu": 0.5, "delta": 1e-5},
        {"order": 8, "divergence": 4, "delta": 1e-5},
        {"unlimited": True, "delta": 1e-5},
    ],
)
def test_a_ledger_that_cannot_pay_names_one_that_can(budget: dict[str, object], tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", **budget)  # type: ignore[arg-type]
    for refuse in (ledger.check, lambda spend: ledger.charge(spend, purpose="a training")):
        with pytest.raises(SourdineError, match=r"Nothing was spent\.") as caught:
            refuse(RUN)
    (call,) = re.findall(r"Ledger\.create\((path, .*?)\)", str(caught.value))
    made = eval(f"create({call})", {"create": Ledger.create, "path": tmp_path / "b.ledger"})
    assert made.terms.unit == ledger.terms.unit
    assert made.charge(RUN, purpose="a training").left < Fraction(3)
    if "order" not in budget:
        assert call.startswith("path, epsilon=3, delta=1e-5")


def test_what_has_no_epsilon_is_refused(tmp_path: Path) -> None:
    surely = question(("1/2", "0"), ("1/2", "1")).spend
    with pytest.raises(UnsupportedLoss, match=r"no finite epsilon at the ledger's delta, 1e-5"):
        basic(tmp_path).charge(surely, purpose="everything")


def test_composition_goes_with_epsilon_and_delta(tmp_path: Path) -> None:
    for budget in ({"epsilon": 3}, {"rho": 1, "delta": 1e-6}, {"unlimited": True, "delta": 1e-6}):
        with pytest.raises(InvalidParameter, match="'composition' is how epsilons with a delta add up"):
            Ledger.create(tmp_path / "a", composition="basic", **budget)
    with pytest.raises(InvalidParameter, match="one of zcdp, basic"):
        Ledger.create(tmp_path / "a", epsilon=1, delta=1e-6, composition="pld")
    with refusal_of("delta", "Ledger"):
        Terms(budget=BasicBudget(limit=3), unit="person", neighbours=Neighbours.ADD_REMOVE)


def test_a_line_that_paid_too_little_does_not_replay(tmp_path: Path) -> None:
    ledger = basic(tmp_path)
    receipt = ledger.charge(NOISE, purpose="a mean")
    (line,) = ledger._store.lines()
    ledger.close()
    rewrite(tmp_path / "basic.ledger", 1, line.content.replace(f'"{receipt.price}"', '"3/10"'), "3/10")
    with pytest.raises(LedgerError, match="does not replay"):
        Ledger.open(ledger.path).history()


def test_certificates_state_the_price(tmp_path: Path) -> None:
    ledger = basic(tmp_path)
    receipt = ledger.charge(NOISE, purpose="a mean", secure=True)
    release = Release(values=np.zeros(1), intervals=None, spends=(NOISE,), receipt=receipt)
    stated = Certificate.from_json(release.certificate(ledger).to_json())
    assert stated.verify(ledger) == ("declared",)
    assert (stated.epsilon, stated.delta) == (pytest.approx(float(receipt.price), rel=1e-12), DELTA)


def test_nobody_who_chooses_by_answers_gets_beyond_epsilon_and_delta(tmp_path: Path) -> None:
    ledger = basic(tmp_path, epsilon=1.5, delta=0.04)
    prices = [ledger.price(each.spend) for each in MENU]
    limit = Fraction(3, 2)

    def accepts(asked: tuple[int, ...], share: Fraction = Fraction(1)) -> bool:
        paid = sum((n * price for n, price in zip(asked, prices, strict=True)), Fraction(0))
        return share * paid <= limit and sum(asked) <= 5

    worst = most_delta(MENU, accepts, 1.5)
    assert 0.004 < worst <= 0.04
    # The enumeration sees a ledger that asks for half of the price.
    assert most_delta(MENU, lambda asked: accepts(asked, Fraction(1, 4)), 1.5) > 0.04


def test_an_adversary_of_a_real_ledger_pays_for_each_choice(tmp_path: Path) -> None:
    """One who asks the more revealing question while the answers speak for the unit."""
    source, seen = np.random.default_rng(1), set[tuple[int, ...]]()
    for run in range(6):
        ledger = basic(tmp_path, epsilon=4, delta=0.04, unit=f"person {run}")
        prices = [ledger.price(each.spend) for each in MENU[1:]]
        asked, ratio = [0, 0], 0.0
        while fitting := [n for n in ((1, 0) if ratio > 0 else (0, 1)) if prices[n] <= ledger.status().left]:
            each = MENU[1:][fitting[0]]
            ledger.charge(each.spend, purpose="the next")
            answer = int(source.choice(len(each.with_unit), p=[float(chance) for chance in each.with_unit]))
            with_unit, without = each.with_unit[answer], each.without[answer]
            ratio += math.log(with_unit / without) if without else 50.0
            asked[fitting[0]] += 1
        paid = sum((n * price for n, price in zip(asked, prices, strict=True)), Fraction(0))
        assert ledger.status().spent == paid <= 4 < paid + min(prices)
        seen.add(tuple(asked))
        ledger.close()
        (tmp_path / "basic.ledger").unlink()
    assert len(seen) > 1  # it did choose by the answers
