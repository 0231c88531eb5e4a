"""Noise on a made-up table, which moves with epsilon."""

from fractions import Fraction

import pytest

from sourdine.studio import steps as noise
from sourdine.studio.steps import MockTable, noise_view
from sourdine.tables import ReleasePlan, Specification, rehearse


def plan_at(epsilon: float, *asked: str) -> ReleasePlan:
    queries = [{"name": f"q{k}", "ask": [each], "by": ["sex"]} for k, each in enumerate(asked or ("count",))]
    blocks = {
        "table": {"source": "people.csv", "size": 400},
        "privacy": {"unit": "person", "epsilon": 1, "quality": False},
        "columns": {
            "sex": {"type": "category", "keys": ["f", "m"]},
            "pay": {"type": "real", "lower": 0, "upper": 100},
        },
        "queries": queries,
    }
    return Specification.read(blocks).plan(Fraction(str(epsilon)))


def widths(epsilon: float) -> list[float]:
    return [bar.upper - bar.lower for bar in noise_view(plan_at(epsilon))["bars"]]


def test_intervals_grow_as_epsilon_falls_on_an_axis_that_stays() -> None:
    assert len({noise_view(plan_at(epsilon))["most"] for epsilon in (0.1, 1, 10)}) == 1
    narrow, middle, wide = (widths(epsilon)[0] for epsilon in (4, 1, 0.1))
    assert narrow < middle < wide
    assert wide / middle == pytest.approx(10, rel=0.2)


def test_the_axis_of_shares_ends_where_they_do() -> None:
    blocks = {
        "table": {"source": "people.csv", "size": 400},
        "privacy": {"unit": "person", "epsilon": 1},
        "columns": {"well": {"type": "flag"}, "sex": {"type": "category", "keys": ["f", "m"]}},
        "queries": [{"name": "q", "ask": [{"proportion": "well"}], "by": ["sex"]}],
    }
    view = noise_view(Specification.read(blocks).plan())
    assert view["least"] == "0"
    assert float(view["most"]) <= 1


def test_another_epsilon_counts_nothing_anew() -> None:
    noise._NEWEST.clear()
    noise_view(plan_at(1))
    (table,) = noise._NEWEST
    noise_view(plan_at(2))
    assert [table] == noise._NEWEST
    assert len(table.counted) == 1
    noise_view(plan_at(1, "count", "units"))
    assert [table] != noise._NEWEST


def test_what_is_drawn_has_the_law_of_the_plan() -> None:
    plan = plan_at(0.5, "count")
    table = MockTable.of(plan)
    drawn = [table.draw(plan, 0).estimate for _ in range(400)]
    centre = table.exact[0].estimate.value[0]
    error = [abs(each.value[0] - centre) for each in drawn]
    # whole Laplace noise of scale 2 is within 2 with a chance of 1 - 2 a^3 / (1 + a), a = exp(-1/2): 0.722.
    # Of 400 draws 245 to 333 are, but for 1e-6; with scales of 1 and 4 it would be 371 and 187 on average.
    assert 245 <= sum(each <= 2 for each in error) <= 333
    assert drawn[0].upper[0] - drawn[0].lower[0] == pytest.approx(
        (whole := rehearse(plan).values.each[0].estimate).upper[0] - whole.lower[0], abs=1
    )
