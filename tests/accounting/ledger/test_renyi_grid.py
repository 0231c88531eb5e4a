"""A ledger in Renyi divergences of several orders, of which one must hold."""

import json
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from sourdine.accounting import Poisson, Spend
from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import Ledger, Period, RenyiGridBudget, Terms
from sourdine.accounting.release import Release
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError
from sourdine.mechanisms import Laplace, RoundedGaussian
from tests.accounting.ledger.adversary import most_delta, question
from tests.accounting.ledger.files import rewrite
from tests.errors import refusal_of

DELTA = 1e-5
MOVED = Distance.l2(1000, coordinates=1)
RUN = Spend(  # 200 steps of DP-SGD
    mechanism=RoundedGaussian(sigma=2000),
    distance=MOVED,
    count=200,
    sampling=Poisson(sampling_rate=Fraction(1, 50)),
)
NOISE = Spend(mechanism=RoundedGaussian(sigma=10_000), distance=MOVED)


def grid(path: Path, epsilon: float = 3, delta: float = DELTA, **others: object) -> Ledger:
    return Ledger.create(path / "grid.ledger", epsilon=epsilon, delta=delta, composition="renyi", **others)  # type: ignore[arg-type]


def limit_at(order: Fraction, epsilon: float, delta: float) -> mpmath.mpf:
    """The divergence that is (epsilon, delta)-DP at an order (Canonne, Kamath, Steinke 2020)."""
    with mpmath.workdps(30):
        a = mpmath.mpf(order.numerator) / order.denominator
        taken = mpmath.log((a - 1) / a) - (mpmath.log(a) + mpmath.log(delta)) / (a - 1)
        return epsilon - taken


def test_a_share_is_of_the_limit_at_a_part_of_delta(tmp_path: Path) -> None:
    ledger = grid(tmp_path)
    budget = ledger.terms.budget
    assert isinstance(budget, RenyiGridBudget)
    shares = ledger.charge(NOISE, purpose="a mean").shares
    for order, share in zip(budget.orders, shares, strict=True):
        truth = order.numerator / order.denominator / 200 / limit_at(order, 3, DELTA / 3)
        assert truth <= float(share) <= truth * (1 + 1e-8)
    assert ledger.status().spent == min(shares) == ledger.history()[0].price


def test_trainings_and_releases_add_up_at_each_order(tmp_path: Path) -> None:
    ledger, paid = grid(tmp_path), list[tuple[Fraction, ...]]()
    while (fits := ledger.forecast(RUN)) > 1:
        paid += [ledger.charge(spend, purpose="more").shares for spend in (RUN, NOISE)]
        assert ledger.forecast(RUN) < fits
    for _ in range(fits):
        paid.append(ledger.charge(RUN, purpose="the last").shares)
    with pytest.raises(BudgetExceeded, match=r"The charge needs share .* and the budget has .* left"):
        ledger.charge(RUN, purpose="more")
    totals = tuple(map(sum, zip(*paid, strict=True)))
    ledger.close()
    opened = Ledger.open(tmp_path / "grid.ledger")
    status = opened.status()
    assert status.shares == totals
    assert status.spent == min(totals) <= 1 < status.spent + 2 * opened.price(RUN)
    assert status.epsilon <= status.epsilon_limit == pytest.approx(3)
    assert [entry.shares for entry in opened.history()] == paid
    assert opened.history()[-1].total == status.spent


def test_epsilon_is_that_of_the_best_order(tmp_path: Path) -> None:
    ledger = grid(tmp_path)
    for _ in range(5):
        receipt = ledger.charge(NOISE, purpose="a mean", secure=True)
    budget = ledger.terms.budget
    assert isinstance(budget, RenyiGridBudget)
    truth = min(
        order / Fraction(40) + 3 - Fraction(str(limit_at(order, 3, DELTA / 3))) for order in budget.orders
    )
    assert ledger.status().epsilon == pytest.approx(float(truth), rel=1e-8)
    release = Release(values=np.zeros(1), intervals=None, spends=(NOISE,), receipt=receipt)
    stated = Certificate.from_json(release.certificate(ledger).to_json())
    assert stated.verify(ledger) == ("declared",)
    assert stated.epsilon < float(truth)


def test_forged_shares_do_not_replay(tmp_path: Path) -> None:
    path = tmp_path / "grid.ledger"
    ledger = grid(tmp_path)
    ledger.charge(NOISE, purpose="a mean")
    (line,) = ledger._store.lines()
    ledger.close()
    fields = json.loads(line.content)
    less = ["1/1000"] * 3
    for changed in (
        {"shares": less},
        {"share_totals": less},
        {"shares": less, "share_totals": less, "price": "1/1000"},
        {"shares": less[:2], "share_totals": less[:2]},
    ):
        forged = fields | changed
        rewrite(path, 1, json.dumps(forged), forged["price"])
        with pytest.raises(LedgerError, match=r"does not replay|contradicts itself"):
            Ledger.open(path).history()


def test_what_no_order_can_hold_is_refused(tmp_path: Path) -> None:
    terms = {"unit": "person", "neighbours": Neighbours.ADD_REMOVE, "delta": DELTA}
    low = RenyiGridBudget(target=Fraction(1), orders=(Fraction(3, 2),))
    with pytest.raises(InvalidParameter, match="have one that fits"):
        Terms(budget=low, **terms)  # type: ignore[arg-type]
    budget = RenyiGridBudget.within(Fraction(3), DELTA)
    with refusal_of("period", "Ledger"):
        Terms(budget=budget, period=Period.DAY, period_limit=Fraction(1, 2), **terms)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="no allowance"):
        grid(tmp_path / "..", delta=1e-6).allow("ana", epsilon=1)


@pytest.mark.parametrize("orders", [(), (8, 4), (4, 4), (1,), tuple(range(2, 40))])
def test_orders_grow(orders: tuple[int, ...]) -> None:
    with pytest.raises(InvalidParameter, match="order"):
        RenyiGridBudget(target=Fraction(3), orders=tuple(map(Fraction, orders)))


# Neither question has an order that is best in all runs: the first favours low ones.
MENU = (
    question(("0.95", "0.985"), ("0.05", "0.015")),
    question(("0.6", "0.4"), ("0.4", "0.6")),
    question(("0.48", "0.54"), ("0.52", "0.46")),
)


def test_nobody_who_chooses_by_answers_gets_beyond_epsilon_and_delta(tmp_path: Path) -> None:
    ledger = grid(tmp_path, epsilon=1.5, delta=0.04)
    each = [ledger._blocks.keep((asked.spend,)).cost.shares for asked in MENU]

    def accepts(asked: tuple[int, ...], share: Fraction = Fraction(1)) -> bool:
        totals = [
            sum((n * shares[order] for n, shares in zip(asked, each, strict=True)), Fraction(0))
            for order in range(len(each[0]))
        ]
        return share * min(totals) <= 1 and sum(asked) <= 7

    worst = most_delta(MENU, accepts, 1.5)
    assert 0.0005 < worst <= 0.04
    # The enumeration sees a ledger that asks for a fifth of the price.
    assert most_delta(MENU, lambda asked: accepts(asked, Fraction(1, 5)), 1.5) > 0.04


def test_laplace_and_periods_of_other_ledgers_stay(tmp_path: Path) -> None:
    ledger = grid(tmp_path)
    share = ledger.price(Spend(mechanism=Laplace(scale=20), distance=Distance.l1(1)))
    assert 0 < share < Fraction(1, 100)
