import dataclasses
import json
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import (
    PLD,
    DisjointPart,
    FixedSize,
    Poisson,
    Pure,
    Sampling,
    Shuffled,
    Spend,
    ZeroConcentrated,
    block_loss,
    plan_cost,
)
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.mechanisms import Gaussian, KaryResponse, Laplace
from tests.errors import refusal_of

REPLACE, ZERO_OUT = Neighbours.REPLACE, Neighbours.ZERO_OUT
fractions = st.fractions(Fraction(1, 1000), 1000)
samplings = st.one_of(
    st.none(),
    st.builds(Poisson, sampling_rate=st.fractions(Fraction(1, 10**6), 1)),
    st.builds(
        lambda size, more: FixedSize(batch_size=size, size=size + more), st.integers(1, 99), st.integers(0, 9)
    ),
    st.builds(
        lambda size, more: Shuffled(batch_size=size, size=size + more), st.integers(1, 99), st.integers(0, 9)
    ),
)
mechanisms = st.one_of(
    st.builds(lambda scale: Laplace(scale=scale), fractions),
    st.builds(lambda sigma: Gaussian(sigma=sigma, granularity=Fraction(1, 4096)), fractions),
    st.builds(lambda epsilon: KaryResponse(epsilon=epsilon, categories=4), st.fractions(Fraction(1, 99), 9)),
)
distances = st.one_of(
    st.builds(lambda value, n: Distance.l1(value, neighbours=n), fractions, st.sampled_from(Neighbours)),
    st.builds(lambda value, k: Distance.l2(square=value, coordinates=k), fractions, st.integers(1, 9)),
    st.builds(Distance.hamming, st.integers(1, 5)),
)


@settings(max_examples=40)
@given(
    mechanisms,
    distances,
    st.integers(1, 2**40),
    samplings,
    st.none() | st.builds(DisjointPart, st.text(), st.text()),
)
def test_survives_json(
    mechanism: Laplace, distance: Distance, count: int, sampling: Sampling | None, part: DisjointPart | None
) -> None:
    spend = Spend(mechanism=mechanism, distance=distance, count=count, sampling=sampling, part=part)
    assert Spend.from_json(json.loads(json.dumps(spend.to_json()))) == spend


def laplace(scale: float, relation: Neighbours = Neighbours.ADD_REMOVE, **others: object) -> Spend:
    distance = Distance.l1(1, neighbours=relation)
    return Spend(mechanism=Laplace(scale=Fraction(scale)), distance=distance, **others)  # type: ignore[arg-type]


def test_a_spend_costs_all_its_uses() -> None:
    assert laplace(4, count=3).loss().epsilon == Fraction(3, 4)
    assert laplace(4, count=3).one_loss().epsilon == Fraction(1, 4)


def test_sampling_is_applied() -> None:
    drawn = laplace(1, sampling=Poisson(sampling_rate=Fraction(1, 10)))
    assert drawn.loss().epsilon == pytest.approx(math.log1p(0.1 * math.expm1(1)))
    fixed = laplace(1, REPLACE, sampling=FixedSize(batch_size=1, size=10))
    assert fixed.loss().epsilon == pytest.approx(math.log1p(0.1 * math.expm1(1)))
    assert laplace(1, ZERO_OUT, sampling=Shuffled(batch_size=1, size=10), count=2).loss().epsilon == 2


@pytest.mark.parametrize(
    ("relation", "sampling"),
    [
        (REPLACE, Poisson(sampling_rate=Fraction(1, 2))),
        (Neighbours.ADD_REMOVE, FixedSize(batch_size=1, size=2)),
        (ZERO_OUT, FixedSize(batch_size=1, size=2)),
        (Neighbours.ADD_REMOVE, Shuffled(batch_size=1, size=2)),
    ],
)
def test_a_sampling_for_another_relation_is_refused(relation: Neighbours, sampling: Sampling) -> None:
    with pytest.raises(UnsupportedLoss, match="State the distance"):
        laplace(1, relation, sampling=sampling).loss()


def test_families_cost_their_worst_part_and_add_up() -> None:
    regions = [laplace(k, part=DisjointPart("region", str(k))) for k in (2, 3, 4)]
    more = [laplace(4, part=DisjointPart("region", "4"), count=2)]
    sexes = [laplace(8, part=DisjointPart("sex", key)) for key in "fm"]
    assert block_loss(regions).epsilon == Fraction(1, 2)
    assert block_loss(regions + more).epsilon == Fraction(3, 4)
    assert block_loss([*regions, *sexes, laplace(10)]).epsilon == Fraction(1, 2) + Fraction(1, 8) + Fraction(
        1, 10
    )


