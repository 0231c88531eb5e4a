import numpy as np
import polars as pl
import pytest

from sourdine.tables.synthetic.synthesis import carry_out
from sourdine.testing import SeededBits
from tests.tables.synthetic.case import table


@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_totals_that_are_known_are_kept_whatever_the_noise(epsilon: float) -> None:
    people = table(2000)
    totals = {"sex": {"f": 1000, "m": 1500}, "works": {"False": 900, "True": 1600}}
    plan = people.synthetic_plan(epsilon=epsilon, delta=1e-6, totals=totals)
    release = carry_out(plan, people.source, bits=SeededBits(1))
    frame = release.values.to_polars()
    assert len(frame) == 2500
    rounded = 20  # each parent's cell is rounded by itself
    assert len(frame.filter(pl.col("sex") == "f")) == pytest.approx(1000, abs=rounded)
    assert len(frame.filter(pl.col("works"))) == pytest.approx(1600, abs=rounded)
    assert frame["sex"].null_count() <= rounded


def test_totals_of_the_target_are_the_sizes_of_its_parts() -> None:
    people = table(20_000)
    totals = {"town": {"Lille": 10, "Nice": 20, "Toulon": 30, "missing": 0}}
    plan = people.synthetic_plan(epsilon=1, delta=1e-6, target="town", totals=totals)
    release = carry_out(plan, people.source, bits=SeededBits(1))
    assert np.allclose([part.tree.total for part in release.model.parts], [10, 20, 30, 0])
    counted = dict(release.values.to_polars()["town"].value_counts().rows())
    assert counted == {"Lille": 10, "Nice": 20, "Toulon": 30}


@pytest.mark.parametrize("seed", range(6))  # with 3, noise left the only cell that may be without weight
def test_zeros_beside_totals_that_leave_no_table_still_give_rows(seed: int) -> None:
    """A key all of whose people could only be where nobody may be: nothing is raised after payment."""
    people = table(500)
    plan = people.synthetic_plan(
        epsilon=1,
        delta=1e-6,
        zeros=[{"sex": ["m"], "town": ["Lille", "Nice", "Toulon"]}],
        totals={"sex": {"f": 10, "m": 490}, "town": {"Lille": 500, "Nice": 0, "Toulon": 0}},
    )
    frame = carry_out(plan, people.source, bits=SeededBits(seed)).values.to_polars()
    assert len(frame) == 500
    assert frame.filter((pl.col("sex") == "m") & pl.col("town").is_not_null()).is_empty()


@pytest.mark.parametrize("seed", range(4))
def test_zeros_hold_in_a_table_of_nobody(seed: int) -> None:
    """Noise alone is measured, often a total of 0, and the rows that were asked for are drawn."""
    people = table(1)
    plan = people.synthetic_plan(
        epsilon=0.1,
        delta=1e-6,
        rows=400,
        columns=["sex", "town", "works"],
        zeros=[{"sex": ["m"], "town": ["Lille", "Nice"]}, {"town": ["Toulon"], "works": ["True"]}],
    )
    frame = carry_out(plan, people.source, bits=SeededBits(seed)).values.to_polars()
    assert len(frame) == 400
    assert frame.filter((pl.col("sex") == "m") & pl.col("town").is_in(["Lille", "Nice"])).is_empty()
    assert frame.filter((pl.col("town") == "Toulon") & pl.col("works")).is_empty()
