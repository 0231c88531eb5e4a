import csv
from pathlib import Path

import numpy as np

from sourdine.tables.mock import COLUMNS, DIAGNOSES, REGIONS, SEXES, draw_register


def test_the_same_seed_gives_the_same_people() -> None:
    one, two, other = draw_register(500, seed=3), draw_register(500, seed=3), draw_register(500, seed=4)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert (one.age != other.age).mean() > 0.5


def test_the_register_has_its_laws() -> None:
    people = draw_register(200_000)
    assert (people.age.min(), people.age.max()) == (18, 99)
    # deciles of the law of ages by hand: below 45 lies 0.42, below 65 lies 0.765
    assert abs((people.age < 45).mean() - 0.42) < 0.01
    assert abs((people.age < 65).mean() - 0.765) < 0.01
    shares = [(people.region == region).mean() for region in REGIONS]
    np.testing.assert_allclose(shares, (0.14, 0.19, 0.24, 0.16, 0.27), atol=0.01)
    assert set(people.sex) == set(SEXES)
    assert set(people.diagnosis) == set(DIAGNOSES)
    young, old = (people.diagnosis[people.age < 30], people.diagnosis[people.age > 70])
    assert (old == "hypertension").mean() > 3 * (young == "hypertension").mean()
    pay = {sex: np.nanmedian(people.salary[people.sex == sex]) for sex in SEXES}
    assert 0.88 < pay["f"] / pay["m"] < 0.96
    assert np.isnan(people.salary[people.age >= 67]).all()
    # of men of 40 in the centre half earn below 39,000 x 1.15 x (1 - exp(-22/9)/2)
    some = people.salary[(people.age == 40) & (people.sex == "m") & (people.region == "centre")]
    assert abs(np.nanmedian(some) / (39_000 * 1.15 * (1 - 0.5 * np.exp(-22 / 9))) - 1) < 0.08


def test_it_is_written_with_empty_cells_for_no_salary(tmp_path: Path) -> None:
    people = draw_register(200)
    people.write(tmp_path / "register.csv")
    with (tmp_path / "register.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [int(row["age"]) for row in rows] == people.age.tolist()
    assert [row["salary"] == "" for row in rows] == np.isnan(people.salary).tolist()
    assert [float(row["salary"]) for row in rows if row["salary"]] == people.salary[
        ~np.isnan(people.salary)
    ].tolist()
