"""The shape of expressions: bounds, texts, forms, and what is refused."""

from datetime import date
from fractions import Fraction

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions import (
    DayKind,
    KeyKind,
    Kind,
    MomentKind,
    NumberKind,
    TextKind,
    TruthKind,
    read_expression,
    write_expression,
)

KINDS: dict[str, Kind] = {
    "age": NumberKind(Fraction(1), 0, 120),
    "pay": NumberKind(Fraction(1, 100), 0, 1_000_000),
    "debt": NumberKind(Fraction(1, 2), -20, 40),
    "region": KeyKind(("north", "south", "south east")),
    "well": TruthKind(),
    "town": TextKind(),
    "start": DayKind(0, 364),
    "end": DayKind(10, 729),
    "seen": MomentKind(0, 10 * 86400 - 1),
}
BOUNDS = [
    ({"add": ["age", 1]}, 1, 121),
    ({"subtract": ["age", 30]}, -30, 90),
    ({"subtract": [30, "age"]}, -90, 30),
    ({"multiply": ["age", "debt"]}, -1200, 2400),
    ({"multiply": ["debt", "debt"]}, 0, 400),
    ({"multiply": ["age", -2]}, -240, 0),
    ({"divide": ["pay", 12]}, 0, Fraction(10000, 12)),
    ({"divide": ["age", {"nullif": ["debt", 0]}]}, -240, 240),
    ({"abs": "debt"}, 0, 20),
    ({"negate": "debt"}, -20, 10),
    ({"floor": {"divide": ["age", 7]}}, 0, 17),
    ({"ceil": {"divide": ["age", 7]}}, 0, 18),
    ({"least": ["age", 100]}, 0, 100),
    ({"greatest": ["debt", 0]}, 0, 20),
    ({"least": ["age", {"case": [[{"equal": [1, 2]}, 5]]}]}, 0, 120),  # such a constant may be missing
    ({"greatest": ["debt", {"case": [[{"equal": [1, 2]}, 5]]}]}, -10, 20),
    ({"clamp": {"days": ["end", "start"]}, "lower": 0, "upper": 365}, 0, 365),
    ({"days": ["end", "start"]}, -354, 729),
    ({"power": ["debt", 2]}, 0, 400),
    ({"power": ["debt", 3]}, -4000, 8000),
    ({"sqrt": {"power": ["debt", 2]}}, 0, 20),
    ({"case": [[{"at_least": ["age", 18]}, "debt"]], "else": -50}, -50, 20),
    ({"coalesce": ["debt", 50]}, -10, 50),
    ({"year_number": "end"}, 1970, 1971),
    ({"hours": ["seen", "start"]}, -8736, 240 - Fraction(1, 3600)),
]


@pytest.mark.parametrize(("form", "lower", "upper"), BOUNDS, ids=str)
def test_bounds_propagate_by_interval_arithmetic(form: object, lower: float, upper: float) -> None:
    kind = read_expression(form).kind(KINDS)
    assert isinstance(kind, NumberKind)
    assert abs(kind.lower - lower) <= kind.step / 2
    assert abs(kind.upper - upper) <= kind.step / 2
    assert kind.high - kind.low <= 1 << 31


KEYS = [
    ({"upper": "region"}, ("NORTH", "SOUTH", "SOUTH EAST")),
    ({"substring": "region", "start": 1, "length": 5}, ("north", "south")),
    ({"bins": "age", "edges": [0, 18, 65]}, ("0 to below 18", "18 to 65")),
    ({"case": [[{"less": ["age", 50]}, {"text": "young"}]], "else": {"text": "old"}}, ("young", "old")),
    ({"month": "start"}, tuple(f"1970-{month:02}" for month in range(1, 13))),
    ({"quarter": "start"}, ("1970-Q1", "1970-Q2", "1970-Q3", "1970-Q4")),
    ({"year": "end"}, ("1970", "1971")),
    ({"week": "seen"}, ("1970-W01", "1970-W02")),
]


@pytest.mark.parametrize(("form", "keys"), KEYS, ids=str)
def test_keys_come_from_declarations(form: object, keys: tuple[str, ...]) -> None:
    kind = read_expression(form).kind(KINDS)
    assert isinstance(kind, KeyKind)
    assert kind.keys == keys


