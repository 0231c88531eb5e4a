from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from sourdine.accounting import block_loss
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit, Schema
from sourdine.tables import Privacy
from sourdine.tables.synthetic import SyntheticBlock, SyntheticPlan
from sourdine.tables.synthetic.plan import SHARES
from tests.tables.synthetic.case import COLUMNS

SCHEMA = Schema.read(COLUMNS)
PRIVACY = Privacy(epsilon=1, delta=1e-6)


def plan(schema: Schema = SCHEMA, *, size: int | None = None, **fields: Any) -> SyntheticPlan:
    return SyntheticPlan(
        schema=schema,
        privacy=Privacy(epsilon=Fraction(1), delta=1e-6),
        unit=PrivacyUnit("person"),
        block=SyntheticBlock.read(fields),
        size=size,
    )


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
@pytest.mark.parametrize("target", [None, "sex"])
def test_spends_are_the_formula_and_within_the_budget(neighbours: Neighbours, target: str | None) -> None:
    """rho = d m / (2 s1^2) + r e^2 / 8 + (d - 1) m / (2 s2^2), as docs/guarantees/synthetic.md has it."""
    ours = replace(plan(target=target), neighbours=neighbours)
    columns = 5 if target is None else 4
    moved = 2 if neighbours is Neighbours.REPLACE else 1
    noise = ours.noise
    rho = (
        sum(Fraction(moved) / (2 * each.sigma**2) for each in noise.columns)
        + (columns - 1) * noise.edges.epsilon**2 / 8
        + Fraction((columns - 1) * moved) / (2 * noise.pairs.sigma**2)
    )
    assert noise.edges.sensitivity == 16 * moved
    assert block_loss(ours.spends).rho == rho
    assert rho <= PRIVACY.total
    assert float(rho / PRIVACY.total) == pytest.approx(1)
    assert sum(SHARES) == 1


@pytest.mark.parametrize(
    ("names", "kinds"),
    [(["sex"], 1), (["sex", "works"], 2), (["sex", "town"], 3), (["sex", "town", "works"], 4)],
)
def test_what_is_not_needed_is_not_paid_for(names: list[str], kinds: int) -> None:
    ours = plan(columns=names)
    assert len(ours.spends) == kinds
    assert float(block_loss(ours.spends).rho / PRIVACY.total) == pytest.approx(1)


def test_columns_of_many_cells_have_less_noise_and_the_sum_of_errors_is_least() -> None:
    """At the same cost, errors in proportion to cells times sigma add up to more for every other division."""
    ours = plan()
    sizes = [column.size for column in ours.columns]
    sigmas = [float(each.sigma) for each in ours.noise.columns]
    cost = sum(each**-2 for each in sigmas)
    least = sum(size * sigma for size, sigma in zip(sizes, sigmas, strict=True))
    even = (len(sizes) / cost) ** 0.5
    assert least < 0.97 * sum(size * even for size in sizes)
    for power in (-0.4, -0.3, 0.0):
        others = [size**power for size in sizes]
        scale = (sum(each**-2 for each in others) / cost) ** 0.5
        assert least < sum(size * other * scale for size, other in zip(sizes, others, strict=True))


def test_zeros_are_edges_that_nobody_chooses() -> None:
    ours = plan(zeros=[{"sex": ["m"], "town": ["Lille"]}, {"town": ["Nice"], "works": True}])
    assert ours.fixed == ((1, 2), (2, 3))
    assert ours.rounds == 2
    assert not ours.zeros[1, 2][1, 0]
    assert ours.zeros[1, 2].sum() == 3 * 4 - 1


def test_the_declared_columns_have_cells_and_the_unit_has_none() -> None:
    schema = Schema.read({**COLUMNS, "name": {"type": "category", "keys": ["x"]}})
    ours = replace(plan(schema), unit=PrivacyUnit("person", column="name"))
    assert ours.names == tuple(COLUMNS)
    assert [column.size for column in ours.columns] == [17, 3, 4, 3, 17]
    assert "one of the different records" in ours.declared["records"]


def test_more_records_need_more() -> None:
    small, large = plan(size=1000), plan(size=10**6)
    assert small.bytes < large.bytes
    assert small.seconds < large.seconds


@pytest.mark.parametrize(
    ("columns", "values", "seconds", "mebibytes"), [(30, 12, 9.7, 1084), (100, 10, 38, 2872)]
)
def test_forecasts_are_not_below_what_was_measured(
    columns: int, values: int, seconds: float, mebibytes: float
) -> None:
    """The two large tables of the benchmark, a million rows each, alone on a machine."""
    declared = {f"c{place}": {"type": "integer", "lower": 0, "upper": values - 1} for place in range(columns)}
    ours = plan(Schema.read(declared), size=10**6)
    assert seconds < ours.seconds < 1.5 * seconds
    assert mebibytes < ours.bytes / 2**20 < 1.5 * mebibytes


