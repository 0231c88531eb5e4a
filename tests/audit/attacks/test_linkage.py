from collections import Counter

import numpy as np
import pytest

from sourdine.anonymity import Demand, generalise
from sourdine.audit.attacks import AttackResult, linkage
from sourdine.audit.attacks.targets import HIERARCHIES, QUASI, SECRET, draw_patients, relation
from sourdine.testing import SeededBits


@pytest.fixture(scope="module")
def found() -> AttackResult:
    return linkage.run(SeededBits(1))


@pytest.mark.slow
def test_it_names_the_patients_and_fails_on_the_coarser_table(found: AttackResult) -> None:
    assert found.unprotected.success > 0.99
    assert found.protected.success < 0.05
    assert found.succeeds
    assert found.stopped
    assert found.chance == 1 / 60_000


@pytest.mark.slow
def test_the_more_is_known_the_more_are_named(found: AttackResult) -> None:
    (chart,) = found.charts
    shares = {each.place: each.value for each in chart.points}
    by_place = [
        shares[f"sex, postcode{rest}"]
        for rest in ("", *(f", {x} of birth" for x in ("year", "month", "date")))
    ]
    assert by_place == sorted(by_place)
    assert by_place[0] < 0.02
    assert by_place[1] < 0.6 < 0.9 < by_place[2]


@pytest.mark.slow
def test_the_success_is_one_over_the_number_who_fit(found: AttackResult) -> None:
    people = draw_patients(linkage.PEOPLE, SeededBits(1))
    keys = list(zip(people.sex, people.postcode, (day[:4] for day in people.born), strict=True))
    crowd = Counter(keys)
    expected = sum(1 / crowd[key] for key in keys[: linkage.PATIENTS]) / linkage.PATIENTS
    told = {each.place: each.value for each in found.charts[0].points}["sex, postcode, year of birth"]
    assert abs(told - expected) < 5 * np.sqrt(0.25 / linkage.PATIENTS)


def test_who_holds_the_list_coarsens_it_as_the_table_is() -> None:
    people = draw_patients(3000, SeededBits(3))
    made = generalise(
        relation(people.columns),
        Demand(k=5),
        quasi=QUASI,
        sensitive=[SECRET],
        hierarchies=HIERARCHIES,
        suppress=0.2,
    )
    coarse = [linkage.coarsened(people.columns[name], name, made) for name in QUASI]
    listed = Counter(zip(*coarse, strict=True))
    published = Counter(row[:3] for row in made.rows())
    assert all(listed[key] == many for key, many in published.items())
    assert min(published.values()) >= 5
