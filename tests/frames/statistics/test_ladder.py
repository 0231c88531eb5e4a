"""Every number has its place on the ladder."""

import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from sourdine.frames import Schema, open_source
from sourdine.frames.rank_counts import NumberLadder


def places(ladder: NumberLadder, values: list[float | None]) -> list[int]:
    table = pa.table({"x": pa.array(values, pa.float64())})
    source = open_source(table, Schema.read({"x": {"type": "real", "lower": -1.0, "upper": 1.0}}))
    return [row[0] for row in source.ask(f"SELECT {ladder.place(source, 'x')} FROM {source.name}")]


@pytest.mark.parametrize("ladder", [NumberLadder(0, 3), NumberLadder(-6, 15)])
def test_places_hold_what_lies_below_their_rung(ladder: NumberLadder) -> None:
    random = np.random.default_rng(1)
    values = [
        *(random.choice([-1, 1], 3000) * 10.0 ** random.uniform(ladder.first - 1, ladder.last, 3000)).tolist()
    ]
    rungs = [ladder.below(place) for place in range(ladder.places)]
    assert rungs[-1] == 10**ladder.last
    assert all(a <= b for a, b in pairwise(rungs))
    values += [float(rung) for rung in rungs]
    for value, place in zip(values, places(ladder, values), strict=True):
        assert value <= float(rungs[place]) * (1 + 1e-11 * math.copysign(1, value))
        if place > 1 and value > 0:
            assert value > float(rungs[place - 1])


def test_the_place_of_minus_x_is_the_mirror_image() -> None:
    ladder, values = NumberLadder(-2, 4), [0.0, 0.001, 0.5, 3.0, 3.1, 99.0, 1e9]
    there = places(ladder, [*values])
    back = places(ladder, [-value for value in values])
    assert [a + b for a, b in zip(there, back, strict=True)] == [ladder.places - 1] * len(values)


def test_what_is_no_number_has_no_place() -> None:
    values = [math.nan, math.inf, -math.inf, None, 1e308, -1e308, 5e-324]
    ladder = NumberLadder(0, 2)
    assert places(ladder, values)[:4] == [-1] * 4
    assert all(0 <= place < ladder.places for place in places(ladder, values)[4:])
