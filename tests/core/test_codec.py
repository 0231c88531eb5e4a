import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import pytest

from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.serialization import added, decoded, encoded


@dataclass(frozen=True, kw_only=True)
class Sample:
    shares: tuple[Fraction, ...]
    counts: tuple[int, ...] = ()
    kind: Neighbours | None = None
    step: Fraction | None = None


def through_json(sample: Sample) -> Sample:
    return decoded(Sample, json.loads(json.dumps(encoded(sample))))


@pytest.mark.parametrize(
    "sample",
    [
        Sample(shares=()),
        Sample(shares=(Fraction(1, 3), Fraction(2)), counts=(1, 10**30)),
        Sample(shares=(Fraction(-7, 10**40),), kind=Neighbours.REPLACE, step=Fraction(1, 8)),
    ],
)
def test_tuples_survive_json(sample: Sample) -> None:
    again = through_json(sample)
    assert again == sample
    assert all(isinstance(share, Fraction) for share in again.shares)
    assert isinstance(again.shares, tuple)


def test_fractions_are_written_out() -> None:
    assert encoded(Sample(shares=(Fraction(1, 3),)))["shares"] == ["1/3"]


@pytest.mark.parametrize("bad", [["1/3", "a"], ["1e3"], ["1/3\n"], ["0x1"], ["1/0"]])
def test_what_does_not_read_like_a_number_is_refused(bad: list[str]) -> None:
    with pytest.raises(InvalidParameter):
        decoded(Sample, {"shares": bad})


def test_a_missing_or_unknown_field_is_named_or_refused() -> None:
    with pytest.raises(InvalidParameter, match="no field 'share'"):
        decoded(Sample, {"share": ["1/3"]})
    with pytest.raises(InvalidParameter, match="incomplete"):
        decoded(Sample, {})


def test_a_tuple_of_anything_else_has_no_json() -> None:
    with pytest.raises(TypeError, match="float"):
        encoded(Sample(shares=(0.5,)))  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Inner:
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Outer:
    time: datetime
    inner: tuple[Inner, ...]
    cells: tuple[tuple[str | float | Decimal | Inner | None, ...], ...] = ()
    texts: Mapping[str, str]
    secure: bool
    extra: Fraction = added(Fraction(0), name="old_extra")


OUTER = Outer(
    time=datetime(2026, 11, 17, 8, tzinfo=UTC),
    inner=(Inner(low=0.1, high=0.2),),
    cells=(("x", 0.5, Decimal("1.50"), Inner(low=1.0, high=2.0), None),),
    texts={"a": "b"},
    secure=True,
)


@pytest.mark.parametrize("outer", [OUTER, replace(OUTER, extra=Fraction(1, 3))])
def test_what_is_nested_survives_json(outer: Outer) -> None:
    text = json.dumps(encoded(outer))
    assert decoded(Outer, json.loads(text), strict=True) == outer
    assert ("old_extra" in text) == bool(outer.extra)


@pytest.mark.parametrize(
    ("name", "bad"),
    [("secure", "false"), ("secure", 1), ("time", 3), ("texts", {"a": 1}), ("inner", {}), ("inner", [3])],
)
def test_strictly_a_value_is_of_its_own_kind(name: str, bad: object) -> None:
    with pytest.raises(InvalidParameter, match="malformed"):
        decoded(Outer, encoded(OUTER) | {name: bad}, strict=True)


def test_exactly_a_float_is_refused() -> None:
    with pytest.raises(TypeError, match="float"):
        encoded(Inner(low=0.1, high=0.2), exact=True)
