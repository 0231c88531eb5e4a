"""Which mechanism a name stands for, at which epsilon, and what is taken where none is named."""

import math
import typing
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.tables.quantiles import METHODS, QuantileMethod
from sourdine.tables.quantiles.api import AUTO, TREE, Allowance, Tuning, chosen
from sourdine.tables.quantiles.tree import BinTree
from sourdine.tables.statistics.quantiles import MethodName
from tests.errors import refusal_of

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
def test_auto_goes_by_levels_where_places_and_values_are_many(
    relation: Neighbours, squared: bool, most: int
) -> None:
    allowance = Allowance(budget=Fraction(1), squared=squared)
    for size in (None, 10**6):
        for m, name in [(1, "inverse"), (2, "joint"), (most, "joint"), (most + 1, "recursive")]:
            mechanism, choice = chosen(
                "auto", levels=evenly(m), places=1001, allowance=allowance, neighbours=relation, size=size
            )
            assert choice.name == name
            assert type(mechanism) is METHODS[name].kind
            assert getattr(mechanism, "radius", 0) == 0  # a place beside a tie is as wrong as any
            assert m == 1 or str(relation) in choice.why


@pytest.mark.parametrize(("relation", "most"), [(REPLACE, 8), (ADD_REMOVE, 16)])
def test_auto_counts_few_places_one_by_one(relation: Neighbours, most: int) -> None:
    """Whatever the size: answers from 1 to 5, for instance."""
    for m, size in [(1, None), (1, 10**6), (9, 20), (9, None)]:
        wide = most * (m + 1) // 2
        found, choice = chosen(
            "auto", levels=evenly(m), places=wide, allowance=ONE, neighbours=relation, size=size
        )
        assert found == BinTree(wide, wide, 1)
        assert choice.words == "tree, since so few places are best counted one by one"
        more = chosen(
            "auto", levels=evenly(m), places=wide + 1, allowance=ONE, neighbours=relation, size=10**6
        )
        assert more[1].name != "tree"


FEW = [(REPLACE, 1, 45), (REPLACE, 9, 405), (ADD_REMOVE, 1, 23), (ADD_REMOVE, 9, 450)]


@pytest.mark.parametrize(("relation", "m", "enough"), FEW)
def test_auto_counts_few_values_in_wide_bins(relation: Neighbours, m: int, enough: int) -> None:
    """Few for the epsilon that a level has; without a declared size nothing is known."""
    for budget in (Fraction(1), Fraction(1, 10)):
        given: typing.Any = {
            "levels": evenly(m),
            "places": 10**6,
            "allowance": Allowance(budget=budget),
            "neighbours": relation,
        }
        found, choice = chosen("auto", **given, size=math.ceil(enough / budget) - 1)
        assert isinstance(found, BinTree)
        assert found.height == 1
        assert 5 <= found.fan <= 60
        assert f"{found.fan} bins" in choice.why
        for more in ({"size": math.ceil(enough / budget)}, {}, {"size": 10, "tuning": Tuning(ties=True)}):
            assert chosen("auto", **given, **more)[1].name in ("inverse", "joint")


def test_more_values_are_counted_in_more_bins() -> None:
    """About as many as make the noise of a rank, over all values, half a bin."""
    trees = [
        chosen("auto", levels=evenly(999), places=10**6, allowance=ONE, size=size)[0]
        for size in (100, 1000, 10_000)
    ]
    fans = [tree.fan for tree in trees if isinstance(tree, BinTree)]
    assert fans == [10, 48, 223]  # (n / 3)^(2/3)
    rho = Allowance(budget=Fraction(1, 8), squared=True)  # an epsilon of 1 for the joint method
    found = chosen("auto", levels=evenly(999), places=10**6, allowance=rho, size=1000)[0]
    assert isinstance(found, BinTree)
    assert found.fan == 48


def test_where_values_can_only_be_counted_a_tree_is_taken() -> None:
    found, choice = chosen("auto", levels=[0.5], places=10**6, allowance=ONE, counted=True)
    assert found == BinTree.over(10**6)
    assert "only counted" in choice.why


def test_a_method_takes_what_is_set_of_it() -> None:
    for name, more, field in [
        ("smooth", Tuning(radius=7), "radius"),
        ("inverse", Tuning(radius=7), "radius"),
        ("recursive", Tuning(radius=7), "radius"),
        ("histogram", Tuning(cuts=7), "cuts"),
        ("monotone histogram", Tuning(cuts=7), "cuts"),
    ]:
        mechanism, _ = chosen(name, levels=[0.5], places=100, allowance=ONE, tuning=more)
        assert getattr(mechanism, field) == 7
    assert chosen("tree", levels=[0.5], places=100, allowance=ONE, tuning=Tuning(bins=7))[0] == BinTree(
        100, 7, 1, 15
    )
    assert chosen("tree", levels=[0.5], places=100, allowance=ONE)[0] == BinTree.over(100)
    radii = [getattr(chosen(name, levels=[0.5], places=9, allowance=ONE)[0], "radius", 0) for name in METHODS]
    assert dict(zip(METHODS, radii, strict=True)) == dict.fromkeys(METHODS, 0) | {"smooth": 1}


@pytest.mark.parametrize(
    ("method", "more", "remedy"),
    [
        ("joint", {"radius": 1}, 'It is for "recursive" or "inverse" or "smooth"'),
        ("auto", {"radius": 0}, '"smooth"'),
        ("auto", {"bins": 5}, 'It is for "tree"'),
        ("tree", {"cuts": 5}, '"histogram"'),
        ("inverse", {"ties": True}, 'It is for "auto"'),
    ],
)
def test_what_a_method_does_not_know_is_refused(
    method: str, more: dict[str, typing.Any], remedy: str
) -> None:
    with pytest.raises(InvalidParameter, match=f"must be left out with the method '{method}'.*{remedy}"):
        chosen(method, levels=[0.5], places=9, allowance=ONE, tuning=Tuning(**more))


@pytest.mark.parametrize(
    ("name", "bad"), [("radius", -1), ("radius", 0.5), ("cuts", 0), ("bins", 0), ("bins", "few"), ("ties", 1)]
)
def test_bad_settings_name_themselves(name: str, bad: object) -> None:
    with pytest.raises(InvalidParameter, match=f"The '{name}' of quantiles"):
        Tuning(**{name: bad})  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [{"places": 1 << 42}, {"allowance": Allowance(budget=Fraction(1000))}])
def test_auto_leaves_the_joint_method_where_floats_would_not_do(more: typing.Any) -> None:
    common: typing.Any = {"levels": evenly(29), "places": 1001, "allowance": ONE} | more
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
        mechanism, _ = chosen(name, levels=evenly(m), places=64, allowance=allowance, neighbours=relation)
    except InvalidParameter:
        assert name == "joint"  # whose floats would not do for so small or so large an epsilon
        return
    assert isinstance(mechanism, QuantileMethod)
    loss = mechanism.loss(Distance.hamming(values, neighbours=relation))
    paid = groups * Fraction(loss.rho if squared else loss.epsilon)
    assert budget * Fraction(999_999, 10**6) <= paid <= budget


def test_cut_points_go_by_the_declared_size() -> None:
    cuts = [
        getattr(chosen("histogram", levels=[0.5], places=10**6, allowance=ONE, size=size)[0], "cuts", None)
        for size in (None, 0, 10_000)
    ]
    assert cuts == [1000, 2, 1629]  # 1.5 n / log n


def test_an_unknown_name_lists_the_known_ones() -> None:
    with refusal_of("method", "quantiles"):
        chosen("magic", levels=[0.5], places=9, allowance=ONE)
