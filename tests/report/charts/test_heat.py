"""Counts of pairs of keys: their labels and their colours."""

from collections.abc import Sequence
from typing import Any

from sourdine.report.charts.answers import draw_pairs
from sourdine.report.finding import cells_of
from tests.report.test_finding import answer


def heat(first: Sequence[str], second: Sequence[str], value: float = 5000, half: float = 9) -> Any:
    keys = [(one, other) for one in first for other in second]
    drawn = answer([value] * len(keys), half, kind="contingency", keys=keys, columns=("work", "family"))
    return draw_pairs(drawn, cells_of(drawn))


def test_long_names_stand_upright_and_short_ones_do_not() -> None:
    long = heat(["private", "public"], ["married", "never married", "divorced", "widowed"])
    assert long["layer"][0]["encoding"]["x"]["axis"]["labelAngle"] == -90
    assert heat(["private", "public"], ["yes", "no"])["layer"][0]["encoding"]["x"]["axis"]["labelAngle"] == 0


def test_the_fewer_keys_stand_across() -> None:
    many = heat(["yes", "no"], [f"occupation {place}" for place in range(9)])
    assert many["layer"][0]["encoding"]["x"]["title"] == "work"
    assert (
        many["datasets"]["rows"][0] | {"row": "occupation 0", "column": "yes"} == many["datasets"]["rows"][0]
    )


def test_numbers_are_as_small_as_their_cells_and_none_where_that_is_too_small() -> None:
    size = heat(["a", "b"], ["yes", "no"])["layer"][1]["mark"]["fontSize"]["expr"]
    assert size == "bandwidth('x') < 21.7 ? 0 : min(11, bandwidth('x') / 3.10)"


def test_noise_alone_has_no_strong_colours() -> None:
    hidden = heat(["a", "b"], ["yes", "no"], value=20, half=400)
    assert hidden["layer"][0]["encoding"]["color"]["scale"]["domain"] == [0, 400]
