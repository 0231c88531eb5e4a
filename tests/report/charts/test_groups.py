"""Groups below each other: what is drawn, and what is said instead."""

from typing import Any

import numpy as np

from sourdine.frames.keys import Keys
from sourdine.report.charts.answers import draw_groups
from sourdine.report.finding import cells_of
from sourdine.tables import Answer
from sourdine.tables.intervals import GroupEstimate
from tests.report.test_finding import answer


def spec_of(answer: Answer) -> Any:
    return draw_groups(answer, cells_of(answer))


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = spec_of(answer)["datasets"]["rows"]
    return rows


def marks_of(answer: Answer) -> list[str]:
    return [layer["mark"]["type"] for layer in spec_of(answer)["layer"]]


def means(values: list[float], halves: list[float]) -> Answer:
    """Means between 0 and 100, with intervals that end where nothing can be."""
    number, half = np.array(values), np.array(halves)
    return Answer(
        query="q",
        statistic="mean of age",
        kind="mean",
        columns=("town",),
        keys=Keys.of([(f"town {place}",) for place in range(len(values))], 1),
        estimate=GroupEstimate(number, np.maximum(0, number - half), np.minimum(100, number + half)),
        measure="age",
        span=(0.0, 100.0),
    )


def test_counts_are_bars_and_means_are_points() -> None:
    assert marks_of(answer([30, 20], 5)) == ["bar", "rule", "tick", "tick"]
    assert marks_of(means([30, 20], [5, 5])) == ["rule", "tick", "tick", "point"]


def test_of_a_hopeless_group_words_are_drawn_and_no_bar_over_all_that_is_possible() -> None:
    hopeless = means([30, 20, 50, 40], [5, 5, 60, 35])
    first, _, blind, vague = rows_of(hopeless)
    assert (first["value"], first["lower"], first["upper"]) == (30, 25, 35)
    assert "said" not in first
    assert (blind["value"], blind["lower"], blind["upper"]) == (None, None, None)
    assert blind["said"] == "nothing can be said"
    assert (vague["value"], vague["lower"], vague["upper"]) == (None, None, None)
    assert vague["said"] == "0 to 80"
    assert marks_of(hopeless)[-1] == "text"


def test_where_all_are_vague_they_are_drawn() -> None:
    assert [row["value"] for row in rows_of(means([40, 45], [35, 35]))] == [40, 45]


def test_counts_below_0_do_not_stretch_the_axis() -> None:
    below, above = rows_of(answer([-10, 200], 20))
    assert (below["value"], below["lower"], below["upper"]) == (0, 0, 10)
    assert (above["lower"], above["upper"]) == (180, 220)
    assert below["told"] == "-10 (-30 to 10)"


def test_of_many_groups_the_surest_means_and_the_largest_counts_are_drawn() -> None:
    sure = means([50.0] * 20 + [30.0] * 45, [45.0] * 20 + [1.0] * 45)  # the largest are mostly noise
    assert {row["value"] for row in rows_of(sure)} == {30.0}
    keys = [(f"town {place}",) for place in range(60)]
    counts = answer([float(place) for place in range(60)], 5, keys=keys)
    assert [row["value"] for row in rows_of(counts)] == [float(place) for place in range(59, 19, -1)]