WRONG = {
    "undeclared": ({"columns": ["height"]}, "not declared"),
    "left out and said": ({"leave_out": ["age"], "bins": {"age": 3}}, "leaves out the column 'age'"),
    "nothing": ({"leave_out": list(COLUMNS)}, "no column left"),
    "bins of keys": ({"bins": {"sex": 2}}, "bins, which are for numbers"),
    "bins too narrow": ({"bins": {"age": 500}}, "holds no value"),
    "bins too short": ({"bins": {"age": [0, 50]}}, "from its lower bound 0 to its upper bound 99"),
    "falling bins": ({"bins": {"age": [0, 50, 20, 99]}}, "must rise"),
    "target of numbers": ({"target": "age"}, "must have declared keys"),
    "target alone": ({"target": "sex", "columns": ["sex"]}, "needs other columns"),
    "target left out": ({"target": "sex", "leave_out": ["sex"]}, "leaves out the column 'sex'"),
    "mark": ({"mark": "sex"}, "is a column of the table"),
    "zeros in a ring": (
        {
            "zeros": [
                {"sex": "m", "town": "Nice"},
                {"town": "Nice", "works": True},
                {"sex": "f", "works": True},
            ]
        },
        "close a ring",
    ),
    "zeros of nobody": ({"zeros": [{"sex": ["m"], "pay": ["7"]}]}, "a cell that it does not have"),
    "zeros with the target": (
        {"target": "sex", "zeros": [{"sex": "m", "town": "Nice"}]},
        "Zeros with the target",
    ),
    "totals of nobody": ({"totals": {"sex": {"f": 0, "m": 0}}}, "same number of units, above 0"),
    "totals of another key": ({"totals": {"sex": {"f": 2, "m": 1, "d": 1}}}, "name 'd'"),
    "totals that lack one": ({"totals": {"sex": {"f": 2}}}, "leave out its cell 'm'"),
    "totals that differ": (
        {"totals": {"sex": {"f": 2, "m": 1}, "works": {"False": 3, "True": 1}}},
        "same number of units",
    ),
    "totals of what a target has not": (
        {"target": "town", "totals": {"sex": {"f": 2, "m": 1}}},
        "not those of the parts",
    ),
    "an unknown word": ({"colours": ["age"]}, "colours"),
    "no rows": ({"rows": 0}, "rows"),
}


@pytest.mark.parametrize(("fields", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_in_a_sentence(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        plan(**fields)


def test_a_delta_is_needed() -> None:
    for privacy in (Privacy(epsilon=1), Privacy(epsilon=1, delta=1e-6, selection_delta=1e-6)):
        with pytest.raises(InvalidParameter, match="needs a delta"):
            SyntheticPlan(schema=SCHEMA, privacy=privacy, unit=PrivacyUnit("person"))


def test_keys_of_texts_are_paid_from_the_same_block_or_left_out() -> None:
    schema = Schema.read({**COLUMNS, "note": {"type": "text"}})
    ours = plan(schema)
    assert ours.texts == ("note",)
    assert ours.privacy.selection_delta == 5e-7
    loss = block_loss(ours.spends)
    assert loss.rho <= ours.privacy.total
    assert float(loss.rho / ours.privacy.total) == pytest.approx(1)
    assert 0 < loss.delta <= 5e-7
    chosen = ours.with_keys({"note": ("a", "b")})
    assert (chosen.noise, chosen.spends) == (ours.noise, ours.spends)  # whatever was chosen
    assert chosen.columns[-1].labels == ("a", "b", "missing")
    assert "chosen privately" in ours.notes[0]
    ours = plan(schema, leave_out=["note"])
    assert ours.left_out == ("note",)
    assert ours.declared["left out"] == "note"
    assert not ours.privacy.selection_delta
    with pytest.raises(InvalidParameter, match="leaves nothing of delta"):
        replace(plan(schema), privacy=Privacy(epsilon=1, delta=1e-6, selection_delta=0))


def test_dates_need_periods_that_do_not_come_again() -> None:
    day = {"type": "date", "first": "2024-01-01", "last": "2024-12-31"}
    with pytest.raises(InvalidParameter, match="none is declared"):
        plan(Schema.read({"day": day}))
    with pytest.raises(InvalidParameter, match="again and again"):
        plan(Schema.read({"day": {**day, "period": "weekday"}}))
    assert plan(Schema.read({"day": {**day, "period": "month"}})).columns[0].size == 13


def test_a_model_that_would_not_fit_is_refused_before_payment() -> None:
    keys = list(range(3000))
    schema = Schema.read({"a": {"type": "category", "keys": keys}, "b": {"type": "category", "keys": keys}})
    with pytest.raises(InvalidParameter, match="more than 4,194,304"):
        plan(schema)
    with pytest.raises(InvalidParameter, match="GiB of memory"):
        plan(size=10**12 // 2)


def test_parts_that_noise_would_drown_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="With the target 'town' a part has about 50"):
        plan(target="town", size=200)
    assert plan(target="town", size=200_000).parts == ("Lille", "Nice", "Toulon", "missing")
    assert "No size is declared" in plan(target="town").notes[0]
    many = {"t": {"type": "category", "keys": list(range(300))}, **COLUMNS}
    with pytest.raises(InvalidParameter, match="at most 256 are grown"):
        plan(Schema.read(many), target="t", size=10**8)