def test_parts_are_refused_where_units_are_replaced() -> None:
    with pytest.raises(UnsupportedLoss, match="may leave one part and enter another"):
        block_loss([laplace(k, REPLACE, part=DisjointPart("region", str(k))) for k in (2, 3, 4)])


def test_a_plan_by_an_accountant() -> None:
    plan = [
        laplace(3, count=4),
        Spend(mechanism=Gaussian(sigma=4), distance=Distance.l2(1), count=2),
        laplace(5, part=DisjointPart("sex", "f")),
        laplace(6, part=DisjointPart("sex", "m")),
    ]
    cost = plan_cost(plan, ZeroConcentrated())
    assert cost.rho == 4 * Fraction(1, 18) + 2 * Fraction(1, 32) + Fraction(1, 50)
    sharp, block = (
        PLD().epsilon(plan_cost(plan, PLD()), 1e-6),
        PLD().epsilon(PLD().lift(block_loss(plan)), 1e-6),
    )
    assert sharp.upper <= ZeroConcentrated().epsilon(cost, 1e-6).upper
    assert sharp.upper == pytest.approx(block.upper, abs=2e-3)


def test_equal_spends_are_counted_together() -> None:
    cost = plan_cost([laplace(3), laplace(3, count=2), laplace(3)], PLD())
    assert [count for _, count in cost.losses] == [4]


def test_mixed_relations_are_refused() -> None:
    with pytest.raises(UnsupportedLoss, match="One loss is stated for"):
        plan_cost([laplace(1), laplace(1, REPLACE)], Pure())
    with pytest.raises(UnsupportedLoss, match="One loss is stated for"):
        block_loss(
            [laplace(1, part=DisjointPart("a", "1")), laplace(1, REPLACE, part=DisjointPart("a", "2"))]
        )


@pytest.mark.parametrize("plan", [block_loss, lambda spends: plan_cost(spends, Pure())])
def test_an_empty_plan_is_refused(plan: object) -> None:
    with pytest.raises(InvalidParameter, match="at least one spend"):
        plan([])  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("mechanism", "Laplace"),
        ("distance", 1),
        ("count", 0),
        ("count", 1.5),
        ("sampling", 0.1),
        ("part", "f"),
    ],
)
def test_bad_fields_name_themselves(name: str, bad: Any) -> None:
    with refusal_of(name, "Spend"):
        dataclasses.replace(laplace(1), **{name: bad})


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Poisson(sampling_rate=Fraction(3, 2)), "sampling_rate"),
        (lambda: Poisson(sampling_rate=0), "sampling_rate"),
        (lambda: FixedSize(batch_size=3, size=2), "batch_size"),
        (lambda: FixedSize(batch_size=1, size=0), "size"),
        (lambda: Shuffled(batch_size=3, size=2), "batch_size"),
        (lambda: DisjointPart("family", 3), "key"),  # type: ignore[arg-type]
    ],
)
def test_bad_samplings_and_parts_are_refused(make: object, name: str) -> None:
    with pytest.raises(InvalidParameter, match=f"'{name}' of"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": None},
        {"distance": 3},
        {"sampling": {"sampling": "Systematic"}},
        {"sampling": "Poisson"},
        {"part": {"family": "a"}},
        {"count": "many"},
        {"colour": 1},
        {"distance": {"norm": "L1", "amount": "1/0", "coordinates": None, "neighbours": "replace"}},
        {"distance": {"norm": "L7", "amount": "1", "coordinates": None, "neighbours": "replace"}},
        {"distance": {"norm": "L1", "amount": "1", "weight": 3}},
    ],
)
def test_a_bad_description_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        Spend.from_json(laplace(1).to_json() | change)


def test_a_part_has_one_name_however_its_letters_are_put_together() -> None:
    """As two parts the same people would pay for one of two releases."""
    composed, apart = "Besan\u00e7on", "Besanc\u0327on"
    one = Spend(mechanism=Laplace(scale=2), distance=Distance.l1(1), part=DisjointPart("city", composed))
    other = dataclasses.replace(one, part=DisjointPart("city", apart))
    assert one == other
    assert block_loss([one, other]).epsilon == 1
    again = Spend.from_json({**one.to_json(), "part": {"family": "city", "key": apart}})
    assert again == one
