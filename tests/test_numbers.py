"""Every public callable takes every kind of number as the int or float that it is, or refuses it in words."""

import ast
import dataclasses
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import sourdine
from sourdine.accounting import PLD, Spend, Training, group_distance, plan_cost
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.errors import SourdineError
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Gaussian, Laplace
from tests.numbers_examples import EXAMPLES, RECORDS, SLOW, Example
from tests.numbers_found import public_callables

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, np.float32, np.float64, np.longdouble)
NUMBERS = (int, float, Fraction)
_CHECKS = {"rational", "positive", "between", "inside", "integer", "confidence", "share"}


def test_every_public_callable_that_takes_numbers_has_an_example() -> None:
    found = public_callables()
    assert sorted(set(found) - set(EXAMPLES) - RECORDS) == [], (
        "give each of these a line of its own in EXAMPLES of tests/numbers_examples.py: the class, and every "
        "method of it that takes numbers"
    )
    assert sorted((set(EXAMPLES) | RECORDS) - set(found)) == [], (
        "these take no numbers, or are gone: delete their lines in tests/numbers_examples.py"
    )
    for name, examples in EXAMPLES.items():
        assert sorted({number for one in examples for number in one.numbers}) == sorted(found[name]), (
            f"the line of {name} in tests/numbers_examples.py must give all the numbers that it takes"
        )


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - SLOW))
def test_a_number_of_any_kind_is_the_int_or_float_that_it_is(name: str) -> None:
    _take_or_refuse(EXAMPLES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW))
def test_a_number_of_any_kind_where_that_takes_long(name: str) -> None:
    _take_or_refuse(EXAMPLES[name])


def test_what_a_check_returns_is_never_thrown_away() -> None:
    """What is validated is what is kept: a number that was only looked at would go on as it came."""
    thrown = []
    for path in Path(sourdine.__file__).parent.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if re.search(r"^\s*check\.", text, re.MULTILINE) else ():
            match node:
                case ast.Expr(ast.Call(ast.Attribute(ast.Name("check"), name))) if name in _CHECKS:
                    thrown.append(f"{path.name}:{node.lineno}")
    assert thrown == []


def test_numbers_do_not_wrap_round() -> None:
    moved = group_distance(Distance.l2(1, coordinates=1), np.uint8(200))  # type: ignore[arg-type]
    assert (moved.amount, moved.coordinates) == (40_000, 200)
    assert Gaussian(sigma=100).loss(moved).rho == 2
    spend = Spend(mechanism=Laplace(scale=100), distance=Distance.l1(1), count=np.uint8(200))  # type: ignore[arg-type]
    accountant = PLD()
    assert sum(loss.epsilon * count for loss, count in plan_cost([spend, spend], accountant).losses) == 4
    run = Training(size=60_000, batch_size=64, noise_multiplier=1.0, epochs=np.uint16(150))  # type: ignore[arg-type]
    assert run.steps == 150 * 938
    loss = PrivacyLoss.symmetric(GaussianLaw(0.25), neighbours=Neighbours.ADD_REMOVE)
    cost = accountant.repeat(accountant.lift(loss), np.int32(1 << 20))  # type: ignore[arg-type]
    assert accountant.repeat(cost, np.int32(1 << 20)).losses[0][1] == 1 << 40  # type: ignore[arg-type]


def _take_or_refuse(examples: tuple[Example, ...]) -> None:
    for example in examples:
        _take_one(example)


def _take_one(example: Example) -> None:
    expected = example.answer()
    assert _same(expected, example.answer())  # seeded, so that answers can be compared
    for name, value in example.numbers.items():
        for other in _others(value):
            try:
                found = example.answer(**{name: other})
            except (SourdineError, ValidationError):
                continue
            assert _same(expected, found), f"{name} as {type(other).__name__}"
        for other in (True, np.True_):
            try:
                found = example.answer(**{name: other})
            except (SourdineError, ValidationError):
                continue
            assert _same(example.answer(**{name: 1}), found), f"{name}=True"


def _others(value: float | Fraction) -> Iterator[object]:
    """The same number in every other type that holds it."""
    if value == int(value):
        yield int(value)
        for kind in INTEGERS:
            if np.iinfo(kind).min <= value <= np.iinfo(kind).max:
                yield kind(int(value))
                yield np.array(int(value), kind)
        if value <= 127:
            yield Fraction(np.int8(int(value)))  # type: ignore[call-overload] # it holds a byte within
    yield float(value)
    for real in FLOATS:
        with np.errstate(over="ignore"):
            held = real(float(value))
        if np.isfinite(held) and Fraction(float(held)) == Fraction(value):
            yield held
            yield np.array(held)
    yield Fraction(value)
    yield Decimal(float(value))


def _same(one: Any, other: Any) -> bool:
    """Whether two answers are the same through and through, and hold no number of another library."""
    if type(one) in NUMBERS and type(other) in NUMBERS:
        if isinstance(one, Fraction) and type(one.numerator) is not int:
            return False
        return bool(one == other or (one != one and other != other))
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return all(_same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if callable(one) or isinstance(one, str | int | Fraction | None):
        return getattr(one, "__qualname__", one) == getattr(other, "__qualname__", other)
    if hasattr(one, "__dict__"):
        return _same(vars(one), vars(other))
    return bool(one == other)