REFUSED = [
    ({"divide": ["pay", {"subtract": ["age", 30]}]}, r"age - 30 may be 0.*NULLIF\(age - 30, 0\)"),
    ({"ln": "age"}, r"age may be 0.*LN\(age \+ 1\)"),
    ({"sqrt": "debt"}, r"debt may be negative.*SQRT\(GREATEST\(debt, 0\)\)"),
    ({"divide": ["age", 0]}, "divides by 0"),
    ({"add": ["age", "region"]}, "needs a number.*'region' is 3 keys"),
    ({"month": "age"}, "needs a date"),
    ({"hour": "start"}, "dates, which have no hour"),
    ({"less": ["region", {"text": "north"}]}, "Keys have no order"),
    ({"in": "region", "keys": ["west"]}, "'west', which the column 'region' does not declare"),
    ({"in": "region", "keys": ["norht"]}, "Did you mean 'north'?"),
    ({"equal": ["age", "region"]}, "does not fit its type"),
    ({"not": "age"}, "needs a condition"),
    ({"upper": "town"}, "text of known keys"),
    ({"add": ["nobody", 1]}, "'nobody' is not declared"),
    ({"nullif": [0, 0]}, "always missing"),
    ({"divide": [1, {"nullif": ["debt", {"case": [[{"equal": [1, 2]}, 0]]}]}]}, "may be 0"),
    ({"divide": [1, {"clamp": {"nullif": ["debt", 0]}, "lower": 0, "upper": 5}]}, "may be 0"),
]


@pytest.mark.parametrize(("form", "told"), REFUSED, ids=str)
def test_what_could_have_no_value_is_refused_with_a_remedy(form: object, told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        read_expression(form).kind(KINDS)


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"ad": ["age", 1]}, "Did you mean 'add'"),
        ({"add": ["age"]}, "a list of 2"),
        ({"power": ["age", 0.5]}, "whole number from 1 to 8"),
        ({"bins": "age", "edges": [3, 2]}, "must rise"),
        ({"in": "age", "keys": []}, "a list"),
        ([], "the name of a column"),
        ({"like": "town", "pattern": 3}, "text is needed"),
        ({"date": "yesterday"}, "written like 2024-12-31"),
    ],
    ids=str,
)
def test_a_form_that_is_none_is_refused(form: object, told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        read_expression(form)


FORMS = [form for form, *_ in (*BOUNDS, *KEYS)] + [
    {"any": [{"at_least": ["age", 18]}, {"in": "region", "keys": ["north"]}]},
    {"all": ["well", {"not": {"missing": "pay"}}]},
    {"like": "town", "pattern": "%ham_"},
    {"less": ["start", "end"]},
    {"at_least": ["start", {"date": "1970-02-01"}]},
    {"less": ["seen", {"datetime": "1970-01-02T12:00:00"}]},
    {"ln": {"add": ["age", 1]}},
    {"weekday": "seen"},
    {"hour_of_day": "seen"},
    {"bins": "pay", "edges": [0, 0.5, "1/3000"][:2], "labels": ["few"]},
    True,
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_form_is_read_as_it_was_written(form: object) -> None:
    tree = read_expression(form)
    again = read_expression(write_expression(tree))
    assert again == tree
    assert hash(again) == hash(tree)
    assert again.text == tree.text
    assert set(tree.columns) <= set(KINDS)


def test_conditions_of_the_first_version_are_the_same_trees() -> None:
    old = read_expression({"column": "age", "keys": None, "at_least": 18, "below": 65})
    assert old == read_expression({"all": [{"at_least": ["age", 18]}, {"less": ["age", 65]}]})
    assert old.words == "age from 18 to below 65"
    assert read_expression({"column": "region", "keys": ["north", "south"]}).words == "region north or south"


@pytest.mark.parametrize(
    ("form", "possible"),
    [
        ({"greater": ["age", 120]}, {False}),
        ({"at_least": ["age", 120]}, {True, False}),
        ({"at_least": ["age", 0]}, {True}),
        ({"equal": ["age", 1.5]}, {False}),
        ({"all": [{"less": ["age", 18]}, {"greater": ["age", 30]}]}, {False}),
        ({"any": [{"less": ["age", 18]}, {"greater": ["age", 300]}]}, {True, False}),
        ({"not": {"at_least": ["age", 0]}}, {False}),
        ({"less": ["end", {"date": date(1970, 1, 11)}]}, {False}),
        ({"greater": ["end", "start"]}, {True, False}),
        ({"like": "region", "pattern": "x%"}, {False}),
    ],
    ids=str,
)
def test_bounds_tell_what_a_condition_may_be(form: object, possible: set[bool]) -> None:
    tree = read_expression(form)
    assert isinstance(tree.kind(KINDS), TruthKind)
    assert tree.possible(KINDS) == possible


def test_an_expression_is_neither_true_nor_false() -> None:
    with pytest.raises(InvalidParameter, match="Write &"):
        bool(read_expression("age"))
