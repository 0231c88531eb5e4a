"""Which mechanism a name stands for, at which epsilon, and what is taken where none is named."""

import typing
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.tables.aggregate import MethodName
from sourdine.tables.quantiles.choice import AUTO, METHODS, TREE, Allowance, chosen

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
ONE = Allowance(budget=Fraction(1))


def evenly(m: int) -> list[float]:
    return [i / (m + 1) for i in range(1, m + 1)]


def test_queries_know_the_same_names() -> None:
    assert set(typing.get_args(MethodName)) == {AUTO, TREE, *METHODS}


@pytest.mark.parametrize(
    ("relation", "squared", "most"),
    [(REPLACE, False, 29), (ADD_REMOVE, False, 14), (REPLACE, True, 5), (ADD_REMOVE, True, 2)],
)
def test_auto_goes_by_what_is_declared(relation: Neighbours, squared: bool, most: int) -> None:
    allowance = Allowance(budget=Fraction(1), squared=squared)
    for m, name in [(1, "smooth"), (2, "joint"), (most, "joint"), (most + 1, "recursive"), (99, "recursive")]:
        mechanism, choice = chosen(
            "auto", at=evenly(m), places=1001, allowance=allowance, neighbours=relation
        )
        assert choice.name == name
        assert type(mechanism) is METHODS[name].kind
        assert m == 1 or str(relation) in choice.why


@pytest.mark.parametrize("more", [{"places": 1 << 42}, {"allowance": Allowance(budget=Fraction(1000))}])
def test_auto_leaves_the_joint_method_where_floats_would_not_do(more: typing.Any) -> None:
    common: typing.Any = {"at": evenly(29), "places": 1001, "allowance": ONE} | more
    assert chosen("auto", **common)[1].name == "recursive"
    with pytest.raises(InvalidParameter, match="JointExponential"):
        chosen("joint", **common)


@given(
    st.sampled_from(list(METHODS)),
    st.integers(1, 12),
    st.fractions(Fraction(1, 100), 20),
    st.booleans(),
    st.integers(1, 50),
    st.integers(1, 50),
    st.sampled_from([REPLACE, ADD_REMOVE]),
)
def test_the_allowance_is_spent_and_never_exceeded(
    name: str, m: int, budget: Fraction, squared: bool, values: int, groups: int, relation: Neighbours
) -> None:
    allowance = Allowance(budget=budget, squared=squared, values=values, groups=groups)
    try:
        mechanism, _ = chosen(name, at=evenly(m), places=64, allowance=allowance, neighbours=relation)
    except InvalidParameter:
        assert name == "joint"  # whose floats would not do for so small or so large an epsilon
        return
    loss = mechanism.loss(Distance.hamming(values, neighbours=relation))
    paid = groups * Fraction(loss.rho if squared else loss.epsilon)
    assert budget * Fraction(999_999, 10**6) <= paid <= budget


def test_cut_points_go_by_the_declared_size() -> None:
    cuts = [
        chosen("histogram", at=[0.5], places=10**6, allowance=ONE, size=size)[0].to_json()["cuts"]
        for size in (None, 0, 10_000)
    ]
    assert cuts == [1000, 2, 1629]  # 1.5 n / log n


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidParameter, match="'method' of quantiles must be one of auto, tree, joint"):
        chosen("magic", at=[0.5], places=9, allowance=ONE)
