import json
from dataclasses import dataclass
from fractions import Fraction

import pytest

from sourdine.core.codec import decoded, encoded
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter


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
